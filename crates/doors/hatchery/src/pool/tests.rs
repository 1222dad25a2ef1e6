use std::time::Duration;

use jiff::Timestamp;

use super::*;

fn vm(name: &str) -> StartedVm<'_> {
    StartedVm { name, is_leaving: false }
}

fn v1(name: &str, status: WorkerStatus) -> v1::Worker {
    v1::Worker { id: format!("id-{name}"), name: name.into(), status, ..v1::Worker::default() }
}

const JOB: &str = "0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e4";

fn v2(name: &str, status: WorkerStatus) -> v2::Worker {
    v2::Worker {
        id: format!("id-{name}"),
        name: name.into(),
        status,
        run_job_id: JOB.into(),
        ..v2::Worker::default()
    }
}

fn views<'a>(vms: &[&'a str], v1: &'a [v1::Worker], v2: &'a [v2::Worker]) -> Views<'a> {
    Views {
        vms: Listed::Whole(vms.iter().map(|name| vm(name)).collect()),
        v1: Listed::Whole(v1),
        v2: Listed::Whole(v2),
    }
}

#[test]
fn reference_6_2_the_union_of_both_sides() {
    let v1 = [
        v1("both", WorkerStatus::Building),
        v1("lost", WorkerStatus::Waiting),
        v1("off", WorkerStatus::Disabled),
    ];
    let v2 = [v2("second", WorkerStatus::Waiting)];
    let mut views = views(&["both", "second", "new", "register-new"], &v1, &v2);
    if let Listed::Whole(vms) = &mut views.vms {
        vms.push(StartedVm { name: "done", is_leaving: true });
    }
    let pool = Pool::join(&views).unwrap();
    let status = |name| pool.get(name).unwrap().status;
    assert_eq!(status("both"), PoolStatus::Building, "CDS's word");
    assert_eq!(status("second"), PoolStatus::Waiting);
    assert_eq!(status("new"), PoolStatus::Pending);
    assert_eq!(status("register-new"), PoolStatus::Registering);
    assert_eq!(status("done"), PoolStatus::Leaving);
    assert_eq!(status("lost"), PoolStatus::Waiting, "until it is certain");
    assert_eq!(pool.without_vm().map(|(name, _)| name).collect::<Vec<_>>(), ["lost"]);
    assert_eq!(pool.slots_taken(), 5, "not the disabled one, nor the one on its way out");
    assert_eq!((pool.count(PoolStatus::Pending), pool.count(PoolStatus::Disabled)), (1, 1));
    assert_eq!(pool.started(), 5);
}

#[test]
fn w3_a_list_that_failed_is_no_list_and_never_an_empty_one() {
    let known = [v1("a", WorkerStatus::Building)];
    let mut views = views(&["a"], &known, &[]);
    views.vms = Listed::Partial("deadline passed".into());
    let error = Pool::join(&views).unwrap_err();
    assert_eq!(error.to_string(), "VMs cannot be counted: deadline passed");
    views.vms = Listed::Whole(vec![vm("a")]);
    views.v2 = Listed::Partial("503".into());
    assert_eq!(Pool::join(&views).unwrap_err().side, Side::Workers(Protocol::V2));
    views.v2 = Listed::NotSpoken;
    assert_eq!(Pool::join(&views).unwrap().slots_taken(), 1);
}

#[test]
fn w3_a_worker_without_vm_is_disabled_after_three_whole_views_and_a_minute() {
    let known = [v1("lost", WorkerStatus::Building), v1("fine", WorkerStatus::Building)];
    let pool = Pool::join(&views(&["fine"], &known, &[])).unwrap();
    let at = |seconds| Timestamp::UNIX_EPOCH + Duration::from_secs(seconds);
    let mut consistency = Consistency::default();
    assert_eq!(consistency.observe(&pool, at(0)), []);
    assert_eq!(consistency.observe(&pool, at(10)), []);
    assert_eq!(consistency.observe(&pool, at(20)), [], "three views, but no minute");
    let disable = Correction::Disable { name: "lost".into(), id: "id-lost".into() };
    assert_eq!(consistency.observe(&pool, at(60)), [disable]);
}

#[test]
fn w3_a_vm_that_is_seen_again_in_between_starts_the_count_anew() {
    let known = [v1("a", WorkerStatus::Building), v1("b", WorkerStatus::Building)];
    let (gone, back) = (views(&["b"], &known, &[]), views(&["a", "b"], &known, &[]));
    let (gone, back) = (Pool::join(&gone).unwrap(), Pool::join(&back).unwrap());
    let at = |minutes| Timestamp::UNIX_EPOCH + Duration::from_mins(minutes);
    let mut consistency = Consistency::default();
    for (minute, pool) in [(0, &gone), (1, &gone), (2, &back), (3, &gone), (4, &gone)] {
        assert_eq!(consistency.observe(pool, at(minute)), [], "minute {minute}");
    }
    assert_eq!(consistency.observe(&gone, at(5)).len(), 1);
}

#[test]
fn w3_an_empty_inventory_beside_known_workers_is_not_believed() {
    let known = [v1("a", WorkerStatus::Building)];
    let pool = Pool::join(&views(&[], &known, &[])).unwrap();
    let mut consistency = Consistency::default();
    for minute in 0..100 {
        let now = Timestamp::UNIX_EPOCH + Duration::from_mins(minute);
        assert_eq!(consistency.observe(&pool, now), []);
    }
}

#[test]
fn w28_a_v2_worker_without_vm_gives_its_job_back() {
    let known = [v2("lost", WorkerStatus::Building)];
    let pool = Pool::join(&views(&["other"], &[], &known)).unwrap();
    let mut consistency = Consistency::default();
    let corrections: Vec<_> = (0..3)
        .flat_map(|minute| {
            consistency.observe(&pool, Timestamp::UNIX_EPOCH + Duration::from_mins(minute))
        })
        .collect();
    let job = JobId::parse(JOB).unwrap();
    assert_eq!(corrections, [Correction::Release { name: "lost".into(), job }]);
}

#[test]
fn w4_what_is_not_given_as_ours_does_not_count() {
    let pool = Pool::join(&views(&[], &[], &[])).unwrap();
    assert_eq!((pool.slots_taken(), pool.started()), (0, 0));
}
