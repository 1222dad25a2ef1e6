use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{DecisionView, LimitView};

/// The whole picture on one page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Overview {
    /// The hatchery's name.
    pub service: String,
    pub version: String,
    pub now: Timestamp,
    pub started: Timestamp,
    pub ready: bool,
    /// What keeps the oldest waiting job waiting, in words.
    pub what_binds: Option<String>,
    pub queue: QueueView,
    /// One lane for each phase, in the order in which a worker goes through them.
    pub workers: Vec<LaneView>,
    pub pools: Vec<PoolView>,
    pub capacity: CapacityView,
    /// `None` if addresses are not ours to give.
    pub addresses: Option<AddressesView>,
    pub deletions: DeletionsView,
    pub link: LinkView,
    /// The last [`Overview::RECENT`] decisions, newest last, without their gates.
    pub recent: Vec<DecisionView>,
}

impl Overview {
    /// Enough to see what goes on; the journal has more.
    pub const RECENT: usize = 20;

    /// Whether it says something else than `earlier` did. That time has passed since is no news.
    pub fn has_news_since(&self, earlier: &Self) -> bool {
        let mut aged = earlier.clone();
        aged.now = self.now;
        aged.queue.oldest_waiting_secs = self.queue.oldest_waiting_secs;
        aged.link.last_contact = self.link.last_contact;
        // Whether somebody waits at all is news.
        earlier.queue.oldest_waiting_secs.is_some() != self.queue.oldest_waiting_secs.is_some()
            || aged != *self
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QueueView {
    pub waiting: u64,
    pub oldest_waiting_secs: Option<u64>,
    pub starting: u64,
}

/// The workers that are in one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LaneView {
    /// One word of a closed set, such as `powering-on`.
    pub phase: String,
    /// The same for people.
    pub words: String,
    pub count: u64,
    /// At most [`LaneView::NAMES`] of them.
    pub names: Vec<String>,
}

impl LaneView {
    /// Enough to fill a screen; the VM list has all of them.
    pub const NAMES: usize = 50;
}

/// A warm pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PoolView {
    pub model: String,
    pub template: Option<String>,
    /// `None`: neutral spares that take any size.
    pub flavor: Option<String>,
    pub wanted: u64,
    pub ready: u64,
    /// Being made.
    pub coming: u64,
    /// Claimed, and on their way to a job.
    pub in_use: u64,
    pub missing: u64,
    /// Why nothing is being made of what is missing, in words.
    pub waiting: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CapacityView {
    pub workers: GaugeView,
    pub pending: GaugeView,
    pub registering: GaugeView,
    pub cpus: GaugeView,
    pub memory_mb: GaugeView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GaugeView {
    pub used: u64,
    /// On top of it, promised to what is on its way.
    pub reserved: u64,
    pub limit: LimitView,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AddressesView {
    pub total: u64,
    pub free: u64,
    pub used: u64,
    pub reserved: u64,
    /// Free, but not given out again yet.
    pub quarantined: u64,
    /// When there is one again, in words, if there is none now.
    pub forecast: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeletionsView {
    /// Why nothing is deleted until a person says so.
    pub frozen: Option<String>,
    pub last_minute: u64,
}

/// How the vCenter is seen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkView {
    pub connected: bool,
    /// The inventory is complete and follows the vCenter.
    pub synced: bool,
    pub last_contact: Option<Timestamp>,
    /// How often the inventory had to be read anew.
    pub resyncs: u64,
    pub trouble: Option<String>,
    /// All VMs of the datacenter, not only ours.
    pub vms_seen: u64,
    /// `None` if calls are not counted.
    pub calls: Option<CallsView>,
}

/// What was asked of the vCenter since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CallsView {
    pub logins: u64,
    pub calls: u64,
    pub last_minute: u64,
    pub faults: u64,
    /// The median of the last calls that do not wait for news.
    pub latency_ms: Option<u64>,
}
