//! Where promises are made. One lock, no waiting under it: two jobs can never both get the last of anything (W2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use roost_cds::{NamesExhausted, WorkerNames};
use roost_clock::Random;
use roost_fleet::{Amounts, Holding, Machines, Mirror, SharedLedger, Snapshot, VmId};

use super::about::About;
use super::holding::{WorkerFacts, holding};
use super::jobs::Jobs;
use super::others::Others;
use super::workers::WorkerLists;
use crate::attempts::Attempts;
use crate::cold::ColdStarts;
use crate::config::{Config, Lifetimes, SpareKind};
use crate::door::{HATCHERY, WORKERS};
use crate::names::NamePrefix;
use crate::spares::Backoffs;

/// So many names that were given out lately are not given out again, also if their VM is not seen yet.
const NAMES: usize = 4_096;

/// The one lock, names that nobody has, and ids.
#[derive(Debug)]
pub(crate) struct Scheduler {
    state: Mutex<SchedulerState>,
    names: Mutex<WorkerNames>,
    ids: Mutex<Random>,
    about: Arc<About>,
    mirror: Mirror,
    machines: Machines,
    others: Arc<Others>,
}

impl Scheduler {
    pub(super) fn new(
        state: SchedulerState,
        random: &Random,
        about: &Arc<About>,
        (mirror, machines): (&Mirror, &Machines),
        others: &Arc<Others>,
    ) -> Self {
        Self {
            state: Mutex::new(state),
            names: Mutex::new(WorkerNames::new(random.fork("names"))),
            ids: Mutex::new(random.fork("ids")),
            about: Arc::clone(about),
            mirror: mirror.clone(),
            machines: machines.clone(),
            others: Arc::clone(others),
        }
    }

    /// The state with everything that the inventory shows at this moment. Nobody waits for anything while holding it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, SchedulerState> {
        let mut state = self.lock_as_it_is();
        let held = self.machines.take_hold_changes(HATCHERY);
        for vm in &held {
            state.set_held(vm, &self.machines);
        }
        let (snapshot, now) = (self.mirror.snapshot(), self.about.now());
        let theirs = self.others.theirs(self.about.config.lifetimes.registration, now);
        let elsewhere = state.set_elsewhere(theirs);
        state.look(&snapshot, now);
        for vm in held.iter().chain(&elsewhere) {
            state.see_again(vm, &snapshot, now);
        }
        state
    }

    /// The state without a look at the inventory.
    pub(super) fn lock_as_it_is(&self) -> MutexGuard<'_, SchedulerState> {
        lock(&self.state)
    }

    /// A name that no VM and no worker has.
    pub(crate) fn name(
        &self,
        prefix: NamePrefix,
        state: &mut SchedulerState,
        snapshot: &Snapshot,
    ) -> Result<String, NamesExhausted> {
        let mut names = lock(&self.names);
        let name = names.next(&prefix.to_string(), |name| !state.is_free_name(name, snapshot))?;
        state.give_name(&name);
        Ok(name)
    }

    pub(crate) fn uuid(&self) -> String {
        lock(&self.ids).uuid()
    }
}

/// What is promised, tried and being worked on. Owned by one lock; nobody waits for anything while holding it.
#[derive(Debug)]
pub(crate) struct SchedulerState {
    pub(crate) ledger: SharedLedger,
    pub(crate) attempts: Attempts,
    pub(crate) cold: ColdStarts,
    pub(crate) backoffs: Backoffs,
    pub(crate) jobs: Jobs,
    /// Spares that are being cloned, by the name that they will have.
    pub(crate) making: BTreeMap<Arc<str>, SpareKind>,
    facts: WorkerFacts,
    /// Workers that CDS counts and that have no VM.
    ghosts: BTreeSet<Arc<str>>,
    names: VecDeque<Arc<str>>,
    ended: Ended,
    hatchery: Arc<str>,
    lifetimes: Lifetimes,
}

impl SchedulerState {
    /// With the ledger in which this hatchery has its account.
    pub(crate) fn new(config: &Config, ledger: SharedLedger) -> Self {
        Self {
            ledger,
            attempts: Attempts::new(config.counts.max_attempts),
            cold: ColdStarts::default(),
            backoffs: Backoffs::default(),
            jobs: Jobs::default(),
            making: BTreeMap::new(),
            facts: WorkerFacts::default(),
            ghosts: BTreeSet::new(),
            names: VecDeque::new(),
            ended: Ended::default(),
            hatchery: config.identity.name.as_str().into(),
            lifetimes: config.lifetimes,
        }
    }

    pub(crate) fn facts(&self) -> &WorkerFacts {
        &self.facts
    }

    /// Takes over what changed in the inventory.
    pub(crate) fn look(&mut self, snapshot: &Snapshot, now: Timestamp) {
        let Self { ledger, facts, hatchery, lifetimes, .. } = self;
        ledger
            .lock()
            .observe(HATCHERY, snapshot, now, |vm| holding(vm, hatchery, lifetimes, facts));
    }

    /// Takes over what CDS knows of our workers.
    pub(crate) fn hear(&mut self, lists: &WorkerLists, snapshot: &Snapshot, now: Timestamp) {
        let before = std::mem::take(&mut self.facts);
        let WorkerFacts { busy, going, elsewhere, .. } = before;
        self.facts = WorkerFacts { busy, going, elsewhere, ..lists.facts() };
        let has_vm = |name: &Arc<str>| snapshot.named(name).next().is_some();
        let ghosts: BTreeSet<Arc<str>> = lists.counting().filter(|name| !has_vm(name)).collect();
        for name in before.registered.difference(&self.facts.registered) {
            self.ended.add(name, now);
        }
        let (registered, disabled) = (&self.facts.registered, &self.facts.disabled);
        let changed: Vec<Arc<str>> = registered
            .symmetric_difference(&before.registered)
            .chain(disabled.symmetric_difference(&before.disabled))
            .cloned()
            .collect();
        for name in changed {
            self.see_named(&name, snapshot, now);
        }
        for gone in self.ghosts.difference(&ghosts) {
            self.ledger.lock().vanish(HATCHERY, &ghost(gone), now);
        }
        for name in &ghosts {
            let amounts = Amounts::default().count(WORKERS, 1);
            self.ledger.lock().see(
                HATCHERY,
                &ghost(name),
                name,
                Holding { amounts, ..Holding::default() },
                now,
            );
        }
        self.ghosts = ghosts;
    }

    fn see_named(&mut self, name: &str, snapshot: &Snapshot, now: Timestamp) {
        for vm in snapshot.named(name) {
            let takes = holding(vm, &self.hatchery, &self.lifetimes, &self.facts);
            self.ledger.lock().see(HATCHERY, &vm.id, &vm.name, takes, now);
        }
    }

    /// When CDS struck this worker off its list: it has done what it was for, or has died.
    pub(crate) fn ended(&self, worker: &str) -> Option<Timestamp> {
        self.ended.at.get(worker).copied().filter(|_| !self.facts.registered.contains(worker))
    }

    /// Takes over whether a step of ours is at work on a VM, or deletes it.
    pub(crate) fn set_held(&mut self, vm: &VmId, machines: &Machines) {
        for (set, is_so) in [
            (&mut self.facts.busy, machines.is_held(vm)),
            (&mut self.facts.going, machines.is_leaving(vm)),
        ] {
            if is_so {
                set.insert(vm.clone());
            } else {
                set.remove(vm);
            }
        }
    }

    pub(crate) fn see_again(&mut self, vm: &VmId, snapshot: &Snapshot, now: Timestamp) {
        if let Some(row) = snapshot.vm(vm) {
            let takes = holding(row, &self.hatchery, &self.lifetimes, &self.facts);
            self.ledger.lock().see(HATCHERY, &row.id, &row.name, takes, now);
        }
    }

    pub(crate) fn is_busy(&self, vm: &VmId) -> bool {
        self.facts.is_busy(vm)
    }

    /// Takes over which VMs another process is about to finish. Returns those of which it is news.
    pub(crate) fn set_elsewhere(&mut self, vms: BTreeSet<VmId>) -> Vec<VmId> {
        if self.facts.elsewhere == vms {
            return Vec::new();
        }
        let before = std::mem::replace(&mut self.facts.elsewhere, vms);
        before.symmetric_difference(&self.facts.elsewhere).cloned().collect()
    }

    /// Whether a new VM may be called so: no VM is, and no name like it was given out lately.
    pub(crate) fn is_free_name(&self, name: &str, snapshot: &Snapshot) -> bool {
        snapshot.named(name).next().is_none()
            && !self.facts.registered.contains(name)
            && !self.names.iter().any(|given| **given == *name)
    }

    pub(crate) fn give_name(&mut self, name: &str) {
        if self.names.len() >= NAMES {
            self.names.pop_front();
        }
        self.names.push_back(name.into());
    }
}

/// When workers ended that CDS knew, the last so many of them.
#[derive(Debug, Default)]
struct Ended {
    at: BTreeMap<Arc<str>, Timestamp>,
    order: VecDeque<Arc<str>>,
}

impl Ended {
    fn add(&mut self, worker: &Arc<str>, now: Timestamp) {
        if self.at.insert(Arc::clone(worker), now).is_none() {
            self.order.push_back(Arc::clone(worker));
        }
        if self.order.len() > NAMES
            && let Some(oldest) = self.order.pop_front()
        {
            self.at.remove(&oldest);
        }
    }
}

fn ghost(worker: &str) -> VmId {
    VmId::new(format!("cds-worker-{worker}"))
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
