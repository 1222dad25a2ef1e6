//! Where promises are made. One lock, no waiting under it: two jobs can never both get the last of anything (W2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use roost_fleet::{Amounts, Holding, Ledger, Mirror, Snapshot, VmId};

use super::holding::{Beside, holding};
use super::jobs::Jobs;
use super::workers::WorkerLists;
use crate::attempts::Attempts;
use crate::cold::ColdStarts;
use crate::config::{Config, Lifetimes, SpareKind};
use crate::door::{HATCHERY, WORKERS};
use crate::spares::Backoffs;

/// So many names that were given out lately are not given out again, also if their VM is not seen yet.
const NAMES: usize = 4_096;

/// What is promised, tried and being worked on. Owned by one lock; nobody waits for anything while holding it.
#[derive(Debug)]
pub(crate) struct Desk {
    pub(crate) ledger: Ledger,
    pub(crate) attempts: Attempts,
    pub(crate) cold: ColdStarts,
    pub(crate) backoffs: Backoffs,
    pub(crate) jobs: Jobs,
    /// Spares that are being cloned, by the name that they will have.
    pub(crate) making: BTreeMap<Arc<str>, SpareKind>,
    beside: Beside,
    /// Workers that CDS counts and that have no VM.
    ghosts: BTreeSet<Arc<str>>,
    names: VecDeque<Arc<str>>,
    hatchery: Arc<str>,
    lifetimes: Lifetimes,
}

impl Desk {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            ledger: Ledger::default().with_account(
                HATCHERY,
                config.ledger_limits(),
                config.addresses.clone(),
            ),
            attempts: Attempts::new(config.counts.max_attempts),
            cold: ColdStarts::default(),
            backoffs: Backoffs::default(),
            jobs: Jobs::default(),
            making: BTreeMap::new(),
            beside: Beside::default(),
            ghosts: BTreeSet::new(),
            names: VecDeque::new(),
            hatchery: config.identity.name.as_str().into(),
            lifetimes: config.lifetimes,
        }
    }

    pub(crate) fn beside(&self) -> &Beside {
        &self.beside
    }

    /// Takes over what changed in the inventory.
    pub(crate) fn look(&mut self, snapshot: &Snapshot, now: Timestamp) {
        let Self { ledger, beside, hatchery, lifetimes, .. } = self;
        ledger.observe(HATCHERY, snapshot, now, |vm| holding(vm, hatchery, lifetimes, beside));
    }

    /// Takes over what CDS knows of our workers.
    pub(crate) fn hear(&mut self, lists: &WorkerLists, snapshot: &Snapshot, now: Timestamp) {
        let before = std::mem::take(&mut self.beside);
        let (busy, going) = (before.busy, before.going);
        self.beside = Beside { busy, going, ..lists.beside() };
        let has_vm = |name: &Arc<str>| snapshot.named(name).next().is_some();
        let ghosts: BTreeSet<Arc<str>> = lists.counting().filter(|name| !has_vm(name)).collect();
        let (registered, disabled) = (&self.beside.registered, &self.beside.disabled);
        let changed: Vec<Arc<str>> = registered
            .symmetric_difference(&before.registered)
            .chain(disabled.symmetric_difference(&before.disabled))
            .cloned()
            .collect();
        for name in changed {
            self.see_named(&name, snapshot, now);
        }
        for gone in self.ghosts.difference(&ghosts) {
            self.ledger.vanish(HATCHERY, &ghost(gone), now);
        }
        for name in &ghosts {
            let amounts = Amounts::default().count(WORKERS, 1);
            self.ledger.see(
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
            let takes = holding(vm, &self.hatchery, &self.lifetimes, &self.beside);
            self.ledger.see(HATCHERY, &vm.id, &vm.name, takes, now);
        }
    }

    fn set_busy(&mut self, vm: &VmId, busy: bool, mirror: &Mirror, now: Timestamp) -> bool {
        if !busy {
            self.beside.going.remove(vm);
        }
        let is_news =
            if busy { self.beside.busy.insert(vm.clone()) } else { self.beside.busy.remove(vm) };
        if is_news {
            self.see_again(vm, mirror, now);
        }
        is_news
    }

    fn see_again(&mut self, vm: &VmId, mirror: &Mirror, now: Timestamp) {
        if let Some(row) = mirror.vm(vm) {
            let takes = holding(&row, &self.hatchery, &self.lifetimes, &self.beside);
            self.ledger.see(HATCHERY, &row.id, &row.name, takes, now);
        }
    }

    pub(crate) fn is_busy(&self, vm: &VmId) -> bool {
        self.beside.busy.contains(vm)
    }

    /// Whether a new VM may be called so: no VM is, and no name like it was given out lately.
    pub(crate) fn is_free_name(&self, name: &str, snapshot: &Snapshot) -> bool {
        snapshot.named(name).next().is_none()
            && !self.beside.registered.contains(name)
            && !self.names.iter().any(|given| **given == *name)
    }

    pub(crate) fn give_name(&mut self, name: &str) {
        if self.names.len() >= NAMES {
            self.names.pop_front();
        }
        self.names.push_back(name.into());
    }
}

fn ghost(worker: &str) -> VmId {
    VmId::new(format!("cds-worker-{worker}"))
}

/// A VM that only the holder works on. Leaves it when dropped.
#[derive(Debug)]
#[must_use = "the VM is free for others when this is dropped"]
pub(crate) struct AtWork {
    desk: Arc<Mutex<Desk>>,
    mirror: Mirror,
    clock: Arc<dyn roost_clock::Clock>,
    vm: VmId,
}

impl AtWork {
    /// `None` if somebody else is at work on it.
    pub(super) fn begin(
        desk: &Arc<Mutex<Desk>>,
        mirror: &Mirror,
        clock: &Arc<dyn roost_clock::Clock>,
        vm: &VmId,
    ) -> Option<Self> {
        let is_ours = lock(desk).set_busy(vm, true, mirror, clock.now());
        is_ours.then(|| Self {
            desk: Arc::clone(desk),
            mirror: mirror.clone(),
            clock: Arc::clone(clock),
            vm: vm.clone(),
        })
    }

    pub(crate) fn vm(&self) -> &VmId {
        &self.vm
    }

    /// The work is the VM's deletion: what is off is not counted any more.
    pub(crate) fn going(&self) {
        let mut desk = lock(&self.desk);
        desk.beside.going.insert(self.vm.clone());
        desk.see_again(&self.vm, &self.mirror, self.clock.now());
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        lock(&self.desk).set_busy(&self.vm, false, &self.mirror, self.clock.now());
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
