//! `roost kubelet`: a node whose pods are microVMs, configured by the variables of vk-cocoon.

use std::net::Ipv6Addr;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use clap::Args;
use prometheus_client::registry::Registry as MetricRegistry;
use roost_clock::{Clock as _, Random, SystemClock};
use roost_controller::serve::{Access, Tls, metrics_router, serve};
use roost_door::{Core, FrontDoor};
use roost_kubelet::{
    Kubelet, KubeletCore, KubeletDoor, KubeletParts, NoPinger, Pinger, Settings, serving_tls,
};
use roost_microvm::{
    CocoonCli, CocoonSettings, IcmpPinger, Qemu, QemuSettings, Registry, RegistrySettings, Runtime,
};
use roost_settings::{LogFormat, LogLevel, LogSettings};
use roost_supervise::ServiceManager;
use roost_tls::{ClientCa, ServerTls, TlsTrust};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::manager::{PageOptions, Servers};
use crate::page::OwnMetrics;
use crate::telemetry;
use roost_client::{interruption, say};

/// What vk-cocoon has no variable for.
#[derive(Debug, Args)]
pub(crate) struct KubeletOptions {
    #[command(flatten)]
    page: PageOptions,
}

pub(crate) async fn run(options: &KubeletOptions) -> anyhow::Result<()> {
    let variable = |name: &str| std::env::var(name).ok();
    let mut metrics = MetricRegistry::default();
    let own = OwnMetrics::register(&mut metrics);
    let _logging = telemetry::init_service(log_settings(&variable)?, own.log_line_dropped());
    let settings = Settings::read(&variable).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!("the environment cannot be used:\n  {}", lines.join("\n  "))
    })?;
    let interrupted = interruption()?;
    let cluster = kube::Config::infer().await.context("finding the API server (KUBECONFIG)")?;
    let started = start(settings, cluster, metrics).await?;
    let mut servers = Servers::new();
    let (door, core): (Arc<dyn FrontDoor>, Arc<dyn Core>) =
        (Arc::new(started.door()), Arc::new(started.core()));
    options.page.show(&mut servers, &own, door, Some(core)).await?;
    let manager = ServiceManager::from_environment();
    manager.ready("pods become microVMs");
    let stopping = async {
        interrupted.await;
        manager.stopping("VMs go on running");
    };
    tokio::select! {
        () = started.run(stopping) => {}
        () = manager.keep_alive(|| true) => {}
    }
    servers.close().await;
    say("Stopped. VMs go on running; the next start takes them up again.\n");
    Ok(())
}

/// A node that is registered, with its two ports open.
pub(crate) struct Started {
    kubelet: Kubelet,
    pub(crate) metrics: Arc<MetricRegistry>,
    tls: ServerTls,
    api: TcpListener,
    scrapes: TcpListener,
}

/// Joins pods and VMs and registers the node. `metrics` are shown with what it counts itself.
pub(crate) async fn start(
    settings: Settings,
    cluster: kube::Config,
    mut metrics: MetricRegistry,
) -> anyhow::Result<Started> {
    for name in &settings.not_followed {
        tracing::warn!("{name} is set, and nothing comes of it");
    }
    let tls = server_tls(&settings, cluster.root_cert.as_deref())?;
    let client = kube::Client::try_from(cluster).context("reaching the API server")?;
    let (node, port, metrics_addr) =
        (settings.node_name.clone(), settings.port, settings.metrics_addr);
    let api = listen((Ipv6Addr::UNSPECIFIED, port)).await?;
    let scrapes = listen((metrics_addr.ip(), metrics_addr.port())).await?;
    let (pinger, pings_are_faked) = pinger();
    let parts = KubeletParts {
        client,
        runtime: runtime(&settings)?,
        registry: registry(&settings)?,
        pinger,
        pings_are_faked,
        clock: Arc::new(SystemClock),
        random: Random::from_system(),
        settings,
    };
    let kubelet = Kubelet::start(parts, &mut metrics).await?;
    let metrics = Arc::new(metrics);
    say(&format!("node {node} serves on port {port}, metrics on http://{metrics_addr}/metrics\n"));
    Ok(Started { kubelet, metrics, tls, api, scrapes })
}

impl Started {
    pub(crate) fn door(&self) -> KubeletDoor {
        self.kubelet.door()
    }

    pub(crate) fn core(&self) -> KubeletCore {
        self.kubelet.core()
    }

    /// Until `shutdown`; VMs go on running.
    pub(crate) async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        let Self { kubelet, metrics, tls, api, scrapes } = self;
        let (ending, ended) = watch::channel(false);
        let closing = || {
            let mut ended = ended.clone();
            async move {
                let _ = ended.wait_for(|ended| *ended).await;
            }
        };
        let answering = kubelet.api(Arc::clone(&metrics)).serve(api, tls, closing());
        let showing = serve(scrapes, Tls::Off, metrics_router(metrics, Access::Open), closing());
        let working = async {
            Box::pin(kubelet.run(shutdown)).await;
            ending.send_replace(true);
        };
        let _ = tokio::join!(working, answering, showing);
    }
}

pub(crate) fn runtime(settings: &Settings) -> anyhow::Result<Arc<dyn Runtime>> {
    if let Some(qemu) = &settings.qemu {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(TlsTrust::System.client_config()?)
            .build()?;
        let qemu = QemuSettings {
            binary: qemu.binary.clone().into(),
            disk_tool: qemu.disk_tool.clone().into(),
            machine: qemu.machine.clone(),
            cpu: qemu.cpu.clone(),
            accelerators: qemu.accelerators.clone(),
            http: Some(http),
            ..QemuSettings::new(&qemu.root_dir)
        };
        let folder = qemu.root_dir.display().to_string();
        let opened = Qemu::open(qemu, Arc::new(SystemClock), Random::from_system());
        return Ok(Arc::new(opened.with_context(|| format!("VK_QEMU_DIR: {folder}"))?));
    }
    let mut cocoon = CocoonSettings::new(&settings.cocoon, &settings.root_dir);
    cocoon.run_dir.clone_from(&settings.run_dir);
    match settings.sudo {
        Some(true) => cocoon.wrapper = vec!["sudo".to_owned()],
        Some(false) => cocoon.wrapper.clear(),
        None => {}
    }
    Ok(Arc::new(CocoonCli::new(cocoon)))
}

fn log_settings(variable: &dyn Fn(&str) -> Option<String>) -> anyhow::Result<LogSettings> {
    let level = match variable("VK_LOG_LEVEL").unwrap_or_default().to_ascii_lowercase().as_str() {
        "" | "info" => LogLevel::Info,
        "trace" | "debug" => LogLevel::Debug,
        "warn" | "warning" => LogLevel::Warning,
        "error" => LogLevel::Error,
        other => bail!("VK_LOG_LEVEL: {other:?} is none of trace, debug, info, warn, error"),
    };
    let format = match variable("VK_LOG_FORMAT").as_deref() {
        None | Some("") => None,
        Some("text") => Some(LogFormat::Text),
        Some("json") => Some(LogFormat::Json),
        Some(other) => bail!("VK_LOG_FORMAT: {other:?} is neither text nor json"),
    };
    Ok(LogSettings { level: Some(level), format })
}

async fn listen(
    address: impl tokio::net::ToSocketAddrs + std::fmt::Debug,
) -> anyhow::Result<TcpListener> {
    let words = format!("listening on {address:?}");
    TcpListener::bind(address).await.context(words)
}

/// Clients are known by `VK_CLIENT_CA`, else by the authority of the kubeconfig.
fn server_tls(settings: &Settings, authorities: Option<&[Vec<u8>]>) -> anyhow::Result<ServerTls> {
    let known = authorities.map(|all| all.iter().map(|der| pem(der)).collect::<String>());
    let client_ca = match (&settings.client_ca, known.filter(|pem| !pem.is_empty())) {
        (Some(path), _) => Some(ClientCa::File(path.clone())),
        (None, Some(pem)) => Some(ClientCa::Pem(pem.into_bytes())),
        (None, None) => {
            tracing::warn!(
                "no authority of clients is known, so only tokens are taken: set VK_CLIENT_CA"
            );
            None
        }
    };
    Ok(serving_tls(settings, client_ca, SystemClock.now())?)
}

fn pem(der: &[u8]) -> String {
    let body = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

pub(crate) fn registry(settings: &Settings) -> anyhow::Result<Option<Registry>> {
    let Some(url) = settings.registry.clone() else { return Ok(None) };
    let ca = settings.registry_ca.clone();
    let trust = ca.map_or(TlsTrust::System, TlsTrust::SystemAndCaFile);
    let tls = trust.client_config().context("EPOCH_CA_CERT")?;
    let http = reqwest::Client::builder().tls_backend_preconfigured(tls).build()?;
    let token = settings.registry_token.clone();
    Ok(Some(Registry::new(RegistrySettings { url, token, http })))
}

/// Where no ping may be sent, it is said once here, and by a metric.
fn pinger() -> (Arc<dyn Pinger>, bool) {
    match IcmpPinger::new() {
        Ok(pinger) => (Arc::new(pinger), false),
        Err(error) => {
            tracing::warn!(
                "no ping can be sent, so a VM with an address counts as there (CAP_NET_RAW helps): {error}"
            );
            (Arc::new(NoPinger), true)
        }
    }
}
