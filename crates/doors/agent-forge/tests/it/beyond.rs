//! What the upstream operator does not have.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt};
use roost_agent_forge::api::Phase;
use roost_agent_forge::outside;
use roost_door::{Action as OfPerson, Found, FrontDoor, Order, Person, Shown};
use roost_kube_sim::{Action, Rule};
use roost_views::NeedKind;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{DOOR, Lab, POOL, mins};

fn condition(pool: &roost_agent_forge::api::VsphereAgentPool, kind: &str) -> (String, String) {
    let found = pool.status.conditions.iter().find(|it| it.type_ == kind);
    found.map(|it| (it.status.clone(), it.message.clone())).unwrap_or_default()
}

/// F1: an AgentMachine gets a VM whose Agent was there before.
#[tokio::test(start_paused = true)]
async fn a_machine_gets_a_spare_that_was_discovered_before_and_another_is_made() {
    let lab = Lab::with(1, |sim| sim.registers_after = mins(10)).await;
    lab.apply_pool(json!({"spec": {"scaling": {"bufferAgents": 1}}})).await;
    let forge = lab.forge();
    lab.until("a spare", mins(20), async |lab| {
        lab.phases().await == [("blue-gp-spare-1".to_owned(), Phase::Available)]
    })
    .await;
    let agent = lab.agents().await.remove(0);
    assert!(!agent.labels().contains_key("agent-forge.containeroo.ch/agent-machine"), "no pin");
    assert_eq!(agent.data["spec"]["approved"], false, "nobody else can bind it");
    assert_eq!(lab.pool().await.status.spare_agents, 1);
    sleep(mins(30)).await;
    assert_eq!(lab.node_vms().len(), 1, "one is enough, and it stays");

    lab.neighbours.scale(1);
    lab.until("it is bound at once", mins(3), async |lab| {
        let machines = lab.neighbours.agent_machines().await.unwrap();
        machines.first().is_some_and(|it| it.data["status"]["agentRef"]["name"] == agent.name_any())
    })
    .await;
    let bound = lab.agents().await.remove(0);
    assert_eq!(bound.data["spec"]["hostname"], "blue-gp-0001", "the node has the machine's name");
    lab.until("another spare", mins(20), async |lab| {
        lab.node_vms() == ["blue-gp-spare-1", "blue-gp-spare-2"]
    })
    .await;
    lab.until("a node", mins(30), async |lab| lab.ready_nodes().await == 1).await;
    assert_eq!(lab.vcenter.counters().calls_of("CreateVM_Task"), 2);

    lab.neighbours.scale(0);
    lab.until("it goes with its machine", mins(30), async |lab| {
        lab.node_vms() == ["blue-gp-spare-2"]
    })
    .await;
    sleep(mins(30)).await;
    assert_eq!(lab.node_vms(), ["blue-gp-spare-2"]);
    lab.patch_pool(json!({"spec": {"scaling": {"bufferAgents": 0}}})).await;
    lab.until("the spare goes too", mins(30), async |lab| {
        lab.node_vms().is_empty() && lab.agents().await.is_empty()
    })
    .await;
    forge.stop().await;
}

/// A spare that somebody got is a worker like any other: it outlives the deletion of its object, also without its Agent, and goes with its Machine.
#[tokio::test(start_paused = true)]
async fn a_claimed_spare_whose_object_is_deleted_stays_with_its_machine_and_goes_with_it() {
    let lab = Lab::with(1, |sim| sim.deletes_in = mins(10)).await;
    lab.apply_pool(json!({"spec": {"scaling": {"bufferAgents": 1}}})).await;
    let forge = lab.forge();
    lab.until("a spare", mins(20), async |lab| {
        lab.phases().await == [("blue-gp-spare-1".to_owned(), Phase::Available)]
    })
    .await;
    lab.neighbours.scale(1);
    lab.until("a node", mins(30), async |lab| lab.ready_nodes().await == 1).await;
    lab.delete_vsphere_agent("blue-gp-spare-1").await;
    sleep(mins(30)).await;
    assert!(lab.node_vms().contains(&"blue-gp-spare-1".to_owned()), "it is in use");
    lab.neighbours.scale(0);
    sleep(mins(5)).await;
    assert!(lab.node_vms().contains(&"blue-gp-spare-1".to_owned()), "its Machine is still there");
    lab.until("it goes with its Machine", mins(30), async |lab| {
        lab.node_vms() == ["blue-gp-spare-2"] && lab.vsphere_agents().await.len() == 1
    })
    .await;
    forge.stop().await;
}

/// An Agent that somebody deletes by mistake does not make its worker free to destroy.
#[tokio::test(start_paused = true)]
async fn a_worker_whose_agent_and_object_are_deleted_stays_while_its_machine_lives() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    lab.until("it is known as bound", mins(5), async |lab| {
        lab.vsphere_agents().await[0].recorded().is_some_and(|vm| vm.phase == Some(Phase::Bound))
    })
    .await;
    lab.delete_vsphere_agent("blue-gp-0001").await;
    let agent = lab.agents().await.remove(0).name_any();
    let agents: Api<DynamicObject> =
        Api::namespaced_with(lab.client.clone(), "blue", &outside::agents());
    agents.delete(&agent, &DeleteParams::default()).await.unwrap();
    sleep(mins(20)).await;
    assert_eq!(lab.node_vms(), ["blue-gp-0001"]);
    lab.neighbours.scale(0);
    lab.until("it goes with its Machine", mins(30), async |lab| lab.node_vms().is_empty()).await;
    forge.stop().await;
}

/// An AgentMachine that is not pinned yet may be given the Agent of another one. The VM is then its own, and the other one gets another VM: it does
/// not wait for ever for an Agent that is gone, and no two nodes have one name.
#[tokio::test(start_paused = true)]
async fn a_machine_whose_agent_another_one_got_is_served_anew() {
    for buffer in [0, 1] {
        let lab = Lab::new().await;
        lab.apply_pool(json!({"spec": {"scaling": {"bufferAgents": buffer}}})).await;
        let forge = lab.forge();
        lab.until("a spare, if there is to be one", mins(20), async |lab| {
            lab.node_vms().len() == buffer && lab.agents().await.len() == buffer
        })
        .await;
        // Nobody can pin it, and its name comes first.
        lab.kube.add_rule(Rule {
            verb: "patch".to_owned(),
            resource: "agentmachines.capi-provider.agent-install.openshift.io".to_owned(),
            name: "blue-gp-0000".to_owned(),
            user: DOOR.to_owned(),
            action: Action::Status { code: 500 },
            ..Rule::default()
        });
        lab.neighbours.scale(1);
        lab.until("a VM for the one that is pinned", mins(20), async |lab| {
            lab.vsphere_agents().await.iter().any(|it| it.is_for("blue-gp-0001"))
        })
        .await;
        lab.add_agent_machine("blue-gp-0000").await;
        lab.until("the other one has its Agent", mins(20), async |lab| {
            let machines = lab.neighbours.agent_machines().await.unwrap();
            !machines[0].data["status"]["agentRef"]["name"].is_null()
        })
        .await;
        lab.kube.clear_rules();
        lab.until("two nodes", mins(60), async |lab| lab.ready_nodes().await == 2).await;
        lab.until("each has one VM", mins(5), async |lab| {
            let all = lab.vsphere_agents().await;
            let of = |name: &str| all.iter().filter(|it| it.is_for(name)).count();
            of("blue-gp-0000") == 1 && of("blue-gp-0001") == 1
        })
        .await;
        lab.until("and so many spares", mins(30), async |lab| {
            lab.vsphere_agents().await.len() == 2 + buffer && lab.agents().await.len() == 2 + buffer
        })
        .await;
        let agents = lab.agents().await;
        let mut names: Vec<_> =
            agents.iter().map(|it| it.data["spec"]["hostname"].to_string()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 2 + buffer, "{names:?}");

        lab.neighbours.scale(0);
        lab.until("its VM goes with its Machine", mins(60), async |lab| {
            let all = lab.vsphere_agents().await;
            !all.iter().any(|it| it.is_for("blue-gp-0001")) && lab.node_vms().len() == 1 + buffer
        })
        .await;
        sleep(mins(30)).await;
        assert_eq!(lab.ready_nodes().await, 1, "the other one keeps its own");
        forge.stop().await;
    }
}

/// Between the decision that nobody needs a VM and its end, nobody can be given its Agent any more.
#[tokio::test(start_paused = true)]
async fn the_agent_of_a_vm_that_goes_cannot_be_bound_any_more() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let delay = roost_vcenter_sim::Action::DelayTask(mins(5));
    lab.vcenter.faults().add(roost_vcenter_sim::Rule::new("Destroy_Task", delay));
    // Somebody wants a VM, and no AgentMachine does.
    lab.add_vsphere_agent("by-hand", json!({})).await;
    let forge = lab.forge();
    lab.until("an Agent that can be bound", mins(20), async |lab| {
        let agents = lab.agents().await;
        agents.first().is_some_and(|it| it.data["spec"]["approved"] == json!(true))
    })
    .await;
    lab.until("it is given up", mins(20), async |lab| {
        lab.vsphere_agents().await.iter().any(|it| it.metadata.deletion_timestamp.is_some())
    })
    .await;
    lab.neighbours.scale(1);
    sleep(mins(1)).await;
    assert_eq!(lab.agents().await[0].data["spec"]["approved"], json!(false));
    assert!(lab.node_vms().contains(&"by-hand".to_owned()), "it is still there");
    lab.until("a node of its own", mins(60), async |lab| {
        lab.ready_nodes().await == 1 && lab.node_vms() == ["blue-gp-0001"]
    })
    .await;
    forge.stop().await;
}

/// A create whose answer is lost and that no watch has shown yet counts: no spare is given beside it.
#[tokio::test(start_paused = true)]
async fn a_lost_answer_does_not_give_a_machine_two_vms() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"scaling": {"bufferAgents": 1, "maxVMs": 1}}})).await;
    let rule = |verb: &str, action| Rule {
        verb: verb.to_owned(),
        resource: "vsphereagents.agent-forge.containeroo.ch".to_owned(),
        user: DOOR.to_owned(),
        action,
        ..Rule::default()
    };
    lab.kube.add_rule(rule("watch", Action::LateEvents { by_ms: 20_000 }));
    lab.kube.add_rule(rule("patch", Action::CutAfter));
    let forge = lab.forge();
    lab.until("a spare", mins(30), async |lab| lab.agents().await.len() == 1).await;
    lab.patch_pool(json!({"spec": {"scaling": {"maxVMs": 5}}})).await;
    lab.neighbours.scale(2);
    sleep(mins(3)).await;
    lab.kube.clear_rules();
    lab.until("two nodes", mins(60), async |lab| lab.ready_nodes().await == 2).await;
    let all = lab.vsphere_agents().await;
    for name in ["blue-gp-0001", "blue-gp-0002"] {
        assert_eq!(all.iter().filter(|it| it.is_for(name)).count(), 1, "{name}");
    }
    forge.stop().await;
}

/// Two NodePools of one cluster share an InfraEnv. Each gets its own nodes, and loses its own.
#[tokio::test(start_paused = true)]
async fn two_pools_that_share_an_infra_env_work_side_by_side() {
    let lab = Lab::new().await;
    let label =
        |value: &str| json!({"agent": {"labels": {"agent-forge.containeroo.ch/nodepool": value}}});
    lab.apply_pool(json!({"spec": label("gp")})).await;
    let mut second = label("db");
    second["nodePoolRef"] = json!({"name": "blue-db"});
    lab.apply_pool(json!({"metadata": {"name": "blue-db"}, "spec": second})).await;
    let others = lab.second_node_pool("blue-db").await;
    let forge = lab.forge();
    lab.neighbours.scale(2);
    others.scale(2);
    let is_ready = |it: &DynamicObject| it.data["status"]["ready"] == json!(true);
    lab.until("four nodes", mins(60), async |lab| {
        let of_others = others.agent_machines().await.unwrap();
        lab.ready_nodes().await == 2 && of_others.iter().filter(|it| is_ready(it)).count() == 2
    })
    .await;
    assert_eq!(lab.node_vms().len(), 4);
    assert_eq!(lab.vcenter.counters().calls_of("Login"), 1, "one login for both");
    others.scale(0);
    lab.until("only the first pool's are left", mins(60), async |lab| {
        lab.node_vms() == ["blue-gp-0001", "blue-gp-0002"] && lab.agents().await.len() == 2
    })
    .await;
    sleep(mins(10)).await;
    assert_eq!(lab.ready_nodes().await, 2);
    forge.stop().await;
}

/// F5: VMs spread over the failure domains, and each has its own ISO.
#[tokio::test(start_paused = true)]
async fn vms_spread_over_failure_domains_in_two_vcenters() {
    let lab = Lab::with_two_vcenters().await;
    let domains = json!([{"name": "a"}, {"name": "b", "credentialsSecretRef": {"name": "vc-b"}}]);
    lab.apply_pool(json!({"spec": {"vsphere": {"failureDomains": domains}}})).await;
    let forge = lab.forge();
    lab.neighbours.scale(4);
    lab.until("four nodes", mins(60), async |lab| lab.ready_nodes().await == 4).await;
    sleep(mins(2)).await;
    let second = lab.second.clone().unwrap();
    assert_eq!((lab.node_vms().len(), Lab::node_vms_in(&second).len()), (2, 2));
    for vcenter in [&lab.vcenter, &second] {
        assert_eq!(vcenter.counters().calls_of("Login"), 1);
        assert_eq!(lab.iso_files(vcenter).await.len(), 1);
    }
    let status = lab.pool().await.status;
    let shown: Vec<_> =
        status.failure_domains.iter().map(|it| (it.name.as_str(), it.vms, it.ready)).collect();
    assert_eq!(shown, [("a", 2, true), ("b", 2, true)]);
    let mut recorded: Vec<_> =
        lab.vsphere_agents().await.iter().map(|it| it.failure_domain().to_owned()).collect();
    recorded.sort();
    assert_eq!(recorded, ["a", "a", "b", "b"]);

    // One is shut: what is made from here on goes to the other.
    let domains = json!([{"name": "a", "weight": 0}, {"name": "b", "credentialsSecretRef": {"name": "vc-b"}}]);
    lab.patch_pool(json!({"spec": {"vsphere": {"failureDomains": domains}}})).await;
    lab.neighbours.scale(5);
    lab.until("a fifth", mins(60), async |lab| lab.ready_nodes().await == 5).await;
    assert_eq!((lab.node_vms().len(), Lab::node_vms_in(&second).len()), (2, 3));
    lab.neighbours.scale(0);
    lab.until("all are gone", mins(60), async |lab| {
        lab.node_vms().is_empty()
            && Lab::node_vms_in(&second).is_empty()
            && lab.vsphere_agents().await.is_empty()
    })
    .await;
    forge.stop().await;
}

/// F5: a domain that cannot be used is told by name and holds up nobody; a pool that gets domains keeps the VMs from before.
#[tokio::test(start_paused = true)]
async fn a_failure_domain_that_lacks_something_is_passed_over_and_told() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    let domains =
        json!([{"name": "a", "network": "No Such Net"}, {"name": "b", "datastore": "LocalDS_0"}]);
    lab.patch_pool(json!({"spec": {"vsphere": {"failureDomains": domains}}})).await;
    lab.neighbours.scale(3);
    lab.until("three nodes", mins(60), async |lab| lab.ready_nodes().await == 3).await;
    let pool = lab.pool().await;
    let (status, message) = condition(&pool, "VsphereReady");
    assert_eq!(status, "False");
    assert!(message.starts_with("failure domain a: spec.vsphere.network"), "{message}");
    let vms: Vec<_> = pool.status.failure_domains.iter().map(|it| it.vms).collect();
    assert_eq!(vms, [0, 2]);
    for name in ["blue-gp-0002", "blue-gp-0003"] {
        assert_eq!(lab.vcenter.vm(name).unwrap().datastore, "LocalDS_0");
    }
    lab.neighbours.scale(0);
    lab.until("those from before go too", mins(60), async |lab| lab.node_vms().is_empty()).await;
    forge.stop().await;
}

/// F12 and F14.
#[tokio::test(start_paused = true)]
async fn older_hardware_is_reported_and_the_autoscaler_is_told_what_a_node_has() {
    let lab = Lab::new().await;
    lab.apply_pool(
        json!({"spec": {"scaling": {"scaleFromZeroHints": true}, "template": {"namePrefix": "x"}}}),
    )
    .await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    let hints = lab.neighbours.deployment_annotations().await.unwrap();
    let hint = |what: &str| {
        hints.get(&format!("capacity.cluster-autoscaler.kubernetes.io/{what}")).cloned()
    };
    assert_eq!((hint("cpu"), hint("memory")), (Some("2".to_owned()), Some("2048Mi".to_owned())));
    assert!(lab.pool().await.status.outdated_vms.is_empty());
    lab.patch_pool(json!({"spec": {"template": {"numCPUs": 3}}})).await;
    lab.until("it is reported", mins(2), async |lab| {
        lab.pool().await.status.outdated_vms == ["blue-gp-0001"]
    })
    .await;
    let hints = lab.neighbours.deployment_annotations().await.unwrap();
    assert_eq!(hints["capacity.cluster-autoscaler.kubernetes.io/cpu"], "3");
    lab.neighbours.scale(2);
    lab.until("another node", mins(60), async |lab| lab.ready_nodes().await == 2).await;
    assert_eq!(lab.pool().await.status.outdated_vms, ["blue-gp-0001"], "not the new one");
    assert_eq!(lab.vcenter.vm("blue-gp-0001").unwrap().cpus, 2, "a node in use is left alone");
    // W25: a field without effect is told once for each spec, and a plan only when it changes.
    assert_eq!(lab.times_told("NamePrefixIgnored").await, 2);
    forge.stop().await;
}

/// F4: a paused NodePool holds everything, as the annotation does.
#[tokio::test(start_paused = true)]
async fn a_paused_node_pool_holds_creation_and_deletion() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    lab.neighbours.pause_until(Some("true")).await.unwrap();
    let forge = lab.forge();
    lab.neighbours.scale(1);
    sleep(mins(20)).await;
    assert!(lab.vsphere_agents().await.is_empty());
    lab.neighbours.pause_until(Some("1970-01-01T00:00:00Z")).await.unwrap();
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    lab.neighbours.pause_until(Some("2999-01-01T00:00:00Z")).await.unwrap();
    sleep(mins(1)).await;
    lab.neighbours.scale(0);
    sleep(mins(30)).await;
    assert_eq!(lab.node_vms().len(), 1, "paused");
    lab.neighbours.pause_until(None).await.unwrap();
    lab.until("gone", mins(30), async |lab| lab.node_vms().is_empty()).await;
    forge.stop().await;
}

/// W23: whoever keeps a Secret says whose pools log in with it.
#[tokio::test(start_paused = true)]
async fn a_secret_of_another_namespace_may_refuse_a_pool() {
    let lab = Lab::new().await;
    let secrets: kube::Api<k8s_openapi::api::core::v1::Secret> =
        kube::Api::namespaced(lab.client.clone(), "blue");
    let mut secret = secrets.get("vc-login").await.unwrap();
    secret.metadata = kube::api::ObjectMeta {
        name: Some("shared".into()),
        annotations: Some(
            [("agent-forge.containeroo.ch/allowed-namespaces".into(), "green".into())].into(),
        ),
        ..Default::default()
    };
    let theirs: kube::Api<k8s_openapi::api::core::v1::Secret> =
        kube::Api::namespaced(lab.client.clone(), "blue-blue");
    theirs.create(&kube::api::PostParams::default(), &secret).await.unwrap();
    lab.apply_pool(json!({"spec": {"vsphere": {"credentialsSecretRef": {"name": "shared", "namespace": "blue-blue"}}}})).await;
    let forge = lab.forge();
    lab.until("it is refused", mins(2), async |lab| {
        let (status, message) = condition(&lab.pool().await, "VsphereReady");
        status == "False" && message.contains("is not for pools in namespace blue")
    })
    .await;
    assert_eq!(lab.vcenter.counters().calls_of("Login"), 0);
    let patch = json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/allowed-namespaces": "green,blue"}}});
    theirs.patch("shared", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    lab.until("it is taken", mins(3), async |lab| {
        condition(&lab.pool().await, "VsphereReady").0 == "True"
    })
    .await;
    forge.stop().await;
}

/// An ISO that is needed stays, and one that could not be deleted is not forgotten. W24: none is left when the pool goes.
#[tokio::test(start_paused = true)]
async fn isos_stay_while_a_vm_has_them_and_go_with_the_pool() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"iso": {"checkInterval": "10m", "retainVersions": 1}}})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    lab.isos.publish("http://assisted.test", "blue-env", "iso-v2".into());
    lab.until("two ISOs", mins(15), async |lab| lab.iso_files(&lab.vcenter).await.len() == 2).await;
    sleep(mins(30)).await;
    assert_eq!(
        lab.iso_files(&lab.vcenter).await.len(),
        2,
        "the node has the older one in its drive"
    );
    assert_eq!(lab.pool().await.status.iso.unwrap().stale.len(), 1);
    lab.neighbours.scale(0);
    lab.until("the node is gone", mins(30), async |lab| lab.node_vms().is_empty()).await;
    lab.until("and its ISO", mins(15), async |lab| lab.iso_files(&lab.vcenter).await.len() == 1)
        .await;
    assert!(lab.pool().await.status.iso.unwrap().stale.is_empty());

    // Somebody deletes the one that is left: the next VM does not wait for the next check.
    lab.patch_pool(json!({"spec": {"iso": {"checkInterval": "10h"}}})).await;
    let path = lab.pool().await.status.iso.unwrap().path;
    lab.delete_iso(&path).await;
    lab.neighbours.scale(1);
    lab.until("a VM", mins(10), async |lab| lab.node_vms().len() == 1).await;
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    lab.neighbours.scale(0);
    lab.until("gone", mins(30), async |lab| lab.vsphere_agents().await.is_empty()).await;
    lab.pools().delete(POOL, &kube::api::DeleteParams::default()).await.unwrap();
    lab.until("the pool is gone", mins(5), async |lab| {
        lab.pools().get_opt(POOL).await.unwrap().is_none()
    })
    .await;
    assert!(lab.iso_files(&lab.vcenter).await.is_empty());
    forge.stop().await;
}

/// What rests on what is not there freezes early: when a list lacks half of the Machines, it lacks them for all VMs at once.
#[tokio::test(start_paused = true)]
async fn many_nodes_whose_machines_went_unseen_go_when_a_person_has_looked() {
    for by_annotation in [false, true] {
        let lab = Lab::new().await;
        lab.apply_pool(json!({"spec": {"cleanup": {"absentGracePeriod": "3m"}}})).await;
        let forge = lab.forge();
        lab.neighbours.scale(5);
        lab.until("five nodes", mins(60), async |lab| lab.ready_nodes().await == 5).await;
        lab.until("they are known as bound", mins(5), async |lab| {
            lab.phases().await.iter().filter(|(_, phase)| *phase == Phase::Bound).count() == 5
        })
        .await;
        assert!(
            forge.metrics().contains(
                "agent_forge_pool_deletion_frozen{namespace=\"blue\",pool=\"blue-gp\"} 0"
            )
        );
        let kinds = async |lab: &Lab| lab.pool().await.status.conditions.len();
        let before = kinds(&lab).await;
        forge.crash().await;
        lab.neighbours.scale(0);
        lab.until("no Machine", mins(30), async |lab| {
            lab.neighbours.machines().await.unwrap().is_empty()
        })
        .await;

        let forge = lab.forge();
        lab.until("it is frozen and told", mins(30), async |lab| {
            condition(&lab.pool().await, "DeletionFrozen").0 == "True"
        })
        .await;
        let (_, why) = condition(&lab.pool().await, "DeletionFrozen");
        assert!(why.contains("5 of 5 VMs would go as absent"), "{why}");
        assert_eq!(kinds(&lab).await, before + 1);
        sleep(mins(30)).await;
        assert_eq!(lab.node_vms().len(), 5, "nothing goes by itself");
        let told = lab.event_reasons().await;
        assert_eq!(told.iter().filter(|reason| *reason == "DeletionFrozen").count(), 1, "{told:?}");
        assert!(
            forge.metrics().contains(
                "agent_forge_pool_deletion_frozen{namespace=\"blue\",pool=\"blue-gp\"} 1"
            )
        );
        let need = forge.door.needs().remove(0);
        assert_eq!((need.kind, need.count), (NeedKind::Frozen, 5));
        assert_eq!(need.runbook.as_deref(), Some("deletions-frozen"));
        assert!(need.names.contains(&"blue-gp-0001".to_owned()), "{need:?}");

        if by_annotation {
            let key = "agent-forge.containeroo.ch/resume-deletions";
            lab.patch_pool(json!({"metadata": {"annotations": {key: "approve"}}})).await;
            lab.until("the annotation counts once", mins(2), async |lab| {
                !lab.pool().await.annotations().contains_key(key)
            })
            .await;
        } else {
            let act = async |found| {
                let by = Person { shown: Shown::Token, from: "127.0.0.1".parse().unwrap() };
                let action = OfPerson::ResumeDeletions { found };
                let order = Order { action, by, reason: None };
                forge.door.steer().unwrap().act(order).await
            };
            assert_eq!(act(Found::StartOver).await.unwrap(), "5 VMs are looked at anew");
            assert!(act(Found::Approve).await.is_err(), "nothing is frozen now");
            lab.until("it is found again", mins(30), async |_| forge.door.needs().len() == 1).await;
            assert_eq!(act(Found::Approve).await.unwrap(), "5 VMs may go");
        }
        lab.until("all is gone", mins(10), async |lab| {
            lab.node_vms().is_empty()
                && lab.agents().await.is_empty()
                && lab.vsphere_agents().await.is_empty()
        })
        .await;
        lab.until("that is told too", mins(5), async |lab| {
            condition(&lab.pool().await, "DeletionFrozen").0 == "False"
        })
        .await;
        assert!(forge.door.needs().is_empty());
        forge.stop().await;
    }
}

/// F13: a VM that was given up by mistake can be had back for a while.
#[tokio::test(start_paused = true)]
async fn a_vm_that_goes_stays_in_quarantine_off_and_under_another_name_until_its_time_is_over() {
    for is_forced in [false, true] {
        let lab = Lab::new().await;
        lab.apply_pool(json!({"spec": {"cleanup": {"quarantine": "1h"}}})).await;
        let forge = lab.forge();
        lab.neighbours.scale(1);
        lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
        sleep(mins(2)).await;
        lab.neighbours.scale(0);
        lab.until("it is in quarantine", mins(20), async |lab| {
            let all = lab.vsphere_agents().await;
            all.first().is_some_and(|it| it.status.quarantined_at.is_some())
        })
        .await;
        let names = lab.node_vms();
        assert!(names[0].starts_with("blue-gp-0001-quarantined-"), "{names:?}");
        assert_eq!(lab.vcenter.vm(&names[0]).unwrap().power, roost_vcenter_sim::Power::Off);
        let reasons = lab.event_reasons().await;
        assert_eq!(reasons.iter().filter(|it| *it == "VMQuarantined").count(), 1, "{reasons:?}");
        // Its name is free, and its Agent is nobody's.
        assert!(lab.vcenter.vm("blue-gp-0001").is_none());
        assert_eq!(lab.agents().await[0].data["spec"]["approved"], false);
        lab.neighbours.scale(1);
        lab.until("another node", mins(30), async |lab| lab.ready_nodes().await == 1).await;
        assert_eq!(lab.node_vms().len(), 2, "the first one is still there");
        let old = lab.vsphere_agents().await.remove(0);
        let told = old.status.conditions.iter().find(|it| it.type_ == "Ready").unwrap();
        assert_eq!(told.reason, "Quarantined");
        if is_forced {
            let force = json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/force-delete": "true"}}});
            let params = PatchParams::default();
            lab.agents_api().patch(&old.name_any(), &params, &Patch::Merge(force)).await.unwrap();
        }
        let within = if is_forced { mins(5) } else { mins(60) };
        lab.until("it is gone with its Agent", within, async |lab| {
            lab.node_vms() == ["blue-gp-0002"] && lab.agents().await.len() == 1
        })
        .await;
        forge.stop().await;
    }
}
