//! What a person may say to a running hatchery, and what it does then.

use roost_cds::{JobStatus, Level};
use roost_cds_sim::V2Demand;
use roost_fleet::{Decided, Query, Resume};
use roost_vcenter_sim::GuestBehaviour;
use tokio::time::sleep;

use crate::lab::{DEBIAN, Lab, Setup, UBUNTU, WorldOptions, mins, secs, wait_until};

const WHO: &str = "jo";

fn said(lab: &Lab) -> Vec<String> {
    let query = Query { verdict: Some(Decided::Steered), ..Query::default() };
    lab.hatchery().journal().find(&query).iter().map(|found| found.reason.to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_pause_lets_what_is_under_way_go_on_and_begins_nothing() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    lab.wait_for_spares(1).await;
    let first = lab.v2_job(V2Demand::new(UBUNTU).takes(mins(3)));
    wait_until("it is taken", mins(1), || lab.status(&first) != JobStatus::Waiting).await;
    let controls = lab.hatchery().controls();
    controls.pause(WHO);
    let second = lab.job();
    wait_until("it knows why", mins(1), || lab.bound_by(&second) == Some("paused")).await;
    assert!(lab.verdict(&second).unwrap().reason.contains(WHO));
    lab.wait_for(&first, JobStatus::Success).await;
    sleep(mins(10)).await;
    assert_eq!(lab.status(&second), JobStatus::Waiting);
    assert_eq!(controls.workers_left(), 0);
    controls.resume(WHO);
    lab.wait_for(&second, JobStatus::Success).await;
    assert_eq!(said(&lab).len(), 2, "{:?}", said(&lab));
}

#[tokio::test(start_paused = true)]
async fn a_drain_says_how_many_are_left_and_they_end() {
    let lab = Lab::new().await;
    let jobs = lab.jobs(2);
    lab.wait_for_all(&jobs, JobStatus::Building).await;
    let controls = lab.hatchery().controls();
    assert_eq!(controls.drain(WHO), "no new workers; 2 are left to end");
    let later = lab.job();
    wait_until("all have ended", mins(20), || controls.workers_left() == 0).await;
    assert_eq!(lab.status(&later), JobStatus::Waiting);
}

#[tokio::test(start_paused = true)]
async fn a_person_can_freeze_deletion_and_let_it_go_on() {
    let lab = Lab::new().await;
    let controls = lab.hatchery().controls();
    controls.freeze_deletions(WHO);
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Success).await;
    sleep(mins(30)).await;
    assert_eq!(lab.own_vms().len(), 1, "it has served, and stays");
    assert_eq!(controls.resume_deletions(WHO, Resume::StartOver), "deleting is resumed");
    lab.wait_until_clean(0).await;
}

/// Whoever froze or paused it may forget that.
#[tokio::test(start_paused = true)]
async fn what_a_person_holds_back_is_seen_by_those_who_watch() {
    let lab = Lab::new().await;
    let controls = lab.hatchery().controls();
    let warnings = || -> Vec<(String, String)> {
        let lines = lab.hatchery().status().lines.into_iter().flatten();
        let warned = lines.filter(|line| line.status == Level::Warn);
        warned.map(|line| (line.component, line.value)).collect()
    };
    let is_frozen = |metrics: String| {
        let is_it = |line: &&str| line.starts_with("roost_hatchery_deletion_frozen{");
        metrics.lines().find(is_it).is_some_and(|line| line.ends_with(" 1"))
    };
    assert_eq!((warnings(), is_frozen(lab.service.metrics())), (Vec::new(), false));
    controls.pause(WHO);
    controls.freeze_deletions(WHO);
    let told = warnings();
    assert!(
        matches!(&told[..], [(spawning, by), (deletion, _)] if spawning == "Spawning" && deletion == "Deletion" && by.contains(WHO)),
        "{told:?}"
    );
    assert!(is_frozen(lab.service.metrics()));
    sleep(mins(10)).await;
    assert!(is_frozen(lab.service.metrics()), "a pass of the clean-up does not forget it");
    controls.resume(WHO);
    controls.resume_deletions(WHO, Resume::StartOver);
    assert_eq!((warnings(), is_frozen(lab.service.metrics())), (Vec::new(), false));
}

#[tokio::test(start_paused = true)]
async fn one_vm_is_deleted_on_a_persons_word_and_no_other_ones() {
    let lab = Lab::of(Setup::new("hv1").pool("debian12", 1)).await;
    lab.wait_for_spares(1).await;
    let spare = lab.ready_spares().remove(0);
    let controls = lab.hatchery().controls();
    let stranger = &lab.strangers[0].name;
    assert!(controls.delete_vm(WHO, stranger).await.is_err());
    assert!(controls.delete_vm(WHO, "debian12").await.is_err());
    assert!(controls.delete_vm(WHO, "nobody").await.is_err());
    controls.delete_vm(WHO, &spare.name).await.unwrap();
    wait_until("it is gone", mins(5), || {
        lab.vcenter.glance().iter().all(|vm| vm.moref != spare.moref)
    })
    .await;
    lab.wait_for_spares(1).await;
    assert_eq!(said(&lab).len(), 4, "what was refused is recorded too: {:?}", said(&lab));
    lab.truth.others_are_untouched(&lab);
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_backs_off_is_tried_at_once_when_a_person_says_so() {
    let mut lab = Lab::closed(WorldOptions::default(), Setup::new("hv1").pool("debian12", 1));
    let broken = GuestBehaviour { starts_tools: false, ..GuestBehaviour::default() };
    lab.vcenter.set_guest_behaviour("debian12", broken).unwrap();
    lab.open().await;
    sleep(mins(60)).await;
    lab.vcenter.set_guest_behaviour("debian12", GuestBehaviour::default()).unwrap();
    let clones = lab.calls_of("CloneVM_Task");
    let controls = lab.hatchery().controls();
    assert!(controls.refill(WHO, "debian11").is_err());
    controls.refill(WHO, "debian12").unwrap();
    wait_until("it is tried", secs(3), || lab.calls_of("CloneVM_Task") > clones).await;
    lab.wait_for_spares(1).await;
}

#[tokio::test(start_paused = true)]
async fn a_job_that_had_its_attempts_gets_another_when_a_person_says_so() {
    let lab = Lab::of(Setup::new("hv1").provision("maxAttemptsNumberBeforeFailure", 1)).await;
    let full = roost_vcenter_sim::Action::fail_task("NoDiskSpace", "the datastore is full");
    let rule = lab.vcenter.faults().add(roost_vcenter_sim::Rule::new("CloneVM_Task", full));
    let job = lab.v2_job(V2Demand::new(DEBIAN));
    wait_until("it has had enough", mins(30), || lab.bound_by(&job) == Some("attempts")).await;
    assert!(lab.vcenter.faults().remove(rule));
    let controls = lab.hatchery().controls();
    assert!(controls.recheck(WHO, "no job").is_err());
    controls.recheck(WHO, &job.to_string()).unwrap();
    lab.wait_for(&job, JobStatus::Success).await;
}
