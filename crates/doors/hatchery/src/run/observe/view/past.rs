use std::sync::Arc;

use jiff::Timestamp;
use roost_fleet::{Basis, BasisRules, Freeze, Sighting, VmId};
use serde::Serialize;

/// What was asked of the vCenter in the last half hour.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct CallsPast {
    /// Oldest first.
    pub minutes: Vec<CallMinute>,
    /// The busiest first, since the start.
    pub methods: Vec<MethodCalls>,
    /// The last ones, oldest first.
    pub faults: Vec<Fault>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CallMinute {
    pub began: Timestamp,
    pub calls: u64,
    pub faults: u64,
    pub logins: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MethodCalls {
    pub method: &'static str,
    pub calls: u64,
    pub faults: u64,
    /// The median of the last ones; for the long poll, how long it waits.
    pub latency_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    pub at: Timestamp,
    pub method: &'static str,
    pub kind: &'static str,
}

/// How the deletion guard stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardState {
    pub frozen: Option<Freeze>,
    /// What each basis may, and how much of it the last minute took.
    pub budgets: Vec<(Basis, BasisRules, u64)>,
    pub candidates: Vec<Seen>,
}

/// A VM that should go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub vm: VmId,
    /// As far as it is known.
    pub name: Option<Arc<str>>,
    pub sighting: Sighting,
}
