//! Changes of a VM that is there.

use roost_vcenter_sim::{Action, GuestBehaviour, HostConnection, Power, Rule};
use roost_vm_operator::FastDeployMode;
use roost_vm_operator::api::VirtualMachineGroup;
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::names::{annotation, extra_config, finalizer};
use roost_vm_operator::api::vm::{PowerState, PromoteDisksMode};
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, condition, minutes, secs, vm};

#[tokio::test(start_paused = true)]
async fn a_vm_is_powered_off_by_its_guest_and_on_again() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff" } })).await;
    lab.until("off", "web-0", |vm| vm.current_power_state() == Some(PowerState::PoweredOff)).await;
    let counters = lab.site.vcenter.counters();
    assert_eq!((counters.calls_of("ShutdownGuest"), counters.calls_of("PowerOffVM_Task")), (1, 0));
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOn" } })).await;
    lab.until_on("web-0").await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_does_not_shut_down_is_forced_after_its_time_and_no_worker_waits_for_it() {
    let mut lab = Lab::idle().await;
    lab.settings.workers = 1;
    lab.start();
    lab.apply(&vm("deaf")).await;
    lab.until_on("deaf").await;
    let deaf = GuestBehaviour { obeys: false, ..GuestBehaviour::default() };
    lab.site.vcenter.set_guest_behaviour("deaf", deaf).unwrap();
    lab.patch("deaf", json!({ "spec": { "powerState": "PoweredOff" } })).await;
    sleep(secs(20)).await;
    // The only worker is free for others.
    lab.apply(&vm("web-0")).await;
    sleep(minutes(3)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::On);
    assert_eq!(lab.machine("deaf").unwrap().power, Power::On);
    sleep(minutes(3)).await;
    assert_eq!(lab.machine("deaf").unwrap().power, Power::Off);
    assert_eq!(lab.site.vcenter.counters().calls_of("PowerOffVM_Task"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_vm_without_tools_is_powered_off_at_once() {
    let lab = Lab::new().await;
    let mut mute = vm("web-0");
    mute.spec.power_state = Some(PowerState::PoweredOff);
    lab.apply(&mute).await;
    lab.until("made", "web-0", roost_vm_operator::api::VirtualMachine::is_created).await;
    let behaviour = GuestBehaviour { starts_tools: false, ..GuestBehaviour::default() };
    lab.site.vcenter.set_guest_behaviour("web-0", behaviour).unwrap();
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOn" } })).await;
    lab.until("on", "web-0", |vm| vm.current_power_state() == Some(PowerState::PoweredOn)).await;
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff" } })).await;
    sleep(secs(30)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::Off);
    assert_eq!(lab.site.vcenter.counters().calls_of("ShutdownGuest"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_configuration_that_fails_does_not_keep_a_vm_from_going_off() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    sleep(minutes(5)).await;
    let refused = Action::fail_task("GenericVmConfigFault", "no");
    lab.site.vcenter.faults().add(Rule::new("ReconfigVM_Task", refused));
    let wish = json!({ "spec": { "powerState": "PoweredOff", "powerOffMode": "Hard",
        "advanced": { "changeBlockTracking": true } } });
    lab.patch("web-0", wish).await;
    lab.until("off", "web-0", |vm| vm.current_power_state() == Some(PowerState::PoweredOff)).await;
    sleep(minutes(1)).await;
    assert!(lab.events().await.iter().any(|(reason, _)| reason == "UpdateFailure"));
    lab.site.vcenter.faults().clear();
    lab.until("tracked", "web-0", |vm| {
        vm.status.as_ref().and_then(|of| of.change_block_tracking) == Some(true)
    })
    .await;
}

/// vSphere tracks the blocks of a disk from the next time on that it opens it.
#[tokio::test(start_paused = true)]
async fn tracking_of_blocks_takes_effect_on_a_running_vm_by_one_short_suspension() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    sleep(minutes(5)).await;
    let track = |on: bool| json!({ "spec": { "advanced": { "changeBlockTracking": on } } });
    let is_tracked = |vm: &roost_vm_operator::api::VirtualMachine| {
        vm.status.as_ref().and_then(|of| of.change_block_tracking)
    };
    let suspensions = || lab.site.vcenter.counters().calls_of("SuspendVM_Task");
    lab.patch("web-0", track(true)).await;
    lab.until("tracked", "web-0", |vm| is_tracked(vm) == Some(true)).await;
    lab.until_on("web-0").await;
    sleep(minutes(5)).await;
    assert_eq!((suspensions(), lab.machine("web-0").unwrap().power), (1, Power::On));
    // One that goes off anyway is not woken for it, and one that is off opens them when it comes on.
    let off = json!({ "spec": { "powerState": "PoweredOff", "powerOffMode": "Hard" } });
    lab.patch("web-0", off).await;
    lab.patch("web-0", track(false)).await;
    lab.until("not tracked", "web-0", |vm| is_tracked(vm) == Some(false)).await;
    assert_eq!(suspensions(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_check_holds_back_the_power_on() {
    let lab = Lab::new().await;
    let mut held = vm("web-0");
    let check = format!("{}net", annotation::POWER_ON_CHECK_PREFIX);
    held.metadata.annotations = Some([(check.clone(), String::new())].into());
    lab.apply(&held).await;
    lab.until("made", "web-0", roost_vm_operator::api::VirtualMachine::is_created).await;
    sleep(minutes(5)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::Off);
    lab.annotate("web-0", &check, None).await;
    lab.until_on("web-0").await;
}

#[tokio::test(start_paused = true)]
async fn each_wish_for_a_restart_is_fulfilled_once() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    for round in 1..=2 {
        let wanted = lab.fleet.now().to_string();
        lab.patch("web-0", json!({ "spec": { "nextRestartTime": wanted, "restartMode": "Hard" } }))
            .await;
        sleep(minutes(3)).await;
        assert_eq!(lab.site.vcenter.counters().calls_of("ResetVM_Task"), round);
        let machine = lab.machine("web-0").unwrap();
        let last =
            machine.extra_config.iter().find(|(key, _)| key == extra_config::LAST_RESTART_TIME);
        let wanted: jiff::Timestamp = wanted.parse().unwrap();
        assert_eq!(last.unwrap().1, wanted.as_nanosecond().to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn another_class_resizes_a_vm_when_it_is_off() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    lab.patch("web-0", json!({ "spec": { "className": "large" } })).await;
    let kind = ConditionType::ClassConfigurationSynced;
    let waits = |vm: &roost_vm_operator::api::VirtualMachine| {
        condition(vm, kind) == Some(("False", "ClassNameChanged"))
    };
    lab.until("waiting to be resized", "web-0", waits).await;
    assert_eq!(lab.machine("web-0").unwrap().cpus, 2);
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff" } })).await;
    let done =
        |vm: &roost_vm_operator::api::VirtualMachine| condition(vm, kind) == Some(("True", "True"));
    let resized = lab.until("resized", "web-0", done).await;
    let machine = lab.machine("web-0").unwrap();
    assert_eq!((machine.cpus, machine.memory_mb), (4, 8192));
    assert_eq!(resized.status.unwrap().class.unwrap().name, "large");
}

/// The resize was under way, so the object did not say yet that the VM had another size, and nobody took it back. Found by the campaign.
#[tokio::test(start_paused = true)]
async fn a_mind_changed_while_a_vm_is_resized_is_heard_also_after_a_crash() {
    let mut lab = Lab::new().await;
    let mut off = vm("web-0");
    off.spec.power_state = Some(PowerState::PoweredOff);
    lab.apply(&off).await;
    let sized = |name: &'static str| {
        move |vm: &roost_vm_operator::api::VirtualMachine| {
            let class = vm.status.as_ref().and_then(|status| status.class.as_ref());
            class.is_some_and(|class| class.name == name) && vm.spec.class_name == name
        }
    };
    lab.until("made", "web-0", sized("small")).await;
    sleep(secs(10)).await;
    for crashes in [false, true] {
        let slow = Rule::new("ReconfigVM_Task", Action::DelayTask(secs(30))).once();
        lab.site.vcenter.faults().add(slow);
        let calls = lab.site.vcenter.counters().calls_of("ReconfigVM_Task");
        lab.patch("web-0", json!({ "spec": { "className": "large" } })).await;
        while lab.site.vcenter.counters().calls_of("ReconfigVM_Task") == calls {
            sleep(secs(1)).await;
        }
        if crashes {
            lab.crash().await;
        }
        lab.patch("web-0", json!({ "spec": { "className": "small" } })).await;
        if crashes {
            sleep(secs(60)).await;
            lab.start();
        }
        sleep(minutes(2)).await;
        lab.until("small again", "web-0", sized("small")).await;
        assert_eq!(lab.machine("web-0").unwrap().cpus, 2, "crashes: {crashes}");
    }
}

/// A process that crashes after it has asked for a customization does not know of it, and vCenter refuses a second one. Found by the campaign.
#[tokio::test(start_paused = true)]
async fn a_customization_that_is_pending_is_not_asked_for_again_and_again() {
    let mut lab = Lab::new().await;
    let slow = Rule::new("CustomizeVM_Task", Action::DelayTask(secs(20))).once();
    lab.site.vcenter.faults().add(slow);
    lab.apply(&vm("web-0")).await;
    while lab.site.vcenter.counters().calls_of("CustomizeVM_Task") == 0 {
        sleep(secs(1)).await;
    }
    lab.crash().await;
    sleep(secs(60)).await;
    lab.start();
    lab.until_on("web-0").await;
    assert!(lab.site.vcenter.counters().calls_of("CustomizeVM_Task") <= 2);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_is_lost_ends_the_work_without_a_storm_and_its_return_resumes_it() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    let host = lab.machine("web-0").unwrap().host;
    lab.site.vcenter.set_host_connection(&host, HostConnection::NotResponding).unwrap();
    let lost = |vm: &roost_vm_operator::api::VirtualMachine| {
        condition(vm, ConditionType::Connected).is_some_and(|(status, _)| status == "False")
    };
    lab.until("lost", "web-0", lost).await;
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff" } })).await;
    let before = lab.calls();
    sleep(minutes(5)).await;
    assert!(lab.calls() - before < 5, "{}", lab.calls() - before);
    lab.site.vcenter.set_host_connection(&host, HostConnection::Connected).unwrap();
    lab.until("off", "web-0", |vm| vm.current_power_state() == Some(PowerState::PoweredOff)).await;
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_taken_in_order_and_going_back_restores_the_object() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    for name in ["one", "two", "three"] {
        lab.snapshot(name, "web-0").await;
        sleep(secs(1)).await;
    }
    for name in ["one", "two", "three"] {
        lab.until_snapshot(name).await;
    }
    assert_eq!(lab.machine("web-0").unwrap().snapshots, ["one", "two", "three"]);
    lab.patch(
        "web-0",
        json!({ "metadata": { "labels": { "since": "then" } }, "spec": { "className": "large" } }),
    )
    .await;
    sleep(minutes(2)).await;
    lab.patch("web-0", json!({ "spec": { "currentSnapshotName": "one" } })).await;
    let back = |vm: &roost_vm_operator::api::VirtualMachine| {
        vm.spec.current_snapshot_name.is_empty() && vm.spec.class_name == "small"
    };
    let back = lab.until("back", "web-0", back).await;
    assert_eq!(back.metadata.labels.unwrap()["since"], "then", "what was added since stays");
    assert_eq!(lab.site.vcenter.counters().calls_of("RevertToSnapshot_Task"), 1);
    let status = lab
        .until("settled", "web-0", |vm| {
            let status = vm.status.as_ref().unwrap();
            status.current_snapshot.as_ref().is_some_and(|current| current.name == "one")
        })
        .await
        .status
        .unwrap();
    assert_eq!(status.root_snapshots.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn members_of_a_group_come_on_in_their_order_and_each_at_its_time() {
    let lab = Lab::new().await;
    for name in ["db-0", "web-0"] {
        let mut member = vm(name);
        member.spec.group_name = "shop".into();
        member.spec.power_state = Some(PowerState::PoweredOff);
        lab.apply(&member).await;
        lab.until("made", name, roost_vm_operator::api::VirtualMachine::is_created).await;
    }
    let group = json!({ "apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": "VirtualMachineGroup",
        "metadata": { "name": "shop", "namespace": "team-a" },
        "spec": { "powerState": "PoweredOn", "bootOrder": [
            { "members": [{ "kind": "VirtualMachine", "name": "db-0" }] },
            { "members": [{ "kind": "VirtualMachine", "name": "web-0" }], "powerOnDelay": "30s" },
        ] } });
    let group: roost_vm_operator::api::VirtualMachineGroup = serde_json::from_value(group).unwrap();
    lab.api().create(&kube::api::PostParams::default(), &group).await.unwrap();
    sleep(secs(25)).await;
    assert_eq!(lab.machine("db-0").unwrap().power, Power::On);
    assert_eq!(lab.machine("web-0").unwrap().power, Power::Off, "its time has not come");
    let waits = lab.get("web-0").await;
    assert!(waits.metadata.annotations.unwrap().contains_key(annotation::APPLY_POWER_STATE_TIME));
    sleep(secs(30)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::On);
    let linked = lab
        .until("linked", "web-0", |vm| {
            condition(vm, ConditionType::GroupLinked) == Some(("True", "True"))
        })
        .await;
    assert!(!linked.metadata.annotations.unwrap().contains_key(annotation::APPLY_POWER_STATE_TIME));

    // A member that a person powers off stays off: the group has said its word.
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff" } })).await;
    sleep(minutes(10)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::Off);
}

async fn group(lab: &Lab, name: &str, spec: serde_json::Value) {
    let group = json!({ "apiVersion": "vmoperator.vmware.com/v1alpha6", "kind": "VirtualMachineGroup",
        "metadata": { "name": name, "namespace": "team-a" }, "spec": spec });
    let group: roost_vm_operator::api::VirtualMachineGroup = serde_json::from_value(group).unwrap();
    lab.api().create(&kube::api::PostParams::default(), &group).await.unwrap();
}

/// One that the upstream controller has made has its finalizer already, and goes as well.
#[tokio::test(start_paused = true)]
async fn a_group_that_is_deleted_goes_and_its_members_stay() {
    let lab = Lab::new().await;
    let mut member = vm("web-0");
    member.spec.group_name = "shop".into();
    lab.apply(&member).await;
    group(&lab, "shop", json!({ "bootOrder": [{ "members": [{ "name": "web-0" }] }] })).await;
    lab.until_on("web-0").await;
    let groups = lab.api::<VirtualMachineGroup>();
    let made = groups.get("shop").await.unwrap();
    assert_eq!(made.metadata.finalizers, Some(vec![finalizer::GROUP.to_owned()]));
    groups.delete("shop", &kube::api::DeleteParams::default()).await.unwrap();
    sleep(minutes(1)).await;
    assert!(groups.get_opt("shop").await.unwrap().is_none(), "nothing holds it");
    assert_eq!(lab.machine("web-0").unwrap().power, Power::On);
}

#[tokio::test(start_paused = true)]
async fn a_group_in_a_group_comes_on_at_its_time_and_its_members_after_it() {
    use roost_vm_operator::api::VirtualMachineGroup;

    let lab = Lab::new().await;
    for (name, within) in [("db-0", "shop"), ("web-0", "front"), ("web-1", "front")] {
        let mut member = vm(name);
        member.spec.group_name = within.into();
        member.spec.power_state = Some(PowerState::PoweredOff);
        lab.apply(&member).await;
        lab.until("made", name, roost_vm_operator::api::VirtualMachine::is_created).await;
    }
    // The inner one names the outer one, which does not say that it is in it: nothing is handed upwards.
    let front = json!({ "groupName": "shop", "bootOrder": [
        { "members": [{ "kind": "VirtualMachine", "name": "web-0" }] },
        { "members": [{ "kind": "VirtualMachine", "name": "web-1" }, { "kind": "VirtualMachineGroup", "name": "shop" }],
            "powerOnDelay": "20s" },
    ] });
    group(&lab, "front", front).await;
    let shop = json!({ "powerState": "PoweredOn", "bootOrder": [
        { "members": [{ "kind": "VirtualMachine", "name": "db-0" }] },
        { "members": [{ "kind": "VirtualMachineGroup", "name": "front" }], "powerOnDelay": "60s" },
    ] });
    group(&lab, "shop", shop).await;
    let on = |name: &str| lab.machine(name).unwrap().power == Power::On;
    sleep(secs(50)).await;
    assert_eq!([on("db-0"), on("web-0"), on("web-1")], [true, false, false]);
    sleep(secs(25)).await;
    assert_eq!([on("db-0"), on("web-0"), on("web-1")], [true, true, false]);
    sleep(secs(25)).await;
    assert_eq!([on("db-0"), on("web-0"), on("web-1")], [true, true, true]);
    let shop = lab.api::<VirtualMachineGroup>().get("shop").await.unwrap();
    let members = shop.status.unwrap().members;
    assert_eq!(members.len(), 2);
    assert!(members.iter().all(|member| !member.uid.is_empty()
        && member.conditions.iter().any(|is| is.type_ == "GroupLinked" && is.status == "True")));

    // One that is off is brought back when somebody asks for it, through both groups.
    lab.patch("web-1", json!({ "spec": { "powerState": "PoweredOff", "powerOffMode": "Hard" } }))
        .await;
    sleep(minutes(2)).await;
    assert!(!on("web-1"));
    let now = json!({ "spec": { "nextForcePowerStateSyncTime": "now" } });
    let params = kube::api::PatchParams::default();
    let patch = kube::api::Patch::Merge(now);
    lab.api::<VirtualMachineGroup>().patch("shop", &params, &patch).await.unwrap();
    sleep(minutes(3)).await;
    assert!(on("web-1"));
    let writes = lab.writes();
    sleep(minutes(10)).await;
    assert_eq!(lab.writes(), writes, "groups do not hand their state round");
}

#[tokio::test(start_paused = true)]
async fn disks_of_a_linked_clone_are_promoted_where_fast_deploy_is_on() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.features.fast_deploy = Some(FastDeployMode::Linked);
    lab.start();
    let mut offline = vm("off-0");
    offline.spec.promote_disks_mode = Some(PromoteDisksMode::Offline);
    for wanted in [&vm("web-0"), &offline] {
        lab.apply(wanted).await;
        lab.until_on(&wanted.metadata.name.clone().unwrap()).await;
    }
    let kind = ConditionType::DiskPromotionSynced;
    let synced =
        |vm: &roost_vm_operator::api::VirtualMachine| condition(vm, kind) == Some(("True", "True"));
    // The one while it runs, the other before its first boot.
    for name in ["web-0", "off-0"] {
        lab.until("promoted", name, synced).await;
    }
    let has_parent = |name: &str| {
        let machine = lab.machine(name).unwrap();
        let mut disks =
            machine.devices.into_iter().filter(roost_vim::wire::types::VirtualDevice::is_disk);
        disks.any(|disk| disk.backing.is_some_and(|backing| backing.parent.is_some()))
    };
    assert!(!has_parent("web-0") && !has_parent("off-0"));
    assert_eq!(lab.site.vcenter.counters().calls_of("PromoteDisks_Task"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_vcenter_does_not_know_is_named_until_it_is_another() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOff", "powerOffMode": "Hard" } }))
        .await;
    lab.until("off", "web-0", |vm| vm.current_power_state() == Some(PowerState::PoweredOff)).await;
    let unknown = Action::fail_task("InvalidArgument", "not correct: configSpec.guestId");
    lab.site.vcenter.faults().add(Rule::new("ReconfigVM_Task", unknown));
    lab.patch("web-0", json!({ "spec": { "guestID": "nosuchGuest" } })).await;
    let kind = ConditionType::GuestIdReconfigured;
    lab.until("refused", "web-0", |vm| condition(vm, kind) == Some(("False", "Invalid"))).await;
    lab.site.vcenter.faults().clear();
    lab.patch("web-0", json!({ "spec": { "guestID": "debian12_64Guest" } })).await;
    lab.until("taken", "web-0", |vm| condition(vm, kind).is_none()).await;
}
