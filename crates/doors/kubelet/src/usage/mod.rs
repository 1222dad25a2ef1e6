//! What VMs and the node use: read from the kernel, shown to metrics-server, Prometheus and the API server.

mod collector;
mod kernel;
mod resource;
mod sampler;
mod summary;

pub(crate) use self::collector::UsageCollector;
pub(crate) use self::resource::resource_metrics;
pub(crate) use self::sampler::Sampler;
pub(crate) use self::summary::summary;

use jiff::Timestamp;

/// Of one pod's VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VmUsage {
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) uid: String,
    pub(crate) container: String,
    pub(crate) vm: String,
    pub(crate) backend: String,
    pub(crate) started: Option<Timestamp>,
    pub(crate) cpu_nanos: u64,
    /// Since the sample before; `None` for the first.
    pub(crate) nano_cores: Option<u64>,
    pub(crate) memory: u64,
    pub(crate) disk: Option<u64>,
    pub(crate) network: Option<Network>,
}

/// As the guest sees it, over all its cards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Network {
    /// Of the first card.
    pub(crate) name: String,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NodeUsage {
    pub(crate) cpu_nanos: u64,
    pub(crate) nano_cores: Option<u64>,
    pub(crate) memory: u64,
    pub(crate) memory_available: u64,
    pub(crate) storage: u64,
    pub(crate) storage_available: u64,
}

/// All of it, at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) time: Timestamp,
    pub(crate) node: NodeUsage,
    pub(crate) vms: Vec<VmUsage>,
}
