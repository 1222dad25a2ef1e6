mod demo;
mod doctor;
mod sim_cds;
mod sim_kube;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

pub(crate) use self::demo::{Demo, Speed};
pub(crate) use self::doctor::Doctor;
pub(crate) use self::sim_cds::SimCds;
pub(crate) use self::sim_kube::SimKube;
use crate::ask::Ask;
use crate::tell::Tell;
use crate::top::Top;

/// Turns demand into virtual machines.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    after_help = "Logs go to stderr; ROOST_LOG=debug (or a tracing filter) shows more of them."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch it work: an embedded vCenter and CDS, jobs arriving, workers hatching
    ///
    /// Nothing to configure and nothing to reach: both servers are in this process, and their time is simulated. Shows what happens in the
    /// terminal and on a web page, ends by itself when all jobs are done, and says what came of it. In the terminal the keys of `roost top`
    /// work (? lists them), and whoever has used one ends it with q. Exits with 1 if anything was left behind, done twice or taken beyond
    /// a limit.
    Demo(Demo),
    /// Serve: turn the jobs of a CDS into workers on a vSphere
    ///
    /// The file is that of the CDS hatchery for vSphere, as it is. Ctrl-C or SIGTERM stops it: nothing new is begun, what is under way
    /// gets 30 seconds, and the next start takes up the rest. The address of its status page is printed.
    Run {
        /// The configuration file
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,

        /// Look and show, and change nothing
        ///
        /// Logs in to the vCenter and follows its inventory; starts, changes and deletes no VM, and takes no orders. CDS is not spoken to at all, because
        /// every sign-in would write into the record of the hatchery that may be at work under this name: jobs, models and what CDS
        /// knows of workers are not seen, and nothing is planned for them.
        #[arg(long)]
        observe_only: bool,
    },
    /// List every problem of a configuration file at once
    ///
    /// The file is that of the CDS hatchery for vSphere; all that stands below [hatchery.vsphere] is checked, and secrets that
    /// come from files or the environment are looked for. Nothing is contacted.
    Check {
        /// The file to check
        #[arg(short, long, value_name = "FILE")]
        config: PathBuf,
    },
    /// Examine whether a hatchery with this file could do its work
    ///
    /// Asks the vCenter and the CDS API of the file, and changes nothing: connection, certificate, login, version, clock, the places where
    /// VMs go, templates, privileges, space, addresses, VMs that are there already. Each line says pass, warn, fail or skip and what to do.
    /// Exits with 1 if a check failed.
    Doctor(Doctor),
    /// Write configuration files
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    #[command(flatten)]
    Ask(Ask),
    /// Watch a running service in the terminal, and steer it
    ///
    /// Queue, workers by phase, pools, capacity, jobs, VMs and decisions, as they change. Arrows and Tab move, Enter opens a job or a VM
    /// with its explanation, / filters, ? lists all keys. Actions need the service's token and are asked for twice.
    Top(Box<Top>),
    #[command(flatten)]
    Tell(Tell),
    /// Serve an embedded stand-in for a server that you do not have
    Sim {
        #[command(subcommand)]
        simulator: Simulator,
    },
    /// Print the completion script of a shell
    ///
    /// For bash: roost completions bash > /etc/bash_completion.d/roost
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write one for each command
    Man {
        /// Write all pages into this folder, such as /usr/local/share/man/man1
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigAction {
    /// Print a commented configuration file to begin with
    New,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Simulator {
    /// Serve an embedded vCenter until Ctrl-C
    ///
    /// It speaks the vim25 API that govc, pyVmomi and Roost itself use. Tasks take time, guests boot, get an address and run
    /// programs, files can be uploaded. All chance comes from the seed.
    Vcenter(Box<SimVcenter>),
    /// Serve an embedded CDS API until Ctrl-C
    ///
    /// It speaks what a CDS hatchery and its workers use, V1 and V2, by HTTP and websocket. Jobs can arrive by themselves;
    /// guests download a worker that does them. All chance comes from the seed. What a hatchery needs to sign in is printed.
    Cds(Box<SimCds>),
    /// Serve an embedded Kubernetes API server until Ctrl-C
    ///
    /// It speaks the API that kubectl and controllers use: built-in kinds, custom resource definitions with their schemas and
    /// rules, watches, server-side apply, webhooks. Nothing runs in it. All chance comes from the seed.
    Kube(Box<SimKube>),
    /// Be the worker that a guest downloaded from the embedded CDS API
    #[command(hide = true)]
    Worker {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
}

#[derive(Debug, Parser)]
pub(crate) struct SimVcenter {
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
