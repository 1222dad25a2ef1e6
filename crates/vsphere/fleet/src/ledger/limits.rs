use std::time::Duration;

use super::Quota;
use crate::Limit;

/// What a door may take in total.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Limits {
    /// What the door counts, in the order in which it is weighed.
    pub quotas: Vec<(Quota, Limit)>,
    pub cpus: Limit,
    pub memory_mb: Limit,
    /// Room that larger machines leave for small ones. Only bites where CPU or memory have a limit of their own.
    pub reserve: Option<Reserve>,
    /// How much of a resource pool's MHz one CPU takes. Unset, a pool only has to have any CPU left: MHz do not say how many
    /// virtual CPUs they can carry.
    pub mhz_per_cpu: Option<u64>,
}

impl Limits {
    /// And so much of a quota. The first that is declared is weighed first.
    #[must_use]
    pub fn quota(mut self, quota: Quota, limit: Limit) -> Self {
        self.quotas.retain(|(other, _)| *other != quota);
        self.quotas.push((quota, limit));
        self
    }

    pub fn of(&self, quota: Quota) -> Limit {
        let declared = self.quotas.iter().find(|(other, _)| *other == quota);
        declared.map_or(Limit::Unlimited, |(_, limit)| *limit)
    }
}

/// Room for `count` machines of the smallest size. It is kept free by every machine that is larger, in CPU and in memory
/// each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reserve {
    pub count: u64,
    pub cpus: u64,
    pub memory_mb: u64,
}

/// How long things that nobody holds any more are still counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerTimes {
    /// A promise of which a VM may yet appear: its holder went away after the request was sent, or said it became a VM that
    /// nobody has seen.
    pub safety: Duration,
    /// An address after the last VM that had it is gone: neighbours' ARP entries and a guest that shuts down slowly
    /// outlive the VM.
    pub quarantine: Duration,
}

impl Default for LedgerTimes {
    fn default() -> Self {
        Self { safety: Duration::from_mins(5), quarantine: Duration::from_mins(2) }
    }
}

/// What is left of a resource pool by its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolRoom {
    pub cpu_mhz: u64,
    pub memory_mb: u64,
}
