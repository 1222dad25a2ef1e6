use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use roost_clock::Clock;
use roost_microvm::{Cgroups, Leases, Registry, Runtime};
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::cache::SnapshotCache;
use super::journal::Journal;
use super::start::OrphanPolicy;
use crate::metrics::Metrics;

/// The machine that VMs run on, with what leads to it.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) registry: Option<Registry>,
    pub(crate) leases: Leases,
    /// Where the DHCP server is told that a card is gone.
    pub(crate) net_control: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) journal: Journal,
    pub(crate) cache: SnapshotCache,
    /// `None`: requests and limits hold only where the runtime sees to it.
    pub(crate) cgroups: Option<Cgroups>,
    pub(crate) orphans: OrphanPolicy,
    pub(crate) strangers: Strangers,
    /// Whether a hibernated VM's tag is deleted once it runs again. The operator usually does it.
    pub(crate) deletes_hibernate_tag: bool,
}

/// VMs that no pod wants, by id: since when, and whether it was said. Somebody who starts VMs by hand is not told every ten seconds.
#[derive(Debug, Default)]
pub(crate) struct Strangers(pub(crate) Mutex<BTreeMap<String, Stranger>>);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Stranger {
    pub(crate) since: Instant,
    pub(crate) told: bool,
}

/// How much is done at once: each of these moves gigabytes.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) pulls: Limit,
    pub(crate) clones: Limit,
    pub(crate) saves: Limit,
    /// One fork snapshot at a time, so that two forks of one VM share it.
    pub(crate) forks: Limit,
}

impl Limits {
    pub(crate) fn new(pulls: u16, clones: u16, saves: u16) -> Self {
        Self {
            pulls: Limit::new(pulls),
            clones: Limit::new(clones),
            saves: Limit::new(saves),
            forks: Limit::new(1),
        }
    }
}

/// So many of a kind at once; the others wait in their order.
#[derive(Debug)]
pub(crate) struct Limit {
    free: Semaphore,
    most: u16,
}

impl Limit {
    fn new(most: u16) -> Self {
        Self { free: Semaphore::new(most.into()), most }
    }

    pub(crate) async fn acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.free.acquire().await
    }

    pub(crate) fn used(&self) -> usize {
        usize::from(self.most).saturating_sub(self.free.available_permits())
    }

    pub(crate) fn most(&self) -> u64 {
        self.most.into()
    }
}
