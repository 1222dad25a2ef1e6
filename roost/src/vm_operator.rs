//! `roost vm-operator`: the front door of `VirtualMachine` objects, with the environment of the upstream manager.

mod rate_limit;

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::PostParams;
use kube::{Api, Client};
use prometheus_client::registry::Registry;
use roost_agent_forge::vcenter::ForgeVms;
use roost_client::{interruption, say};
use roost_clock::{Random, SystemClock};
use roost_controller::LeaseSettings;
use roost_controller::serve::{Access, Tls, metrics_router, probe_router};
use roost_controller::webhook::SelfMade;
use roost_door::FleetCore;
use roost_fleet::{Fleet, FleetRules, FleetSettings};
use roost_settings::LogSettings;
use roost_tls::ServerTls;
use roost_vim::{Credentials, HttpTransport, Settings, TlsTrust};
use roost_vm_operator::access::LEASE;
use roost_vm_operator::{
    CREDENTIALS_SECRET, OwnVms, PROVIDER_CONFIG_MAP, ProviderConfig, READ_INSTEAD,
    VmOperator as Door, VmOperatorSettings, WORDS,
};
use tokio::task::JoinSet;

use crate::cli::VmOperator;
use crate::fleets::Fleets;
use crate::manager::{self, CertificateFiles, Servers, address, lease};
use crate::page::OwnMetrics;
use crate::telemetry;

pub(crate) async fn run(options: VmOperator) -> anyhow::Result<()> {
    let mut registry = Registry::default();
    let own = OwnMetrics::register(&mut registry);
    let _logging = telemetry::init_service(LogSettings::default(), own.log_line_dropped());
    let variable = |name: &str| std::env::var(name).ok();
    let settings = VmOperatorSettings::default();
    let settings =
        settings.with_environment(&variable).map_err(|problems| named("environment", &problems))?;
    let client = Client::try_default().await.context("finding the Kubernetes API server")?;
    let client = rate_limit::limited(client, settings.rate_limit);
    let home = variable("POD_NAMESPACE").unwrap_or_else(|| client.default_namespace().to_owned());
    let secret = variable("VC_CREDS_SECRET_NAME");
    let Open { fleet, config: provider, .. } =
        open(&client, &home, secret, &Fleets::default()).await?;
    let lease = options.leader_elect.then(|| lease(&home, LEASE));
    let mut settings = over(settings, &provider, lease);
    if options.webhook_service_container_port != 0 {
        settings.admission.operator_account = own_account(&client).await?;
    }

    let interrupted = interruption()?;
    let host = &provider.host;
    let random = Random::from_system();
    let door = Door::new(&client, fleet.clone(), settings, random, &mut registry);
    let mut servers = Servers::new();
    if let Some(address) = address(&options.health_probe_bind_address)? {
        let router = probe_router(door.status());
        servers.serve(address, Tls::Off, router).await?;
    }
    if let Some(address) = address(&options.metrics_bind_address)? {
        let (tls, access) = if options.metrics_secure {
            (metrics_tls(&options)?.into(), Access::reviewed(client.clone()))
        } else {
            (Tls::Off, Access::Open)
        };
        let router = metrics_router(Arc::new(registry), access);
        servers.serve(address, tls, router).await?;
    }
    let mut keeping = JoinSet::new();
    if options.webhook_service_container_port != 0 {
        let address = (Ipv4Addr::UNSPECIFIED, options.webhook_service_container_port).into();
        let tls = webhook_tls(&options, &client, &home, &mut keeping)?;
        servers.serve(address, tls, door.webhooks().router()).await?;
    }
    let shown = fleet.clone();
    let core = Arc::new(FleetCore::new(WORDS, move || vec![shown.clone()]));
    options.page.show(&mut servers, &own, Arc::new(door.door()), Some(core)).await?;
    say(&format!("VirtualMachine objects become VMs on {host}; Ctrl-C stops it, VMs run on\n"));
    Box::pin(door.run(interrupted)).await;
    servers.close().await;
    fleet.shut_down().await;
    Ok(())
}

fn metrics_tls(options: &VmOperator) -> anyhow::Result<ServerTls> {
    let folder = options.metrics_cert_path.as_deref();
    let files = folder.map(|folder| usual_files(folder, "--metrics-cert-path"));
    manager::metrics_tls("vm-operator", files)
}

fn usual_files<'a>(folder: &'a Path, option: &'static str) -> CertificateFiles<'a> {
    CertificateFiles { folder, certificate: "tls.crt", key: "tls.key", option }
}

/// From files whose authority somebody else writes into the configurations, or made and kept by the replicas themselves.
fn webhook_tls(
    options: &VmOperator,
    client: &Client,
    home: &str,
    keeping: &mut JoinSet<()>,
) -> anyhow::Result<Tls> {
    if let Some(folder) = &options.webhook_secret_volume_mount_path {
        return Ok(usual_files(folder, "--webhook-secret-volume-mount-path").read()?.into());
    }
    let (service, secret) = (&options.webhook_service_name, &options.webhook_secret_name);
    let made = SelfMade::new(client.clone(), home, service, secret, Arc::new(SystemClock))
        .for_configuration(&options.webhook_configuration_name);
    let tls = made.tls();
    keeping.spawn(async move { made.run().await });
    Ok(tls)
}

/// Under which name the API server knows us: our own writes are privileged.
async fn own_account(client: &Client) -> anyhow::Result<String> {
    let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
    let asked = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let status = asked.context("asking the API server who we are")?.status;
    status
        .and_then(|status| status.user_info?.username)
        .context("the API server does not say who we are")
}

/// Every problem at once, each with the place to correct.
fn named(place: &str, problems: &[String]) -> anyhow::Error {
    anyhow::anyhow!("the {place} cannot be used:\n  {}", problems.join("\n  "))
}

pub(crate) async fn provider_config(
    client: &Client,
    namespace: &str,
) -> anyhow::Result<ProviderConfig> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let place = format!("ConfigMap {namespace}/{PROVIDER_CONFIG_MAP}");
    let map =
        maps.get_opt(PROVIDER_CONFIG_MAP).await.with_context(|| format!("reading {place}"))?;
    let Some(map) = map else {
        bail!("there is no {place}; it says how the vCenter is reached (docs/vm-operator.md)");
    };
    ProviderConfig::of_config_map(&map.data.unwrap_or_default())
        .map_err(|problems| named(&place, &problems))
}

pub(crate) async fn credentials(
    client: &Client,
    namespace: &str,
    name: Option<String>,
) -> anyhow::Result<Credentials> {
    let name = name.unwrap_or_else(|| CREDENTIALS_SECRET.to_owned());
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let place = format!("Secret {namespace}/{name}");
    let secret = secrets.get_opt(&name).await.with_context(|| format!("reading {place}"))?;
    let Some(secret) = secret else {
        bail!("there is no {place}; it holds username and password of the vCenter");
    };
    let data = secret.data.unwrap_or_default();
    let text = |key: &str| -> anyhow::Result<String> {
        let Some(bytes) = data.get(key) else { bail!("{place} lacks {key}") };
        // The value is not quoted: it is secret.
        String::from_utf8(bytes.0.clone())
            .ok()
            .with_context(|| format!("{place}: {key} is no text"))
    };
    Ok(Credentials::new(text("username")?.trim(), text("password")?.trim_end_matches('\n')))
}

/// The vCenter that the ConfigMap names.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) fleet: Fleet,
    pub(crate) config: ProviderConfig,
    /// Nobody in this process had it open.
    pub(crate) is_new: bool,
}

/// Reads the ConfigMap, and logs in unless another door of this process has.
pub(crate) async fn open(
    client: &Client,
    home: &str,
    secret: Option<String>,
    fleets: &Fleets,
) -> anyhow::Result<Open> {
    let config = provider_config(client, home).await?;
    let address = address_of(&config);
    let (fleet, is_new) = if let Some(fleet) = fleets.at(&address) {
        (fleet, false)
    } else {
        let login = credentials(client, home, secret).await?;
        let fleet = log_in(&config, &address, login).await?;
        fleets.share(&address, &fleet);
        (fleet, true)
    };
    let datacenter = fleet.observer().find_datacenter(&config.provider.datacenter).await;
    fleet.cover(&datacenter.context("Datacenter")?.moref);
    Ok(Open { fleet, config, is_new })
}

pub(crate) fn address_of(config: &ProviderConfig) -> String {
    if config.host.contains("://") {
        config.host.clone()
    } else {
        format!("https://{}:{}", config.host, config.port)
    }
}

async fn log_in(
    config: &ProviderConfig,
    address: &str,
    login: Credentials,
) -> anyhow::Result<Fleet> {
    let mut vcenter = Settings::new(address, login).context("VcPNID")?;
    vcenter.stream.read_instead = Some(READ_INSTEAD);
    let trust = match (&config.ca_file, config.insecure) {
        (_, true) => TlsTrust::Insecure,
        (Some(file), false) => TlsTrust::CaFile(file.into()),
        (None, false) => TlsTrust::System,
    };
    let transport = HttpTransport::new(&trust).context("CAFilePath")?;
    let fleet = Fleet::open(FleetSettings {
        vcenter,
        transport: Arc::new(transport),
        clock: Arc::new(SystemClock),
        doors: vec![Arc::new(OwnVms), Arc::new(ForgeVms)],
        phases: None,
        rules: FleetRules::default(),
    })
    .await?;
    Ok(fleet)
}

/// What the environment says, with the places that the ConfigMap names.
pub(crate) fn over(
    mut settings: VmOperatorSettings,
    config: &ProviderConfig,
    lease: Option<LeaseSettings>,
) -> VmOperatorSettings {
    let said = settings.provider.clone();
    settings.provider = roost_vm_operator::ProviderSettings {
        extra_config: said.extra_config,
        max_creates: said.max_creates,
        async_create: said.async_create,
        image_cache_ttl: said.image_cache_ttl,
        features: said.features,
        ..config.provider.clone()
    };
    settings.lease = lease;
    settings
}
