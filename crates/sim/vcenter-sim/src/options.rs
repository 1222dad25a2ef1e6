use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::guest::{DhcpRange, GuestMode};
use crate::timings::Timings;

/// What the simulated server is and holds. The default has the names and sizes of vcsim's: `DC0`, `DC0_C0`, `DC0_C0_H0`,
/// `DC0_H0`, `LocalDS_0`, `DC0_DVPG0`, `DVS0`, `VM Network`, `DC0_C0_RP0_VM0`, `DC0_H0_VM0`.
#[derive(Debug, Clone)]
pub struct Options {
    pub product: Product,
    pub datacenters: usize,
    /// Per datacenter.
    pub clusters: usize,
    /// Per cluster.
    pub hosts: usize,
    /// Lone hosts per datacenter.
    pub standalone_hosts: usize,
    /// Child resource pools per cluster, beside the root pool.
    pub pools: usize,
    /// vApps per cluster.
    pub apps: usize,
    /// Per cluster, or per child pool of it if there are any, per vApp, and per standalone host, as vcsim counts them.
    pub vms: usize,
    /// Whether those VMs are powered on at the start.
    pub autostart: bool,
    /// In the first datacenter.
    pub templates: Vec<TemplateOptions>,
    /// Per datacenter, mounted on all of its hosts.
    pub datastores: usize,
    /// Datastores beside those that are vSAN, per datacenter: they name top-level directories themselves.
    pub vsan_datastores: usize,
    /// Empty datastore clusters per datacenter.
    pub pods: usize,
    /// Distributed port groups per datacenter.
    pub portgroups: usize,
    /// So many of the last datacenters, and what is in them, sit in folders `F0`, `F1` and so on.
    pub folders: usize,
    /// Per host; unset is 32, or more if the VMs at the start would take over half of it.
    pub host_cores: Option<i16>,
    /// Per host; unset is 256, or more if the VMs at the start would take over half of it.
    pub host_memory_gb: Option<i64>,
    /// Per datastore; unset is 4096, or more if the VMs at the start would take over half of it.
    pub datastore_gb: Option<i64>,
    /// Where guests without a static address get theirs from.
    pub dhcp: DhcpRange,
    /// All chance comes from it: the same seed and the same calls are the same run.
    pub seed: u64,
    pub timings: Timings,
    pub guests: GuestMode,
    /// Whether guests that execute do so without namespaces of their own even as root, with all the rights that root has here.
    pub unconfined_guests: bool,
    /// How many events are kept.
    pub event_retention: usize,
    /// Where the content of datastore files is kept; in memory if unset.
    pub datastore_dir: Option<PathBuf>,
    /// Who may log in; unset accepts any user and password that are not empty, as vcsim does.
    pub credentials: Option<Credentials>,
    /// What the server says its API version is.
    pub api_version: String,
    pub session_idle_limit: Duration,
    /// A login beyond it is answered with 503.
    pub max_sessions: usize,
    /// Objects in one page of a property answer, also when the client asks for more or does not ask.
    pub page_limit: usize,
    /// Answers of at least this many bytes are compressed for clients that take gzip; unset never compresses.
    pub gzip_from: Option<usize>,
    /// Whether disks that `vmprov.keepDisks` of a VM names outlive it, as with newer servers.
    pub keeps_disks: bool,
    /// Whether `/roost/control/` is served.
    pub control_endpoint: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            product: Product::VirtualCenter,
            datacenters: 1,
            clusters: 1,
            hosts: 3,
            standalone_hosts: 1,
            pools: 0,
            apps: 0,
            vms: 2,
            autostart: true,
            templates: Vec::new(),
            datastores: 1,
            vsan_datastores: 0,
            pods: 0,
            portgroups: 1,
            folders: 0,
            host_cores: None,
            host_memory_gb: None,
            datastore_gb: None,
            dhcp: DhcpRange::default(),
            seed: 0,
            timings: Timings::default(),
            guests: GuestMode::default(),
            unconfined_guests: false,
            event_retention: 10_000,
            datastore_dir: None,
            credentials: None,
            api_version: "8.0.3.0".into(),
            // The limit that vCenter and ESXi have unless an administrator changes it.
            session_idle_limit: Duration::from_mins(30),
            max_sessions: 1_000,
            // Where real servers stop, whatever the client asks for.
            page_limit: 100,
            gzip_from: Some(16 << 10),
            keeps_disks: true,
            control_endpoint: false,
        }
    }
}

/// Which server is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Product {
    #[default]
    VirtualCenter,
    /// A standalone ESXi host.
    HostAgent,
}

/// A template to clone from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateOptions {
    pub name: String,
    /// Whether its disk has a snapshot, without which a linked clone is a full copy.
    pub snapshot: bool,
    pub cpus: i32,
    pub memory_mb: i64,
    pub disk_gb: i64,
    /// Whether guest tools are installed, which customization and guest operations need.
    pub tools: bool,
    /// Who may run programs in its clones; unset accepts any user and password that are not empty.
    pub guest_credentials: Option<Credentials>,
}

impl TemplateOptions {
    pub fn new(name: impl Into<String>) -> Self {
        let (name, guest_credentials) = (name.into(), None);
        Self {
            name,
            snapshot: true,
            cpus: 1,
            memory_mb: 1024,
            disk_gb: 10,
            tools: true,
            guest_credentials,
        }
    }
}

/// The one user who may log in.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}
