//! The same seed and the same calls give the same run, faults included.

use std::sync::Arc;

use crate::lab::{Lab, MODEL, mins, secs};
use roost_cds::{InFlight, JobHint, JobId, JobStatus, QueueSettings, WorkerStatus};
use roost_cds_sim::{JobReport, Options, V1Demand, V2Demand};
use tokio::sync::{Mutex, mpsc};
use tokio::time;

/// A hatchery without machines: each hint becomes a worker at once.
async fn serve(lab: Arc<Mutex<Lab>>, mut hints: mpsc::Receiver<JobHint>, in_flight: InFlight) {
    while let Some(hint) = hints.recv().await {
        let ids = match hint {
            JobHint::Pushed(id) => vec![id],
            JobHint::Polled { jobs, .. } => jobs.into_iter().map(|job| job.id).collect(),
        };
        for id in ids {
            let Some(guard) = in_flight.enter(id.clone()) else { continue };
            let mut lab = lab.lock().await;
            let config = match &id {
                JobId::V1(id) => {
                    if !lab.v1().job(*id).await.is_ok_and(|job| job.is_free()) {
                        continue;
                    }
                    if lab.v1().book(*id).await.is_err() {
                        continue;
                    }
                    lab.v1_worker(&format!("w-{id}"), *id)
                }
                JobId::V2(id) => {
                    if lab.v2().take(id).await.is_err() {
                        continue;
                    }
                    lab.v2_worker(&format!("w-{id}"), id)
                }
            };
            let worker = lab.start(&config);
            tokio::spawn(async move {
                let _ = worker.await;
                drop(guard);
            });
        }
    }
}

async fn run(seed: u64) -> Vec<JobReport> {
    let options = Options { latency: (secs(0), secs(2)), ..Options::new(seed) };
    let lab = Lab::with(options);
    let (api, client) = (lab.api.clone(), lab.client.clone());
    api.inject_chaos(0.03);
    for beat in client.heartbeats(roost_cds::HeartbeatSettings::default()) {
        tokio::spawn(beat.run(roost_cds::MonitoringStatus::default));
    }
    let (sender, hints) = mpsc::channel(64);
    for watch in client.queue_watches(QueueSettings::default()) {
        tokio::spawn(watch.run(sender.clone()));
    }
    tokio::spawn(serve(Arc::new(Mutex::new(lab)), hints, InFlight::default()));
    for number in 0..40 {
        let takes = secs(20 + 7 * (number % 5));
        api.add_v1_job(V1Demand::new().takes(takes));
        api.add_v2_job(V2Demand::new(MODEL).takes(takes)).unwrap();
        time::sleep(secs(30)).await;
    }
    api.clear_faults();
    time::sleep(mins(30)).await;
    assert_eq!(api.double_workers(), [], "seed {seed}");
    let stuck = api.workers().into_iter().filter(|worker| worker.status != WorkerStatus::Disabled);
    assert_eq!(stuck.count(), 0, "seed {seed}");
    api.jobs()
}

/// On a runtime of its own, so that nothing is left of another run.
fn replay(seed: u64) -> Vec<JobReport> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(run(seed))
}

#[test]
fn a_seed_replays_and_every_job_is_done_once_through_all_faults() {
    let mut histories = Vec::new();
    for seed in 1..=4 {
        let jobs = replay(seed);
        assert_eq!(jobs.len(), 80);
        for job in &jobs {
            assert!(job.executions().len() <= 1, "seed {seed}: {job:#?}");
            assert_eq!(job.status, JobStatus::Success, "seed {seed}: {job:#?}");
        }
        histories.push(jobs);
    }
    for (again, first) in replay(1).iter().zip(&histories[0]) {
        assert_eq!(again, first);
    }
    assert!(histories[0] != histories[1], "another seed is another run");
}
