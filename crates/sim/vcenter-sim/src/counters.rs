//! What has been asked of the server: for tests that hold a client to a budget of calls.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::clients::{Clients, Tally};
use crate::dispatch::Caller;
use crate::door::Vcenter;
use crate::world::World;

#[derive(Debug, Clone, Default)]
pub(crate) struct Counters {
    calls: BTreeMap<String, u64>,
    clients: Clients,
    faults: BTreeMap<String, u64>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub logins: u64,
    pub failed_logins: u64,
    pub panics: u64,
    /// Properties that were worked out for answers; what an update costs shows here.
    pub property_reads: u64,
}

impl Counters {
    pub(crate) fn called(&mut self, method: &str) {
        add_one(&mut self.calls, method);
    }

    /// A call of this client, with so many bytes.
    pub(crate) fn asked(&mut self, caller: &Caller, method: &str, bytes: usize) {
        let tally = self.clients.tally(caller, method);
        tally.calls += 1;
        tally.bytes_in += bytes as u64;
    }

    pub(crate) fn answered(&mut self, caller: &Caller, method: &str, bytes: usize) {
        self.clients.tally(caller, method).bytes_out += bytes as u64;
    }

    /// A call that has its answer: REST, which has no envelope to tell the two apart by.
    pub(crate) fn transferred(&mut self, caller: &Caller, method: &str, sent: u64, answered: u64) {
        self.bytes_in += sent;
        self.bytes_out += answered;
        let tally = self.clients.tally(caller, method);
        tally.calls += 1;
        tally.bytes_in += sent;
        tally.bytes_out += answered;
    }

    pub(crate) fn faulted(&mut self, class: &str) {
        add_one(&mut self.faults, class);
    }
}

fn add_one(counts: &mut BTreeMap<String, u64>, name: &str) {
    match counts.get_mut(name) {
        Some(count) => *count += 1,
        None => drop(counts.insert(name.into(), 1)),
    }
}

/// What the server has been asked since it was started or the counters were reset, and what is open now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct CounterReport {
    /// By method; transfers count as `PUT /folder` and the like.
    pub calls: BTreeMap<String, u64>,
    /// By client, as its user agent names it, and method.
    pub clients: BTreeMap<String, BTreeMap<String, Tally>>,
    /// Faults that calls were answered with, by class.
    pub faults: BTreeMap<String, u64>,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub logins: u64,
    pub failed_logins: u64,
    pub panics: u64,
    pub property_reads: u64,
    pub open_sessions: usize,
    pub open_collectors: usize,
    pub open_filters: usize,
    pub open_views: usize,
    pub open_event_collectors: usize,
}

impl CounterReport {
    pub fn calls_of(&self, method: &str) -> u64 {
        self.calls.get(method).copied().unwrap_or_default()
    }

    pub fn total_calls(&self) -> u64 {
        self.calls.values().sum()
    }
}

pub(crate) fn report(world: &World) -> CounterReport {
    let counters = world.counters.clone();
    CounterReport {
        calls: counters.calls,
        clients: counters.clients.into_report(),
        faults: counters.faults,
        bytes_in: counters.bytes_in,
        bytes_out: counters.bytes_out,
        logins: counters.logins,
        failed_logins: counters.failed_logins,
        panics: counters.panics,
        property_reads: counters.property_reads,
        open_sessions: world.sessions.count(),
        open_collectors: world.collectors.collector_count(),
        open_filters: world.collectors.filter_count(),
        open_views: world.views.count(),
        open_event_collectors: crate::model::open_collectors(world),
    }
}

impl Vcenter {
    pub fn counters(&self) -> CounterReport {
        self.handle.with(|world| report(world))
    }

    /// Starts counting anew; what is open stays open.
    pub fn reset_counters(&self) {
        self.handle.with(|world| world.counters = Counters::default());
    }
}
