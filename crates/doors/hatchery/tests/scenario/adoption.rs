//! A process that dies in the middle of a start, and the next one that takes it up.

use roost_cds::{JobId, JobStatus};
use roost_cds_sim::V1Demand;
use roost_fleet::Decided;
use roost_vcenter_sim::Power;
use tokio::time::{sleep, timeout};

use crate::lab::{Conduct, CrashAt, Lab, Note, Setup, Start, mins, secs, wait_until};

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
