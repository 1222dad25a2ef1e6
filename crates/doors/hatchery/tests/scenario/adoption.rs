//! A process that dies in the middle of a start, and the next one that takes it up.

use roost_cds::{JobId, JobStatus};
use roost_cds_sim::{Fault, V1Demand, V2Demand};
use roost_fleet::Decided;
use roost_vcenter_sim::Power;
use tokio::time::{sleep, timeout};

use crate::lab::{
    Conduct, CrashAt, DEBIAN, Lab, Note, Service, Setup, Start, mins, secs, wait_until,
};

/// Runs one job. The process dies at the given call after the job was queued, and the next one begins at once.
async fn die_at(setup: Setup, spares: usize, number: u64, arrives: bool) {
    let mut lab = Lab::of(setup).await;
    sleep(if spares > 0 { mins(5) } else { secs(1) }).await;
    lab.wait_for_spares(spares).await;
    lab.restart().await;
    // The next start makes the same calls.
    let begun = lab.service.fuse().calls();
    lab.crash();
    let crash = CrashAt { call: begun + number, arrives };
    assert!(matches!(lab.start_to_die(crash).await, Start::Runs));
    lab.hatchery().opened().await;
    let job = lab.job();
    let died = timeout(mins(3), lab.service.fuse().clone().blown()).await;
    lab.crash();
    lab.open().await;
    lab.wait_for(&job, JobStatus::Success).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!(report.executions().len(), 1, "{crash:?}, {died:?}: {report:?}");
    lab.wait_until_clean(spares).await;
    let launched = lab.guests.launches_of(&job).len();
    assert_eq!(launched, 1, "{crash:?}, {died:?}");
}

/// From the first question about the job to a worker that is at it, and some more; the first two calls are about other things.
const CALLS: std::ops::RangeInclusive<u64> = 3..=38;

#[tokio::test(start_paused = true)]
async fn a_cold_start_is_taken_up_wherever_the_process_dies() {
    for number in CALLS {
        die_at(Setup::new("hv1").only_v2(), 0, number, true).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_warm_start_is_taken_up_wherever_the_process_dies() {
    for number in CALLS {
        die_at(Setup::new("hv1").only_v2().pool("debian12", 1), 1, number, number % 2 == 0).await;
    }
}

async fn wait_for_power(lab: &Lab, job: &JobId) {
    wait_until("its VM is on", mins(10), || lab.vm_of(job).is_some_and(|vm| vm.power == Power::On))
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_boots_gets_its_worker_from_the_next_process() {
    let mut lab = Lab::new().await;
    let job = lab.job();
    wait_for_power(&lab, &job).await;
    let vm = lab.vm_of(&job).unwrap();
    lab.restart().await;
    wait_until("it is taken up", mins(1), || lab.verdict(&job).is_some()).await;
    assert_eq!(lab.verdict(&job).unwrap().verdict, Decided::Adopted);
    lab.wait_for(&job, JobStatus::Success).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!(report.executions(), [&*vm.name]);
    assert_eq!(report.releases(), [""; 0], "nothing was given back");
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_was_launched_is_not_launched_again() {
    let mut lab = Lab::new().await;
    lab.guests.conduct(|_| Conduct::Slow(mins(2)));
    let job = lab.job();
    wait_until("it was launched", mins(10), || !lab.guests.launches().is_empty()).await;
    lab.restart().await;
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.guests.launches_of(&job).len(), 1);
    assert_eq!(lab.cds.job(&job).unwrap().releases(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_job_is_not_ours_any_more_goes() {
    let mut lab = Lab::new().await;
    let job = lab.job();
    wait_for_power(&lab, &job).await;
    lab.crash();
    lab.cds.stop_job(&job);
    lab.open().await;
    wait_until("its VM is marked or gone", mins(2), || {
        lab.vm_of(&job).is_none_or(|vm| Note::of(&vm).is_some_and(|note| note.to_delete))
    })
    .await;
    lab.wait_until_clean(0).await;
    assert!(lab.guests.launches().is_empty());
}

/// V1: the booking has run out while nobody was there.
#[tokio::test(start_paused = true)]
async fn a_v1_job_is_booked_again_for_the_vm_that_is_there_already() {
    let mut lab = Lab::of(Setup::new("hv1").only_v1()).await;
    let path = lab.v1_model("classic");
    wait_until("it is registered", mins(60), || {
        lab.cds.model(&path).is_some_and(|model| !model.need_registration)
    })
    .await;
    lab.wait_until_clean(0).await;
    let job = lab.v1_job(V1Demand::new().model("shared.infra/classic"));
    wait_for_power(&lab, &job).await;
    let vm = lab.vm_of(&job).unwrap();
    lab.crash();
    sleep(mins(3)).await;
    lab.open().await;
    lab.wait_for(&job, JobStatus::Success).await;
    assert_eq!(lab.cds.job(&job).unwrap().executions(), [&*vm.name]);
    lab.wait_until_clean(0).await;
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_does_not_wait_for_workers_to_register() {
    let mut lab = Lab::new().await;
    lab.guests.conduct(|_| Conduct::Slow(mins(4)));
    let job = lab.job();
    wait_until("it was launched", mins(10), || !lab.guests.launches().is_empty()).await;
    sleep(secs(1)).await;
    let left = timeout(secs(20), lab.service.shut_down(mins(5))).await;
    assert_eq!(left.ok(), Some(0));
    lab.open().await;
    lab.wait_for(&job, JobStatus::Success).await;
}

/// Two workers are at their jobs when the process dies. CDS's lists of workers are empty for the next one, as they are in a bad moment. It took
/// that for another worker at each job, marked both VMs, and a mark is obeyed at once: the VMs were deleted from under their workers.
#[tokio::test(start_paused = true)]
async fn workers_at_work_are_adopted_although_cds_lists_nobody() {
    let mut lab = Lab::new().await;
    let jobs = [
        lab.v2_job(V2Demand::new(DEBIAN).takes(mins(6))),
        lab.v1_job(V1Demand::new().model(DEBIAN).takes(mins(6))),
    ];
    lab.wait_for_all(&jobs, JobStatus::Building).await;
    let vms: Vec<_> = jobs.iter().map(|job| lab.vm_of(job).unwrap().name).collect();
    lab.crash();
    for route in ["GET /worker", "GET /v2/worker"] {
        lab.cds.inject(Fault::on(route).empty_list());
    }
    lab.open().await;
    sleep(mins(2)).await;
    for (job, vm) in jobs.iter().zip(&vms) {
        let adopted = lab.verdict(job).unwrap();
        assert_eq!(adopted.verdict, Decided::Adopted, "{adopted}");
        assert!(adopted.to_string().contains("its worker is at the job"), "{adopted}");
        assert!(!Note::of(&lab.vm_named(vm).unwrap()).unwrap().to_delete);
    }
    lab.cds.clear_faults();
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    for job in &jobs {
        assert_eq!(lab.cds.job(job).unwrap().executions().len(), 1);
    }
    lab.truth.work_is_undisturbed(mins(120), &std::collections::BTreeSet::new());
    lab.wait_until_clean(0).await;
}

/// A job that another worker took leaves its VM without use, and CDS says so by the worker's name.
#[tokio::test(start_paused = true)]
async fn a_vm_whose_job_another_worker_took_is_given_up() {
    let mut lab = Lab::new().await;
    let job = lab.v1_job(V1Demand::new().model(DEBIAN).takes(mins(20)));
    wait_for_power(&lab, &job).await;
    let vm = lab.vm_of(&job).unwrap();
    lab.crash();
    // Its booking ends, and another hatchery starts a worker.
    let mut other =
        Service::new(Setup::new("hv2").addresses("10.78.0.0/24", "10.78.0.254", "255.255.255.0"));
    other.open(&lab).await;
    lab.wait_for(&job, JobStatus::Building).await;
    lab.open().await;
    wait_until("its VM is gone", mins(5), || lab.vm_named(&vm.name).is_none()).await;
    let decided = lab.verdict(&job).unwrap();
    let theirs = &lab.vms_of("hv2")[0].name;
    assert!(decided.to_string().contains(&format!("worker {theirs} is at its job")), "{decided}");
    lab.wait_for(&job, JobStatus::Success).await;
}
