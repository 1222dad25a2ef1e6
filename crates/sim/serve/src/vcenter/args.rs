use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

#[derive(Debug, Parser)]
pub struct SimVcenter {
    /// Address and port to listen on; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:8989", value_name = "ADDR:PORT")]
    pub(crate) listen: SocketAddr,

    /// Serve HTTPS with a certificate made at start; its SHA-256 thumbprint is printed
    #[arg(long)]
    pub(crate) tls: bool,

    /// Be a standalone ESXi host instead of a vCenter
    #[arg(long)]
    pub(crate) esx: bool,

    /// Accept only this login; without it any user and password that are not empty will do
    #[arg(long, value_name = "USER:PASSWORD", env = "ROOST_SIM_LOGIN", hide_env_values = true)]
    pub(crate) login: Option<String>,

    /// Datacenters
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) datacenters: usize,

    /// Clusters per datacenter
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) clusters: usize,

    /// Hosts per cluster
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub(crate) hosts: usize,

    /// Hosts outside of any cluster, per datacenter
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) standalone_hosts: usize,

    /// Resource pools per cluster, beside its root pool
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) pools: usize,

    /// VMs per cluster and per standalone host
    #[arg(long, default_value_t = 2, value_name = "N")]
    pub(crate) vms: usize,

    /// Leave those VMs powered off
    #[arg(long)]
    pub(crate) powered_off: bool,

    /// Templates to clone from, by name
    #[arg(
        long,
        default_value = "debian12,ubuntu24",
        value_delimiter = ',',
        value_name = "NAME,.."
    )]
    pub(crate) templates: Vec<String>,

    /// Templates without VMware Tools, by name, beside the others
    #[arg(long, value_delimiter = ',', value_name = "NAME,..")]
    pub(crate) templates_without_tools: Vec<String>,

    /// Datastores per datacenter
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) datastores: usize,

    /// Keep the content of datastore files below this folder instead of in memory
    #[arg(long, value_name = "DIR")]
    pub(crate) datastore_dir: Option<PathBuf>,

    /// vApps per cluster, each with its own VMs
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) apps: usize,

    /// Empty datastore clusters per datacenter
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) pods: usize,

    /// So many of the last datacenters, and what is in them, sit in folders
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub(crate) folders: usize,

    /// Distributed port groups per datacenter
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) portgroups: usize,

    /// What a program started in a guest is
    #[arg(long, value_enum, default_value_t = Guests::Scripted)]
    pub(crate) guests: Guests,

    /// Let programs in guests that execute have all rights of root, should this be root: without it they see a machine that they cannot change
    #[arg(long)]
    pub(crate) unconfined_guests: bool,

    /// How long clones, boots and other tasks take
    #[arg(long, value_enum, default_value_t = Pace::Quick)]
    pub(crate) pace: Pace,

    /// Where all chance comes from: the same seed and the same calls are the same run [default: a new one, printed]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Seconds by which its clock is ahead of this machine's; negative for behind
    #[arg(long, default_value_t = 0, allow_negative_numbers = true, value_name = "SECS")]
    pub(crate) clock_skew: i64,

    /// Write what a hatchery needs to use it into this file: its half of a configuration
    #[arg(long, value_name = "FILE")]
    pub(crate) write_config: Option<PathBuf>,

    /// Serve the fault and control endpoint below /roost/control/; whoever reaches the port can use it
    #[arg(long)]
    pub(crate) control: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Guests {
    /// A few built-in programs (echo, env, sleep, true, false, shutdown) that touch nothing
    Scripted,
    /// A real child process on this machine, with this user's rights and the given environment
    Exec,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Pace {
    /// As a real vCenter: seconds to minutes
    Real,
    /// Every phase is there and takes a fraction of a second
    Quick,
    /// Everything at once
    Instant,
}
