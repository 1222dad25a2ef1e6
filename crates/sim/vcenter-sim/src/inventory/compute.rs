use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::MoRef;

use crate::inventory::cluster_config::ClusterConfig;
use crate::pool::Demand;

#[derive(Debug, Clone)]
pub(crate) struct Datacenter {
    pub name: Arc<str>,
    pub parent: MoRef,
    pub vm_folder: MoRef,
    pub host_folder: MoRef,
    pub datastore_folder: MoRef,
    pub network_folder: MoRef,
    pub datastores: Vec<MoRef>,
    pub networks: Vec<MoRef>,
}

/// A cluster, or the compute resource around a standalone host; the kind of its reference says which.
#[derive(Debug, Clone)]
pub(crate) struct Compute {
    pub name: Arc<str>,
    pub parent: MoRef,
    pub hosts: Vec<MoRef>,
    pub pool: MoRef,
    pub environment: MoRef,
    pub config: ClusterConfig,
}

#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub name: Arc<str>,
    pub parent: MoRef,
    pub uuid: String,
    pub cores: i16,
    pub mhz: i32,
    pub memory: i64,
    pub connection: HostConnection,
    pub maintenance: bool,
    pub boot_time: Timestamp,
    /// What its powered-on VMs take.
    pub demand: Demand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostConnection {
    Connected,
    Disconnected,
    NotResponding,
}

impl HostConnection {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Disconnected => "disconnected",
            Self::NotResponding => "notResponding",
        }
    }
}

impl Host {
    pub(crate) fn is_usable(&self) -> bool {
        self.connection == HostConnection::Connected && !self.maintenance
    }

    pub(crate) fn capacity(&self) -> Demand {
        Demand { memory: self.memory, mhz: i64::from(self.cores) * i64::from(self.mhz) }
    }
}
