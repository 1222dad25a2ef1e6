use std::time::Duration;

use roost_vcenter_sim::{Action, Outage, Rule, When};
use roost_vim::wire::methods::{DestroyTask, PowerOffVmTask, ReconfigVmTask, RenameTask};
use roost_vim::wire::types::{OptionValue, VirtualMachineConfigSpec};
use roost_vim::wire::{MoRef, MoType, Value};
use roost_vim::{Faulted, WatchSpec, Watched};
use tokio::time::sleep;

use crate::lab::{Lab, Mirror, options, settings, vms};

async fn reconfigure(lab: &Lab, vm: &MoRef, spec: VirtualMachineConfigSpec) {
    lab.client
        .submit(&ReconfigVmTask { this: vm.clone(), spec })
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn objects_enter_change_and_leave() {
    let lab = Lab::new(options()).await;
    let mut vms = lab.watch().await;
    vms.sync().await;
    assert_eq!(vms.plain(), lab.read_vms().await);
    let vm = lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();

    let spec = VirtualMachineConfigSpec { annotation: Some("ours".into()), ..Default::default() };
    reconfigure(&lab, &vm, spec).await;
    vms.follow(Duration::from_secs(1)).await;
    assert_eq!(vms.objects[&vm].str("config.annotation"), Some("ours"));
    let spec = VirtualMachineConfigSpec { annotation: Some(String::new()), ..Default::default() };
    reconfigure(&lab, &vm, spec).await;
    vms.follow(Duration::from_secs(1)).await;
    assert_eq!(vms.objects[&vm].get("config.annotation"), None, "unset is gone");

    lab.client.submit(&PowerOffVmTask { this: vm.clone() }).await.unwrap().wait().await.unwrap();
    lab.client.submit(&DestroyTask { this: vm.clone() }).await.unwrap().wait().await.unwrap();
    vms.follow(Duration::from_secs(1)).await;
    assert_eq!(vms.left, [vm].into());
    assert_eq!(vms.plain(), lab.read_vms().await);
}

#[tokio::test(start_paused = true)]
async fn keyed_and_nested_paths_are_followed() {
    let lab = Lab::new(options()).await;
    let vm = lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();
    let key = "config.extraConfig[\"guestinfo.x\"]";
    let paths = [key, "config.hardware.numCPU", "runtime.powerState"];
    let mut vms =
        Mirror::new(lab.client.watch(WatchSpec::object(vm.clone(), &paths)).await.unwrap());
    vms.sync().await;
    assert_eq!(vms.objects[&vm].get(key), None);
    let option = |value: &str| VirtualMachineConfigSpec {
        extra_config: vec![OptionValue {
            key: "guestinfo.x".into(),
            value: Some(Value::string(value)),
        }],
        ..Default::default()
    };
    for value in ["one", "two"] {
        reconfigure(&lab, &vm, option(value)).await;
        vms.follow(Duration::from_secs(1)).await;
        let found =
            vms.objects[&vm].data::<OptionValue>(key).and_then(|option| option.value.clone());
        assert_eq!(found, Some(Value::string(value)));
    }
    reconfigure(&lab, &vm, option("")).await;
    vms.follow(Duration::from_secs(1)).await;
    assert_eq!(vms.objects[&vm].get(key), None, "removed with its key");
}

/// Nothing else is ever told of them, and whoever named them must know that it may have to name them again.
#[tokio::test(start_paused = true)]
async fn objects_that_are_named_and_do_not_exist_are_told_to_be_missing() {
    let lab = Lab::new(options()).await;
    let vm = lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();
    let spec = WatchSpec {
        objects: Watched::Objects(vec![vm.clone(), MoRef::vm("vm-first")]),
        ..WatchSpec::object(vm.clone(), &["name"])
    };
    let mut vms = Mirror::new(lab.client.watch(spec).await.unwrap());
    vms.sync().await;
    assert_eq!(vms.missing, [MoRef::vm("vm-first")], "when the list is made");
    vms.subscription.change_objects(vec![MoRef::vm("vm-later")], vec![]);
    vms.follow(Duration::from_secs(5)).await;
    assert_eq!(vms.missing, ["vm-first", "vm-later"].map(MoRef::vm), "when it changes");
    assert_eq!(vms.objects.keys().collect::<Vec<_>>(), [&vm]);
}

#[tokio::test(start_paused = true)]
async fn a_load_of_many_pages_is_whole() {
    let lab = Lab::new(vms(1_050)).await;
    let mut vms = lab.watch().await;
    assert!(!vms.synced);
    vms.sync().await;
    assert_eq!(vms.objects.len(), 1_050);
    assert_eq!(vms.plain(), lab.read_vms().await);
}

#[tokio::test(start_paused = true)]
async fn a_restart_in_the_middle_of_a_load_makes_nothing_leave() {
    for page in 1..=4 {
        for (case, action) in [
            ("restart", Action::Restart(Outage { lasts: Duration::from_secs(40), refuses: true })),
            (
                "starting",
                Action::Restart(Outage { lasts: Duration::from_secs(40), refuses: false }),
            ),
            ("session", Action::LoseSession),
            ("answer lost", Action::CutAfter),
            ("call lost", Action::CutBefore),
            ("stale version", Action::fault("InvalidCollectorVersion", "")),
        ] {
            let lab = Lab::new(vms(250)).await;
            let mut vms = lab.watch().await;
            vms.sync().await;
            // From the next wait on: the break, and another in page `page` of the load after it.
            lab.vcenter.faults().add(Rule::new("WaitForUpdatesEx", Action::LoseSession).once());
            lab.vcenter
                .faults()
                .add(Rule::new("WaitForUpdatesEx", action).when(When::Nth(page + 1)).once());
            vms.follow(Duration::from_mins(5)).await;
            assert!(vms.synced, "{case} at page {page}: {:?}", vms.subscription.status());
            assert!(vms.left.is_empty(), "{case} at page {page}: {:?} left", vms.left);
            assert_eq!(vms.plain(), lab.read_vms().await, "{case} at page {page}");
            assert!(vms.resyncs >= 1, "{case}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_left_during_a_break_is_told_once_the_new_load_is_whole() {
    let lab = Lab::new(vms(150)).await;
    let mut vms = lab.watch().await;
    vms.sync().await;
    let gone = lab.vcenter.find("/DC0/vm/DC0_C0_RP0_VM7").unwrap();
    // The stream takes a while to come back; someone else is quicker.
    let slow = Action::Delay(Duration::from_secs(14));
    lab.vcenter.faults().add(Rule::new("CreateContainerView", slow));
    lab.vcenter.expire_sessions();
    let other = lab.another_client().await;
    other.submit(&PowerOffVmTask { this: gone.clone() }).await.unwrap().wait().await.unwrap();
    other.submit(&DestroyTask { this: gone.clone() }).await.unwrap().wait().await.unwrap();
    vms.follow(Duration::from_secs(1)).await;
    assert!(vms.left.is_empty() && !vms.synced, "nothing is known yet");
    vms.follow(Duration::from_mins(3)).await;
    assert_eq!((vms.left.clone(), vms.synced, vms.resyncs), ([gone].into(), true, 1));
    assert_eq!(vms.plain(), lab.read_vms().await);
}

/// A server may answer the pending wait with the objects of a new filter before it answers the call that made the filter.
#[tokio::test(start_paused = true)]
async fn a_filter_that_a_wait_tells_of_first_loses_nothing() {
    let lab = Lab::new(vms(250)).await;
    let mut hosts = Mirror::new(
        lab.client
            .watch(WatchSpec::below(lab.root(), MoType::HostSystem, &["name"]))
            .await
            .unwrap(),
    );
    hosts.sync().await;
    sleep(Duration::from_secs(5)).await;
    lab.vcenter.faults().add(Rule::new("CreateFilter", Action::LateAnswer(Duration::from_secs(3))));
    let mut vms = lab.watch().await;
    vms.sync().await;
    assert_eq!(vms.objects.len(), 250);
    let vm = lab.vcenter.find("/DC0/vm/DC0_C0_RP0_VM0").unwrap();
    let rename = RenameTask { this: vm.clone(), new_name: "other".into() };
    lab.client.submit(&rename).await.unwrap().wait().await.unwrap();
    vms.follow(Duration::from_secs(1)).await;
    assert_eq!(vms.plain(), lab.read_vms().await);
}

#[tokio::test(start_paused = true)]
async fn at_rest_the_cost_does_not_depend_on_the_inventory() {
    let mut costs = Vec::new();
    for count in [10, 1_000] {
        let lab = Lab::new(vms(count)).await;
        let mut vms = lab.watch().await;
        vms.sync().await;
        // Guests boot in the first minutes.
        vms.follow(Duration::from_mins(10)).await;
        lab.vcenter.reset_counters();
        vms.follow(Duration::from_hours(1)).await;
        costs.push(lab.vcenter.counters().total_calls());
    }
    assert_eq!(costs[0], costs[1]);
    assert!(costs[0] <= 4 * 60, "{costs:?} calls in an hour");
    assert!(costs[0] <= 75, "{costs:?} calls in an hour");
}

#[tokio::test(start_paused = true)]
async fn many_watches_share_one_collector_and_one_wait() {
    let lab = Lab::new(options()).await;
    let mut first = lab.watch().await;
    first.sync().await;
    let mut others = Vec::new();
    for kind in [MoType::HostSystem, MoType::ResourcePool, MoType::Datastore, MoType::Network] {
        let spec = WatchSpec::below(lab.root(), kind, &["name"]);
        let mut mirror = Mirror::new(lab.client.watch(spec).await.unwrap());
        mirror.sync().await;
        assert!(!mirror.objects.is_empty());
        others.push(mirror);
    }
    let open = lab.vcenter.counters();
    assert_eq!((open.open_collectors, open.open_filters, open.open_views), (1, 5, 5));
    lab.vcenter.reset_counters();
    first.follow(Duration::from_hours(1)).await;
    assert!(lab.vcenter.counters().total_calls() <= 80);
    // A change of one is seen at once although four others were added after it.
    let vm = lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();
    let rename = RenameTask { this: vm.clone(), new_name: "other".into() };
    lab.client.submit(&rename).await.unwrap().wait().await.unwrap();
    first.follow(Duration::from_millis(50)).await;
    assert_eq!(first.objects[&vm].str("name"), Some("other"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_nothing_is_complete_at_once() {
    let lab = Lab::new(vms(0)).await;
    let mut none = lab.watch().await;
    tokio::time::timeout(Duration::from_secs(1), none.sync()).await.unwrap();
    let mut busy = Mirror::new(
        lab.client
            .watch(WatchSpec::below(lab.root(), MoType::HostSystem, &["name"]))
            .await
            .unwrap(),
    );
    tokio::time::timeout(Duration::from_secs(1), busy.sync()).await.unwrap();
    let mut gone = Mirror::new(
        lab.client.watch(WatchSpec::object(MoRef::vm("vm-999999"), &["name"])).await.unwrap(),
    );
    tokio::time::timeout(Duration::from_secs(1), gone.sync()).await.unwrap();
    assert!(none.objects.is_empty() && gone.objects.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_container_that_does_not_exist_is_refused() {
    let lab = Lab::new(options()).await;
    let nowhere = MoRef::new(MoType::Folder, "group-v404");
    let spec = WatchSpec {
        objects: Watched::Container {
            container: nowhere.clone(),
            kinds: vec![MoType::VirtualMachine],
            recursive: true,
        },
        properties: vec![],
    };
    let error = lab.client.watch(spec).await.unwrap_err();
    assert_eq!(error.missing_object(), Some(nowhere));
    let error = lab
        .client
        .watch(WatchSpec::below(lab.root(), MoType::VirtualMachine, &["no.such"]))
        .await
        .unwrap_err();
    assert_eq!(error.invalid_property(), Some("no.such"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_one_batch_and_holds_nobody_up() {
    let lab = Lab::new(options()).await;
    let (mut slow, mut quick) = (lab.watch().await, lab.watch().await);
    slow.sync().await;
    quick.sync().await;
    let vm = lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();
    for name in ["a", "b", "c"] {
        let rename = RenameTask { this: vm.clone(), new_name: name.into() };
        lab.client.submit(&rename).await.unwrap().wait().await.unwrap();
        quick.follow(Duration::from_secs(1)).await;
        assert_eq!(quick.objects[&vm].str("name"), Some(name));
    }
    let batch = slow.subscription.next().await.unwrap();
    assert_eq!(batch.updates.iter().filter(|update| update.obj == vm).count(), 1);
    slow.apply(batch);
    assert_eq!(slow.objects[&vm].str("name"), Some("c"));
}

#[tokio::test(start_paused = true)]
async fn the_status_says_how_far_the_stream_can_be_believed() {
    let lab = Lab::new(options()).await;
    let mut vms = lab.watch().await;
    vms.sync().await;
    let first = vms.subscription.status().last_contact.unwrap();
    sleep(Duration::from_mins(5)).await;
    let later = vms.subscription.status();
    assert!(later.synced && later.last_contact.unwrap() > first);
    lab.vcenter.restart(Outage { lasts: Duration::from_mins(10), refuses: true });
    sleep(Duration::from_mins(5)).await;
    let broken = vms.subscription.status();
    assert!(!broken.synced && broken.trouble.is_some(), "{broken:?}");
    sleep(Duration::from_mins(6)).await;
    let healed = vms.subscription.status();
    assert!(healed.synced && healed.trouble.is_none() && healed.resyncs == 1, "{healed:?}");
}

/// The wait is refused and everything else works: objects, tasks and new watches go on by reads, until the server can be waited on again.
#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_waited_on_is_read_instead() {
    let mut settings = settings();
    settings.stream.read_instead = Some(Duration::from_secs(5));
    let lab = Lab::with(options(), settings).await.unwrap();
    let deaf = Action::fault("RuntimeFault", "no news today");
    lab.vcenter.faults().add(Rule::new("WaitForUpdatesEx", deaf));
    let mut vms = lab.watch().await;
    vms.follow(Duration::from_secs(30)).await;
    assert_eq!(vms.plain(), lab.read_vms().await);
    let status = vms.subscription.status();
    assert!(status.synced && status.trouble.is_some(), "{status:?}");

    let vm = lab.vcenter.find("/DC0/vm/DC0_H0_VM0").unwrap();
    let spec = VirtualMachineConfigSpec { annotation: Some("ours".into()), ..Default::default() };
    reconfigure(&lab, &vm, spec).await;
    vms.follow(Duration::ZERO).await;
    assert_eq!(vms.objects[&vm].str("config.annotation"), Some("ours"), "with the end of its task");
    let mut one =
        Mirror::new(lab.client.watch(WatchSpec::object(vm.clone(), &["name"])).await.unwrap());
    one.follow(Duration::from_secs(6)).await;
    assert!(one.objects.contains_key(&vm));
    lab.client.submit(&PowerOffVmTask { this: vm.clone() }).await.unwrap().wait().await.unwrap();
    lab.client.submit(&DestroyTask { this: vm.clone() }).await.unwrap().wait().await.unwrap();
    vms.follow(Duration::from_secs(6)).await;
    assert_eq!(vms.left, [vm].into());
    let reads = lab.vcenter.counters().calls_of("RetrievePropertiesEx");
    vms.follow(Duration::from_mins(1)).await;
    let reads = lab.vcenter.counters().calls_of("RetrievePropertiesEx") - reads;
    assert!((20..=45).contains(&reads), "{reads} reads of two watches and a list in a minute");

    lab.vcenter.faults().clear();
    vms.follow(Duration::from_mins(1)).await;
    let status = vms.subscription.status();
    assert!(status.synced && status.trouble.is_none(), "{status:?}");
    let reads = lab.vcenter.counters().calls_of("RetrievePropertiesEx");
    vms.follow(Duration::from_mins(10)).await;
    assert_eq!(lab.vcenter.counters().calls_of("RetrievePropertiesEx"), reads);
    assert_eq!(vms.plain(), lab.read_vms().await);
}
