//! What a door was promised and what is seen of it, and their sum without counting anything twice.
//!
//! A reservation and the VM that it becomes are one machine. While both are known, the VM counts for what it takes and the
//! reservation for what the VM does not take yet, each amount by itself; so the sum does not move when a promise turns
//! into a VM, whatever comes first: the name, the id, the power, the end of the reservation.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::reservation::{Note, ReservationId};
use super::{Amounts, Holding, PoolRoom};
use crate::address::AddressBook;
use crate::time::later;
use crate::{PoolId, VmId};

/// How long a pool's own account may lag behind a VM that we see running.
const POOL_LAG: Duration = Duration::from_mins(1);

#[derive(Debug)]
pub(super) struct Book {
    pub(super) addresses: AddressBook,
    safety: Duration,
    entries: BTreeMap<ReservationId, Entry>,
    by_vm: BTreeMap<VmId, ReservationId>,
    by_name: BTreeMap<Arc<str>, ReservationId>,
    by_request: BTreeMap<Arc<str>, ReservationId>,
    seen: BTreeMap<VmId, Holding>,
    /// How many VMs serve a request.
    served: BTreeMap<Arc<str>, u64>,
    pools: BTreeMap<PoolId, Pool>,
    taken_by_vms: Amounts,
    promised: Amounts,
    /// The soonest end of a tail, or sooner.
    next_end: Option<Timestamp>,
    /// The time of the last look for what has ended.
    looked: Option<Timestamp>,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) request: Arc<str>,
    pub(super) name: Option<Arc<str>>,
    pub(super) vm: Option<VmId>,
    pub(super) amounts: Amounts,
    pub(super) pool: Option<PoolId>,
    pub(super) address: Option<Ipv4Addr>,
    /// What its VM does not take yet.
    uncovered: Amounts,
    stage: Stage,
    /// Its VM has been seen to take all that was promised.
    stood: bool,
}

#[derive(Debug, Clone, Copy)]
enum Stage {
    Held {
        submitted: bool,
    },
    /// Nobody holds it any more, but a VM of it may be on its way.
    Tail {
        until: Timestamp,
    },
}

#[derive(Debug, Default)]
struct Pool {
    room: Option<PoolRoom>,
    /// Promises that run in it, as far as no VM takes them.
    promised: Amounts,
    /// VMs that have just begun to take, which the pool's own account may not show yet.
    fresh: Vec<(Timestamp, Amounts)>,
}

impl Entry {
    pub(super) fn new(request: Arc<str>, amounts: Amounts) -> Self {
        Self {
            request,
            name: None,
            vm: None,
            amounts,
            pool: None,
            address: None,
            uncovered: Amounts::default(),
            stage: Stage::Held { submitted: false },
            stood: false,
        }
    }
}

impl Book {
    pub(super) fn new(addresses: AddressBook, safety: Duration) -> Self {
        Self {
            addresses,
            safety,
            entries: BTreeMap::new(),
            by_vm: BTreeMap::new(),
            by_name: BTreeMap::new(),
            by_request: BTreeMap::new(),
            seen: BTreeMap::new(),
            served: BTreeMap::new(),
            pools: BTreeMap::new(),
            taken_by_vms: Amounts::default(),
            promised: Amounts::default(),
            next_end: None,
            looked: None,
        }
    }

    pub(super) fn taken_by_vms(&self) -> &Amounts {
        &self.taken_by_vms
    }

    pub(super) fn promised(&self) -> &Amounts {
        &self.promised
    }

    pub(super) fn reservations(&self) -> usize {
        self.entries.len()
    }

    /// How many machines the request has, promised or seen.
    pub(super) fn machines_of(&self, request: &str) -> u64 {
        let served = self.served.get(request).copied().unwrap_or_default();
        // A reservation whose VM already says whom it serves is that VM.
        let promised = self.by_request.get(request).is_some_and(|id| {
            let vm = self.entries[id].vm.as_ref().and_then(|vm| self.seen.get(vm));
            vm.is_none_or(|holding| holding.request.as_deref() != Some(request))
        });
        served + u64::from(promised)
    }

    pub(super) fn is_promised(&self, vm: &VmId) -> bool {
        self.by_vm.contains_key(vm)
    }

    /// The room of a pool and what of it is spoken for.
    pub(super) fn pool(&self, id: &PoolId) -> (Option<PoolRoom>, Amounts) {
        self.pools.get(id).map_or((None, Amounts::default()), |pool| {
            let fresh = pool.fresh.iter().fold(Amounts::default(), |sum, (_, each)| sum.plus(each));
            (pool.room, pool.promised.plus(&fresh))
        })
    }

    pub(super) fn set_pool(&mut self, id: &PoolId, room: Option<PoolRoom>) {
        let pool = self.pools.entry(id.clone()).or_default();
        if pool.room != room {
            pool.fresh.clear();
            pool.room = room;
        }
    }

    pub(super) fn known_pools(&self) -> impl Iterator<Item = &PoolId> {
        self.pools.iter().filter(|(_, pool)| pool.room.is_some()).map(|(id, _)| id)
    }

    pub(super) fn see(&mut self, vm: &VmId, name: &str, holding: Holding, now: Timestamp) {
        let before = self.seen.remove(vm).unwrap_or_default();
        self.taken_by_vms = self.taken_by_vms.beyond(&before.amounts).plus(&holding.amounts);
        self.addresses.expect_end(vm, holding.ends);
        if before.request != holding.request {
            self.stop_serving(before.request.as_ref());
            if let Some(request) = &holding.request {
                *self.served.entry(Arc::clone(request)).or_default() += 1;
            }
        }
        let own = holding.own;
        self.seen.insert(vm.clone(), holding);
        let entry = self.by_vm.get(vm).copied().or_else(|| {
            let id = *self.by_name.get(name).filter(|_| own)?;
            self.entries[&id].vm.is_none().then_some(id)
        });
        if let Some(id) = entry {
            self.bind(id, vm, now);
        }
    }

    pub(super) fn vanish(&mut self, vm: &VmId, now: Timestamp) {
        let Some(gone) = self.seen.remove(vm) else { return };
        self.taken_by_vms = self.taken_by_vms.beyond(&gone.amounts);
        self.addresses.expect_end(vm, None);
        self.stop_serving(gone.request.as_ref());
        if let Some(id) = self.by_vm.get(vm).copied() {
            match self.entries[&id].stage {
                Stage::Held { .. } => self.cover(id, now),
                Stage::Tail { .. } => self.remove(id),
            }
        }
    }

    fn stop_serving(&mut self, request: Option<&Arc<str>>) {
        if let Some(request) = request
            && let Some(count) = self.served.get_mut(request)
        {
            *count -= 1;
            if *count == 0 {
                self.served.remove(request);
            }
        }
    }

    pub(super) fn add(&mut self, id: ReservationId, entry: Entry, now: Timestamp) {
        self.by_request.insert(Arc::clone(&entry.request), id);
        if let Some(name) = &entry.name {
            self.by_name.insert(Arc::clone(name), id);
        }
        let vm = entry.vm.clone();
        self.entries.insert(id, entry);
        match vm {
            Some(vm) => self.bind(id, &vm, now),
            None => self.cover(id, now),
        }
    }

    fn bind(&mut self, id: ReservationId, vm: &VmId, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.vm = Some(vm.clone());
            self.by_vm.insert(vm.clone(), id);
            self.cover(id, now);
        }
    }

    /// Takes over what the VM of a reservation takes by now.
    fn cover(&mut self, id: ReservationId, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let holding = entry.vm.as_ref().and_then(|vm| self.seen.get(vm));
        let taken = holding.map(|holding| holding.amounts.clone()).unwrap_or_default();
        let uncovered = entry.amounts.beyond(&taken);
        let covered = entry.uncovered.beyond(&uncovered);
        self.promised = self.promised.beyond(&entry.uncovered).plus(&uncovered);
        if let Some(pool) = &entry.pool {
            let pool = self.pools.entry(pool.clone()).or_default();
            pool.promised = pool.promised.beyond(&entry.uncovered).plus(&uncovered);
            if covered.cpus > 0 || covered.memory_mb > 0 {
                pool.fresh.push((later(now, POOL_LAG), covered));
            }
        }
        entry.uncovered = uncovered;
        entry.stood |= holding.is_some() && taken.stands_for(&entry.amounts);
        if entry.stood && matches!(entry.stage, Stage::Tail { .. }) {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: ReservationId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.promised = self.promised.beyond(&entry.uncovered);
        if let Some(pool) = entry.pool.as_ref().and_then(|pool| self.pools.get_mut(pool)) {
            pool.promised = pool.promised.beyond(&entry.uncovered);
        }
        if let Some(address) = entry.address {
            self.addresses.unpromise(address);
        }
        if let Some(vm) = entry.vm.filter(|vm| self.by_vm.get(vm) == Some(&id)) {
            self.by_vm.remove(&vm);
        }
        if let Some(name) = entry.name.filter(|name| self.by_name.get(name) == Some(&id)) {
            self.by_name.remove(&name);
        }
        if self.by_request.get(&entry.request) == Some(&id) {
            self.by_request.remove(&entry.request);
        }
    }

    pub(super) fn hear(&mut self, id: ReservationId, note: Note, now: Timestamp) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        match (note, entry.stage) {
            (Note::Submitted { name }, _) => {
                entry.stage = Stage::Held { submitted: true };
                if let Some(name) = name {
                    if let Some(old) = entry.name.replace(Arc::clone(&name)) {
                        self.by_name.remove(&old);
                    }
                    self.by_name.insert(name, id);
                }
            }
            (Note::Bound(vm), _) => {
                if let Some(other) = entry.vm.take().filter(|vm| self.by_vm.get(vm) == Some(&id)) {
                    self.by_vm.remove(&other);
                }
                self.bind(id, &vm, now);
            }
            (Note::Released, _) | (Note::Dropped, Stage::Held { submitted: false }) => {
                self.remove(id);
            }
            (Note::Committed | Note::Dropped, _) if entry.stood => self.remove(id),
            (Note::Committed | Note::Dropped, _) => {
                let until = later(now, self.safety);
                entry.stage = Stage::Tail { until };
                self.next_end = Some(self.next_end.map_or(until, |end| end.min(until)));
            }
        }
    }

    /// Ends what is only counted for a while.
    pub(super) fn expire(&mut self, now: Timestamp) {
        if self.looked.replace(now).is_some_and(|before| now < before) {
            self.set_back(now);
        }
        self.addresses.expire(now);
        for pool in self.pools.values_mut() {
            pool.fresh.retain(|(until, _)| *until > now);
        }
        if self.next_end.is_none_or(|end| end > now) {
            return;
        }
        let tails = self.entries.iter().filter_map(|(id, entry)| match entry.stage {
            Stage::Tail { until } => Some((*id, until)),
            Stage::Held { .. } => None,
        });
        let (over, left): (Vec<_>, Vec<_>) = tails.partition(|(_, until)| *until <= now);
        for (id, _) in over {
            self.remove(id);
        }
        self.next_end = left.into_iter().map(|(_, until)| until).min();
    }

    /// The clock was set back: what it would only now end in an hour has no more than its usual time left.
    fn set_back(&mut self, now: Timestamp) {
        self.addresses.set_back(now);
        let (fresh_until, tail_until) = (later(now, POOL_LAG), later(now, self.safety));
        for pool in self.pools.values_mut() {
            for (until, _) in &mut pool.fresh {
                *until = (*until).min(fresh_until);
            }
        }
        for entry in self.entries.values_mut() {
            if let Stage::Tail { until } = &mut entry.stage {
                *until = (*until).min(tail_until);
            }
        }
        self.next_end = self.next_end.map(|end| end.min(tail_until));
    }
}
