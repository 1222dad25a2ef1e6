//! Two processes of one name on one vCenter and one CDS: a mistake, or a hand-over that overlaps.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use roost_cds::{JobId, JobStatus};
use roost_cds_sim::{V1Demand, V2Demand};
use roost_door::{Feed, FrontDoor as _};
use roost_fleet::{Decided, Query};
use roost_hatchery::metrics::Metrics;
use roost_hatchery::run::Hatchery;
use roost_hatchery::{Build, HatcheryDoor};
use roost_vcenter_sim::Power;
use roost_views::{NeedKind, NeedView};
use tokio::time::sleep;

use crate::lab::{DEBIAN, GoVm, Lab, Log, Service, Setup, WorldOptions, mins, secs, wait_until};

fn setup() -> Setup {
    Setup::new("hv1").pool("debian12", 2).max_workers(6)
}

/// One job of each kind, with time between them.
async fn demand(lab: &Lab, pairs: usize) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for _ in 0..pairs {
        jobs.push(lab.v2_job(V2Demand::new(DEBIAN).takes(mins(2))));
        sleep(secs(40)).await;
        jobs.push(lab.v1_job(V1Demand::new().model(DEBIAN).takes(mins(2))));
        sleep(secs(40)).await;
    }
    jobs
}

/// Every job got a worker, once.
async fn expect_once(lab: &Lab, jobs: &[JobId]) {
    lab.wait_for_all(jobs, JobStatus::Success).await;
    for job in jobs {
        let (launches, report) = (lab.guests.launches_of(job).len(), lab.cds.job(job).unwrap());
        assert_eq!((launches, report.executions().len()), (1, 1), "{job}: {report:?}");
    }
}

fn started(hatchery: &Hatchery) -> usize {
    let query = Query { verdict: Some(Decided::Spawned), ..Query::default() };
    hatchery.journal().find(&query).len()
}

fn says(service_metrics: &str) -> bool {
    let mut lines = service_metrics.lines();
    lines.any(|line| line.starts_with("roost_hatchery_other_process{") && line.ends_with(" 1"))
}

/// What the page says that a person must do.
fn page_needs(hatchery: &Hatchery) -> Vec<NeedView> {
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::register(&mut registry, hatchery.name()));
    let (build, feed) = (Build::default(), Feed::default());
    HatcheryDoor::new(hatchery.window(), None, registry, metrics, build, &feed).needs()
}

/// Each planned the same jobs, gave the same addresses and deleted what the other was about to finish; neither said a word.
#[tokio::test(start_paused = true)]
async fn the_one_that_was_first_goes_on_and_both_say_it() {
    for seed in 0..4 {
        let (log, _guard) = Log::capture();
        let lab = Lab::in_world(WorldOptions::seed(seed), setup()).await;
        let mut jobs = demand(&lab, 1).await;
        let mut second = Service::second(setup());
        second.open(&lab).await;
        jobs.extend(demand(&lab, 8).await);
        expect_once(&lab, &jobs).await;
        let (first, other) = (lab.hatchery(), second.hatchery());
        assert!(started(first) >= jobs.len(), "{}", started(first));
        assert_eq!(started(other), 0);
        for (metrics, hatchery, words) in [
            (lab.service.metrics(), first, "; this one was first and goes on"),
            (second.metrics(), other, "; this one stands by until that one has ended"),
        ] {
            assert!(says(&metrics), "{words}");
            let status = hatchery.window().status();
            let line = status.lines.iter().flatten().find(|line| line.component == "Process");
            let line = line.expect("a line about it");
            assert!(line.value.contains(words), "{}", line.value);
            assert!(log.text().contains(words));
            let needs = page_needs(hatchery);
            let need = needs.iter().find(|need| need.kind == NeedKind::OtherProcess);
            assert!(need.is_some_and(|need| need.words.contains(words)), "{needs:?}");
        }
    }
}

/// An upgrade that starts the new one before it stops the old one.
#[tokio::test(start_paused = true)]
async fn a_new_process_waits_while_the_old_one_works_and_then_takes_over() {
    let mut lab = Lab::in_world(WorldOptions::seed(11), setup()).await;
    let mut jobs = demand(&lab, 1).await;
    let mut new = Service::second(setup());
    new.open(&lab).await;
    jobs.extend(demand(&lab, 2).await);
    let before = started(new.hatchery());
    // What it cannot finish in that time is taken up by the new one.
    lab.service.shut_down(secs(30)).await;
    jobs.extend(demand(&lab, 3).await);
    expect_once(&lab, &jobs).await;
    assert!(started(new.hatchery()) >= before + 6, "{}", started(new.hatchery()));
    sleep(mins(20)).await;
    assert!(!says(&new.metrics()), "it is alone by now");
    lab.service = new;
    lab.wait_until_clean(2).await;
}

/// Nobody says goodbye when a machine is lost.
#[tokio::test(start_paused = true)]
async fn the_second_takes_over_when_the_first_dies() {
    let mut lab = Lab::in_world(WorldOptions::seed(12), setup()).await;
    let mut jobs = demand(&lab, 1).await;
    let mut second = Service::second(setup());
    second.open(&lab).await;
    jobs.extend(demand(&lab, 3).await);
    lab.crash();
    jobs.extend(demand(&lab, 3).await);
    lab.service = second;
    expect_once(&lab, &jobs).await;
    lab.wait_until_clean(2).await;
}

/// CDS's own hatchery under our name leaves no mark. Which of the two was first is not known, so that only a person can help.
#[tokio::test(start_paused = true)]
async fn a_hatchery_that_leaves_no_mark_is_said_and_keeps_nobody_from_working() {
    let lab = Lab::of(setup()).await;
    wait_until("the spares are there", mins(15), || lab.own_names().len() == 2).await;
    sleep(mins(5)).await;
    assert!(!says(&lab.service.metrics()), "it made them itself");
    let client = lab.colleague("somebody").await;
    let annotation = r#"{"hatchery_name":"hv1","worker_name":"odd-one","vmware_model_path":"debian12","created":"2026-01-01T00:00:00Z","worker_start_time":"0001-01-01T00:00:00Z","job_id":"99"}"#;
    let vm =
        GoVm { name: "odd-one", annotation: annotation.into(), power: Power::On, address: None };
    lab.make_vm(&client, vm).await;
    wait_until("it is said", mins(1), || says(&lab.service.metrics())).await;
    let status = lab.hatchery().window().status();
    let said = status.lines.iter().flatten().any(|line| line.value.contains("leaves no mark"));
    assert!(said, "{status:?}");
    let job = lab.job();
    lab.wait_for(&job, JobStatus::Building).await;
}
