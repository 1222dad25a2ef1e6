//! The mirror without I/O: what the stream says, what we know beside it, and what of both is shown.
//!
//! The stream is in order but late. What we know first hand (our task succeeded, we just read it) is newer than anything
//! that was under way at that moment, so it is laid over the stream's row until the stream has caught up: until it says
//! the same and was asked for an answer after we learned. When an answer comes and the stream says something else, one of the two is wrong, and
//! the VM is read by itself: a server that does not announce a change and a change by somebody else look the same from
//! here. What was read is then laid over the stream in turn.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_vim::wire::MoType;
use roost_vim::{Change, Properties, Update};

use super::ReadIdentity;
use super::paths::{BootFacts, BootNews, Reading, forget_boot};
use super::tables::Tables;
use super::vm::{Power, Vm};
use super::waits::Waits;
use super::wrote::{Believed, Wrote};
use crate::time::later;
use crate::{PoolId, VmId};

/// How long the stream may take to say what we know already before the VM is read by itself. Answers of a well-behaved server
/// come within milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// A VM that stays in doubt is read again this seldom in the end.
const MOST_BETWEEN_READS: Duration = Duration::from_mins(1);

/// So many answers after we learned something, the stream has been asked after it: one may have been applied and not yet
/// counted, one may have been on its way.
const CAUGHT_UP: u32 = 3;

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
    reading_now: BTreeSet<VmId>,
    /// VMs that a first load has shown so far; what is not among them when it is complete is gone.
    loading: Option<BTreeSet<VmId>>,
    loaded: bool,
    pub(super) generation: u64,
}

#[derive(Debug)]
struct Known {
    /// The stream's row.
    base: Option<Vm>,
    what: What,
    /// Answers of the stream since.
    answers: u32,
    reads: u32,
}

#[derive(Debug)]
enum What {
    Is(Believed),
    Gone,
}

/// A VM that stays in doubt is read at once, then after growing pauses.
fn pause_after(reads: u32) -> Duration {
    match reads {
        0 => Duration::ZERO,
        _ => PATIENCE.saturating_mul(1 << reads.min(6)).min(MOST_BETWEEN_READS),
    }
}

/// When which VM is to be looked at; one time for each.
#[derive(Debug, Default)]
struct Alarms {
    by_time: BTreeSet<(Timestamp, VmId)>,
    by_vm: BTreeMap<VmId, Timestamp>,
}

impl Alarms {
    /// Not later than this.
    fn set(&mut self, id: &VmId, at: Timestamp) {
        if self.by_vm.get(id).is_none_or(|before| at < *before) {
            self.put_off(id, at);
        }
    }

    fn put_off(&mut self, id: &VmId, at: Timestamp) {
        if let Some(before) = self.by_vm.insert(id.clone(), at) {
            self.by_time.remove(&(before, id.clone()));
        }
        self.by_time.insert((at, id.clone()));
    }

    fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    fn take(&mut self, now: Timestamp) -> Vec<VmId> {
        let mut due = Vec::new();
        while self.next().is_some_and(|at| at <= now)
            && let Some((_, id)) = self.by_time.pop_first()
        {
            self.by_vm.remove(&id);
            due.push(id);
        }
        due
    }
}

impl Known {
    fn agrees(&self) -> bool {
        match (&self.what, &self.base) {
            (What::Is(believed), Some(base)) => believed.agrees(base),
            (What::Gone, None) => true,
            (What::Is(_), None) | (What::Gone, Some(_)) => false,
        }
    }

    /// The row that is shown.
    fn shown(&self, id: &VmId) -> Option<Vm> {
        let What::Is(believed) = &self.what else { return None };
        let mut vm = self.base.clone().unwrap_or_else(|| Vm::unknown(id.clone()));
        if !believed.config_agrees(&vm) {
            vm.change_version = None;
        }
        believed.write_over(&mut vm);
        // An answer that was on its way when the power changed tells of the boot before.
        if vm.power != Power::On || believed.moves_power() && self.answers == 0 {
            forget_boot(&mut vm.guest);
        }
        Some(vm)
    }
}

impl Core {
    pub(super) fn new(identities: Arc<dyn ReadIdentity>) -> Self {
        Self {
            reading: Reading::new(identities),
            tables: Tables::default(),
            waits: Waits::default(),
            known: BTreeMap::new(),
            dropped: BTreeMap::new(),
            unlisted: BTreeSet::new(),
            alarms: Alarms::default(),
            reading_now: BTreeSet::new(),
            loading: None,
            loaded: false,
            generation: 0,
        }
    }

    /// Whether everything that the server shows has been taken over once.
    pub(super) fn is_loaded(&self) -> bool {
        self.loaded
    }

    /// A new stream begins: it says of everything that is there that it enters, but of nothing that it has left.
    pub(super) fn begin_load(&mut self) {
        self.loading = Some(BTreeSet::new());
        self.loaded = false;
        self.reading_now.clear();
    }

    pub(super) fn apply(
        &mut self,
        updates: &[Update],
        synced: bool,
        resynced: bool,
        now: Timestamp,
    ) {
        for update in updates {
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
        let base = match self.known.get_mut(id) {
            Some(known) => known.base.take(),
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
                known.shown(id)
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
            known.answers += 1;
            if !known.agrees() {
                self.alarms.set(&id, later(now, pause_after(known.reads)));
            } else if known.answers >= CAUGHT_UP {
                let base = known.base.take();
                self.known.remove(&id);
                self.show(&id, base);
                continue;
            }
            // The first answer lets what the guest reports be seen.
            let base = known.base.take();
            self.show(&id, base);
        }
    }

    fn learn(
        &mut self,
        id: &VmId,
        what: impl FnOnce(Option<What>, &Reading) -> What,
        now: Timestamp,
    ) {
        let (base, before) = match self.known.remove(id) {
            Some(known) => (known.base, Some(known.what)),
            None => (self.tables.vm(id).map(|vm| (**vm).clone()), None),
        };
        let what = what(before, &self.reading);
        self.known.insert(id.clone(), Known { base: None, what, answers: 0, reads: 0 });
        self.alarms.set(id, later(now, PATIENCE));
        self.show(id, base);
    }

    /// A change of ours has succeeded, or a VM of ours was made.
    pub(super) fn wrote(&mut self, id: &VmId, wrote: Wrote, now: Timestamp) {
        let moves_power = wrote.moves_power();
        self.learn(
            id,
            |before, reading| {
                What::Is(match before {
                    Some(What::Is(earlier)) => earlier.and_then(wrote, reading),
                    Some(What::Gone) | None => Believed::new(wrote, reading),
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
        self.learn(id, |_, _| What::Gone, now);
    }

    /// A VM was read by itself; `None` if it does not exist.
    pub(super) fn read(&mut self, id: &VmId, found: Option<&Properties>, now: Timestamp) {
        self.reading_now.remove(id);
        let Some(properties) = found else {
            self.forget(id);
            let reads = self.known.get(id).map_or(0, |known| known.reads);
            self.learn(id, |_, _| What::Gone, now);
            if let Some(known) = self.known.get_mut(id) {
                known.reads = reads + 1;
                self.alarms.put_off(id, later(now, pause_after(known.reads)));
            }
            return;
        };
        let before = self.tables.vm(id).cloned();
        let (vm, _) = self.reading.vm(id, properties, before.as_deref());
        self.dropped.remove(id);
        if let Some(known) = self.known.get_mut(id) {
            if known.base.is_none() {
                self.unlisted.insert(id.clone());
            }
            match &known.what {
                What::Is(believed) => {
                    known.what = What::Is(believed.corrected_by(&vm, &self.reading));
                    known.answers = 0;
                    known.reads += 1;
                }
                What::Gone => {
                    tracing::warn!(vm = %id, name = %vm.name, "{id} was destroyed and is still there");
                    self.known.remove(id);
                }
            }
        }
        self.show(id, Some(vm));
    }

    pub(super) fn read_failed(&mut self, id: &VmId, now: Timestamp) {
        self.reading_now.remove(id);
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
        due.retain(|id| self.is_doubtful(id) && self.reading_now.insert(id.clone()));
        due
    }

    fn is_doubtful(&self, id: &VmId) -> bool {
        let on = self.tables.vm(id).is_some_and(|vm| vm.power == Power::On);
        self.known.get(id).is_some_and(|known| !known.agrees())
            || on && self.dropped.contains_key(id)
            || self.unlisted.contains(id)
    }
}
