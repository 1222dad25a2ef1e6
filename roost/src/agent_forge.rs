//! `roost agent-forge`: the front door of HyperShift NodePools, with the flags of the upstream manager.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use kube::Client;
use prometheus_client::registry::Registry;
use reqwest::header::{ETAG, IF_NONE_MATCH};
use roost_agent_forge::api::names::LEASE;
use roost_agent_forge::iso::{Fetch, Fetched, IsoSource, SourceError};
use roost_agent_forge::vcenter::{Connect, Connecting, ForgeVms, Login};
use roost_agent_forge::{Forge, ForgeParts, WORDS, machine_version};
use roost_client::{interruption, say};
use roost_clock::{Random, SystemClock};
use roost_controller::LeaseSettings;
use roost_controller::serve::{Access, Tls, metrics_router, probe_router};
use roost_door::FleetCore;
use roost_fleet::{Fleet, FleetRules, FleetSettings, OpenError};
use roost_settings::LogSettings;
use roost_tls::{ServerTls, TlsTrust};
use roost_vim::HttpTransport;

use crate::cli::AgentForge;
use crate::fleets::Fleets;
use crate::manager::{self, CertificateFiles, Servers, address, lease};
use crate::page::OwnMetrics;
use crate::telemetry;

pub(crate) async fn run(options: AgentForge) -> anyhow::Result<()> {
    let mut registry = Registry::default();
    let own = OwnMetrics::register(&mut registry);
    let _logging = telemetry::init_service(LogSettings::default(), own.log_line_dropped());
    for (flag, why) in options.without_effect() {
        tracing::warn!("{flag} has no effect: {why}");
    }
    let client = Client::try_default().await.context("finding the Kubernetes API server")?;
    let lease = options.leader_elect.then(|| {
        let namespace = options.leader_election_namespace.as_deref();
        lease(namespace.unwrap_or(client.default_namespace()), LEASE)
    });
    let interrupted = interruption()?;
    let forge = make(client.clone(), lease, Fleets::default(), &mut registry).await?;
    if options.require_secret_consent {
        forge.require_consent_for_secrets();
    }
    let mut servers = Servers::new();
    if let Some(address) = address(&options.health_probe_bind_address)? {
        let router = probe_router(forge.status());
        servers.serve(address, Tls::Off, router).await?;
    }
    if let Some(address) = address(&options.metrics_bind_address)? {
        let (tls, access) = if options.metrics_secure {
            (metrics_tls(&options)?.into(), Access::reviewed(client))
        } else {
            (Tls::Off, Access::Open)
        };
        let router = metrics_router(Arc::new(registry), access);
        servers.serve(address, tls, router).await?;
    }
    let sites = forge.sites();
    let open = move || sites.open_ones().into_iter().map(|site| site.fleet).collect();
    let core = Arc::new(FleetCore::new(WORDS, open));
    options.page.show(&mut servers, &own, Arc::new(forge.door()), Some(core)).await?;
    say("AgentMachines that wait become VMs; Ctrl-C stops it, VMs run on\n");
    Box::pin(forge.run(interrupted)).await;
    servers.close().await;
    Ok(())
}

/// The door on this API server. vCenters that another door has open are shared.
pub(crate) async fn make(
    client: Client,
    lease: Option<LeaseSettings>,
    fleets: Fleets,
    registry: &mut Registry,
) -> anyhow::Result<Forge> {
    let version = machine_version(&client).await.context("asking the Kubernetes API server")?;
    let parts = ForgeParts {
        client,
        connect: Arc::new(OverHttp(fleets)),
        isos: Arc::new(Downloads::new()?),
        clock: Arc::new(SystemClock),
        random: Random::from_system(),
        lease,
        machine_version: version,
    };
    Ok(Forge::new(parts, registry))
}

fn metrics_tls(options: &AgentForge) -> anyhow::Result<ServerTls> {
    let files = options.metrics_cert_path.as_deref().map(|folder| CertificateFiles {
        folder,
        certificate: &options.metrics_cert_name,
        key: &options.metrics_cert_key,
        option: "--metrics-cert-path",
    });
    manager::metrics_tls("agent-forge", files)
}

/// One login for each Secret, but for vCenters that another door of this process has open.
#[derive(Debug)]
struct OverHttp(Fleets);

impl Connect for OverHttp {
    fn connect(&self, login: &Login) -> Connecting {
        let login = login.clone();
        if let Some(fleet) = self.0.at(&login.server) {
            let server = &login.server;
            tracing::info!(server, "{server} is open already: its login and its ledger are shared");
            return Box::pin(std::future::ready(Ok(fleet)));
        }
        Box::pin(async move {
            let vcenter = login.settings().map_err(OpenError::unusable)?;
            let transport = HttpTransport::new(&login.trust).map_err(OpenError::unusable)?;
            let settings = FleetSettings {
                vcenter,
                transport: Arc::new(transport),
                clock: Arc::new(SystemClock),
                doors: vec![Arc::new(ForgeVms)],
                phases: None,
                rules: FleetRules::default(),
            };
            Fleet::open(settings).await
        })
    }
}

/// ISOs over HTTP and HTTPS.
#[derive(Debug)]
struct Downloads {
    usual: reqwest::Client,
    /// Clients that believe other authorities, by their PEM.
    others: Mutex<HashMap<String, reqwest::Client>>,
}

impl Downloads {
    fn new() -> anyhow::Result<Self> {
        let usual = Self::believing(&TlsTrust::System)?;
        Ok(Self { usual, others: Mutex::default() })
    }

    fn believing(trust: &TlsTrust) -> anyhow::Result<reqwest::Client> {
        let tls = trust.client_config().context("setting up TLS")?;
        let client = reqwest::Client::builder().tls_backend_preconfigured(tls).build();
        client.context("setting up HTTP")
    }

    fn client(&self, authorities: Option<&str>) -> anyhow::Result<reqwest::Client> {
        let Some(pem) = authorities else { return Ok(self.usual.clone()) };
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = others.get(pem) {
            return Ok(client.clone());
        }
        let client = Self::believing(&TlsTrust::CaPem(pem.to_owned()))?;
        others.insert(pem.to_owned(), client.clone());
        Ok(client)
    }
}

impl IsoSource for Downloads {
    fn fetch<'a>(&'a self, url: &'a str, known: Option<&'a str>) -> Fetch<'a> {
        self.fetch_trusting(url, known, None)
    }

    fn fetch_trusting<'a>(
        &'a self,
        url: &'a str,
        known: Option<&'a str>,
        authorities: Option<&'a str>,
    ) -> Fetch<'a> {
        Box::pin(async move {
            let client = self.client(authorities);
            let client = client.map_err(|error| SourceError::Download { source: error.into() })?;
            let mut request = client.get(url);
            if let Some(mark) = known {
                request = request.header(IF_NONE_MATCH, mark);
            }
            // The address may hold a token.
            let failed = |error: reqwest::Error| SourceError::Download {
                source: Box::new(error.without_url()),
            };
            let answer = request.send().await.map_err(failed)?;
            if answer.status() == reqwest::StatusCode::NOT_MODIFIED {
                return Ok(Fetched::Unchanged);
            }
            if !answer.status().is_success() {
                return Err(SourceError::Status { status: answer.status().as_u16() });
            }
            let mark = answer.headers().get(ETAG).and_then(|value| value.to_str().ok());
            let (length, mark) = (answer.content_length(), mark.map(str::to_owned));
            let answer: http::Response<reqwest::Body> = answer.into();
            let body = http_body_util::BodyExt::map_err(answer.into_body(), std::io::Error::other);
            Ok(Fetched::Content { length, mark, body: http_body_util::BodyExt::boxed(body) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_as_go_writes_them() {
        assert_eq!(address("0").unwrap(), None);
        assert_eq!(address(":8443").unwrap(), Some("0.0.0.0:8443".parse().unwrap()));
        assert_eq!(address("127.0.0.1:1").unwrap(), Some("127.0.0.1:1".parse().unwrap()));
        assert!(address("8443").unwrap_err().to_string().contains("write :8443"));
    }
}
