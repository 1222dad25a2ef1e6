use std::path::PathBuf;
use std::sync::Arc;

use roost_clock::Clock;
use roost_microvm::{Leases, Registry, Runtime};
use tokio::sync::Semaphore;

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
    /// Whether a hibernated VM's tag is deleted once it runs again. The operator usually does it.
    pub(crate) deletes_hibernate_tag: bool,
}

/// How much is done at once: each of these moves gigabytes.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) pulls: Semaphore,
    pub(crate) clones: Semaphore,
    pub(crate) saves: Semaphore,
    /// One fork snapshot at a time, so that two forks of one VM share it.
    pub(crate) forks: Semaphore,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pulls: Semaphore::new(2),
            clones: Semaphore::new(4),
            saves: Semaphore::new(2),
            forks: Semaphore::new(1),
        }
    }
}
