//! The hatchery and another door on one vCenter.

use std::collections::BTreeSet;
use std::sync::Arc;

use roost_cds::JobStatus;
use roost_fleet::{Limit, Limits, VmId};
use roost_hatchery::door::HATCHERY;
use roost_testbed::{MACHINES, TOY, Toy, ToySettings, ToyVms};
use tokio::time::sleep;

use crate::lab::{Lab, Setup, WorldOptions, mins, secs};

#[tokio::test(start_paused = true)]
async fn two_doors_have_one_login_one_stream_one_ledger_and_no_address_twice() {
    let mut lab = Lab::closed(WorldOptions::default(), Setup::new("hv1").max_workers(3));
    let calls = |lab: &Lab, method: &str| lab.vcenter.counters().calls_of(method);
    let before = (calls(&lab, "Login"), calls(&lab, "CreateContainerView"));
    lab.service.others = vec![Arc::new(ToyVms)];
    lab.open().await;
    let fleet = lab.hatchery().fleet().clone();
    let find = |path: &str| lab.vcenter.find(path).unwrap();
    let toy = Toy::new(
        fleet.clone(),
        ToySettings {
            name: "toys".into(),
            wanted: 6,
            template: VmId::from(&find("/DC0/vm/debian12")),
            folder: find("/DC0/vm"),
            pool: find("/DC0/host/DC0_C0/Resources"),
            container: find("/DC0"),
            limits: Limits::default().quota(MACHINES, Limit::At(4)),
            // The very addresses that the hatchery gives to its workers.
            addresses: lab.service.config().addresses.clone(),
        },
    );
    let running = tokio::spawn(toy.run());
    let jobs = lab.jobs(6);
    let (mut workers, mut toys) = (0, 0);
    for _ in 0..240 {
        sleep(secs(15)).await;
        let snapshot = fleet.mirror().snapshot();
        let claims = || snapshot.vms().filter_map(|vm| vm.claim.as_ref()?.address);
        let distinct: BTreeSet<_> = claims().collect();
        assert_eq!(distinct.len(), claims().count(), "an address was given twice");
        workers = workers.max(snapshot.claimed_by(HATCHERY).filter(|vm| vm.is_on()).count());
        toys = toys.max(snapshot.claimed_by(TOY).count());
    }
    assert!(jobs.iter().all(|job| lab.status(job) == JobStatus::Success));
    assert_eq!((workers, toys), (3, 4), "each door keeps to its own quota");
    let after = (calls(&lab, "Login"), calls(&lab, "CreateContainerView"));
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 1));
    assert_eq!(fleet.journal().latest(&TOY.about_request("5")).unwrap().bound_by, Some("machines"));
    running.abort();
    let left = lab.service.shut_down(mins(5)).await;
    assert_eq!(left, 0);
}
