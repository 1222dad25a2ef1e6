use std::sync::Arc;

use jiff::Timestamp;
use roost_fleet::{Forecast, Freeze, Limit};
use serde::Serialize;

use super::Stage;

/// How many jobs stand how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Queue {
    pub waiting: u64,
    /// Since the oldest of them was queued.
    pub oldest_waiting_secs: Option<u64>,
    pub starting: u64,
    /// In the queue of CDS, and not served as they are: an unknown flavor, a model that is not whole.
    pub refused: u64,
    /// Their VM is up, and CDS does not know the worker yet.
    pub joining: u64,
    pub working: u64,
    /// They are over, and their VM is still there.
    pub leaving: u64,
}

/// The workers that are at the same stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Lane {
    pub stage: Stage,
    /// By name.
    pub workers: Vec<Arc<str>>,
}

/// The spares of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// A V1 model, or a template.
    pub model: String,
    pub template: String,
    /// `None`: neutral spares, which take any flavor.
    pub flavor: Option<String>,
    pub wanted: u64,
    pub ready: u64,
    /// Being made.
    pub coming: u64,
    /// Promised to a job, and still called a spare.
    pub in_use: u64,
    pub missing: u64,
    /// Why what is missing is not being made, in words.
    pub waiting: Option<String>,
}

/// What is taken of what is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Capacity {
    pub workers: Gauge,
    pub pending: Gauge,
    pub registering: Gauge,
    pub cpus: Gauge,
    pub memory_mb: Gauge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Gauge {
    /// By VMs.
    pub used: u64,
    /// On top of it, promised to what is on its way.
    pub reserved: u64,
    pub limit: Limit,
}

/// The addresses of the configured ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Addresses {
    pub total: u64,
    pub free: u64,
    pub used: u64,
    pub reserved: u64,
    /// Free, but not given out again yet.
    pub resting: u64,
    /// When there is one again, if there is none now.
    pub forecast: Option<Forecast>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Deletions {
    /// Why nothing is deleted until a person says so.
    pub frozen: Option<Freeze>,
    /// How many were decided in the last minute.
    pub last_minute: u64,
}

/// How the vCenter is seen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Link {
    /// The last request of the stream was answered.
    pub is_connected: bool,
    /// The inventory is complete and recent enough to act on.
    pub is_synced: bool,
    pub last_contact: Option<Timestamp>,
    /// How often everything had to be read anew.
    pub resyncs: u64,
    pub trouble: Option<String>,
    /// All VMs of the datacenter.
    pub vms: u64,
    pub calls: Calls,
}

/// What was asked of the vCenter since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Calls {
    pub logins: u64,
    pub calls: u64,
    pub last_minute: u64,
    pub faults: u64,
    /// The median of the last ones that did not wait for news.
    pub latency_ms: Option<u64>,
}
