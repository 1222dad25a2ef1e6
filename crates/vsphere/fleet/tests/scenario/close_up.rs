//! Everything about a few VMs, at the cost of those few.

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Fleet, FleetRules, VmId, Wrote};
use roost_vcenter_sim::{Action, Outage, Rule};
use roost_vim::wire::types::Hidden;
use roost_vim::{NewSnapshot, Reconfigure};
use tokio::time::sleep;

use crate::lab::{Lab, MINUTE, SECOND, Slashes, wait_for};

/// A fleet that follows the lab's server.
async fn fleet(lab: &Lab) -> Fleet {
    let doors = vec![Arc::new(Slashes) as _];
    let clock = lab.clock.clone();
    let fleet = Fleet::over(lab.client.clone(), clock, doors, None, FleetRules::default());
    fleet.cover(&lab.find("/DC0"));
    let following = fleet.clone();
    tokio::spawn(async move { following.follow().await });
    assert!(fleet.mirror().wait_complete(MINUTE).await);
    fleet
}

/// Makes the VM a door's own.
async fn claim(lab: &Lab, fleet: &Fleet, name: &str) -> VmId {
    let vm = lab.id(name);
    let annotation = format!("hv1/{name}");
    lab.client.reconfigure(&vm.moref(), &Reconfigure::annotation(&*annotation)).await.unwrap();
    fleet.mirror().changed(&vm, Wrote::new().annotation(&*annotation));
    vm
}

fn extra_config(key: &str, value: &str) -> Reconfigure {
    Reconfigure {
        extra_config: vec![(key.to_owned(), Hidden(value.to_owned()))],
        ..Reconfigure::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_claimed_vm_is_shown_with_everything_and_as_it_changes() {
    let lab = Lab::new(30).await;
    let fleet = fleet(&lab).await;
    let vm = claim(&lab, &fleet, "DC0_C0_RP0_VM3").await;
    assert!(fleet.close_up().of(&vm).is_none(), "nobody asked");
    fleet.close_up().look_at(&vm).unwrap();
    wait_for("the VM is shown", || fleet.close_up().of(&vm).is_some()).await;
    let shown = fleet.close_up().of(&vm).unwrap();
    assert!(!shown.devices().is_empty() && shown.change_version().is_some());

    let (_, before) = fleet.close_up().changed_since(0);
    let hold = fleet.machines().hold(crate::lab::LAB, &vm).unwrap();
    fleet.machines().reconfigure(&hold, &extra_config("guestinfo.x", "one")).await.unwrap();
    let shown = fleet.close_up().of(&vm).unwrap();
    assert_eq!(shown.extra_config("guestinfo.x"), Some("one"), "with the end of the task");
    assert_eq!(fleet.close_up().changed_since(before).0, std::slice::from_ref(&vm));
    assert!(!format!("{shown:?}").contains("one"), "values may be secret");

    let snapshot = NewSnapshot::new("before");
    lab.client.create_snapshot(&vm.moref(), &snapshot).await.unwrap();
    assert_eq!(
        fleet.close_up().of(&vm).unwrap().snapshots().unwrap().root_snapshot_list[0].name,
        "before"
    );
}

#[tokio::test(start_paused = true)]
async fn what_nobody_has_claimed_is_not_looked_at() {
    let lab = Lab::new(3).await;
    let fleet = fleet(&lab).await;
    let vm = lab.id("DC0_C0_RP0_VM1");
    assert_eq!(
        fleet.close_up().look_at(&vm).unwrap_err().to_string(),
        format!("{vm} is claimed by no door")
    );
    sleep(MINUTE).await;
    assert!(fleet.close_up().is_empty());
}

#[tokio::test(start_paused = true)]
async fn looking_away_and_destroying_end_it_and_looking_again_begins_it() {
    let lab = Lab::new(30).await;
    let fleet = fleet(&lab).await;
    let one = claim(&lab, &fleet, "DC0_C0_RP0_VM3").await;
    let other = claim(&lab, &fleet, "DC0_C0_RP0_VM4").await;
    for vm in [&one, &other] {
        fleet.close_up().look_at(vm).unwrap();
    }
    wait_for("both are shown", || fleet.close_up().len() == 2).await;
    let (_, generation) = fleet.close_up().changed_since(0);
    fleet.close_up().look_away(&one);
    wait_for("one is gone", || fleet.close_up().of(&one).is_none()).await;
    // At once, also while the server still works at the first.
    fleet.close_up().look_at(&one).unwrap();
    fleet.close_up().look_away(&one);
    fleet.close_up().look_at(&one).unwrap();
    sleep(MINUTE).await;
    fleet.close_up().look_at(&one).unwrap();
    wait_for("it is back", || fleet.close_up().of(&one).is_some()).await;

    lab.client.power_off(&other.moref()).await.unwrap();
    lab.client.destroy(&other.moref()).await.unwrap();
    wait_for("the other is gone", || fleet.close_up().of(&other).is_none()).await;
    let (changed, _) = fleet.close_up().changed_since(generation);
    assert!(changed.contains(&one) && changed.contains(&other), "{changed:?}");
}

/// As with a VM that the server did not show at that moment.
#[tokio::test(start_paused = true)]
async fn a_vm_that_was_missing_can_be_asked_for_again() {
    let lab = Lab::new(30).await;
    let fleet = fleet(&lab).await;
    let shown = claim(&lab, &fleet, "DC0_C0_RP0_VM3").await;
    fleet.close_up().look_at(&shown).unwrap();
    wait_for("one is shown", || fleet.close_up().of(&shown).is_some()).await;
    let missing = VmId::new("vm-nowhere");
    fleet.mirror().created(&missing, Wrote::new().name("x").annotation("hv1/x"));
    let asked = || lab.vcenter.counters().calls_of("ModifyListView");
    for _ in 0..2 {
        let before = asked();
        fleet.close_up().look_at(&missing).unwrap();
        wait_for("it is asked for", || asked() > before).await;
        sleep(Duration::from_secs(1)).await;
        assert!(fleet.close_up().of(&missing).is_none());
    }
}

/// Whatever breaks the stream, the close-up is whole again afterwards, also with what was asked for meanwhile.
#[tokio::test(start_paused = true)]
async fn it_comes_back_after_a_break() {
    for (case, method, action) in [
        (
            "restart",
            "WaitForUpdatesEx",
            Action::Restart(Outage { lasts: 40 * SECOND, refuses: true }),
        ),
        ("session", "WaitForUpdatesEx", Action::LoseSession),
        ("while the list changes", "ModifyListView", Action::LoseSession),
        ("answer lost", "ModifyListView", Action::CutAfter),
        ("call lost", "ModifyListView", Action::CutBefore),
        ("refused", "ModifyListView", Action::fault("SystemError", "not now")),
    ] {
        let lab = Lab::new(30).await;
        let fleet = fleet(&lab).await;
        let one = claim(&lab, &fleet, "DC0_C0_RP0_VM3").await;
        let other = claim(&lab, &fleet, "DC0_C0_RP0_VM4").await;
        fleet.close_up().look_at(&one).unwrap();
        wait_for("one is shown", || fleet.close_up().of(&one).is_some()).await;
        lab.vcenter.faults().add(Rule::new(method, action).once());
        fleet.close_up().look_at(&other).unwrap();
        sleep(3 * MINUTE).await;
        assert_eq!(fleet.close_up().len(), 2, "{case}");
        lab.client.reconfigure(&one.moref(), &extra_config("guestinfo.x", "two")).await.unwrap();
        wait_for(case, || {
            fleet.close_up().of(&one).unwrap().extra_config("guestinfo.x") == Some("two")
        })
        .await;
    }
}

/// Adding a VM brings that VM, however many others there are, and the mirror hears of nothing.
#[tokio::test(start_paused = true)]
async fn one_more_costs_one_more() {
    let mut costs = Vec::new();
    for vms in [50, 500] {
        let lab = Lab::new(vms).await;
        let fleet = fleet(&lab).await;
        let mut claimed = Vec::new();
        for number in 0..20 {
            claimed.push(claim(&lab, &fleet, &format!("DC0_C0_RP0_VM{number}")).await);
        }
        for vm in &claimed[..19] {
            fleet.close_up().look_at(vm).unwrap();
        }
        wait_for("they are shown", || fleet.close_up().len() == 19).await;
        sleep(5 * MINUTE).await;
        let (mirror, resyncs) =
            (fleet.mirror().snapshot().generation(), fleet.mirror().stream().borrow().resyncs);
        let before = lab.vcenter.counters();
        fleet.close_up().look_at(&claimed[19]).unwrap();
        wait_for("the last is shown", || fleet.close_up().len() == 20).await;
        let after = lab.vcenter.counters();
        costs.push((
            after.calls_of("ModifyListView") - before.calls_of("ModifyListView"),
            after.calls.values().sum::<u64>() - before.calls.values().sum::<u64>(),
        ));
        assert_eq!(fleet.mirror().snapshot().generation(), mirror, "the mirror has nothing new");
        assert_eq!(fleet.mirror().stream().borrow().resyncs, resyncs);
    }
    let (changes, calls) = costs[0];
    assert_eq!(changes, 1);
    assert!(calls <= 3, "{costs:?}");
    assert_eq!(costs[0], costs[1], "the same among ten times as many");
}

/// Twenty that are asked for at once are not twenty calls.
#[tokio::test(start_paused = true)]
async fn many_are_asked_for_together() {
    let lab = Lab::new(100).await;
    let fleet = fleet(&lab).await;
    let first = claim(&lab, &fleet, "DC0_C0_RP0_VM0").await;
    fleet.close_up().look_at(&first).unwrap();
    wait_for("the first is shown", || fleet.close_up().len() == 1).await;
    let mut claimed = Vec::new();
    for number in 1..40 {
        claimed.push(claim(&lab, &fleet, &format!("DC0_C0_RP0_VM{number}")).await);
    }
    let before = lab.vcenter.counters().calls_of("ModifyListView");
    for vm in &claimed {
        fleet.close_up().look_at(vm).unwrap();
    }
    wait_for("they are shown", || fleet.close_up().len() == 40).await;
    assert!(lab.vcenter.counters().calls_of("ModifyListView") - before <= 2);
    sleep(Duration::from_secs(1)).await;
}
