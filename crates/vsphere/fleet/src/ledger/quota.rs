use std::collections::BTreeMap;

use serde::Serialize;

/// Something that a door counts and limits beside CPUs and memory: workers, creates in flight. A constant of the door; its
/// name becomes the name of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "&'static str")]
pub struct Quota {
    pub name: &'static str,
    /// Whether a VM stops counting while it lives on: what is on its way arrives. A VM may have passed through before anyone
    /// looked, so a promise is kept also if its VM was never seen to count.
    passes: bool,
}

impl Quota {
    /// Counts for as long as the VM is there.
    pub const fn lasting(name: &'static str) -> Self {
        Self { name, passes: false }
    }

    /// Counts for a part of the VM's life.
    pub const fn passing(name: &'static str) -> Self {
        Self { name, passes: true }
    }

    pub fn is_passing(self) -> bool {
        self.passes
    }
}

impl From<Quota> for &'static str {
    fn from(quota: Quota) -> Self {
        quota.name
    }
}

/// How much counts towards which quota. What is not here is zero.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(transparent)]
pub struct Counts(BTreeMap<Quota, u64>);

impl Counts {
    pub fn of(&self, quota: Quota) -> u64 {
        self.0.get(&quota).copied().unwrap_or_default()
    }

    pub fn set(&mut self, quota: Quota, count: u64) {
        if count == 0 {
            self.0.remove(&quota);
        } else {
            self.0.insert(quota, count);
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (Quota, u64)> {
        self.0.iter().map(|(quota, count)| (*quota, *count))
    }
}
