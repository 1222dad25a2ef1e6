//! What came of it, by what is true in the two servers.

use std::time::Duration;

use roost_cds_sim::{JobEvent, JobReport};
use roost_views::PoolView;

use super::chaos::Chaos;
use super::report::{CallCounts, Ended, JobCounts, PoolCount, Report, Start};
use super::stage::Stage;

/// Reads what became of everything, as far as it came.
pub(super) fn reckon(
    stage: &Stage,
    seed: u64,
    ended: Ended,
    took: Duration,
    chaos: Option<&Chaos>,
) -> Report {
    let Stage { world, witness, .. } = stage;
    let tally = stage.tally();
    let (refused, jobs) = (stage.refused(), witness.jobs());
    let is_impossible =
        |id: &str| jobs.iter().any(|job| job.impossible.is_some() && job.id.to_string() == id);
    let said = stage.turned_away();
    let reports = world.cds.jobs();
    // Out of attempts a job is refused too, and fails with that.
    let has_failed =
        |id: &String| reports.iter().any(|job| job.id.to_string() == *id && job.status.is_final());
    let (mut warm, mut cold) = (Vec::new(), Vec::new());
    for (start, worker) in reports.iter().filter_map(first_start) {
        match witness.was_warm(worker) {
            Some(true) => warm.push(start),
            Some(false) => cold.push(start),
            None => {}
        }
    }
    let counters = world.vcenter.counters();
    let pool = |pool: PoolView| PoolCount {
        name: pool.template.unwrap_or(pool.name),
        ready: pool.ready,
        wanted: pool.wanted,
    };
    let doubles = world.cds.double_workers();
    Report {
        seed,
        ended,
        took,
        jobs: JobCounts {
            queued: jobs.len() as u64,
            done: tally.done,
            failed: tally.failed,
            refused: refused.len() as u64,
            impossible: jobs.iter().filter(|job| job.impossible.is_some()).count() as u64,
            wrongly_refused: said.iter().filter(|id| !is_impossible(id) && !has_failed(id)).count()
                as u64,
        },
        warm,
        cold,
        calls: CallCounts {
            all: counters.total_calls(),
            long_polls: counters.calls_of("WaitForUpdatesEx"),
        },
        pools: stage.pools().into_iter().map(pool).collect(),
        vms: witness.vms(),
        most: witness.most(),
        limits: witness.limits().clone(),
        double_workers: doubles.iter().filter(|double| double.is_of_one_hatchery()).count(),
        shared_addresses: witness.shared_addresses().len(),
        faults: chaos.map(Chaos::counts),
        others: std::iter::once(stage.agreed()).chain(stage.stories.checks()).collect(),
    }
}

/// How the first worker of a job came to it, and which one that was.
fn first_start(job: &JobReport) -> Option<(Start, &str)> {
    let queued = job.history.first()?.at;
    let took =
        job.history.iter().position(|entry| matches!(entry.event, JobEvent::WorkerTook { .. }))?;
    let JobEvent::WorkerTook { worker } = &job.history[took].event else { return None };
    let at = job.history[took].at;
    let is_held =
        |event: &JobEvent| matches!(event, JobEvent::Booked { .. } | JobEvent::Taken { .. });
    let held = job.history[..took].iter().rev().find(|entry| is_held(&entry.event))?.at;
    let since = |from| Duration::try_from(at.duration_since(from)).unwrap_or_default();
    Some((Start { waited: since(queued), started: since(held) }, worker))
}

#[cfg(test)]
mod tests {
    use roost_cds::{JobId, JobStatus};
    use roost_cds_sim::HistoryEntry;
    use roost_clock::SimClock;

    use super::*;

    #[test]
    fn a_start_counts_from_the_hold_that_led_to_the_worker() {
        let hold = || JobEvent::Taken { hatchery: "h".into() };
        let release = JobEvent::Released { hatchery: "h".into() };
        let took = JobEvent::WorkerTook { worker: "keen-bohr".into() };
        let events = [(0, JobEvent::Queued), (5, hold()), (60, release), (70, hold()), (110, took)];
        let entry =
            |(secs, event)| HistoryEntry { at: SimClock::EPOCH + Duration::from_secs(secs), event };
        let mut job = JobReport {
            id: JobId::V1(1),
            status: JobStatus::Building,
            hatchery: Some("h".into()),
            history: events.map(entry).to_vec(),
            infos: vec![],
        };
        let start = Start { waited: Duration::from_secs(110), started: Duration::from_secs(40) };
        assert_eq!(first_start(&job), Some((start, "keen-bohr")));
        job.history.pop();
        assert_eq!(first_start(&job), None, "no worker yet");
    }
}
