use serde::Serialize;

use super::{Counts, Quota};

/// What a machine takes of what is limited.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Amounts {
    pub cpus: u64,
    pub memory_mb: u64,
    /// Of the quotas that its door declared.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Amounts {
    /// And so much of a quota.
    #[must_use]
    pub fn count(mut self, quota: Quota, count: u64) -> Self {
        self.counts.set(quota, count);
        self
    }

    /// How much of a quota.
    pub fn of(&self, quota: Quota) -> u64 {
        self.counts.of(quota)
    }

    fn zip(&self, other: &Self, with: impl Fn(u64, u64) -> u64) -> Self {
        let mut counts = Counts::default();
        for (quota, _) in self.counts.iter().chain(other.counts.iter()) {
            counts.set(quota, with(self.of(quota), other.of(quota)));
        }
        Self {
            counts,
            cpus: with(self.cpus, other.cpus),
            memory_mb: with(self.memory_mb, other.memory_mb),
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// What of this is not in `other`, each amount by itself.
    pub(crate) fn beyond(&self, other: &Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// Whether a VM that takes this stands for a promise of `other`.
    pub(crate) fn stands_for(&self, other: &Self) -> bool {
        self.cpus >= other.cpus
            && self.memory_mb >= other.memory_mb
            && other
                .counts
                .iter()
                .all(|(quota, count)| quota.is_passing() || self.of(quota) >= count)
    }
}
