//! A process that dies in the middle of a start, and the next one that takes it up.

use roost_cds::{JobId, JobStatus};
use roost_cds_sim::V1Demand;
use roost_fleet::Decided;
use roost_vcenter_sim::Power;
use tokio::time::{sleep, timeout};

use crate::lab::{Conduct, CrashAt, Lab, Note, Setup, Start, mins, secs, wait_until};

/// Runs one job, with a death at the given call after the job was queued, and a new process at once.
async fn die_at(setup: Setup, spares: usize, crash: CrashAt, v1: bool) -> bool {
    let mut lab = Lab::of(setup).await;
    let model = v1.then(|| lab.v1_model("classic"));
    if let Some(path) = &model {
        wait_until("it is registered", mins(60), || {
            lab.cds.model(path).is_some_and(|model| !model.need_registration)
        })
        .await;
        lab.wait_until_clean(spares).await;
    }
    lab.wait_for_spares(spares).await;
    lab.crash();
    let job = if v1 {
        lab.v1_job(V1Demand::new().model("shared.infra/classic"))
    } else {
        lab.job()
    };
    let started = lab.start_to_die(crash).await;
    let died = match started {
        Start::Died(_) => true,
        Start::Runs => timeout(mins(3), lab.service.fuse().clone().blown()).await.is_ok(),
        Start::Refused(error) => panic!("{error}"),
    };
    lab.crash();
    lab.open().await;
    lab.wait_for(&job, JobStatus::Success).await;
    let report = lab.cds.job(&job).unwrap();
    assert_eq!(report.executions().len(), 1, "{crash:?}: {report:?}");
    lab.wait_until_clean(spares).await;
    died
}

async fn die_everywhere(setup: impl Fn() -> Setup, spares: usize, v1: bool) {
    for arrives in [false, true] {
        let mut alive = 0;
        for call in 1.. {
            if !die_at(setup(), spares, CrashAt { call, arrives }, v1).await {
                alive += 1;
                // The job was done before the call came.
                if alive > 2 {
                    break;
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cold_start_is_taken_up_wherever_the_process_dies() {
    die_everywhere(|| Setup::new("hv1").only_v2(), 0, false).await;
}

#[tokio::test(start_paused = true)]
async fn a_warm_start_is_taken_up_wherever_the_process_dies() {
    die_everywhere(|| Setup::new("hv1").only_v2().pool("debian12", 1), 1, false).await;
}

async fn wait_for_power(lab: &Lab, job: &JobId) {
    wait_until("its VM is on", mins(10), || {
        lab.vm_of(job).is_some_and(|vm| vm.power == Power::On)
    })
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
