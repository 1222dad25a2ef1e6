//! Where promises are made. One lock, no waiting under it: two jobs can never both get the last of anything (W2).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use roost_fleet::{Amounts, Holding, Machines, SharedLedger, Snapshot, VmId};

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
    pub(crate) ledger: SharedLedger,
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
    /// With the ledger in which this hatchery has its account.
    pub(crate) fn new(config: &Config, ledger: SharedLedger) -> Self {
        Self {
            ledger,
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
        ledger
            .lock()
            .observe(HATCHERY, snapshot, now, |vm| holding(vm, hatchery, lifetimes, beside));
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
            let takes = holding(vm, &self.hatchery, &self.lifetimes, &self.beside);
            self.ledger.lock().see(HATCHERY, &vm.id, &vm.name, takes, now);
        }
    }

    /// Takes over whether a step of ours is at work on a VM, or deletes it.
    pub(crate) fn set_held(&mut self, vm: &VmId, machines: &Machines) {
        for (set, is_so) in [
            (&mut self.beside.busy, machines.is_held(vm)),
            (&mut self.beside.going, machines.is_leaving(vm)),
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
            let takes = holding(row, &self.hatchery, &self.lifetimes, &self.beside);
            self.ledger.lock().see(HATCHERY, &row.id, &row.name, takes, now);
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

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
