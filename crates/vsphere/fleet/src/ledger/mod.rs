//! What is promised on top of what is there, so that two requests never both get the last of anything.

mod amounts;
mod ask;
mod book;
mod limits;
mod quota;
mod reservation;
mod weigh;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use tokio::sync::Notify;

use self::book::{Book, Entry};
use self::reservation::{Outbox, ReservationId};
use self::weigh::{Weighed, weigh};
use crate::address::{AddressBook, AddressCell, AddressCounts};
use crate::{
    AddressPlan, DoorName, Forecast, Gate, PoolId, RequestId, Snapshot, Vm, VmChange, VmId,
};

pub use self::amounts::Amounts;
pub use self::ask::{AddressGrant, AddressNeed, Ask, Holding, LedgerGate, Machine, Refusal};
pub use self::limits::{LedgerTimes, Limits, PoolRoom, Reserve};
pub use self::quota::{Counts, Quota};
pub use self::reservation::Reservation;

/// The sum of what VMs take and what reservations were promised, and the limits of it. Every door has an account with limits
/// and addresses of its own; an address, a VM and the room of a resource pool are given once, whichever door asks. It does no
/// I/O: whoever plans feeds it what the mirror shows, and asks it.
#[derive(Debug, Default)]
pub struct Ledger {
    times: LedgerTimes,
    accounts: BTreeMap<DoorName, Account>,
    /// The addresses of every VM that has any.
    addresses: BTreeMap<VmId, Vec<IpAddr>>,
    outbox: Arc<Outbox>,
    last_number: u64,
    /// What was fed last, so that the next feeding looks at changes only.
    shown: Snapshot,
}

/// What a door may take, and takes.
#[derive(Debug)]
struct Account {
    limits: Limits,
    book: Book,
    /// What this door looked at last.
    shown: Snapshot,
}

/// What a door has taken, for people and gauges.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct LedgerUse {
    pub by_vms: Amounts,
    /// On top of it, by reservations whose VM does not take it yet.
    pub promised: Amounts,
    pub reservations: usize,
    pub addresses: AddressCounts,
}

impl Ledger {
    pub fn new(times: LedgerTimes) -> Self {
        Self { times, ..Self::default() }
    }

    /// Opens a door's account, or gives it other limits and addresses. A door without an account gets nothing.
    #[must_use]
    pub fn with_account(mut self, door: DoorName, limits: Limits, addresses: AddressPlan) -> Self {
        self.open_account(door, limits, addresses);
        self
    }

    pub fn open_account(&mut self, door: DoorName, limits: Limits, addresses: AddressPlan) {
        let mut addresses = AddressBook::new(addresses, self.times.quarantine);
        for (vm, has) in &self.addresses {
            addresses.see(vm, &[], has, Timestamp::MIN);
        }
        let book = Book::new(addresses, self.times.safety);
        self.accounts.insert(door, Account { limits, book, shown: Snapshot::default() });
    }

    pub fn limits(&self, door: DoorName) -> Option<&Limits> {
        self.accounts.get(&door).map(|account| &account.limits)
    }

    /// What is taken beyond a new limit stays taken; nothing more is given.
    pub fn set_limits(&mut self, door: DoorName, limits: Limits) {
        if let Some(account) = self.accounts.get_mut(&door) {
            account.limits = limits;
        }
    }

    /// Takes over what the mirror shows: the VMs that changed since this door last looked, by what `hold` says each takes of
    /// its account, the addresses of all VMs, and what the resource pools have left.
    pub fn observe(
        &mut self,
        door: DoorName,
        snapshot: &Snapshot,
        now: Timestamp,
        hold: impl Fn(&Vm) -> Holding,
    ) {
        self.catch_up(now);
        self.see_inventory(snapshot, now);
        let Some(account) = self.accounts.get_mut(&door) else { return };
        if snapshot.generation() < account.shown.generation() {
            return;
        }
        for change in snapshot.since(&account.shown) {
            match change {
                VmChange::Shown(vm) => account.book.see(&vm.id, &vm.name, hold(vm), now),
                VmChange::Gone(id) => account.book.vanish(id, now),
            }
        }
        account.shown = snapshot.clone();
    }

    /// What concerns all doors. Whichever looks first brings it for the others too.
    fn see_inventory(&mut self, snapshot: &Snapshot, now: Timestamp) {
        if snapshot.generation() < self.shown.generation() {
            return;
        }
        let shown = std::mem::replace(&mut self.shown, snapshot.clone());
        for change in snapshot.since(&shown) {
            match change {
                VmChange::Shown(vm) => self.see_addresses(&vm.id, vm.addresses(), now),
                VmChange::Gone(id) => self.see_addresses(id, Vec::new(), now),
            }
        }
        for account in self.accounts.values_mut() {
            let known = account.book.known_pools();
            let gone: Vec<PoolId> =
                known.filter(|id| snapshot.pool(id).is_none()).cloned().collect();
            for id in &gone {
                account.book.set_pool(id, None);
            }
            for pool in snapshot.pools() {
                account.book.set_pool(&pool.id, pool.room());
            }
        }
    }

    /// The VM has these addresses now, whoever's it is.
    pub fn see_addresses(&mut self, vm: &VmId, has: Vec<IpAddr>, now: Timestamp) {
        let had = self.addresses.remove(vm).unwrap_or_default();
        if had != has {
            for account in self.accounts.values_mut() {
                account.book.addresses.see(vm, &had, &has, now);
            }
        }
        if !has.is_empty() {
            self.addresses.insert(vm.clone(), has);
        }
    }

    /// Takes over one VM. For when what a VM takes depends on more than the VM: what was on its way has arrived, though nothing
    /// about its VM has changed.
    pub fn see(&mut self, door: DoorName, vm: &VmId, name: &str, holding: Holding, now: Timestamp) {
        self.catch_up(now);
        if let Some(account) = self.accounts.get_mut(&door) {
            account.book.see(vm, name, holding, now);
        }
    }

    pub fn vanish(&mut self, door: DoorName, vm: &VmId, now: Timestamp) {
        self.catch_up(now);
        if let Some(account) = self.accounts.get_mut(&door) {
            account.book.vanish(vm, now);
        }
    }

    /// `None` when it cannot be read; the gates of this pool then pass and say so.
    pub fn set_pool(&mut self, pool: &PoolId, room: Option<PoolRoom>) {
        for account in self.accounts.values_mut() {
            account.book.set_pool(pool, room);
        }
    }

    /// How a request would come out, without reserving anything.
    pub fn weigh(&mut self, ask: &Ask, now: Timestamp) -> Vec<Gate> {
        self.catch_up(now);
        self.weigh_now(ask).map(|weighed| weighed.gates).unwrap_or_default()
    }

    fn weigh_now(&mut self, ask: &Ask) -> Option<Weighed> {
        let door = ask.request.door;
        let others = || self.accounts.iter().filter(|(other, _)| **other != door);
        let elsewhere = match &ask.pool {
            Some(pool) => others().fold(Amounts::default(), |sum, (_, account)| {
                sum.plus(&Amounts { counts: Counts::default(), ..account.book.pool(pool).1 })
            }),
            None => Amounts::default(),
        };
        let promised: Vec<_> =
            others().flat_map(|(_, account)| account.book.addresses.promised()).collect();
        let account = self.accounts.get_mut(&door)?;
        account.book.addresses.set_promised_elsewhere(promised.into_iter());
        Some(weigh(ask, &account.book, &account.limits, &elsewhere))
    }

    /// Everything that the request needs, or nothing and all the reasons.
    pub fn reserve(&mut self, ask: Ask, now: Timestamp) -> Result<Reservation, Refusal> {
        self.catch_up(now);
        let door = ask.request.door;
        let weighed = self.weigh_now(&ask);
        let (Some(account), Some(weighed)) = (self.accounts.get_mut(&door), weighed) else {
            let bound_by = LedgerGate::Request;
            let gate = Gate::plain(bound_by.as_str(), false).noting("its door has no account");
            let gates = vec![gate];
            return Err(Refusal { request: ask.request, gates, bound_by, forecast: None });
        };
        let Weighed { mut gates, bound_by, spare, needs_address } = weighed;
        if let Some(bound_by) = bound_by {
            let forecast = account.explain_addresses(&mut gates, bound_by);
            return Err(Refusal { request: ask.request, gates, bound_by, forecast });
        }
        let address = needs_address
            .then(|| account.book.addresses.promise())
            .flatten()
            .map(|(address, network)| AddressGrant { address, network: Arc::clone(network) });
        self.last_number += 1;
        let id = ReservationId { door, number: self.last_number };
        let mut entry = Entry::new(Arc::clone(&ask.request.id), ask.amounts.clone());
        entry.name = ask.name;
        entry.pool = ask.pool;
        entry.vm.clone_from(&spare);
        entry.address = address.as_ref().map(|grant| grant.address);
        account.book.add(id, entry, now);
        let outbox = Arc::clone(&self.outbox);
        Ok(Reservation::new(id, ask.request, ask.amounts, spare, address, gates, outbox))
    }

    /// When the next address of a door is expected to be free.
    pub fn forecast(&mut self, door: DoorName, now: Timestamp) -> Option<Forecast> {
        self.catch_up(now);
        self.accounts.get_mut(&door).map(|account| account.book.addresses.forecast())
    }

    /// How the first `most` addresses of a door stand, in the order of its configuration.
    pub fn address_cells(&mut self, door: DoorName, most: u64, now: Timestamp) -> Vec<AddressCell> {
        self.catch_up(now);
        let account = self.accounts.get(&door);
        account.map(|account| account.book.addresses.cells(most)).unwrap_or_default()
    }

    /// Whether a reservation has this VM: it is being claimed or made and is no excess.
    pub fn is_promised(&mut self, vm: &VmId, now: Timestamp) -> bool {
        self.catch_up(now);
        self.accounts.values().any(|account| account.book.is_promised(vm))
    }

    /// Whether the request has a machine, seen or promised.
    pub fn has_machine(&mut self, request: &RequestId, now: Timestamp) -> bool {
        self.catch_up(now);
        let account = self.accounts.get(&request.door);
        account.is_some_and(|account| account.book.machines_of(&request.id) > 0)
    }

    /// Rings for this door when a holder has said something: it may have given back what a request waits for.
    pub fn news(&self, door: DoorName) -> Arc<Notify> {
        self.outbox.news(door)
    }

    pub fn taken(&mut self, door: DoorName, now: Timestamp) -> LedgerUse {
        self.catch_up(now);
        let Some(Account { book, .. }) = self.accounts.get(&door) else {
            return LedgerUse::default();
        };
        LedgerUse {
            by_vms: book.taken_by_vms().clone(),
            promised: book.promised().clone(),
            reservations: book.reservations(),
            addresses: book.addresses.counts(),
        }
    }

    fn catch_up(&mut self, now: Timestamp) {
        for (id, note) in self.outbox.drain() {
            if let Some(account) = self.accounts.get_mut(&id.door) {
                account.book.hear(id, note, now);
            }
        }
        for account in self.accounts.values_mut() {
            account.book.expire(now);
        }
    }
}

impl Account {
    fn explain_addresses(
        &mut self,
        gates: &mut [Gate],
        bound_by: LedgerGate,
    ) -> Option<Box<Forecast>> {
        let gate =
            gates.iter_mut().find(|g| g.name == LedgerGate::Address.as_str() && !g.passed)?;
        let forecast = self.book.addresses.forecast();
        gate.note = Some(forecast.to_string().into());
        (bound_by == LedgerGate::Address).then(|| Box::new(forecast))
    }
}
