mod agent_forge;
mod crds;
mod doctor;
mod help;
mod vm_operator;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use clap_complete::Shell;

pub(crate) use self::agent_forge::AgentForge;
pub(crate) use self::crds::DoorWithKinds;
pub(crate) use self::doctor::{Doctor, DoctorDoor};
pub(crate) use self::help::command;
pub(crate) use self::vm_operator::VmOperator;
pub(crate) use crate::kubelet::KubeletOptions;
use roost_client::{Ask, Tell, Top};
use roost_demo::Demo;
use roost_sim_serve::Simulator;

/// Turns demand into virtual machines.
#[derive(Debug, Parser)]
#[command(
    version,
    about,
    // The hatchery's requests are jobs, and its operators look for them under that name.
    mut_subcommand("requests", |requests| requests.visible_alias("jobs")),
    after_help = "Logs go to stderr; ROOST_LOG=debug (or a tracing filter) shows more of them."
)]
pub(crate) struct Args {
    /// For commands that ask or tell a running service: which, by its name in the file of targets [env: ROOST_AT]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) at: Option<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Watch it work: an embedded vCenter and CDS, jobs arriving, workers starting
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
    /// Serve: turn waiting AgentMachines of HyperShift NodePools into vSphere VMs
    ///
    /// Takes the place of agent-forge-operator, with its flags. The API server is found as kubectl finds it: in the pod, or by KUBECONFIG. Pools are
    /// VsphereAgentPool objects (see roost crds agent-forge), each with a Secret for its vCenter. Ctrl-C or SIGTERM stops it; VMs run on.
    AgentForge(Box<AgentForge>),
    /// Serve: turn VirtualMachine objects into vSphere VMs
    ///
    /// Takes the place of VMware's VM Operator controller, with the variables of its manager. The API server is found as kubectl finds it: in the pod, or by
    /// KUBECONFIG. How the vCenter is reached, and where VMs go, stands in the ConfigMap vsphere.provider.config.vmoperator.vmware.com of
    /// POD_NAMESPACE. Ctrl-C or SIGTERM stops it; VMs run on.
    VmOperator(VmOperator),
    /// Serve: be a node whose pods are microVMs
    ///
    /// The drop-in for vk-cocoon: the same environment variables (VK_NODE_NAME, VK_COCOON_BIN, EPOCH_URL and the others), annotations and
    /// metrics. Ctrl-C or SIGTERM stops it; VMs go on running, and the next start takes them up again.
    Kubelet(KubeletOptions),
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
    /// Queue, workers by phase, pools, capacity, requests, VMs and decisions, as they change. Arrows and Tab move, Enter opens a request or a VM
    /// with its explanation, / filters, ? lists all keys. Actions need the service's token and are asked for twice.
    Top(Box<Top>),
    #[command(flatten)]
    Tell(Tell),
    /// Print the custom resource definitions of front doors
    ///
    /// As YAML documents, for: roost crds | kubectl apply --server-side -f -
    /// Server-side, because the largest are too large for the annotation that kubectl would write otherwise.
    Crds {
        /// Only those of these doors
        #[arg(value_name = "DOOR")]
        doors: Vec<DoorWithKinds>,
    },
    /// Serve an embedded stand-in for a server that you do not have
    Sim {
        #[command(subcommand)]
        simulator: Simulator,
    },
    /// Print the version and how it was built
    Version {
        /// text for people, json for programs
        #[arg(short, long, default_value = "text", value_parser = ["text", "json"], value_name = "FORMAT")]
        output: String,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }
}
