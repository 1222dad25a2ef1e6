//! What a person has to look at, and what is in the way of a job.

use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{JobId, Protocol};
use roost_fleet::Decided;

use super::super::jobs::State;
use super::StateReader;
use super::jobs::subject;
use super::status::is_deaf;
use super::view::{Job, Stage, Vm};
use crate::door::phase;
use crate::time::elapsed;

/// A start that failed once happens; several in a row are a fault of the template.
const FAILS_IN_A_ROW: u32 = 3;
/// Polls that failed in a row until that is said; one every 20 s.
const MISSED_POLLS: u32 = 2;

impl StateReader {
    /// Jobs that will not be served as they are.
    pub(super) fn refused_jobs(&self) -> Vec<Job> {
        let scheduler = self.scheduler.lock();
        let is_refused = |id: &JobId| {
            let last = self.recorder.journal.latest(&subject(id));
            last.is_some_and(|last| last.verdict == Decided::Refused)
        };
        let waiting = scheduler
            .jobs
            .iter()
            .filter(|(_, entry)| !matches!(entry.state, State::Starting { .. }));
        let refused: Vec<Job> = waiting
            .filter(|(id, _)| is_refused(id))
            .map(|(id, entry)| self.heard(id, entry))
            .collect();
        drop(scheduler);
        refused.into_iter().map(|job| self.with_verdict(job)).collect()
    }

    /// Jobs that wait, in the order of their turns; those that were put off stand behind the others.
    pub(super) fn line(&self) -> Vec<JobId> {
        let scheduler = self.scheduler.lock();
        let mut line: Vec<JobId> =
            scheduler.jobs.turns(Timestamp::MAX).iter().map(|it| it.job.id.clone()).collect();
        drop(scheduler);
        let waits = |id: &JobId| {
            let last = self.recorder.journal.latest(&subject(id));
            !last.is_some_and(|last| matches!(last.verdict, Decided::Refused | Decided::Skipped))
        };
        line.retain(waits);
        line
    }

    pub(super) fn failing_templates(&self) -> Vec<(String, u32)> {
        let levels = self.levels(&self.mirror.snapshot(), self.about.now());
        let failing = levels.failing.into_iter().filter(|(_, times)| *times >= FAILS_IN_A_ROW);
        failing.map(|(model, times)| (model.template().to_owned(), times)).collect()
    }

    /// Workers that have had half of the time that they may take to register.
    pub(super) fn not_joining(&self) -> Vec<Vm> {
        let (now, within) = (self.about.now(), self.about.config.lifetimes.registration / 2);
        let is_late = |vm: &Vm| {
            vm.stage == Some(Stage::In(phase::REGISTERING))
                && vm.stage_since.is_some_and(|since| elapsed(since, now) > within.max(LEAST))
        };
        self.vms().into_iter().filter(is_late).collect()
    }

    pub(super) fn deaf_queues(&self) -> Vec<(&'static str, Option<Timestamp>, Option<String>)> {
        let now = self.about.now();
        let queues = self.cds_link.queue_health().into_iter();
        // One that was not read yet is read for the first time.
        let deaf = queues.filter(|(_, health)| {
            health.last_poll.is_some()
                && (is_deaf(health, now) || health.failed_polls >= MISSED_POLLS)
        });
        deaf.map(|(protocol, health)| {
            let name = match protocol {
                Protocol::V1 => "V1 queue",
                Protocol::V2 => "V2 queue",
            };
            (name, health.last_poll, health.last_error.clone())
        })
        .collect()
    }
}

/// Quicker than this nobody is called.
const LEAST: Duration = Duration::from_secs(30);
