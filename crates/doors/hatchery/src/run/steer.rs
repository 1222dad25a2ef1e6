//! What a person can tell a running hatchery. Every word is recorded: who, what, when, and what came of it.
//!
//! It holds until it is taken back or the process ends: a start begins as its configuration says.

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use roost_cds::JobId;
use roost_fleet::{Decided, Draft, Freeze, Mirror, Resume, VmId};
use roost_supervise::{Chain, Tasks};

use super::about::About;
use super::cleanup::Deletions;
use super::holding::own_annotation;
use super::listen::Listener;
use super::machine::WorkerVms;
use super::recorder::Recorder;
use super::running::Running;
use super::scheduler::{Scheduler, lock};
use super::signals::Signals;
use super::{Hatchery, listen};
use crate::config::SpareModel;
use crate::door::{HATCHERY, WORKERS};
use crate::metrics::Metrics;

/// What persons have told the hatchery to leave.
#[derive(Debug, Default)]
pub(crate) struct Steering {
    said: Mutex<Said>,
}

#[derive(Debug, Clone, Default)]
struct Said {
    spawning: Option<Held>,
    deleting: Option<Held>,
}

/// Somebody has said that something is not to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub how: Hold,
    pub by: Arc<str>,
    pub since: Timestamp,
}

/// What is not to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// No new workers and spares.
    Paused,
    /// The same, until all workers have ended: somebody waits for that.
    Draining,
    /// No deletions.
    Frozen,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = match self.how {
            Hold::Paused => "spawning is paused",
            Hold::Draining => "the hatchery is being drained",
            Hold::Frozen => "deleting is frozen",
        };
        write!(f, "{how} since {:.0} by {}", self.since, self.by)
    }
}

impl Steering {
    /// Why no worker and no spare may be begun, if a person has said so.
    pub(crate) fn spawning(&self) -> Option<Held> {
        lock(&self.said).spawning.clone()
    }

    /// Why nothing may be deleted, if a person has said so.
    pub(crate) fn deleting(&self) -> Option<Held> {
        lock(&self.said).deleting.clone()
    }
}

/// Why a hatchery does not do what it was told.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    #[error("{what} is not known")]
    Unknown { what: String },
    #[error("VM {vm} is not this hatchery's")]
    Foreign { vm: String },
    #[error("VM {vm} is a template")]
    Template { vm: String },
    #[error("marking VM {vm} failed: {why}")]
    Mark { vm: String, why: String },
}

/// What a person can touch of a running hatchery.
#[derive(Debug)]
pub(in crate::run) struct Steerer {
    pub(in crate::run) about: Arc<About>,
    pub(in crate::run) deletions: Arc<Deletions>,
    pub(in crate::run) listener: Arc<Listener>,
    pub(in crate::run) metrics: Arc<Metrics>,
    pub(in crate::run) mirror: Mirror,
    pub(in crate::run) recorder: Arc<Recorder>,
    pub(in crate::run) scheduler: Arc<Scheduler>,
    pub(in crate::run) signals: Arc<Signals>,
    pub(in crate::run) steering: Arc<Steering>,
    pub(in crate::run) vms: Arc<WorkerVms>,
}

impl Steerer {
    /// A person has looked at a freeze. Returns the one that this ends.
    pub(super) fn resume_deletions(&self, found: Resume) -> Option<Freeze> {
        let ended = self.deletions.resume(found);
        self.metrics.own.deletion_is_frozen(false);
        self.signals.cleanup.notify_one();
        ended
    }
}

/// Steers a running hatchery. `who` is how the person is known; it is recorded with what was said.
#[derive(Debug, Clone)]
pub struct Controls {
    steerer: Arc<Steerer>,
    tasks: Arc<Tasks>,
}

impl Hatchery {
    pub fn controls(&self) -> Controls {
        let Running { steerer, tasks, .. } = &self.running;
        Controls { steerer: Arc::clone(steerer), tasks: Arc::clone(tasks) }
    }
}

impl Controls {
    /// Begins no worker and no spare until it is resumed. What is under way goes on.
    pub fn pause(&self, who: &str) -> String {
        self.hold_spawning(who, Hold::Paused, "spawning is paused; what is under way goes on")
    }

    /// As a pause, said by somebody who waits until all workers have ended.
    pub fn drain(&self, who: &str) -> String {
        let left = self.workers_left();
        let words = match left {
            1 => "no new workers; 1 is left to end".to_owned(),
            left => format!("no new workers; {left} are left to end"),
        };
        self.hold_spawning(who, Hold::Draining, &words)
    }

    fn hold_spawning(&self, who: &str, how: Hold, words: &str) -> String {
        let held = Held { how, by: who.into(), since: self.steerer.about.now() };
        lock(&self.steerer.steering.said).spawning = Some(held);
        self.steerer.signals.plan.notify_one();
        self.record(who, words)
    }

    pub fn resume(&self, who: &str) -> String {
        let was = lock(&self.steerer.steering.said).spawning.take();
        self.steerer.signals.plan.notify_one();
        self.steerer.signals.spares.notify_one();
        self.steerer.signals.register.notify_one();
        let words = if was.is_some() { "spawning is resumed" } else { "spawning was not paused" };
        self.record(who, words)
    }

    /// Workers that have not ended.
    pub fn workers_left(&self) -> u64 {
        let taken =
            self.steerer.scheduler.lock().ledger.lock().taken(HATCHERY, self.steerer.about.now());
        taken.by_vms.of(WORKERS) + taken.promised.of(WORKERS)
    }

    /// Deletes nothing until it is told otherwise.
    pub fn freeze_deletions(&self, who: &str) -> String {
        let held = Held { how: Hold::Frozen, by: who.into(), since: self.steerer.about.now() };
        lock(&self.steerer.steering.said).deleting = Some(held);
        self.steerer.metrics.own.deletion_is_frozen(true);
        self.record(who, "deleting is frozen")
    }

    /// Ends a person's freeze and the guard's, after that person has looked.
    pub fn resume_deletions(&self, who: &str, found: Resume) -> String {
        let by_person = lock(&self.steerer.steering.said).deleting.take().is_some();
        let by_guard = self.steerer.resume_deletions(found);
        let words = match (by_guard, by_person) {
            (Some(freeze), _) => match found {
                Resume::Approve => {
                    format!("{} VMs may be deleted: {}", freeze.vms.len(), freeze.finding())
                }
                Resume::StartOver => {
                    format!("everything is looked at anew: {}", freeze.finding())
                }
            },
            (None, true) => "deleting is resumed".to_owned(),
            (None, false) => "deleting was not frozen".to_owned(),
        };
        self.record(who, &words)
    }

    /// Marks one of our VMs for deletion. The clean-up deletes it through the guard, as every other.
    pub async fn delete_vm(&self, who: &str, name_or_id: &str) -> Result<String, NotDone> {
        let done = self.mark(who, name_or_id).await;
        match &done {
            Ok(words) => self.record(who, words),
            Err(error) => self.record(who, &format!("deleting {name_or_id}: {error}")),
        };
        done
    }

    async fn mark(&self, who: &str, name_or_id: &str) -> Result<String, NotDone> {
        let steerer = &self.steerer;
        let snapshot = steerer.mirror.snapshot();
        let named = snapshot.named(name_or_id).next();
        let row = snapshot.vm(&VmId::new(name_or_id)).or(named);
        let row = row.ok_or_else(|| NotDone::Unknown { what: format!("VM {name_or_id}") })?;
        let vm = || row.name.to_string();
        if own_annotation(row, steerer.about.hatchery()).is_none() {
            return Err(NotDone::Foreign { vm: vm() });
        }
        if row.template {
            return Err(NotDone::Template { vm: vm() });
        }
        let why = format!("{who} asked for it");
        let marked = steerer.vms.mark_as_asked(&row.id, &why).await;
        marked.map_err(|error| NotDone::Mark { vm: vm(), why: Chain(&error).to_string() })?;
        steerer.signals.cleanup.notify_one();
        Ok(format!("VM {} is marked for deletion", row.name))
    }

    /// Makes what is missing of a pool now, however often it failed before. `model` is a template or a V1 model.
    pub fn refill(&self, who: &str, model: &str) -> Result<String, NotDone> {
        let pools = &self.steerer.about.config.provisioning.pools;
        let is_it = |wanted: &SpareModel| match wanted {
            SpareModel::V1(path) => path.to_string() == model,
            SpareModel::V2(template) => template == model,
        };
        let found = pools.iter().find(|pool| is_it(&pool.kind.model));
        let Some(pool) = found else {
            let what = format!("pool {model}");
            self.record(who, &format!("refilling: {what} is not known"));
            return Err(NotDone::Unknown { what });
        };
        {
            let mut scheduler = self.steerer.scheduler.lock();
            scheduler.backoffs.succeeded(&pool.kind.model);
            scheduler.cold.succeeded(pool.kind.model.template());
        }
        self.steerer.signals.plan.notify_one();
        self.steerer.signals.spares.notify_one();
        Ok(self.record(who, &format!("pool {model} is looked at now")))
    }

    /// Asks CDS about a job anew and weighs it now, however often it was tried.
    pub fn recheck(&self, who: &str, job: &str) -> Result<String, NotDone> {
        let Some(id) = JobId::parse(job) else {
            let what = format!("job {job}");
            self.record(who, &format!("looking again: {what} is not known"));
            return Err(NotDone::Unknown { what });
        };
        {
            let mut scheduler = self.steerer.scheduler.lock();
            scheduler.attempts.forget(&id);
            scheduler.jobs.ask_again(&id, self.steerer.about.now());
        }
        listen::begin_asking(&self.steerer.listener, &self.tasks, vec![id]);
        Ok(self.record(who, &format!("job {job} is looked at now")))
    }

    fn record(&self, who: &str, words: &str) -> String {
        let subject = HATCHERY.about_service(self.steerer.about.hatchery());
        let draft = Draft::new(subject, Decided::Steered, format!("{who}: {words}"));
        self.steerer.recorder.decide(draft, "person");
        words.to_owned()
    }
}
