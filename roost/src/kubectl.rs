//! `kubectl roost`: this program under the name `kubectl-roost`. It asks the service that runs in the cluster, through `kubectl port-forward`.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use roost_client::{Ask, ServiceAddress, Surroundings, Tell, Top};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::here::Here;
use crate::telemetry;

/// The name under which kubectl finds it.
const NAME: &str = "kubectl-roost";
/// Where the managers of `deploy/` show themselves, to their own pod only.
const PORT: u16 = 8086;
/// An API server that has not connected us by then is not reached.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether this process was started under that name.
pub(crate) fn is_meant() -> bool {
    let called = std::env::args_os().next().map(PathBuf::from);
    let stem = called.as_deref().and_then(Path::file_stem).map(|stem| stem.to_string_lossy());
    stem.is_some_and(|stem| stem == NAME)
}

/// Asks and steers Roost in a cluster.
///
/// The service is found by the lease that it holds, and reached by kubectl port-forward: whoever may do that may read. Actions need the token that
/// the service was started with, in ROOST_TOKEN or by --token-file. With --url or ROOST_URL nothing is forwarded.
#[derive(Debug, Parser)]
#[command(name = "kubectl roost", bin_name = "kubectl roost", version)]
struct Plugin {
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// The kubeconfig
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Namespace in which the service runs [default: vmop-system; for forge agent-forge-operator-system]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    #[command(subcommand)]
    command: PluginCommand,
}

#[derive(Debug, Subcommand)]
enum PluginCommand {
    #[command(flatten)]
    Ask(Ask),
    #[command(flatten)]
    Tell(Tell),
    /// Watch the service in the terminal, and steer it
    Top(Box<Top>),
    /// The same of agent-forge, such as: forge pools, forge explain NAMESPACE/NAME
    Forge {
        #[command(subcommand)]
        command: ForgeCommand,
    },
}

#[derive(Debug, Subcommand)]
enum ForgeCommand {
    #[command(flatten)]
    Ask(Ask),
    #[command(flatten)]
    Tell(Tell),
    /// Watch the service in the terminal, and steer it
    Top(Box<Top>),
}

/// Where a manager runs.
#[derive(Debug, Clone, Copy)]
struct Manager {
    namespace: &'static str,
    lease: &'static str,
    deployment: &'static str,
}

const VM_OPERATOR: Manager = Manager {
    namespace: roost_vm_operator::access::NAMESPACE,
    lease: roost_vm_operator::access::LEASE,
    deployment: roost_vm_operator::access::NAME,
};

const AGENT_FORGE: Manager = Manager {
    namespace: "agent-forge-operator-system",
    lease: roost_agent_forge::api::names::LEASE,
    deployment: "agent-forge-operator-controller-manager",
};

#[tokio::main]
pub(crate) async fn run() -> anyhow::Result<()> {
    let plugin = Plugin::parse();
    if let PluginCommand::Top(top) | PluginCommand::Forge { command: ForgeCommand::Top(top) } =
        &plugin.command
    {
        telemetry::init_demo(top.is_live());
    } else {
        telemetry::init();
    }
    let manager = match plugin.command {
        PluginCommand::Forge { .. } => AGENT_FORGE,
        _ => VM_OPERATOR,
    };
    let forward = if says_where() { None } else { Some(Forward::open(&plugin, manager).await?) };
    let there = Forwarded { url: forward.as_ref().map(|forward| forward.url.clone()) };
    match plugin.command {
        PluginCommand::Ask(ask) | PluginCommand::Forge { command: ForgeCommand::Ask(ask) } => {
            roost_client::ask(ask, &there).await
        }
        PluginCommand::Tell(tell) | PluginCommand::Forge { command: ForgeCommand::Tell(tell) } => {
            roost_client::tell(tell, &there).await
        }
        PluginCommand::Top(top) | PluginCommand::Forge { command: ForgeCommand::Top(top) } => {
            roost_client::top(*top, &there).await
        }
    }
}

/// Whoever says where the service is needs no forwarding.
fn says_where() -> bool {
    let is_given = |arg: String| {
        ["--url", "--config", "-c"].iter().any(|flag| arg == *flag || arg.starts_with("--url="))
    };
    std::env::var_os("ROOST_URL").is_some() || std::env::args().any(is_given)
}

/// This machine, and a service that is forwarded to it.
#[derive(Debug)]
struct Forwarded {
    url: Option<String>,
}

impl Surroundings for Forwarded {
    fn variable(&self, name: &str) -> Option<String> {
        let forwarded = self.url.clone().filter(|_| name == "ROOST_URL");
        forwarded.or_else(|| Here::default().variable(name))
    }

    fn read_file(&self, path: &Path) -> io::Result<String> {
        Here::default().read_file(path)
    }

    fn service(&self, file: &str) -> Result<ServiceAddress, Box<dyn Error + Send + Sync>> {
        Here::default().service(file)
    }
}

/// A `kubectl port-forward` that ends with this.
#[derive(Debug)]
struct Forward {
    url: String,
    _kubectl: Child,
}

impl Forward {
    async fn open(plugin: &Plugin, manager: Manager) -> anyhow::Result<Self> {
        let namespace = plugin.namespace.as_deref().unwrap_or(manager.namespace);
        let target = target(plugin, manager, namespace).await;
        let port = format!(":{PORT}");
        let mut command = kubectl(plugin, namespace);
        command.args(["port-forward", &target, &port, "--address=127.0.0.1"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).stdin(Stdio::null());
        command.kill_on_drop(true);
        let mut child = command.spawn().context("starting kubectl")?;
        let stdout = child.stdout.take().context("the output of kubectl")?;
        let mut lines = BufReader::new(stdout).lines();
        let first = timeout(PATIENCE, lines.next_line()).await;
        let first = first.context("kubectl port-forward did not connect in time")??;
        let Some(url) = first.as_deref().and_then(forwarded_to) else {
            let mut said = String::new();
            if let Some(stderr) = &mut child.stderr {
                let _ = timeout(Duration::from_secs(2), stderr.read_to_string(&mut said)).await;
            }
            bail!(
                "kubectl port-forward {target} in namespace {namespace}: {}; name another place with --namespace, or the service itself with --url",
                said.trim()
            );
        };
        Ok(Self { url, _kubectl: child })
    }
}

/// The pod that leads, because only that one knows what its passes did.
async fn target(plugin: &Plugin, manager: Manager, namespace: &str) -> String {
    let path = "jsonpath={.spec.holderIdentity}";
    let mut command = kubectl(plugin, namespace);
    command.args(["get", "lease", manager.lease, "-o", path]).stdin(Stdio::null());
    let asked = command.output().await.ok().filter(|output| output.status.success());
    let holder = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    match holder.as_deref().and_then(pod_of) {
        Some(pod) => format!("pod/{pod}"),
        None => format!("deployment/{}", manager.deployment),
    }
}

fn kubectl(plugin: &Plugin, namespace: &str) -> Command {
    let mut command = Command::new("kubectl");
    command.args(["--namespace", namespace]);
    if let Some(context) = &plugin.context {
        command.args(["--context", context]);
    }
    if let Some(file) = &plugin.kubeconfig {
        command.arg("--kubeconfig").arg(file);
    }
    command
}

/// A holder is called by its pod, an underscore and chance.
fn pod_of(holder: &str) -> Option<&str> {
    holder.trim().rsplit_once('_').map(|(pod, _)| pod).filter(|pod| !pod.is_empty())
}

/// `Forwarding from 127.0.0.1:40123 -> 8086`.
fn forwarded_to(line: &str) -> Option<String> {
    let place = line.strip_prefix("Forwarding from ")?.split(' ').next()?;
    Some(format!("http://{place}"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_plugin_is_told_as_roost_is() {
        Plugin::command().debug_assert();
        for (words, is_forge) in [
            ("explain vm team-a/web-0", false),
            ("vms --kind machine", false),
            ("-n vms pause vm team-a/web-0 --reason upgrade", false),
            ("--context prod forge pools", true),
            ("forge explain agentmachine blue-blue/blue-gp-0001", true),
        ] {
            let args = ["kubectl-roost"].into_iter().chain(words.split(' '));
            let plugin = Plugin::try_parse_from(args).unwrap();
            let of_forge = matches!(plugin.command, PluginCommand::Forge { .. });
            assert_eq!(of_forge, is_forge, "{words}");
        }
    }

    #[test]
    fn the_leader_and_the_port_are_read_from_what_kubectl_says() {
        assert_eq!(pod_of("roost-vm-operator-5d9f-x2_00ab"), Some("roost-vm-operator-5d9f-x2"));
        assert_eq!(pod_of(""), None);
        let said = "Forwarding from 127.0.0.1:40123 -> 8086";
        assert_eq!(forwarded_to(said).as_deref(), Some("http://127.0.0.1:40123"));
        assert_eq!(forwarded_to("error: no pod"), None);
    }
}
