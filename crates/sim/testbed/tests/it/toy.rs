use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{AddressPlan, DoorName, Fleet, Limit, Limits, Power, Wrote};
use roost_testbed::{MACHINES, Site, TOY, Toy, ToySettings, ToyVms};
use tokio::time::sleep;

const HAND: DoorName = DoorName::new("hand");

pub(crate) fn settings(site: &Site, name: &str, wanted: u64) -> ToySettings {
    ToySettings {
        name: name.into(),
        wanted,
        template: site.template(),
        folder: site.find("/DC0/vm"),
        pool: site.find("/DC0/host/DC0_C0/Resources"),
        container: site.find("/DC0"),
        limits: Limits::default(),
        addresses: AddressPlan::of_range("10.9.0.0/28".parse().expect("a range"))
            .expect("a good range"),
    }
}

fn own(fleet: &Fleet, name: &str) -> Vec<Arc<roost_fleet::Vm>> {
    fleet.mirror().snapshot().owned_by(TOY, name).cloned().collect()
}

#[tokio::test(start_paused = true)]
async fn a_toy_door_keeps_its_vms_alive_and_needs_nothing_but_the_fleet() {
    let site = Site::new(5);
    let fleet = site.open(vec![Arc::new(ToyVms)]).await.unwrap();
    let running = tokio::spawn(Toy::new(fleet.clone(), settings(&site, "toys", 3)).run());
    sleep(Duration::from_mins(15)).await;
    let vms = own(&fleet, "toys");
    assert_eq!(vms.len(), 3);
    assert!(vms.iter().all(|vm| vm.power == Power::On));
    let addresses: BTreeSet<_> = vms.iter().map(|vm| vm.claim.as_ref().unwrap().address).collect();
    assert_eq!(addresses.len(), 3, "each has an address of its own: {addresses:?}");
    assert_eq!(site.vcenter.counters().calls_of("Login"), 1);

    // One is powered off and one deleted behind its back.
    let hand = fleet.client();
    hand.power_off(&vms[0].id.moref()).await.unwrap();
    // Held for as long as that takes, or the toy would power it on in between.
    let hold = fleet.machines().hold(HAND, &vms[1].id).unwrap();
    hand.destroy(&vms[1].id.moref()).await.unwrap();
    drop(hold);
    sleep(Duration::from_mins(15)).await;
    let vms = own(&fleet, "toys");
    assert_eq!(vms.iter().filter(|vm| vm.power == Power::On).count(), 3);
    assert_eq!(site.vcenter.vm_names().len(), 5 + 1 + 3, "nobody else's was touched");
    running.abort();

    // Fewer are wanted: what a person asked for goes without a second look.
    let fewer = tokio::spawn(Toy::new(fleet.clone(), settings(&site, "toys", 1)).run());
    sleep(Duration::from_mins(5)).await;
    assert_eq!(own(&fleet, "toys").len(), 1);
    fewer.abort();
}

#[tokio::test(start_paused = true)]
async fn a_quota_holds_and_the_journal_says_why() {
    let site = Site::new(0);
    let fleet = site.open(vec![Arc::new(ToyVms)]).await.unwrap();
    let limits = Limits::default().quota(MACHINES, Limit::At(2));
    let settings = ToySettings { limits, ..settings(&site, "toys", 4) };
    let running = tokio::spawn(Toy::new(fleet.clone(), settings).run());
    sleep(Duration::from_mins(15)).await;
    assert_eq!(own(&fleet, "toys").len(), 2);
    let refused = fleet.journal().latest(&TOY.about_request("3")).unwrap();
    assert_eq!(refused.bound_by, Some("machines"));
    running.abort();
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_another_holds_is_left_alone() {
    let site = Site::new(0);
    let fleet = site.open(vec![Arc::new(ToyVms)]).await.unwrap();
    let running = tokio::spawn(Toy::new(fleet.clone(), settings(&site, "toys", 1)).run());
    sleep(Duration::from_mins(10)).await;
    let vm = own(&fleet, "toys")[0].id.clone();
    let hold = fleet.machines().hold(HAND, &vm).unwrap();
    fleet.machines().power_off(&hold).await.unwrap();
    sleep(Duration::from_mins(5)).await;
    assert_eq!(fleet.mirror().vm(&vm).unwrap().power, Power::Off);
    drop(hold);
    fleet.mirror().changed(&vm, Wrote::new().power(Power::Off));
    sleep(Duration::from_mins(5)).await;
    assert_eq!(fleet.mirror().vm(&vm).unwrap().power, Power::On);
    running.abort();
}
