//! What is promised on top of what is there, so that two requests never both get the last of anything.

mod amounts;
mod ask;
mod book;
mod limits;
mod reservation;
mod weigh;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::Notify;

use self::book::{Book, Entry};
use self::reservation::{Outbox, ReservationId};
use self::weigh::{Weighed, weigh};
use crate::address::{AddressBook, AddressCell, AddressCounts};
use crate::{AddressPlan, Forecast, Gate, PoolId, Snapshot, Vm, VmChange, VmId};

pub use self::amounts::Amounts;
pub use self::ask::{AddressGrant, AddressNeed, Ask, Holding, LedgerGate, Machine, Refusal};
pub use self::limits::{Holds, Limits, PoolRoom, Reserve};
pub use self::reservation::Reservation;

/// The sum of what VMs take and what reservations were promised, and the limits of it. It has one owner and does no I/O:
/// whoever plans owns it, feeds it what the mirror shows, and asks it.
#[derive(Debug)]
pub struct Ledger {
    limits: Limits,
    book: Book,
    outbox: Arc<Outbox>,
    last_id: u64,
    /// What was fed last, so that the next feeding looks at changes only.
    shown: Option<Snapshot>,
}

/// What is taken, for people and gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct LedgerUse {
    pub by_vms: Amounts,
    /// On top of it, by reservations whose VM does not take it yet.
    pub promised: Amounts,
    pub reservations: usize,
    pub addresses: AddressCounts,
}

impl Ledger {
    pub fn new(limits: Limits, addresses: AddressPlan, holds: Holds) -> Self {
        Self {
            limits,
            book: Book::new(AddressBook::new(addresses, holds.quarantine), holds.safety),
            outbox: Arc::default(),
            last_id: 0,
            shown: None,
        }
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What is taken beyond a new limit stays taken; nothing more is given.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    pub fn addresses(&self) -> &AddressPlan {
        self.book.addresses.plan()
    }

    /// Takes over what the mirror shows: the VMs that changed since the last time, by what `hold` says each takes, and what
    /// the resource pools have left.
    pub fn observe(&mut self, snapshot: &Snapshot, now: Timestamp, hold: impl Fn(&Vm) -> Holding) {
        self.catch_up(now);
        let unseen = Snapshot::default();
        let shown = self.shown.take();
        for change in snapshot.since(shown.as_ref().unwrap_or(&unseen)) {
            match change {
                VmChange::Shown(vm) => self.book.see(&vm.id, &vm.name, hold(vm), now),
                VmChange::Gone(id) => self.book.vanish(id, now),
            }
        }
        let gone: Vec<PoolId> =
            self.book.known_pools().filter(|id| snapshot.pool(id).is_none()).cloned().collect();
        for id in &gone {
            self.book.set_pool(id, None);
        }
        for pool in snapshot.pools() {
            self.book.set_pool(&pool.id, pool.room());
        }
        self.shown = Some(snapshot.clone());
    }

    /// Takes over one VM. For when what a VM takes depends on more than the VM: a worker that has registered is no longer
    /// pending, though nothing about its VM has changed.
    pub fn see(&mut self, vm: &VmId, name: &str, holding: Holding, now: Timestamp) {
        self.catch_up(now);
        self.book.see(vm, name, holding, now);
    }

    pub fn vanish(&mut self, vm: &VmId, now: Timestamp) {
        self.catch_up(now);
        self.book.vanish(vm, now);
    }

    /// `None` when it cannot be read; the gates of this pool then pass and say so.
    pub fn set_pool(&mut self, pool: &PoolId, room: Option<PoolRoom>) {
        self.book.set_pool(pool, room);
    }

    /// How a request would come out, without reserving anything.
    pub fn weigh(&mut self, ask: &Ask, now: Timestamp) -> Vec<Gate> {
        self.catch_up(now);
        weigh(ask, &self.book, &self.limits).gates
    }

    /// Everything that the request needs, or nothing and all the reasons.
    pub fn reserve(&mut self, ask: Ask, now: Timestamp) -> Result<Reservation, Refusal> {
        self.catch_up(now);
        let Weighed { mut gates, bound_by, spare, needs_address } =
            weigh(&ask, &self.book, &self.limits);
        if let Some(bound_by) = bound_by {
            let forecast = self.explain_addresses(&mut gates, bound_by);
            return Err(Refusal { request: ask.request, gates, bound_by, forecast });
        }
        let address = needs_address
            .then(|| self.book.addresses.promise())
            .flatten()
            .map(|(address, network)| AddressGrant { address, network: Arc::clone(network) });
        self.last_id += 1;
        let id = ReservationId(self.last_id);
        let mut entry = Entry::new(Arc::clone(&ask.request), ask.amounts);
        entry.name = ask.name;
        entry.pool = ask.pool;
        entry.vm.clone_from(&spare);
        entry.address = address.as_ref().map(|grant| grant.address);
        self.book.add(id, entry, now);
        let outbox = Arc::clone(&self.outbox);
        Ok(Reservation::new(id, ask.request, ask.amounts, spare, address, gates, outbox))
    }

    fn explain_addresses(&mut self, gates: &mut [Gate], bound_by: LedgerGate) -> Option<Forecast> {
        let gate =
            gates.iter_mut().find(|g| g.name == LedgerGate::Address.as_str() && !g.passed)?;
        let forecast = self.book.addresses.forecast();
        gate.note = Some(forecast.to_string().into());
        (bound_by == LedgerGate::Address).then_some(forecast)
    }

    /// When the next address is expected to be free.
    pub fn forecast(&mut self, now: Timestamp) -> Forecast {
        self.catch_up(now);
        self.book.addresses.forecast()
    }

    /// How the first `most` addresses stand, in the order of the configuration.
    pub fn address_cells(&mut self, most: u64, now: Timestamp) -> Vec<AddressCell> {
        self.catch_up(now);
        self.book.addresses.cells(most)
    }

    /// Whether a reservation has this VM: it is being claimed or made and is no excess.
    pub fn is_promised(&mut self, vm: &VmId, now: Timestamp) -> bool {
        self.catch_up(now);
        self.book.is_promised(vm)
    }

    /// Whether the request has a machine, seen or promised.
    pub fn has_machine(&mut self, request: &str, now: Timestamp) -> bool {
        self.catch_up(now);
        self.book.machines_of(request) > 0
    }

    /// Rings when a holder has said something: it may have given back what another request waits for.
    pub fn news(&self) -> Arc<Notify> {
        self.outbox.news()
    }

    pub fn taken(&mut self, now: Timestamp) -> LedgerUse {
        self.catch_up(now);
        LedgerUse {
            by_vms: self.book.taken_by_vms(),
            promised: self.book.promised(),
            reservations: self.book.reservations(),
            addresses: self.book.addresses.counts(),
        }
    }

    fn catch_up(&mut self, now: Timestamp) {
        for (id, note) in self.outbox.drain() {
            self.book.hear(id, note, now);
        }
        self.book.expire(now);
    }
}
