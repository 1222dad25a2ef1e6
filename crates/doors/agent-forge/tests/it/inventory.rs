//! What the upstream operator's own tests hold, where no other test here does.

use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use roost_agent_forge::api::{ActionKind, Phase, Reason, VsphereAgentPool};
use roost_agent_forge::{alternate_name, outside};
use roost_vcenter_sim::{Action, Power, Rule};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::lab::{Lab, NS, POOL, mins, pool_json};

const PIN: &str = "/spec/agentLabelSelector/matchLabels/agent-forge.containeroo.ch~1agent-machine";

fn secs(seconds: u64) -> std::time::Duration {
    std::time::Duration::from_secs(seconds)
}

/// Four AgentMachines of which three are ready: the plan is counted and nothing is made in a dry run.
#[tokio::test(start_paused = true)]
async fn a_plan_is_counted_and_shown_without_a_call_to_the_vcenter() {
    let lab = Lab::new().await;
    let agents: kube::Api<DynamicObject> =
        kube::Api::namespaced_with(lab.client.clone(), NS, &outside::agents());
    for number in 1..=4 {
        let name = format!("am-{number}");
        lab.add_agent_machine(&name).await;
        if number == 4 {
            continue;
        }
        let mut agent = DynamicObject::new(&format!("agent-{number}"), &outside::agents())
            .within(NS)
            .data(json!({"spec": {"approved": true, "role": "worker", "hostname": name, "clusterDeploymentName": {"name": "blue", "namespace": "blue-blue"}}}));
        let labels = [
            ("tenant", "blue"),
            ("infraenvs.agent-install.openshift.io", "blue-env"),
            ("agentMachineRef", name.as_str()),
        ];
        agent.metadata.labels = Some(labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
        agents.create(&PostParams::default(), &agent).await.unwrap();
        let status = json!({"status": {"ready": true, "agentRef": {"namespace": NS, "name": format!("agent-{number}")},
            "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}]}});
        let api = lab.agent_machines_api();
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    }
    lab.apply_pool(json!({"spec": {"dryRun": true}})).await;
    let forge = lab.forge();
    sleep(mins(2)).await;
    let status = lab.pool().await.status;
    assert_eq!((status.desired_replicas, status.agent_machines), (4, 4));
    assert_eq!((status.waiting_agent_machines, status.agent_machines_without_agent), (1, 1));
    assert_eq!((status.matching_agents, status.bound_agents, status.available_agents), (3, 3, 0));
    let kinds: Vec<_> = status.planned_actions.iter().map(|action| action.kind).collect();
    assert_eq!(kinds, [ActionKind::DemandDeficit]);
    let said = |kind: &str| status.conditions.iter().find(|it| it.type_ == kind).unwrap().clone();
    assert_eq!(
        said("CapacitySatisfied").message,
        "agentMachines=4 waitingAgentMachines=1 unreadyAgentMachines=1 agentMachinesWithoutAgent=1 matchingAgents=3 pendingOwnedVMs=0 boundAgents=3 availableAgents=0"
    );
    assert_eq!(
        said("AgentMachineDemandFound").message,
        "agentMachines=4 waitingForAgents=1 unready=1 withoutAgent=1"
    );
    assert!(lab.vsphere_agents().await.is_empty(), "existing Agents get none either");
    assert_eq!(lab.vcenter.counters().calls_of("CreateVM_Task"), 0);
    assert!(forge.metrics().contains(
        r#"agent_forge_pool_capacity{namespace="blue",pool="blue-gp",state="demand_deficit"} 1"#
    ));
    assert!(forge.metrics().contains(
        r#"agent_forge_pool_vm_memory_bytes{namespace="blue",pool="blue-gp"} 2147483648"#
    ));
    forge.stop().await;
}

#[tokio::test(start_paused = true)]
async fn demand_is_found_also_where_there_is_none() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.until("it is said", mins(1), async |lab| {
        let all = lab.pool().await.status.conditions;
        all.iter().any(|it| {
            it.type_ == "AgentMachineDemandFound" && it.status == "True" && it.reason == "Observed"
        })
    })
    .await;
    let status = lab.pool().await.status;
    assert_eq!(status.planned_actions[0].kind, ActionKind::Noop);
    forge.stop().await;
}

/// The names, labels and the pin that join the chain; a second pass changes nothing.
#[tokio::test(start_paused = true)]
async fn a_waiting_machine_gets_one_vsphere_agent_with_its_names_and_a_pin() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    sleep(mins(1)).await;
    lab.add_agent_machine("am-1").await;
    lab.until("a VsphereAgent", mins(1), async |lab| lab.vsphere_agents().await.len() == 1).await;
    let agent = lab.vsphere_agents().await.remove(0);
    assert_eq!((agent.name_any().as_str(), agent.spec.pool_ref.name.as_str()), ("am-1", POOL));
    let labels = agent.labels();
    assert_eq!(labels["agent-forge.containeroo.ch/vsphere-agent-pool"], POOL);
    assert_eq!(labels["agent-forge.containeroo.ch/created-for"], "agent-machine");
    assert_eq!(labels["agent-forge.containeroo.ch/agent-machine"], "am-1");
    assert_eq!(agent.annotations()["agent-forge.containeroo.ch/vm-name"], "am-1");
    let owner = &agent.owner_references()[0];
    assert_eq!((owner.kind.as_str(), owner.controller), ("VsphereAgentPool", Some(true)));
    let machine = lab.agent_machines_api().get("am-1").await.unwrap();
    assert_eq!(machine.data.pointer(PIN), Some(&json!("am-1")));
    assert_eq!(machine.data["spec"]["agentLabelSelector"]["matchLabels"]["tenant"], "blue");
    sleep(mins(5)).await;
    let all = lab.vsphere_agents().await;
    assert_eq!((all.len(), all[0].uid()), (1, agent.uid()));
    forge.stop().await;
}

/// The name is another pool's: an alternate one, and the VM is still called like the machine.
#[tokio::test(start_paused = true)]
async fn a_name_that_another_pool_has_leads_to_an_alternate_one() {
    let lab = Lab::new().await;
    lab.add_vsphere_agent("am-1", json!({"spec": {"poolRef": {"name": "green"}}})).await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.add_agent_machine("am-1").await;
    lab.until("another one", mins(2), async |lab| lab.vsphere_agents().await.len() == 2).await;
    let wanted = alternate_name(NS, POOL, "blue-blue", "am-1");
    let agent = lab.agents_api().get(&wanted).await.unwrap();
    assert_eq!(agent.labels()["agent-forge.containeroo.ch/agent-machine"], "am-1");
    assert_eq!(agent.vm_name(), "am-1");
    lab.until("its VM", mins(5), async |lab| lab.node_vms() == ["am-1"]).await;
    forge.stop().await;
}

#[tokio::test(start_paused = true)]
async fn several_pools_for_one_machine_or_a_pool_that_goes_make_nothing() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let mut twin = pool_json();
    twin["metadata"]["name"] = json!("twin");
    twin["metadata"]["finalizers"] = json!(["example.com/keep"]);
    let twin: VsphereAgentPool = serde_json::from_value(twin).unwrap();
    lab.pools().create(&PostParams::default(), &twin).await.unwrap();
    let forge = lab.forge();
    lab.add_agent_machine("am-1").await;
    sleep(mins(10)).await;
    assert!(lab.vsphere_agents().await.is_empty(), "which one is for a person to say");
    // One of them is deleted, and the other serves.
    lab.pools().delete("twin", &DeleteParams::default()).await.unwrap();
    lab.until("the other one serves", mins(5), async |lab| {
        lab.vsphere_agents().await.iter().any(|it| it.spec.pool_ref.name == POOL)
    })
    .await;
    // The finalizer of somebody else is theirs to remove.
    lab.until("only theirs is left", mins(5), async |lab| {
        lab.pools().get("twin").await.unwrap().finalizers() == ["example.com/keep"]
    })
    .await;
    forge.stop().await;
}

/// The pool waits for its VsphereAgents, which wait for their VMs.
#[tokio::test(start_paused = true)]
async fn a_pool_goes_after_its_vsphere_agents_and_keeps_what_others_wrote() {
    let lab = Lab::with(1, |sim| sim.registers_after = mins(10_000)).await;
    lab.apply_pool(json!({"metadata": {"finalizers": ["example.com/keep"]}})).await;
    let forge = lab.forge();
    lab.add_agent_machine("am-1").await;
    lab.until("a VM", mins(5), async |lab| lab.node_vms().len() == 1).await;
    // A condition and an ISO that somebody else wrote survive our writes.
    let theirs = json!({"type": "Theirs", "status": "True", "reason": "Said", "message": "", "lastTransitionTime": "2026-07-01T00:00:00Z"});
    let mut conditions: Vec<Value> =
        serde_json::from_value(json!(lab.pool().await.status.conditions)).unwrap();
    conditions.push(theirs);
    let status = json!({"status": {"conditions": conditions}});
    lab.pools().patch_status(POOL, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    sleep(mins(3)).await;
    let pool = lab.pool().await;
    assert!(pool.status.conditions.iter().any(|it| it.type_ == "Theirs"));
    assert!(pool.status.conditions.iter().any(|it| it.type_ == "ISOReady" && it.status == "True"));
    assert!(pool.status.iso.is_some());
    assert!(
        pool.finalizers().contains(&"agent-forge.containeroo.ch/vsphere-agent-pool".to_owned())
    );

    lab.vcenter
        .faults()
        .add(Rule::new("Destroy_Task", Action::fail_task("TaskInProgress", "busy")).times(3));
    lab.pools().delete(POOL, &DeleteParams::default()).await.unwrap();
    lab.until("the VsphereAgent goes", mins(1), async |lab| {
        lab.vsphere_agents().await[0].is_deleting()
    })
    .await;
    assert_eq!(lab.pool().await.finalizers().len(), 2, "not before its VM is gone");
    lab.until("only theirs is left", mins(10), async |lab| {
        lab.pool().await.finalizers() == ["example.com/keep"]
    })
    .await;
    assert!(lab.node_vms().is_empty());
    let machine = lab.agent_machines_api().get("am-1").await.unwrap();
    assert_eq!(machine.data.pointer(PIN), None, "W24: the pin goes with the pool");
    forge.stop().await;
}

/// A name by annotation; a record of an adopted VM; a VM that two objects stand for; an object whose pool is gone.
#[tokio::test(start_paused = true)]
async fn vsphere_agents_that_people_write_are_served_as_before() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let created =
        |value: &str| json!({"labels": {"agent-forge.containeroo.ch/created-for": value}});
    lab.add_vsphere_agent(
        "by-hand",
        json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/vm-name": "other-name"}}}),
    )
    .await;
    lab.add_vsphere_agent("adopted", json!({"metadata": created("adopted")})).await;
    lab.add_vm("nodes/blue", "shared").await;
    let uuid = lab.vcenter.vm("shared").unwrap().uuid;
    let record = json!({"vm": {"name": "shared", "biosUUID": uuid, "phase": "Bound", "reason": "AgentBound"}});
    let protect = json!({"annotations": {"agent-forge.containeroo.ch/protect": "true"}});
    lab.add_vsphere_agent("shared", json!({"metadata": protect, "status": record})).await;
    let mut twin = json!({"metadata": created("adopted"), "status": record});
    twin["metadata"]["annotations"] = protect["annotations"].clone();
    lab.add_vsphere_agent("twin", twin).await;
    lab.add_vsphere_agent("lost", json!({"spec": {"poolRef": {"name": "gone"}}, "metadata": {"finalizers": ["agent-forge.containeroo.ch/vsphere-agent"]}})).await;
    let forge = lab.forge();
    lab.until("the annotated name", mins(5), async |lab| {
        lab.node_vms().contains(&"other-name".to_owned())
    })
    .await;
    let adopted = lab.agents_api().get("adopted").await.unwrap();
    let vm = adopted.recorded().unwrap();
    assert_eq!(vm.phase, Some(Phase::Provisioning));
    assert!(matches!(vm.reason, Some(Reason::VmAdopted | Reason::AgentNotDiscovered)), "{vm:?}");
    let ready = |agent: &roost_agent_forge::api::VsphereAgent| {
        let found = agent.status.conditions.iter().find(|it| it.type_ == "Ready").unwrap();
        (found.status.clone(), found.reason.clone())
    };
    assert_eq!(ready(&adopted), ("True".into(), "VMAdopted".into()));
    let lost = lab.agents_api().get("lost").await.unwrap();
    assert_eq!(ready(&lost), ("False".into(), "PoolNotFound".into()));
    // The VM stays while another object stands for it, and the object without a pool goes at once.
    lab.agents_api().patch("twin", &PatchParams::default(), &Patch::Merge(json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/force-delete": "true"}}}))).await.unwrap();
    for name in ["twin", "lost"] {
        lab.delete_vsphere_agent(name).await;
    }
    lab.until("both are gone", mins(2), async |lab| {
        let names: Vec<_> = lab.vsphere_agents().await.iter().map(ResourceExt::name_any).collect();
        !names.contains(&"twin".to_owned()) && !names.contains(&"lost".to_owned())
    })
    .await;
    sleep(mins(5)).await;
    assert_eq!(lab.vcenter.vm("shared").unwrap().uuid, uuid);
    forge.stop().await;
}

/// Not at the next resync: a change of any neighbour's object is acted on at once.
#[tokio::test(start_paused = true)]
async fn a_change_of_a_neighbours_object_is_acted_on_at_once() {
    let lab = Lab::with(1, |sim| sim.tick = secs(3600)).await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    sleep(mins(3)).await;
    lab.add_agent_machine("am-1").await;
    let waiting = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "NoSuitableAgents"}]}});
    lab.agent_machines_api()
        .patch_status("am-1", &PatchParams::default(), &Patch::Merge(waiting))
        .await
        .unwrap();
    let begin = Instant::now();
    lab.until("a VsphereAgent", secs(30), async |lab| !lab.vsphere_agents().await.is_empty()).await;
    assert!(begin.elapsed() < secs(5), "{:?}", begin.elapsed());
    lab.until("a VM that runs", mins(5), async |lab| {
        lab.vcenter.vm("am-1").is_some_and(|vm| vm.power == Power::On)
    })
    .await;
    sleep(mins(2)).await;
    // An Agent that says who it is only later.
    let agents: kube::Api<DynamicObject> =
        kube::Api::namespaced_with(lab.client.clone(), NS, &outside::agents());
    let mut agent = DynamicObject::new("late", &outside::agents())
        .within(NS)
        .data(json!({"spec": {"approved": false, "role": ""}}));
    agent.metadata.labels = Some(
        [("tenant", "blue"), ("infraenvs.agent-install.openshift.io", "blue-env")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
    );
    agents.create(&PostParams::default(), &agent).await.unwrap();
    sleep(secs(61)).await;
    let mac = lab.vsphere_agents().await[0].recorded().unwrap().mac_address.replace('-', ":");
    let status = json!({"status": {"inventory": {"interfaces": [{"macAddress": mac}]}}});
    agents.patch_status("late", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let begin = Instant::now();
    lab.until("it is prepared", secs(30), async |_| {
        agents.get("late").await.unwrap().data["spec"]["hostname"] == "am-1"
    })
    .await;
    assert!(begin.elapsed() < secs(5), "{:?}", begin.elapsed());
    let found = agents.get("late").await.unwrap();
    assert_eq!(found.labels()["agent-forge.containeroo.ch/agent-machine"], "am-1");
    // It is bound: the phase follows, on both objects.
    let bound = json!({"metadata": {"labels": {"agentMachineRef": "am-1"}}, "spec": {"clusterDeploymentName": {"name": "blue"}}});
    agents.patch("late", &PatchParams::default(), &Patch::Merge(bound)).await.unwrap();
    lab.until("bound", secs(5), async |lab| {
        let agents = lab.vsphere_agents().await;
        let vm = agents[0].recorded().unwrap();
        vm.phase == Some(Phase::Bound)
            && vm.agent_ref.as_ref().unwrap().name.as_deref() == Some("late")
            && vm.machine_ref.as_ref().unwrap().name.as_deref() == Some("am-1")
    })
    .await;
    forge.stop().await;
}

/// W14: VMs of a pool are made side by side, and one that takes long holds up nobody.
#[tokio::test(start_paused = true)]
async fn vms_are_made_side_by_side_and_a_slow_one_holds_up_nobody() {
    let lab = Lab::new().await;
    lab.vcenter.faults().add(Rule::new("CreateVM_Task", Action::DelayTask(mins(30))).once());
    lab.apply_pool(json!({"spec": {"discovery": {"timeout": "3h"}}})).await;
    let forge = lab.forge();
    lab.until("an ISO", mins(2), async |lab| lab.pool().await.status.iso.is_some()).await;
    lab.neighbours.scale(6);
    lab.until("all are asked for", mins(1), async |lab| {
        lab.vcenter.counters().calls_of("CreateVM_Task") == 6
    })
    .await;
    lab.until("five run", mins(5), async |lab| {
        let on = |name: &String| lab.vcenter.vm(name).is_some_and(|vm| vm.power == Power::On);
        lab.node_vms().iter().filter(|name| on(name)).count() == 5
    })
    .await;
    lab.until("six nodes", mins(90), async |lab| lab.ready_nodes().await == 6).await;
    assert_eq!(lab.node_vms().len(), 6, "the slow one was asked for again, and is there once");
    forge.stop().await;
}

/// W16: an Agent that cannot be prepared keeps nobody else from being prepared, and nothing from being deleted.
#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_be_prepared_holds_up_nobody() {
    use roost_kube_sim::{Action as KubeAction, Rule as KubeRule};
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    lab.neighbours.scale(3);
    lab.until("VMs", mins(5), async |lab| lab.node_vms().len() == 3).await;
    // The name of an Agent is the uuid of its VM in the other byte order; the second node's is refused.
    let uuid = lab.vcenter.vm("blue-gp-0002").unwrap().uuid;
    let turn = |part: &str| -> String {
        part.as_bytes().chunks(2).rev().map(|pair| String::from_utf8_lossy(pair)).collect()
    };
    let parts: Vec<String> = uuid
        .split('-')
        .enumerate()
        .map(|(index, part)| if index < 3 { turn(part) } else { part.to_owned() })
        .collect();
    lab.kube.add_rule(KubeRule {
        verb: "patch".into(),
        resource: "agents.agent-install.openshift.io".into(),
        name: parts.join("-"),
        user: crate::lab::DOOR.into(),
        action: KubeAction::Status { code: 500 },
        ..KubeRule::default()
    });
    lab.until("the other is a node", mins(60), async |lab| lab.ready_nodes().await == 2).await;
    let pool = lab.pool().await;
    let ready = pool.status.conditions.iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "ApplyFailed"));
    lab.kube.clear_rules();
    lab.until("all are nodes", mins(60), async |lab| lab.ready_nodes().await == 3).await;
    forge.stop().await;
}
