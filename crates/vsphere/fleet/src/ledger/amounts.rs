use serde::Serialize;

/// What a machine takes of what is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Amounts {
    pub workers: u64,
    /// Workers that are started and not yet at work.
    pub pending: u64,
    /// Workers that only register a template.
    pub registering: u64,
    pub cpus: u64,
    pub memory_mb: u64,
}

impl Amounts {
    fn zip(self, other: Self, with: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            workers: with(self.workers, other.workers),
            pending: with(self.pending, other.pending),
            registering: with(self.registering, other.registering),
            cpus: with(self.cpus, other.cpus),
            memory_mb: with(self.memory_mb, other.memory_mb),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// What of this is not in `other`, each amount by itself.
    pub(crate) fn beyond(self, other: Self) -> Self {
        self.zip(other, u64::saturating_sub)
    }

    /// Whether a VM that takes this stands for a promise of `other`. Pending and registering pass by themselves: a worker
    /// that is at work before anyone looked was never seen pending.
    pub(crate) fn stands_for(self, other: Self) -> bool {
        self.workers >= other.workers
            && self.cpus >= other.cpus
            && self.memory_mb >= other.memory_mb
    }
}
