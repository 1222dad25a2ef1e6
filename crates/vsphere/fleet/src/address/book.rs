use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use super::runs::FreeRuns;
use super::{AddressPlan, Network};
use crate::VmId;
use crate::time::later;

/// Who has which address of a plan. Used by VMs (one address may be seen on several), promised to a reservation, or resting
/// because whoever had it last may not be quite gone.
#[derive(Debug)]
pub(crate) struct AddressBook {
    plan: AddressPlan,
    free: FreeRuns,
    used: BTreeMap<u64, BTreeSet<VmId>>,
    promised: BTreeSet<u64>,
    /// By other books, which have the same address in their plans.
    promised_elsewhere: BTreeSet<u64>,
    resting: BTreeMap<u64, Timestamp>,
    /// The same, soonest first.
    rests: BTreeSet<(Timestamp, u64)>,
    /// When VMs are expected to go.
    ends: BTreeMap<VmId, Timestamp>,
    rest: Duration,
    /// Until something changes: a full plan is asked for a forecast by every request that waits.
    forecast: Option<Forecast>,
}

/// How many addresses are in which state; they add up to `total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct AddressCounts {
    pub total: u64,
    pub used: u64,
    pub promised: u64,
    pub resting: u64,
    pub free: u64,
}

/// When the next address is expected, as far as anything says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Forecast {
    pub next_free: Option<Timestamp>,
    pub by: ComesFreeBy,
    pub counts: AddressCounts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComesFreeBy {
    /// Its rest is over.
    Rest,
    /// The VM that has it has lived long enough by then.
    VmEnds,
    /// Nothing has an end that is known.
    Unknown,
}

impl Forecast {
    /// When the next one comes free, without the counts.
    pub fn outlook(&self) -> String {
        match (self.next_free, self.by) {
            (Some(at), ComesFreeBy::Rest) => format!("the next one has rested by {at:.0}"),
            (Some(at), _) => format!("the next one is expected by {at:.0}"),
            (None, _) => "nothing says when one comes free".to_owned(),
        }
    }
}

impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AddressCounts { total, used, promised, resting, .. } = self.counts;
        write!(f, "{used} of {total} used, {promised} promised, {resting} resting; ")?;
        f.write_str(&self.outlook())
    }
}

/// One address of a plan and how it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AddressCell {
    pub address: Ipv4Addr,
    pub state: AddressState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum AddressState {
    Free,
    /// By this VM, and perhaps by others too.
    Used(VmId),
    Promised,
    /// Not given out again until then.
    Resting(Timestamp),
}

impl AddressBook {
    /// `rest` is how long an address is left alone after the last VM that had it is gone.
    pub(crate) fn new(plan: AddressPlan, rest: Duration) -> Self {
        Self {
            free: FreeRuns::below(plan.total()),
            plan,
            used: BTreeMap::new(),
            promised: BTreeSet::new(),
            promised_elsewhere: BTreeSet::new(),
            resting: BTreeMap::new(),
            rests: BTreeSet::new(),
            ends: BTreeMap::new(),
            rest,
            forecast: None,
        }
    }

    fn number_of(&self, address: IpAddr) -> Option<u64> {
        match address {
            IpAddr::V4(address) => self.plan.number_of(address),
            IpAddr::V6(_) => None,
        }
    }

    /// The VM is seen with these addresses now.
    pub(crate) fn see(&mut self, vm: &VmId, before: &[IpAddr], after: &[IpAddr], now: Timestamp) {
        for address in after {
            let Some(number) = self.number_of(*address) else { continue };
            self.used.entry(number).or_default().insert(vm.clone());
            self.wake(number);
            self.free.take(number);
        }
        for address in before.iter().filter(|address| !after.contains(address)) {
            self.stop_using(vm, *address, now);
        }
        self.forecast = None;
    }

    /// When the VM is expected to go, as far as anybody knows.
    pub(crate) fn expect_end(&mut self, vm: &VmId, ends: Option<Timestamp>) {
        match ends {
            Some(ends) => drop(self.ends.insert(vm.clone(), ends)),
            None => drop(self.ends.remove(vm)),
        }
        self.forecast = None;
    }

    pub(crate) fn promised(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.promised.iter().filter_map(|number| self.plan.address_of(*number))
    }

    /// These were promised by other books, and none else.
    pub(crate) fn set_promised_elsewhere(&mut self, addresses: impl Iterator<Item = Ipv4Addr>) {
        let now: BTreeSet<u64> =
            addresses.filter_map(|address| self.plan.number_of(address)).collect();
        let before = std::mem::replace(&mut self.promised_elsewhere, now);
        let changed: Vec<u64> =
            before.symmetric_difference(&self.promised_elsewhere).copied().collect();
        for number in changed {
            self.settle(number);
        }
    }

    fn stop_using(&mut self, vm: &VmId, address: IpAddr, now: Timestamp) {
        let Some(number) = self.number_of(address) else { return };
        let Some(users) = self.used.get_mut(&number) else { return };
        users.remove(vm);
        if users.is_empty() {
            self.used.remove(&number);
            let until = later(now, self.rest);
            self.resting.insert(number, until);
            self.rests.insert((until, number));
            self.settle(number);
        }
    }

    /// The first free address in the order of the configuration.
    pub(crate) fn promise(&mut self) -> Option<(Ipv4Addr, &std::sync::Arc<Network>)> {
        let number = self.free.first()?;
        self.forecast = None;
        self.promised.insert(number);
        self.free.take(number);
        let address = self.plan.address_of(number)?;
        Some((address, self.plan.network_of(address)?))
    }

    pub(crate) fn unpromise(&mut self, address: Ipv4Addr) {
        if let Some(number) = self.plan.number_of(address) {
            self.promised.remove(&number);
            self.settle(number);
        }
    }

    pub(crate) fn expire(&mut self, now: Timestamp) {
        while let Some((_, number)) = self.rests.first().filter(|(until, _)| *until <= now).copied()
        {
            self.wake(number);
            self.settle(number);
        }
    }

    /// The clock was set back: nothing rests for longer than an address does.
    pub(crate) fn set_back(&mut self, now: Timestamp) {
        let most = later(now, self.rest);
        for until in self.resting.values_mut() {
            *until = (*until).min(most);
        }
        self.rests = self.resting.iter().map(|(number, until)| (*until, *number)).collect();
        self.forecast = None;
    }

    fn wake(&mut self, number: u64) {
        if let Some(until) = self.resting.remove(&number) {
            self.rests.remove(&(until, number));
        }
    }

    fn settle(&mut self, number: u64) {
        self.forecast = None;
        if self.used.contains_key(&number)
            || self.promised.contains(&number)
            || self.promised_elsewhere.contains(&number)
            || self.resting.contains_key(&number)
        {
            self.free.take(number);
        } else {
            self.free.give(number);
        }
    }

    pub(crate) fn counts(&self) -> AddressCounts {
        let (total, free) = (self.plan.total(), self.free.count());
        // A promised address becomes used before its promise ends; it counts once, as used.
        let promised = self.promised.union(&self.promised_elsewhere);
        let promised = promised.filter(|at| !self.used.contains_key(at)).count() as u64;
        let used = self.used.len() as u64;
        AddressCounts { total, used, promised, resting: total - free - used - promised, free }
    }

    /// The first `most` addresses in the order of the configuration. They add up to [`counts`](Self::counts) if that is all of them.
    pub(crate) fn cells(&self, most: u64) -> Vec<AddressCell> {
        let state = |number: u64| {
            let user = self.used.get(&number).and_then(|users| users.first());
            match (user, self.resting.get(&number)) {
                (Some(vm), _) => AddressState::Used(vm.clone()),
                (None, _)
                    if self.promised.contains(&number)
                        || self.promised_elsewhere.contains(&number) =>
                {
                    AddressState::Promised
                }
                (None, Some(until)) => AddressState::Resting(*until),
                (None, None) => AddressState::Free,
            }
        };
        let numbers = 0..self.plan.total().min(most);
        numbers
            .filter_map(|number| {
                let address = self.plan.address_of(number)?;
                Some(AddressCell { address, state: state(number) })
            })
            .collect()
    }

    pub(crate) fn forecast(&mut self) -> Forecast {
        if let Some(known) = self.forecast {
            return known;
        }
        let rested = self.rests.first().map(|(until, _)| *until);
        let ended = self
            .used
            .values()
            // An address is free when all that have it are gone.
            .filter_map(|users| {
                users.iter().map(|vm| self.ends.get(vm)).collect::<Option<Vec<_>>>()
            })
            .filter_map(|ends| ends.into_iter().max().copied())
            .min()
            .map(|ends| later(ends, self.rest));
        let (next_free, by) = match (rested, ended) {
            (Some(rested), Some(ended)) if ended < rested => (Some(ended), ComesFreeBy::VmEnds),
            (Some(rested), _) => (Some(rested), ComesFreeBy::Rest),
            (None, Some(ended)) => (Some(ended), ComesFreeBy::VmEnds),
            (None, None) => (None, ComesFreeBy::Unknown),
        };
        *self.forecast.insert(Forecast { next_free, by, counts: self.counts() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_rests_for_longer_than_usual_after_the_clock_was_set_back() {
        let plan = AddressPlan::of_range("10.0.0.0/29".parse().unwrap()).unwrap();
        let mut book = AddressBook::new(plan, Duration::from_mins(1));
        let (at, vm) =
            (|mins| later(Timestamp::UNIX_EPOCH, Duration::from_mins(mins)), VmId::new("vm-1"));
        let address: IpAddr = book.cells(1)[0].address.into();
        book.see(&vm, &[], &[address], at(120));
        book.see(&vm, &[address], &[], at(120));
        book.set_back(at(60));
        book.expire(at(60));
        assert_eq!(book.cells(1)[0].state, AddressState::Resting(at(61)));
        book.expire(at(61));
        assert_eq!(book.cells(1)[0].state, AddressState::Free);
    }

    #[test]
    fn every_address_is_shown_with_how_it_stands() {
        let plan = AddressPlan::of_range("10.0.0.0/29".parse().unwrap()).unwrap();
        let mut book = AddressBook::new(plan, Duration::from_mins(1));
        let (now, vm) = (Timestamp::UNIX_EPOCH, VmId::new("vm-1"));
        let all: Vec<_> = book.cells(100).into_iter().map(|cell| cell.address).collect();
        book.see(&vm, &[], &[all[0].into(), all[1].into()], now);
        book.see(&vm, &[all[0].into(), all[1].into()], &[all[0].into()], now);
        book.promise().unwrap();
        let states: Vec<_> = book.cells(4).into_iter().map(|cell| cell.state).collect();
        let rests = AddressState::Resting(later(now, Duration::from_mins(1)));
        let used = AddressState::Used(vm);
        assert_eq!(states, [used, rests, AddressState::Promised, AddressState::Free]);
        assert_eq!(book.cells(100).len() as u64, book.counts().total);
    }
}
