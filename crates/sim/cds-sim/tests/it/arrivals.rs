//! Demand that arrives by itself.

use crate::lab::{Lab, MODEL, REGION, secs};
use roost_cds::{JobId, Protocol};
use roost_cds_sim::{Arrivals, JobReport, Options};
use tokio::time::{self, Instant};

fn arrivals() -> Arrivals {
    Arrivals {
        jobs: 40,
        every: secs(60),
        models: vec![MODEL.to_owned()],
        flavors: vec!["small".to_owned(), "large".to_owned()],
        region: REGION.to_owned(),
        takes: secs(20),
        v1_share: 0.25,
    }
}

async fn run(seed: u64) -> Vec<JobReport> {
    let lab = Lab::with(Options::new(seed));
    lab.api.run_arrivals(arrivals()).await;
    lab.api.jobs()
}

#[tokio::test(start_paused = true)]
async fn all_jobs_come_in_waves_and_both_protocols_see_some() {
    let started = Instant::now();
    let jobs = run(1).await;
    assert_eq!(jobs.len(), 40);
    assert!(started.elapsed() >= secs(4 * 60), "{:?}", started.elapsed());
    let is_v1 = |job: &&JobReport| job.id.protocol() == Protocol::V1;
    let v1 = jobs.iter().filter(is_v1).count();
    assert!((1..20).contains(&v1), "{v1}");
}

#[tokio::test(start_paused = true)]
async fn a_seed_is_a_run() {
    let ids = |jobs: Vec<JobReport>| jobs.into_iter().map(|job| job.id).collect::<Vec<JobId>>();
    let (first, again, other) = (ids(run(1).await), ids(run(1).await), ids(run(2).await));
    assert_eq!(first, again);
    assert_ne!(first, other);
}

#[tokio::test(start_paused = true)]
async fn a_hatchery_hears_of_them_with_what_they_ask_for() {
    let lab = Lab::new();
    let few = Arrivals { jobs: 3, v1_share: 0.0, ..arrivals() };
    time::timeout(secs(200), lab.api.run_arrivals(few)).await.unwrap();
    let waiting = lab.v2().waiting_jobs().await.unwrap();
    assert_eq!(waiting.len(), 3);
    for job in waiting {
        let flavor = job.job.runs_on.flavor;
        assert!(flavor == "small" || flavor == "large", "{flavor}");
    }
    lab.api.run_arrivals(Arrivals { jobs: 0, ..arrivals() }).await;
    lab.api.run_arrivals(Arrivals { models: vec![], ..arrivals() }).await;
    assert_eq!(lab.api.summary().open(), 3);
}
