//! A process that dies at any moment and comes back, with more under way than one start.

use roost_cds::JobStatus;
use roost_cds_sim::{V1Demand, V2Demand};
use roost_vcenter_sim::{Action, Power, Rule, When};
use tokio::time::sleep;

use crate::lab::{DEBIAN, Lab, Setup, UBUNTU, mins, secs, wait_until};

/// Everything at once: spares being made, workers starting, working and finishing, VMs being deleted. The process dies every few seconds.
#[tokio::test(start_paused = true)]
async fn a_process_that_dies_again_and_again_gets_everything_done() {
    let setup = Setup::new("hv1").pool("debian12", 2).pool("ubuntu24", 1).max_workers(5);
    let mut lab = Lab::of(setup).await;
    let mut jobs = Vec::new();
    for round in 0..40_u64 {
        match round % 4 {
            0 => jobs.push(lab.v2_job(V2Demand::new(DEBIAN).takes(secs(20 + round)))),
            2 => jobs.push(lab.v1_job(V1Demand::new().model(UBUNTU).takes(secs(50)))),
            _ => {}
        }
        sleep(secs(3 + round * 7 % 31)).await;
        lab.restart().await;
    }
    lab.wait_for_all(&jobs, JobStatus::Success).await;
    for job in &jobs {
        assert_eq!(lab.cds.job(job).unwrap().executions().len(), 1);
    }
    lab.wait_until_clean(3).await;
    lab.truth.others_are_untouched(&lab);
}

/// A restart takes nothing away: workers that work are counted, not touched, and their room stays taken.
#[tokio::test(start_paused = true)]
async fn workers_at_work_are_found_again_and_count() {
    let mut lab = Lab::of(Setup::new("hv1").max_workers(2)).await;
    let long: Vec<_> = (0..2).map(|_| lab.v2_job(V2Demand::new(DEBIAN).takes(mins(20)))).collect();
    lab.wait_for_all(&long, JobStatus::Building).await;
    let before = lab.own_names();
    lab.restart().await;
    let third = lab.job();
    wait_until("there is no room", mins(2), || lab.bound_by(&third) == Some("workers")).await;
    assert_eq!(lab.own_names(), before);
    lab.wait_for_all(&[&long[..], &[third]].concat(), JobStatus::Success).await;
}

/// A service that ends politely begins nothing new, finishes what it can, and leaves no session behind.
#[tokio::test(start_paused = true)]
async fn a_polite_end_drains_signs_out_and_logs_out() {
    let mut lab = Lab::new().await;
    let job = lab.v2_job(V2Demand::new(DEBIAN).takes(mins(5)));
    sleep(secs(10)).await;
    let left = lab.service.shut_down(mins(5)).await;
    assert_eq!((left, lab.vcenter.counters().open_sessions), (0, 0));

    lab.wait_for(&job, JobStatus::Success).await;
    let unseen = lab.job();
    sleep(mins(5)).await;
    assert_eq!(lab.status(&unseen), JobStatus::Waiting, "nobody is there");
    lab.open().await;
    lab.wait_for(&unseen, JobStatus::Success).await;
    lab.wait_until_clean(0).await;
}

/// A long absence: what expired meanwhile is cleaned up, what waits is served.
#[tokio::test(start_paused = true)]
async fn after_a_day_off_the_house_is_put_in_order() {
    let mut lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    let jobs = lab.jobs(3);
    sleep(secs(40)).await;
    lab.crash();
    sleep(mins(24 * 60)).await;
    let waiting = lab.v1_job(V1Demand::new().model(DEBIAN));
    lab.open().await;
    lab.wait_for(&waiting, JobStatus::Success).await;
    lab.wait_until_clean(1).await;
    for job in &jobs {
        assert!(lab.status(job).is_final(), "by CDS's own rules");
    }
    assert!(lab.own_vms().iter().all(|vm| vm.power == Power::Off));
}

/// Clones that an earlier process asked for are waited for, so that nobody else gets their address or their room.
#[tokio::test(start_paused = true)]
async fn clones_of_an_earlier_process_keep_their_addresses() {
    let setup = Setup::new("hv1").pool("debian12", 3).set("workerProvisioningPoolSize", 3);
    for after in 1..=12 {
        let mut lab = Lab::of(setup.clone()).await;
        sleep(secs(after)).await;
        lab.restart().await;
        lab.wait_for_spares(3).await;
        lab.wait_until_clean(3).await;
    }
}

/// The same while the stream that would tell of them has lost an answer, which it notices late.
#[tokio::test(start_paused = true)]
async fn clones_of_an_earlier_process_are_waited_for_also_when_the_stream_hangs() {
    let setup = Setup::new("hv1").pool("debian12", 3).set("workerProvisioningPoolSize", 3);
    for hangs_at in 1..=8 {
        let mut lab = Lab::of(setup.clone()).await;
        sleep(secs(4)).await;
        let hang = Rule::new("WaitForUpdatesEx", Action::Hang).when(When::Nth(hangs_at));
        lab.vcenter.faults().add(hang);
        lab.restart().await;
        lab.wait_for_spares(3).await;
        lab.wait_until_clean(3).await;
    }
}

/// The claim of a spare that an earlier process asked for took effect when the next one had started the job on another VM.
#[tokio::test(start_paused = true)]
async fn a_claim_of_an_earlier_process_that_is_late_makes_no_second_vm() {
    // Before the claim is given up, while its spare is marked, and long after.
    for dies_after in [5, 60, 125, 140] {
        let mut lab = Lab::of(Setup::new("hv1").pool("debian12", 2)).await;
        lab.wait_for_spares(2).await;
        let late = Action::DelayTask(secs(165));
        lab.vcenter.faults().add(Rule::new("ReconfigVM_Task", late).once());
        let job = lab.job();
        wait_until("the claim is asked for", mins(2), || {
            lab.vcenter.faults().list().iter().any(|rule| rule.fired > 0)
        })
        .await;
        sleep(secs(dies_after)).await;
        lab.restart().await;
        lab.wait_for(&job, JobStatus::Success).await;
        assert_eq!(lab.cds.job(&job).unwrap().executions().len(), 1, "{dies_after}");
        lab.wait_until_clean(2).await;
    }
}
