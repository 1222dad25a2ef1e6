//! The mirror without I/O: what the stream says, what we know beside it, and what of both is shown.
//!
//! The stream is in order but late. What we know first hand (our task succeeded, we just read it) is newer than anything
//! that was under way at that moment, so it is laid over the stream's row until the stream has caught up: until it says
//! the same and was asked for an answer after we learned. When an answer comes and the stream says something else, one
//! of the two is wrong, and the VM is read by itself: a server that does not announce a change and a change by somebody
//! else look the same from here. What was read is then laid over the stream in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use roost_vim::wire::MoType;
use roost_vim::{Change, Properties, Update};

use super::alarms::Alarms;
use super::known::{Known, Next, PATIENCE, What, pause_after};
use super::paths::{BootFacts, BootNews, Reading, forget_boot};
use super::tables::Tables;
use super::vm::{Power, Vm};
use super::waits::Waits;
use super::wrote::Wrote;
use super::{Recognise, StreamState};
use crate::time::later;
use crate::{Freshness, PoolId, VmId};

#[derive(Debug)]
pub(super) struct Core {
    reading: Reading,
    pub(super) tables: Tables,
    pub(super) waits: Waits,
    /// VMs of which we know something that the stream may not have said yet.
    known: BTreeMap<VmId, Known>,
    /// Facts of an earlier boot that we dropped and the server may think it has told us.
    dropped: BTreeMap<VmId, BootFacts>,
    /// VMs that are there although the stream has never shown them.
    unlisted: BTreeSet<VmId>,
    alarms: Alarms,
    /// Reads that were handed out.
    reads: BTreeMap<VmId, Read>,
    /// VMs that a first load has shown so far; what is not among them when it is complete is gone.
    loading: Option<BTreeSet<VmId>>,
    loaded: bool,
    /// How many are followed, and in which of them each object is; the latter only if there are several.
    containers: usize,
    in_containers: BTreeMap<Arc<str>, BTreeSet<usize>>,
    pub(super) stream: StreamState,
    pub(super) generation: u64,
}

/// A read of one VM that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    Good,
    /// Something was heard of the VM since it was asked for, which it may not know yet.
    Outdated,
}

impl Core {
    pub(super) fn new(doors: Vec<Arc<dyn Recognise>>) -> Self {
        Self {
            reading: Reading::new(doors),
            tables: Tables::default(),
            waits: Waits::default(),
            known: BTreeMap::new(),
            dropped: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            alarms: Alarms::default(),
            reads: BTreeMap::new(),
            loading: None,
            loaded: false,
            containers: 1,
            in_containers: BTreeMap::new(),
            stream: StreamState::default(),
            generation: 0,
        }
    }

    pub(super) fn vm_paths(&self) -> Arc<[String]> {
        self.reading.vm_paths()
    }

    pub(super) fn extra_config_key(&self, key: &str) -> Option<&'static str> {
        self.reading.extra_config_key(key)
    }

    /// The row that these properties make.
    pub(super) fn peek(&mut self, id: &VmId, properties: &Properties) -> Vm {
        self.reading.vm(id, properties, None).0
    }

    pub(super) fn freshness(&self) -> Freshness {
        Freshness {
            complete: self.loaded && self.stream.synced,
            as_of: self.stream.last_contact,
            items: self.tables.len(),
            trouble: self.stream.trouble.clone(),
        }
    }

    /// A new stream begins: it says of everything that is there that it enters, but of nothing that it has left.
    pub(super) fn begin_load(&mut self, containers: usize) {
        self.containers = containers;
        self.in_containers.clear();
        self.loading = Some(BTreeSet::new());
        self.loaded = false;
        self.reads.clear();
    }

    pub(super) fn apply(
        &mut self,
        from: usize,
        updates: &[Update],
        synced: bool,
        resynced: bool,
        now: Timestamp,
    ) {
        for update in updates {
            if self.containers > 1 && self.is_still_elsewhere(from, update) {
                continue;
            }
            match update.obj.kind {
                MoType::VirtualMachine => {
                    self.apply_vm(&VmId::from(&update.obj), &update.change, now);
                }
                MoType::ResourcePool | MoType::VirtualApp => {
                    self.apply_pool(&PoolId::from(&update.obj), &update.change);
                }
                _ => {}
            }
        }
        if synced {
            self.end_load(now);
            if resynced {
                // The stream compared what it showed before; it has never shown these.
                for id in self.unlisted.clone() {
                    self.alarms.set(&id, now);
                }
            }
        }
    }

    /// Whether an object has left one container and is still in another. Keeps count of where each is.
    fn is_still_elsewhere(&mut self, from: usize, update: &Update) -> bool {
        let is_in = self.in_containers.entry(update.obj.id.clone()).or_default();
        if update.change != Change::Leave {
            is_in.insert(from);
            return false;
        }
        is_in.remove(&from);
        let is_elsewhere = !is_in.is_empty();
        if !is_elsewhere {
            self.in_containers.remove(&update.obj.id);
        }
        is_elsewhere
    }

    fn apply_pool(&mut self, id: &PoolId, change: &Change) {
        match change {
            Change::Enter(properties) => {
                let pool = self.reading.pool(id, properties);
                self.tables.put_pool(pool);
            }
            Change::Modify(changes) => {
                let mut pool = match self.tables.pool(id) {
                    Some(pool) => (**pool).clone(),
                    None => self.reading.pool(id, &Properties::default()),
                };
                self.reading.change_pool(&mut pool, changes);
                self.tables.put_pool(pool);
            }
            Change::Leave => self.tables.drop_pool(id),
        }
        self.generation += 1;
    }

    fn apply_vm(&mut self, id: &VmId, change: &Change, now: Timestamp) {
        self.outdate_read(id);
        let base = match self.known.get_mut(id) {
            Some(known) => {
                known.stirred = true;
                known.base.take()
            }
            None => self.tables.vm(id).map(|vm| (**vm).clone()),
        };
        let base = match change {
            Change::Enter(properties) => {
                if let Some(seen) = &mut self.loading {
                    seen.insert(id.clone());
                }
                self.unlisted.remove(id);
                let (vm, news) = self.reading.vm(id, properties, base.as_ref());
                self.note_boot(&vm, news, now);
                Some(vm)
            }
            Change::Modify(changes) => {
                let mut vm = base.unwrap_or_else(|| Vm::unknown(id.clone()));
                let news = self.reading.change_vm(&mut vm, changes);
                self.note_boot(&vm, news, now);
                Some(vm)
            }
            Change::Leave => {
                if let Some(seen) = &mut self.loading {
                    seen.remove(id);
                }
                // It has been there and has left: nothing that we know of it is newer than that.
                if matches!(self.known.get(id), Some(Known { what: What::Is(_), .. })) {
                    self.known.remove(id);
                }
                self.forget(id);
                None
            }
        };
        self.show(id, base);
    }

    /// The stream's row of a VM is this now.
    fn show(&mut self, id: &VmId, base: Option<Vm>) {
        let shown = match self.known.get_mut(id) {
            Some(known) => {
                known.base = base;
                known.shown(id, &self.reading)
            }
            None => base,
        };
        let changed = match shown {
            Some(vm) => self.tables.put(vm),
            None => self.tables.take(id),
        };
        if changed {
            self.generation += 1;
            self.waits.ring(id);
        }
    }

    fn note_boot(&mut self, vm: &Vm, news: BootNews, now: Timestamp) {
        let before = self.dropped.remove(&vm.id).unwrap_or_default();
        let left = before.without(news.told).and(news.dropped);
        if !left.is_empty() {
            self.dropped.insert(vm.id.clone(), left);
            if vm.power == Power::On {
                self.alarms.set(&vm.id, later(now, PATIENCE));
            }
        }
    }

    fn forget(&mut self, id: &VmId) {
        self.dropped.remove(id);
        self.unlisted.remove(id);
    }

    fn end_load(&mut self, now: Timestamp) {
        self.loaded = true;
        let Some(seen) = self.loading.take() else { return };
        for (id, known) in &mut self.known {
            if matches!(known.what, What::Gone) && !seen.contains(id) {
                known.base = None;
            }
        }
        let unseen: Vec<VmId> =
            self.tables.vms().map(|vm| &vm.id).filter(|id| !seen.contains(*id)).cloned().collect();
        for id in unseen {
            if self.known.contains_key(&id) || self.unlisted.contains(&id) {
                self.alarms.set(&id, now);
                self.unlisted.insert(id);
            } else {
                self.forget(&id);
                self.show(&id, None);
            }
        }
    }

    /// The stream has answered, and everything of that answer was applied.
    pub(super) fn answered(&mut self, now: Timestamp) {
        let ids: Vec<VmId> = self.known.keys().cloned().collect();
        for id in ids {
            let Some(known) = self.known.get_mut(&id) else { continue };
            let next = known.answered(&self.reading);
            let base = known.base.take();
            match next {
                Next::Settled => drop(self.known.remove(&id)),
                Next::Look(after) => self.alarms.set(&id, later(now, after)),
                Next::Wait => {}
            }
            self.show(&id, base);
        }
    }

    fn learn(&mut self, id: &VmId, what: impl FnOnce(Option<What>) -> What, now: Timestamp) {
        self.outdate_read(id);
        let (base, before) = match self.known.remove(id) {
            Some(known) => (known.base, Some(known.what)),
            None => (self.tables.vm(id).map(|vm| (**vm).clone()), None),
        };
        let what = what(before);
        self.known.insert(id.clone(), Known::new(None, what));
        self.alarms.set(id, later(now, PATIENCE));
        self.show(id, base);
    }

    fn outdate_read(&mut self, id: &VmId) {
        if let Some(read) = self.reads.get_mut(id) {
            *read = Read::Outdated;
        }
    }

    /// A change of ours has succeeded, or a VM of ours was made.
    pub(super) fn wrote(&mut self, id: &VmId, wrote: Wrote, now: Timestamp) {
        let moves_power = wrote.moves_power();
        self.learn(
            id,
            |before| {
                What::Is(match before {
                    Some(What::Is(earlier)) => wrote.over(earlier),
                    Some(What::Gone) | None => wrote,
                })
            },
            now,
        );
        if moves_power
            && let Some(known) = self.known.get_mut(id)
            && let Some(base) = &mut known.base
        {
            // Whatever the guest said, it said before its power changed.
            let dropped = forget_boot(&mut base.guest);
            let base = base.clone();
            self.note_boot(&base, BootNews { told: BootFacts::default(), dropped }, now);
        }
    }

    /// A VM was destroyed by us.
    pub(super) fn destroyed(&mut self, id: &VmId, now: Timestamp) {
        let is_unlisted = self.unlisted.contains(id);
        self.forget(id);
        self.learn(id, |_| What::Gone, now);
        // A stream that does not show it will not say that it leaves.
        if let Some(known) = self.known.get_mut(id).filter(|_| is_unlisted) {
            known.base = None;
        }
    }

    /// A VM was read by itself; `None` if it does not exist.
    pub(super) fn read(&mut self, id: &VmId, found: Option<&Properties>, now: Timestamp) {
        if self.reads.remove(id) == Some(Read::Outdated) {
            self.alarms.set(id, now);
            return;
        }
        match found {
            Some(properties) => self.found(id, properties),
            None => self.missed(id, now),
        }
    }

    fn found(&mut self, id: &VmId, properties: &Properties) {
        let before = self.tables.vm(id).cloned();
        let (read, _) = self.reading.vm(id, properties, before.as_deref());
        let mut base = match self.known.get_mut(id) {
            Some(known) => known.base.take(),
            None => before.map(|vm| (*vm).clone()),
        };
        match &mut base {
            Some(base) if !self.unlisted.contains(id) => {
                if self.dropped.remove(id).is_some() {
                    base.guest = read.guest.clone();
                }
            }
            // The stream does not show it, so nothing else will.
            base => {
                *base = Some(read.clone());
                self.unlisted.insert(id.clone());
            }
        }
        if let Some(known) = self.known.get_mut(id) {
            known.base = base.take();
            if let What::Gone = known.what {
                tracing::warn!(vm = %id, name = %read.name, "{id} was destroyed and is still there");
                base = self.known.remove(id).and_then(|known| known.base);
            } else {
                known.found(&read, &self.reading);
                base = known.base.take();
            }
        }
        self.show(id, base);
    }

    fn missed(&mut self, id: &VmId, now: Timestamp) {
        if !matches!(self.known.get(id), Some(Known { what: What::Gone, .. })) {
            self.destroyed(id, now);
        }
        if let Some(known) = self.known.get_mut(id) {
            known.missed();
        }
    }

    pub(super) fn read_failed(&mut self, id: &VmId, now: Timestamp) {
        self.reads.remove(id);
        let reads = self.known.get_mut(id).map_or(1, |known| {
            known.reads += 1;
            known.reads
        });
        self.alarms.set(id, later(now, pause_after(reads)));
    }

    pub(super) fn next_alarm(&self) -> Option<Timestamp> {
        self.alarms.next()
    }

    /// VMs to be read by themselves now. Each is handed out once until its read has ended.
    pub(super) fn take_doubts(&mut self, now: Timestamp) -> Vec<VmId> {
        let mut due = self.alarms.take(now);
        due.retain(|id| self.is_doubtful(id) && !self.reads.contains_key(id));
        self.reads.extend(due.iter().map(|id| (id.clone(), Read::Good)));
        due
    }

    fn is_doubtful(&self, id: &VmId) -> bool {
        let on = self.tables.vm(id).is_some_and(|vm| vm.power == Power::On);
        self.known.get(id).is_some_and(|known| !known.agrees(&self.reading))
            || on && self.dropped.contains_key(id)
            || self.unlisted.contains(id)
    }
}
