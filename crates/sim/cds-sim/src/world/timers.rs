//! What the API does by itself as time passes.

use roost_cds::{JobId, JobStatus, WorkerStatus};

use super::{WorkerFor, World, is_older};
use crate::history::JobEvent;

impl World {
    /// One look; they are counted from 1.
    pub(crate) fn tick(&mut self, number: u64) {
        self.delete_dead_workers();
        self.end_v1_orphans();
        self.purge_v1_jobs();
        if number.is_multiple_of(3) {
            self.delete_silent_services();
        }
        if number.is_multiple_of(6) {
            self.disable_silent_workers();
            self.end_v2_orphans();
            self.time_out_v2_jobs();
            let now = self.now();
            self.access.drop_expired(now);
        }
    }

    /// V2 workers go as soon as they are disabled, V1 workers when they have been silent for long as well.
    fn delete_dead_workers(&mut self) {
        let (now, limit) = (self.now(), self.options.timings.worker_silence);
        let is_dead = |row: &&super::WorkerRow| {
            let is_v2 = matches!(row.purpose, WorkerFor::V2Job { .. });
            row.status == WorkerStatus::Disabled && (is_v2 || is_older(row.last_beat, now, limit))
        };
        let dead: Vec<_> =
            self.workers.values().filter(is_dead).map(|row| row.id.clone()).collect();
        for id in dead {
            self.remove_worker(&id);
        }
    }

    fn is_lost(&self, worker: Option<&String>) -> bool {
        worker.is_none_or(|worker| !self.workers.contains_key(worker))
    }

    /// A V1 job at work without a worker fails, and is not queued again.
    fn end_v1_orphans(&mut self) {
        let v1: Vec<_> = self
            .v1_jobs
            .iter()
            .filter(|(_, row)| row.job.status == JobStatus::Building)
            .filter(|(_, row)| self.is_lost(row.worker.as_ref()))
            .map(|(id, _)| *id)
            .collect();
        for id in v1 {
            self.end_v1_job(id, JobStatus::Fail, "the worker is gone");
        }
    }

    /// A V2 job at work without a worker is stopped at the next full minute, and not queued again.
    fn end_v2_orphans(&mut self) {
        let v2: Vec<_> = self
            .v2_jobs
            .iter()
            .filter(|(_, row)| row.job.status == JobStatus::Building)
            .filter(|(_, row)| self.is_lost(row.worker.as_ref()))
            .map(|(id, _)| id.clone())
            .collect();
        for id in v2 {
            self.end_v2_job(&id, JobStatus::Stopped, "the worker is gone");
        }
    }

    /// The rows of V1 runs that have ended are purged. What became of them stays readable for tests.
    fn purge_v1_jobs(&mut self) {
        let (now, after) = (self.now(), self.options.timings.v1_purge);
        for row in self.v1_jobs.values_mut() {
            row.has_vanished |= row.ended.is_some_and(|ended| is_older(ended, now, after));
        }
    }

    fn delete_silent_services(&mut self) {
        let (now, limit) = (self.now(), self.options.timings.service_silence);
        let silent = |row: &&super::ServiceRow| is_older(row.last_beat, now, limit);
        let dead: Vec<_> =
            self.access.services.values().filter(silent).map(|row| row.service.id).collect();
        for id in dead {
            self.access.delete_service(id);
        }
    }

    fn disable_silent_workers(&mut self) {
        let (now, limit) = (self.now(), self.options.timings.worker_silence);
        for row in self.workers.values_mut() {
            if is_older(row.last_beat, now, limit) {
                row.status = WorkerStatus::Disabled;
            }
        }
    }

    fn time_out_v2_jobs(&mut self) {
        let (now, timings) = (self.now(), self.options.timings);
        let mut waited = Vec::new();
        let mut scheduled = Vec::new();
        for (id, row) in &self.v2_jobs {
            let since = |then: Option<jiff::Timestamp>, limit| {
                then.is_some_and(|then| is_older(then, now, limit))
            };
            match row.job.status {
                JobStatus::Waiting if since(row.job.queued, timings.v2_waiting) => {
                    waited.push(id.clone());
                }
                JobStatus::Scheduling if since(row.job.scheduled, timings.v2_scheduling) => {
                    scheduled.push((id.clone(), row.job.hatchery_name.clone()));
                }
                _ => {}
            }
        }
        for id in waited {
            self.end_v2_job(&id, JobStatus::Fail, "waited for too long");
        }
        for (id, hatchery) in scheduled {
            self.record(&JobId::V2(id.clone()), JobEvent::SchedulingTimedOut { hatchery });
            self.requeue_v2_job(&id);
        }
    }
}
