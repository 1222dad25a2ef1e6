//! The whole picture, in numbers and a few words.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_fleet::{Amounts, Decided, Decision, Journal, LedgerUse, Limits, Query, Snapshot};

use super::super::context::Context;
use super::super::holding::own_annotation;
use super::super::jobs::State;
use super::super::scheduler::{SchedulerState, lock};
use super::super::spare_view::{in_flight, spares};
use super::jobs::subject;
use super::view::{
    Addresses, Capacity, Deletions, Gauge, JobState, Lane, Link, Overview, Pool, Queue, Stage, Vm,
    VmKind,
};
use super::workers::inventory_doubt;
use crate::config::{SpareKind, SpareModel};
use crate::door::{HATCHERY, PENDING, REGISTERING, WORKERS};
use crate::spares::SpareState;
use crate::time::elapsed;

/// Decisions that are shown with the overview.
const RECENT: usize = 20;

impl Context {
    pub(super) fn overview(&self) -> Overview {
        self.overview_of(&self.vms(), &self.job_states())
    }

    /// The same from VMs that were looked at already, and how jobs stand that have one.
    pub(super) fn overview_of(&self, vms: &[Vm], jobs: &[JobState]) -> Overview {
        let now = self.now();
        let snapshot = self.mirror.snapshot();
        let link = self.link(&snapshot, now);
        let mut scheduler = self.scheduler();
        let (mut queue, oldest) = queue(&scheduler, &self.journal, now);
        let ordered = ordered(&scheduler);
        queue.add(jobs);
        let pools = self.pools(&snapshot, &mut scheduler, now);
        let taken = scheduler.ledger.lock().taken(HATCHERY, now);
        let limits = scheduler.ledger.lock().limits(HATCHERY).cloned().unwrap_or_default();
        let forecast = (taken.addresses.free == 0)
            .then(|| scheduler.ledger.lock().forecast(HATCHERY, now))
            .flatten();
        drop(scheduler);
        Overview {
            other_process: self.others.at_work(now).map(|other| other.to_string()),
            service: self.hatchery().to_owned(),
            version: self.version.clone(),
            now,
            started: self.started,
            is_open: self.is_open(),
            what_binds: oldest.and_then(|job| self.journal.latest(&subject(&job))),
            queue,
            lanes: self.lanes(vms, ordered),
            pools,
            capacity: capacity(&taken, &limits),
            addresses: (!self.config.addresses.is_dhcp()).then_some(Addresses {
                total: taken.addresses.total,
                free: taken.addresses.free,
                used: taken.addresses.used,
                reserved: taken.addresses.promised,
                resting: taken.addresses.resting,
                forecast,
            }),
            deletions: self.deletions(now),
            link,
            recent: self.journal.find(&Query { limit: Some(RECENT), ..Query::default() }),
        }
    }

    pub(super) fn pool_views(&self) -> Vec<Pool> {
        let snapshot = self.mirror.snapshot();
        self.pools(&snapshot, &mut self.scheduler(), self.now())
    }

    fn pools(
        &self,
        snapshot: &Snapshot,
        scheduler: &mut SchedulerState,
        now: Timestamp,
    ) -> Vec<Pool> {
        let models = self.models.v1();
        let models = models.as_deref().map(Vec::as_slice);
        let known = spares(snapshot, self.hatchery(), scheduler, models, now);
        let unseen = in_flight(snapshot, scheduler);
        let standing = lock(&self.standing).clone();
        let of = |kind: &SpareKind, states: &[SpareState]| {
            let spares = known.iter().filter(|spare| spare.kind == *kind);
            spares.filter(|spare| states.contains(&spare.state)).count() as u64
        };
        let pool = |pool: &crate::config::SparePool| {
            let kind = &pool.kind;
            let wanted = u64::from(pool.number);
            let ready = of(kind, &[SpareState::Ready]);
            let coming = of(kind, &[SpareState::Making, SpareState::Unfinished])
                + unseen.iter().filter(|other| *other == kind).count() as u64;
            let missing = wanted.saturating_sub(ready + coming);
            let stands = standing.iter().find(|stands| stands.kind == *kind);
            Pool {
                model: kind.model.to_string(),
                template: match &kind.model {
                    SpareModel::V1(path) => path.name.clone(),
                    SpareModel::V2(template) => template.clone(),
                },
                flavor: kind.flavor.clone(),
                wanted,
                ready,
                coming,
                in_use: of(kind, &[SpareState::Claimed]),
                missing,
                waiting: stands
                    .filter(|_| missing > 0)
                    .and_then(|stands| stands.waiting.as_ref().map(ToString::to_string)),
            }
        };
        self.config.provisioning.pools.iter().map(pool).collect()
    }

    fn lanes(&self, vms: &[Vm], ordered: Vec<Arc<str>>) -> Vec<Lane> {
        let mut lanes: BTreeMap<Stage, Vec<Arc<str>>> = BTreeMap::new();
        for vm in vms.iter().filter(|vm| !matches!(vm.kind, VmKind::Spare | VmKind::Template)) {
            lanes.entry(vm.stage.unwrap_or(Stage::Ordered)).or_default().push(Arc::clone(&vm.name));
        }
        for worker in ordered {
            if vms.iter().all(|vm| vm.name != worker) {
                let stage =
                    self.phase_of(&worker).map_or(Stage::Ordered, |(phase, _)| Stage::In(phase));
                lanes.entry(stage).or_default().push(worker);
            }
        }
        lanes
            .into_iter()
            .map(|(stage, mut workers)| {
                workers.sort_unstable();
                Lane { stage, workers }
            })
            .collect()
    }

    pub(super) fn link(&self, snapshot: &Snapshot, now: Timestamp) -> Link {
        let stream = self.mirror.stream().borrow().clone();
        Link {
            is_connected: stream.last_contact.is_some() && stream.trouble.is_none(),
            is_synced: stream.synced && inventory_doubt(snapshot, now).is_none(),
            last_contact: stream.last_contact,
            resyncs: stream.resyncs,
            trouble: stream.trouble,
            vms: snapshot.len() as u64,
            calls: self.calls.view(),
        }
    }

    pub(super) fn deletions(&self, now: Timestamp) -> Deletions {
        let query = Query { verdict: Some(Decided::Deleted), ..Query::default() };
        let is_recent =
            |decision: &&Arc<Decision>| elapsed(decision.since, now) < Duration::from_mins(1);
        let last_minute = self.journal.find(&query).iter().filter(is_recent).count() as u64;
        Deletions { frozen: self.deletions.frozen(), last_minute }
    }

    /// How many of our VMs there are, templates aside.
    pub(super) fn own_vms(&self, snapshot: &Snapshot) -> usize {
        let ours = snapshot.owned_by(HATCHERY, self.hatchery()).filter(|vm| !vm.template);
        ours.filter(|vm| own_annotation(vm, self.hatchery()).is_some()).count()
    }
}

/// What waits, and the job that has waited longest. What was told that it is not for us, or cannot be served as it is, does not wait for us.
pub(super) fn queue(
    scheduler: &SchedulerState,
    journal: &Journal,
    now: Timestamp,
) -> (Queue, Option<roost_cds::JobId>) {
    let mut queue = Queue::default();
    let mut oldest: Option<(Timestamp, &roost_cds::JobId)> = None;
    for (id, entry) in scheduler.jobs.iter() {
        let queued = match &entry.state {
            State::Starting { .. } => {
                queue.starting += 1;
                continue;
            }
            State::Named | State::Asked => None,
            State::Waiting(candidate) => candidate.job.queued,
        };
        match journal.latest(&subject(id)).map(|decision| decision.verdict) {
            Some(Decided::Skipped) => {}
            Some(Decided::Refused) => queue.refused += 1,
            _ => {
                queue.waiting += 1;
                oldest = oldest.into_iter().chain(queued.map(|queued| (queued, id))).min();
            }
        }
    }
    queue.oldest_waiting_secs = oldest.map(|(queued, _)| elapsed(queued, now).as_secs());
    (queue, oldest.map(|(_, id)| id.clone()))
}

impl Queue {
    /// Jobs that have a VM, or one that is not there yet: as the list shows them.
    fn add(&mut self, jobs: &[JobState]) {
        self.starting = 0;
        for state in jobs {
            match state {
                JobState::Starting => self.starting += 1,
                JobState::Joining => self.joining += 1,
                JobState::Running => self.working += 1,
                JobState::Leaving => self.leaving += 1,
                JobState::Waiting | JobState::Ended => {}
            }
        }
    }
}

fn ordered(scheduler: &SchedulerState) -> Vec<Arc<str>> {
    let workers = scheduler.jobs.iter().filter_map(|(_, entry)| match &entry.state {
        State::Starting { worker, .. } => Some(Arc::clone(worker)),
        State::Named | State::Asked | State::Waiting(_) => None,
    });
    workers.collect()
}

fn capacity(taken: &LedgerUse, limits: &Limits) -> Capacity {
    let gauge = |of: fn(&Amounts) -> u64, limit| Gauge {
        used: of(&taken.by_vms),
        reserved: of(&taken.promised),
        limit,
    };
    Capacity {
        workers: gauge(|amounts| amounts.of(WORKERS), limits.of(WORKERS)),
        pending: gauge(|amounts| amounts.of(PENDING), limits.of(PENDING)),
        registering: gauge(|amounts| amounts.of(REGISTERING), limits.of(REGISTERING)),
        cpus: gauge(|amounts| amounts.cpus, limits.cpus),
        memory_mb: gauge(|amounts| amounts.memory_mb, limits.memory_mb),
    }
}
