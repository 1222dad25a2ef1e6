//! One scenario for each way in which the upstream operator goes wrong.

use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use roost_agent_forge::api::{Phase, Reason, VsphereAgent};
use roost_agent_forge::outside;
use roost_door::FrontDoor;
use roost_hypershift_sim::{RefBy, Summary};
use roost_kube_sim::{Action as KubeAction, Rule as KubeRule, When as KubeWhen};
use roost_vcenter_sim::{Action, Power, Rule};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{DOOR, Lab, NS, POOL, mins};

async fn with_nodes(lab: &Lab, nodes: usize) {
    lab.neighbours.scale(nodes);
    lab.until("nodes are ready", mins(60), async |lab| lab.ready_nodes().await == nodes).await;
}

fn ready(agent: &roost_agent_forge::api::VsphereAgent) -> (String, String) {
    let found = agent.status.conditions.iter().find(|it| it.type_ == "Ready");
    found.map(|it| (it.status.clone(), it.reason.clone())).unwrap_or_default()
}

/// W1: a VM that never registered was neither replaced nor removed while its AgentMachine waited.
#[tokio::test(start_paused = true)]
async fn a_vm_that_registers_no_agent_is_replaced_with_growing_pauses_and_not_for_ever() {
    let lab = Lab::with(1, |sim| sim.registers_after = mins(100_000)).await;
    lab.apply_pool(json!({"spec": {"discovery": {"timeout": "10m", "maxAttempts": 2}}})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a VM", mins(5), async |lab| lab.node_vms().len() == 1).await;
    let first = lab.vcenter.vm("blue-gp-0001").unwrap().uuid;
    lab.until("another VM in its place", mins(20), async |lab| {
        lab.vcenter.vm("blue-gp-0001").is_some_and(|vm| vm.uuid != first)
    })
    .await;
    assert_eq!(lab.vsphere_agents().await[0].status.attempts, 1);
    lab.until("it is given up", mins(60), async |lab| {
        ready(&lab.vsphere_agents().await[0]) == ("False".into(), "DiscoveryFailed".into())
    })
    .await;
    let agent = &lab.vsphere_agents().await[0];
    assert_eq!(agent.status.attempts, 2);
    let last = lab.vcenter.vm("blue-gp-0001").unwrap().uuid;
    sleep(mins(120)).await;
    assert_eq!(lab.vcenter.vm("blue-gp-0001").unwrap().uuid, last, "a person must look");
    forge.stop().await;
}

/// W2: nobody looked while the Machine was deleted.
#[tokio::test(start_paused = true)]
async fn a_vm_whose_machine_was_deleted_unseen_goes_after_a_grace() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    with_nodes(&lab, 2).await;
    sleep(mins(2)).await;
    forge.crash().await;
    lab.neighbours.scale(1);
    lab.until("one Machine", mins(10), async |lab| {
        lab.neighbours.machines().await.unwrap().len() == 1
    })
    .await;
    let forge = lab.forge();
    sleep(mins(8)).await;
    assert_eq!(lab.node_vms().len(), 2, "not before the grace is over");
    lab.until("one VM", mins(30), async |lab| lab.node_vms().len() == 1).await;
    assert_eq!(lab.ready_nodes().await, 1);
    lab.until("its Agent too", mins(5), async |lab| lab.agents().await.len() == 1).await;
    forge.stop().await;
}

/// W3: the newer summary hides the reason, and the label may be a uid.
#[tokio::test(start_paused = true)]
async fn demand_is_seen_behind_the_newer_summary_and_the_machine_behind_a_uid() {
    let lab =
        Lab::with(1, |sim| (sim.summary, sim.ref_by) = (Summary::IssuesReported, RefBy::Uid)).await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    with_nodes(&lab, 1).await;
    sleep(mins(2)).await;
    let vms = lab.pool().await.status.owned_vms;
    assert_eq!(vms[0].machine_ref.as_ref().unwrap().name.as_deref(), Some("blue-gp-0001"));
    lab.neighbours.scale(0);
    lab.until("gone", mins(30), async |lab| lab.node_vms().is_empty()).await;
    forge.stop().await;
}

fn foreign_agent(name: &str) -> DynamicObject {
    let mut agent = DynamicObject::new(name, &outside::agents())
        .within(NS)
        .data(json!({"spec": {"approved": true, "role": "worker", "hostname": name}}));
    let labels = [
        ("tenant", "blue"),
        ("infraenvs.agent-install.openshift.io", "blue-env"),
        ("hypershift.openshift.io/nodepool-role", "worker"),
    ];
    agent.metadata.labels =
        Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    agent
}

/// W4: an Agent of somebody else was adopted, and deleted as surplus.
#[tokio::test(start_paused = true)]
async fn a_foreign_agent_is_shown_and_never_deleted() {
    let lab = Lab::new().await;
    let api: kube::Api<DynamicObject> =
        kube::Api::namespaced_with(lab.client.clone(), NS, &outside::agents());
    api.create(&PostParams::default(), &foreign_agent("metal-1")).await.unwrap();
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    with_nodes(&lab, 1).await;
    lab.neighbours.scale(0);
    lab.until("our own is gone", mins(30), async |lab| lab.node_vms().is_empty()).await;
    sleep(mins(30)).await;
    let left: Vec<String> = lab.agents().await.iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["metal-1"]);
    assert_eq!(lab.pool().await.status.owned_vms[0].name, "metal-1", "shown");
    forge.stop().await;
}

/// W5: a VM of somebody else with the name was taken over, and destroyed later.
#[tokio::test(start_paused = true)]
async fn a_foreign_vm_of_the_same_name_is_neither_taken_nor_destroyed() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"vsphere": {"folder": "/"}}})).await;
    let pool = json!({"spec": {"vsphere": {"folder": "nodes"}}});
    lab.patch_pool(pool).await;
    // In the very folder that the pool uses.
    lab.add_vm("nodes", "blue-gp-0001").await;
    let theirs = lab.vcenter.vm("blue-gp-0001").unwrap().uuid;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("the conflict is told", mins(10), async |lab| {
        lab.vsphere_agents().await.first().map(ready)
            == Some(("False".into(), "VMNameConflict".into()))
    })
    .await;
    lab.neighbours.scale(0);
    sleep(mins(40)).await;
    assert_eq!(lab.vcenter.vm("blue-gp-0001").unwrap().uuid, theirs);
    assert_eq!(lab.vcenter.vm("blue-gp-0001").unwrap().power, Power::Off);
    forge.stop().await;
}

/// W7: the Agent was deleted before its VM, which registered it again.
#[tokio::test(start_paused = true)]
async fn the_agent_goes_after_its_vm_and_does_not_come_back() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    with_nodes(&lab, 1).await;
    lab.neighbours.scale(0);
    lab.vcenter
        .faults()
        .add(Rule::new("Destroy_Task", Action::fail_task("TaskInProgress", "busy")).once());
    lab.until("the Agent is gone", mins(30), async |lab| lab.agents().await.is_empty()).await;
    assert!(lab.node_vms().is_empty(), "the VM went first");
    sleep(mins(10)).await;
    assert!(lab.agents().await.is_empty(), "no ghost");
    forge.stop().await;
}

/// W8, W9, F: refresh on schedule, at once by annotation, and a file that somebody deleted is brought back.
#[tokio::test(start_paused = true)]
async fn the_iso_is_refreshed_on_schedule_and_at_once_by_annotation() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"iso": {"checkInterval": "30m", "retainVersions": 1}}})).await;
    let forge = lab.forge();
    let sha =
        async |lab: &Lab| lab.pool().await.status.iso.map(|iso| iso.sha256).unwrap_or_default();
    lab.until("an ISO without any demand", mins(2), async |lab| !sha(lab).await.is_empty()).await;
    let first = sha(&lab).await;
    lab.isos.publish("http://assisted.test", "blue-env", "iso-v2".into());
    sleep(mins(20)).await;
    assert_eq!(sha(&lab).await, first, "not due");
    lab.patch_pool(json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/force-iso-refresh": "now"}}})).await;
    lab.until("at once", mins(1), async |lab| sha(lab).await != first).await;
    let second = sha(&lab).await;
    assert_eq!(lab.pool().await.status.iso.unwrap().force_refresh_token, "now");
    let downloads = lab.isos.downloads();
    sleep(mins(65)).await;
    assert_eq!(lab.isos.downloads(), downloads + 2, "asked, and told that nothing changed");
    lab.isos.publish("http://assisted.test", "blue-env", "iso-v3".into());
    lab.until("on schedule", mins(31), async |lab| sha(lab).await != second).await;

    lab.isos.set_down(true);
    sleep(mins(31)).await;
    let pool = lab.pool().await;
    let iso = pool.status.conditions.iter().find(|it| it.type_ == "ISOReady").unwrap();
    assert_eq!((iso.status.as_str(), iso.reason.as_str()), ("False", "DownloadFailed"));
    lab.isos.set_down(false);
    lab.until("ready again", mins(2), async |lab| {
        lab.pool()
            .await
            .status
            .conditions
            .iter()
            .any(|it| it.type_ == "ISOReady" && it.status == "True")
    })
    .await;
    forge.stop().await;
}

/// W11: deleting a pool, or a VsphereAgent, destroyed bound workers.
#[tokio::test(start_paused = true)]
async fn bound_workers_survive_the_deletion_of_their_objects_unless_it_is_forced() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    with_nodes(&lab, 2).await;
    sleep(mins(2)).await;
    lab.delete_vsphere_agent("blue-gp-0001").await;
    lab.pools().delete(POOL, &DeleteParams::default()).await.unwrap();
    sleep(mins(30)).await;
    assert_eq!(lab.node_vms().len(), 2);
    assert_eq!(ready(&lab.vsphere_agents().await[0]).1, "DeletionBlocked");
    let blocked = lab.pool().await.status.conditions;
    assert!(blocked.iter().any(|it| it.type_ == "DeletionBlocked" && it.status == "True"));
    lab.patch_pool(
        json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/force-delete": "true"}}}),
    )
    .await;
    lab.until("all gone", mins(10), async |lab| {
        lab.node_vms().is_empty() && lab.pools().get_opt(POOL).await.unwrap().is_none()
    })
    .await;
    assert!(!forge.metrics().contains("pool=\"blue-gp\""), "its series are gone");
    forge.stop().await;
}

/// W12: what happened in the vCenter was not noticed.
#[tokio::test(start_paused = true)]
async fn a_vm_that_stops_or_vanishes_is_seen_at_once() {
    let lab = Lab::with(1, |sim| sim.registers_after = mins(15)).await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a VM that runs", mins(5), async |lab| {
        lab.vcenter.vm("blue-gp-0001").is_some_and(|vm| vm.power == Power::On)
    })
    .await;
    sleep(mins(1)).await;
    lab.vcenter.set_power("blue-gp-0001", Power::Off).unwrap();
    lab.until("it runs again", mins(1), async |lab| {
        lab.vcenter.vm("blue-gp-0001").unwrap().power == Power::On
    })
    .await;
    lab.vcenter.kill_vm("blue-gp-0001").unwrap();
    lab.until("it is made anew", mins(3), async |lab| lab.node_vms().len() == 1).await;
    with_nodes(&lab, 1).await;
    sleep(mins(2)).await;
    // A worker that somebody stopped is not started behind their back.
    lab.vcenter.set_power("blue-gp-0001", Power::Off).unwrap();
    sleep(mins(5)).await;
    assert_eq!(ready(&lab.vsphere_agents().await[0]).1, "VMPoweredOff");
    lab.vcenter.kill_vm("blue-gp-0001").unwrap();
    sleep(mins(5)).await;
    assert_eq!(ready(&lab.vsphere_agents().await[0]).1, "VMMissing");
    assert!(lab.node_vms().is_empty(), "no second VM for a bound machine");
    forge.stop().await;
}

/// W13: the AgentMachine still waited, and nobody looked at it again.
#[tokio::test(start_paused = true)]
async fn a_vsphere_agent_that_is_deleted_while_its_machine_waits_is_made_again() {
    let lab = Lab::with(1, |sim| sim.registers_after = mins(10)).await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a VM", mins(5), async |lab| lab.node_vms().len() == 1).await;
    let first = lab.vsphere_agents().await[0].uid();
    lab.delete_vsphere_agent("blue-gp-0001").await;
    lab.until("another one", mins(15), async |lab| {
        lab.vsphere_agents().await.first().is_some_and(|agent| agent.uid() != first)
    })
    .await;
    with_nodes(&lab, 1).await;
    assert_eq!(lab.node_vms().len(), 1);
    forge.stop().await;
}

/// W15: an InfraEnv that lost its ISO also stopped clean-up, and the counters were set to zero.
#[tokio::test(start_paused = true)]
async fn an_infra_env_without_an_iso_blocks_new_vms_only() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    with_nodes(&lab, 2).await;
    lab.neighbours.point_to_iso("").await.unwrap();
    lab.neighbours.scale(1);
    lab.until("one VM", mins(30), async |lab| lab.node_vms().len() == 1).await;
    let pool = lab.pool().await;
    let ready = pool.status.conditions.iter().find(|it| it.type_ == "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_str()), ("False", "InfraEnvUnavailable"));
    assert_eq!(pool.status.agent_machines, 1);
    lab.neighbours.scale(2);
    sleep(mins(10)).await;
    assert_eq!(lab.node_vms().len(), 1);
    forge.stop().await;
}

/// W26: what is missing in the vCenter is told by its field before anything is made.
#[tokio::test(start_paused = true)]
async fn what_a_pool_names_and_the_vcenter_lacks_is_told() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"vsphere": {"network": "No Such Net"}}})).await;
    let forge = lab.forge();
    lab.until("it is told", mins(2), async |lab| {
        let pool = lab.pool().await;
        let found = pool.status.conditions.iter().find(|it| it.type_ == "VsphereReady");
        found.is_some_and(|it| it.status == "False" && it.message.contains("spec.vsphere.network"))
    })
    .await;
    lab.patch_pool(json!({"spec": {"vsphere": {"network": "VM Network"}}})).await;
    with_nodes(&lab, 1).await;
    let pool = lab.pool().await;
    assert!(
        pool.status.conditions.iter().any(|it| it.type_ == "VsphereReady" && it.status == "True")
    );
    forge.stop().await;
}

/// W27: a crash between create and record, with the object deleted before the next start, left the VM.
#[tokio::test(start_paused = true)]
async fn a_crash_right_after_the_create_leaves_nothing_behind() {
    for delay in [1, 3, 8, 15, 25] {
        let lab = Lab::new().await;
        lab.apply_pool(json!({})).await;
        let forge = lab.forge();
        lab.neighbours.scale(1);
        lab.until("a request", mins(5), async |lab| {
            lab.vcenter.counters().calls_of("CreateVM_Task") > 0
        })
        .await;
        sleep(std::time::Duration::from_secs(delay)).await;
        forge.crash().await;
        lab.neighbours.scale(0);
        if let Some(agent) = lab.vsphere_agents().await.first() {
            lab.delete_vsphere_agent(&agent.name_any()).await;
        }
        let forge = lab.forge();
        lab.until("nothing is left", mins(60), async |lab| {
            lab.node_vms().is_empty() && lab.vsphere_agents().await.is_empty()
        })
        .await;
        sleep(mins(20)).await;
        assert!(lab.node_vms().is_empty());
        forge.stop().await;
    }
}

/// A crash at any moment neither loses nor doubles a VM.
#[tokio::test(start_paused = true)]
async fn a_node_comes_up_however_often_the_door_crashes() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    lab.neighbours.scale(2);
    for seconds in [2, 5, 7, 11, 13, 17, 23, 31, 43, 61] {
        let forge = lab.forge();
        sleep(std::time::Duration::from_secs(seconds)).await;
        forge.crash().await;
        let names = lab.node_vms();
        let mut unique = names.clone();
        unique.dedup();
        assert_eq!(names, unique, "no VM twice");
    }
    let forge = lab.forge();
    with_nodes(&lab, 2).await;
    assert_eq!(lab.node_vms().len(), 2);
    assert_eq!(lab.vcenter.counters().calls_of("CreateVM_Task"), 2);
    forge.stop().await;
}

#[tokio::test(start_paused = true)]
async fn at_rest_nothing_is_written_and_the_vcenter_is_not_asked() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"iso": {"checkInterval": "10h"}}})).await;
    let forge = lab.forge();
    with_nodes(&lab, 3).await;
    sleep(mins(5)).await;
    let versions = async |lab: &Lab| {
        let mut all = vec![lab.pool().await.resource_version()];
        all.extend(lab.vsphere_agents().await.iter().map(ResourceExt::resource_version));
        all
    };
    let before = versions(&lab).await;
    lab.vcenter.reset_counters();
    sleep(mins(60)).await;
    assert_eq!(versions(&lab).await, before, "no write in an hour");
    let counters = lab.vcenter.counters();
    let polls = ["WaitForUpdatesEx", "CurrentTime"];
    let asked = counters.calls.iter().filter(|(method, _)| !polls.contains(&method.as_str()));
    let calls: u64 = asked.map(|(_, count)| count).sum();
    assert!(calls <= 2, "{calls} calls in an hour");
    forge.stop().await;
}

#[tokio::test(start_paused = true)]
async fn retain_keeps_vms_when_their_machines_and_objects_go() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"cleanupPolicy": "Retain"}})).await;
    let forge = lab.forge();
    with_nodes(&lab, 1).await;
    lab.neighbours.scale(0);
    sleep(mins(60)).await;
    assert_eq!(lab.node_vms().len(), 1);
    lab.pools().delete(POOL, &DeleteParams::default()).await.unwrap();
    lab.until("the pool is gone", mins(5), async |lab| {
        lab.pools().get_opt(POOL).await.unwrap().is_none()
    })
    .await;
    assert_eq!((lab.node_vms().len(), lab.agents().await.len()), (1, 1));
    forge.stop().await;
}

#[tokio::test(start_paused = true)]
async fn limits_dry_run_and_pause_hold() {
    let lab = Lab::new().await;
    lab.apply_pool(
        json!({"spec": {"dryRun": true, "scaling": {"maxVMs": 2, "maxProvisioning": 1}}}),
    )
    .await;
    let forge = lab.forge();
    lab.neighbours.scale(3);
    sleep(mins(10)).await;
    assert!(lab.vsphere_agents().await.is_empty(), "a dry run");
    let pool = lab.pool().await;
    assert_eq!(pool.status.demand_deficit, 3);
    let machines = lab.neighbours.agent_machines().await.unwrap();
    assert!(
        machines[0]
            .data
            .pointer(
                "/spec/agentLabelSelector/matchLabels/agent-forge.containeroo.ch~1agent-machine"
            )
            .is_none()
    );

    lab.patch_pool(json!({"spec": {"dryRun": false}})).await;
    lab.until("the first VM", mins(5), async |lab| lab.node_vms().len() == 1).await;
    assert_eq!(lab.vsphere_agents().await.len(), 1, "one at a time");
    lab.until("two nodes", mins(60), async |lab| lab.ready_nodes().await == 2).await;
    sleep(mins(10)).await;
    assert_eq!(lab.vsphere_agents().await.len(), 2);
    let limited = lab.pool().await.status.conditions;
    assert!(
        limited.iter().any(|it| it.type_ == "CapacityLimited" && it.status == "True"),
        "{limited:?}"
    );

    let paused = |value: serde_json::Value| json!({"metadata": {"annotations": {"agent-forge.containeroo.ch/paused": value}}});
    lab.patch_pool(paused(json!("true"))).await;
    lab.neighbours.scale(0);
    sleep(mins(30)).await;
    assert_eq!(lab.node_vms().len(), 2, "paused");
    lab.patch_pool(paused(json!(null))).await;
    lab.until("gone", mins(60), async |lab| lab.node_vms().is_empty()).await;
    forge.stop().await;
}

/// Two pools share an InfraEnv and a namespace; F6: one has a plain datastore.
#[tokio::test(start_paused = true)]
async fn a_plain_datastore_and_eager_disks_and_tags_are_used() {
    let lab = Lab::new().await;
    lab.make_tag("team", "blue").await;
    let vsphere = json!({"datastoreCluster": null, "datastore": "LocalDS_0", "diskEagerlyScrub": true, "firmware": "bios", "vmTags": ["blue"]});
    lab.apply_pool(json!({"spec": {"vsphere": vsphere, "iso": {"ejectAfterInstall": true}}})).await;
    let forge = lab.forge();
    with_nodes(&lab, 1).await;
    let vm = lab.vcenter.vm("blue-gp-0001").unwrap();
    assert_eq!(vm.datastore, "LocalDS_0");
    let disk = vm.devices.iter().find(|device| device.is_disk()).unwrap();
    assert_eq!(disk.backing.as_ref().unwrap().eagerly_scrub, Some(true));
    lab.until("the ISO is taken out", mins(5), async |lab| {
        let vm = lab.vcenter.vm("blue-gp-0001").unwrap();
        let drive = vm.devices.iter().find(|device| device.is_cdrom()).unwrap();
        drive.backing.as_ref().unwrap().file_name.is_none()
    })
    .await;
    assert!(lab.vsphere_agents().await[0].status.iso_ejected);
    forge.stop().await;
}

/// A VM that the upstream operator made has no marker: its recorded uuid proves it ours.
#[tokio::test(start_paused = true)]
async fn a_vm_of_the_upstream_operator_is_taken_over_by_its_recorded_uuid() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    lab.add_vm("nodes/blue", "old-1").await;
    let uuid = lab.vcenter.vm("old-1").unwrap().uuid;
    let object = json!({"apiVersion": "agent-forge.containeroo.ch/v1alpha1", "kind": "VsphereAgent",
        "metadata": {"name": "old-1", "namespace": NS, "finalizers": ["agent-forge.containeroo.ch/vsphere-agent"]},
        "spec": {"poolRef": {"name": POOL}}});
    lab.agents_api()
        .create(&PostParams::default(), &serde_json::from_value(object).unwrap())
        .await
        .unwrap();
    let status = json!({"status": {"vm": {"name": "old-1", "biosUUID": uuid, "phase": "Available", "reason": "AgentAvailable"}}});
    lab.agents_api()
        .patch_status("old-1", &PatchParams::default(), &Patch::Merge(status))
        .await
        .unwrap();
    let forge = lab.forge();
    lab.until("it is marked", mins(5), async |lab| lab.node_vms() == ["old-1"]).await;
    lab.until("it has no Agent", mins(2), async |lab| {
        let vms = lab.pool().await.status.owned_vms;
        vms.first().is_some_and(|vm| vm.is(Phase::Orphaned, Reason::AgentDiscoveryExpired))
    })
    .await;
    lab.until("it goes as an orphan", mins(20), async |lab| lab.vcenter.vm("old-1").is_none())
        .await;
    forge.stop().await;
}

/// W17, W18: an Agent that the InfraEnv gave no labels was not found, nor one whose first card is not the VM's.
#[tokio::test(start_paused = true)]
async fn an_agent_without_labels_is_known_by_its_second_card() {
    let lab = Lab::with(1, |sim| sim.registers_after = mins(100_000)).await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("its card is recorded", mins(10), async |lab| {
        let all = lab.vsphere_agents().await;
        all.first().and_then(VsphereAgent::recorded).is_some_and(|vm| !vm.mac_address.is_empty())
    })
    .await;
    let mac = lab.vsphere_agents().await[0].recorded().unwrap().mac_address.replace('-', ":");
    let mut agent = DynamicObject::new("host-1", &outside::agents())
        .within(NS)
        .data(json!({"spec": {"approved": false, "role": ""}}));
    let label = ("infraenvs.agent-install.openshift.io".to_owned(), "blue-env".to_owned());
    agent.metadata.labels = Some([label].into());
    let api: kube::Api<DynamicObject> =
        kube::Api::namespaced_with(lab.client.clone(), NS, &outside::agents());
    api.create(&PostParams::default(), &agent).await.unwrap();
    let cards = json!([{"name": "ens1", "macAddress": "02:00:00:00:00:01"}, {"name": "ens2", "macAddress": mac.to_uppercase()}]);
    let status = json!({"status": {"inventory": {"hostname": "localhost", "interfaces": cards},
        "conditions": [{"type": "Connected", "status": "True", "reason": "Seen", "message": ""}]}});
    api.patch_status("host-1", &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    lab.until("it becomes the node", mins(30), async |lab| lab.ready_nodes().await == 1).await;
    let prepared = api.get("host-1").await.unwrap();
    assert_eq!(prepared.labels().get("tenant").map(String::as_str), Some("blue"));
    assert_eq!(prepared.data["spec"]["hostname"], "blue-gp-0001");
    assert_eq!(lab.vcenter.counters().calls_of("CreateVM_Task"), 1);
    forge.stop().await;
}

/// W19: a name of more than 63 letters is no value of a label.
#[tokio::test(start_paused = true)]
async fn a_machine_with_a_long_name_gets_its_agent() {
    // A provider that names machines by name could not label the Agent at all.
    let lab = Lab::with(1, |sim| sim.ref_by = RefBy::Uid).await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    let names = ["a", "b"].map(|end| format!("blue-gp-{}-{end}", "x".repeat(62)));
    for name in &names {
        lab.add_agent_machine(name).await;
    }
    let bound = async |name: &str| {
        let machine = lab.agent_machines_api().get(name).await.unwrap();
        machine.data["status"]["agentRef"]["name"].as_str().map(str::to_owned)
    };
    lab.until("both are bound", mins(30), async |_| {
        bound(&names[0]).await.is_some() && bound(&names[1]).await.is_some()
    })
    .await;
    let own = bound(&names[0]).await;
    assert_ne!(own, bound(&names[1]).await, "each has its own");
    assert_eq!(lab.node_vms().len(), 2);
    let pin = "agent-forge.containeroo.ch/agent-machine";
    let machine = lab.agent_machines_api().get(&names[0]).await.unwrap();
    let pinned = machine.data["spec"]["agentLabelSelector"]["matchLabels"][pin].as_str().unwrap();
    assert_eq!(pinned.len(), 63);
    let agent = lab.agents().await.into_iter().find(|it| Some(it.name_any()) == own).unwrap();
    assert_eq!(agent.labels().get(pin).map(String::as_str), Some(pinned));
    forge.stop().await;
}

/// W28: what belongs to other clusters was kept whole. It is looked at no further than to know that, and never written.
#[tokio::test(start_paused = true)]
async fn objects_of_other_clusters_are_neither_shown_nor_changed() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let all = |kind| -> kube::Api<DynamicObject> {
        kube::Api::namespaced_with(lab.client.clone(), "green", kind)
    };
    let (agents, machines) = (outside::agents(), outside::agent_machines());
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "green"}});
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> =
        kube::Api::all(lab.client.clone());
    let namespace = serde_json::from_value(namespace).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    // By name and label they could be ours.
    let mut agent = foreign_agent("blue-gp-0001");
    agent.metadata.namespace = Some("green".to_owned());
    let agent = all(&agents).create(&PostParams::default(), &agent).await.unwrap();
    let mut machine = DynamicObject::new("blue-gp-0001", &machines)
        .within("green")
        .data(json!({"spec": {"agentLabelSelector": {"matchLabels": {"tenant": "blue"}}}}));
    let node_pool = ("hypershift.openshift.io/nodePool".to_owned(), "blue/blue-gp".to_owned());
    machine.metadata.annotations = Some([node_pool].into());
    let machine = all(&machines).create(&PostParams::default(), &machine).await.unwrap();
    let waits = json!({"status": {"conditions": [{"type": "Ready", "status": "False", "severity": "Warning",
        "reason": "NoSuitableAgents", "lastTransitionTime": "2026-07-01T00:00:00Z"}]}});
    let params = PatchParams::default();
    let machine =
        all(&machines).patch_status(&machine.name_any(), &params, &Patch::Merge(waits)).await;
    let machine = machine.unwrap();
    let forge = lab.forge();
    with_nodes(&lab, 1).await;
    assert_eq!(forge.door.requests().len(), 1, "only our own");
    lab.neighbours.scale(0);
    lab.until("our own is gone", mins(30), async |lab| lab.node_vms().is_empty()).await;
    sleep(mins(30)).await;
    let now = all(&agents).get("blue-gp-0001").await.unwrap();
    assert_eq!(now.resource_version(), agent.resource_version());
    let now = all(&machines).get("blue-gp-0001").await.unwrap();
    assert_eq!(now.resource_version(), machine.resource_version());
    forge.stop().await;
}

/// W29: a deletion that failed or was put off was forgotten, because the Machine was seen deleting only once.
#[tokio::test(start_paused = true)]
async fn a_deletion_that_fails_is_not_forgotten_even_by_another_process() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({})).await;
    let forge = lab.forge();
    with_nodes(&lab, 1).await;
    sleep(mins(2)).await;
    let refuse = |times| KubeRule {
        verb: "delete".to_owned(),
        resource: "vsphereagents.agent-forge.containeroo.ch".to_owned(),
        user: DOOR.to_owned(),
        when: KubeWhen { times, ..KubeWhen::default() },
        action: KubeAction::Status { code: 500 },
        ..KubeRule::default()
    };
    lab.kube.add_rule(refuse(None));
    lab.neighbours.scale(0);
    let is_sticky = async |lab: &Lab| {
        let vms = lab.pool().await.status.owned_vms;
        vms.first().is_some_and(|vm| vm.is(Phase::Released, Reason::MachineDeleted))
    };
    lab.until("its Machine is known to be gone", mins(10), is_sticky).await;
    lab.until("the failure is told", mins(10), async |lab| {
        lab.event_reasons().await.iter().any(|reason| reason == "ApplyPlanFailed")
    })
    .await;
    forge.crash().await;
    lab.kube.clear_rules();
    lab.kube.add_rule(refuse(Some(3)));
    let forge = lab.forge();
    lab.until("the VM goes all the same", mins(30), async |lab| {
        let is_remembered = is_sticky(lab).await
            || lab.vsphere_agents().await.iter().all(VsphereAgent::is_deleting);
        assert!(is_remembered, "{}", lab.story().await);
        lab.node_vms().is_empty() && lab.agents().await.is_empty()
    })
    .await;
    assert!(lab.vsphere_agents().await.is_empty());
    forge.stop().await;
}
