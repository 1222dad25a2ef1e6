//! `roost run`: the service.

mod source;
mod steer;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use roost_clock::{Random, SystemClock};
use roost_console::{Console, Settings, Steer};
use roost_hatchery::config::{Config, SystemSurroundings};
use roost_hatchery::metrics::Metrics;
use roost_hatchery::run::{Hatchery, Wiring};
use roost_supervise::ServiceManager;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

pub(crate) use self::source::HatcherySource;
pub(crate) use self::steer::HatcherySteer;
pub(crate) use self::tls::load as load_tls;
use crate::output::say;
use crate::{config, telemetry};

/// Starts of workers that are under way when the service is told to stop get this long; what is not done by then is found by the next start.
const GRACE: Duration = Duration::from_secs(30);

pub(crate) async fn run(file: &Path) -> anyhow::Result<()> {
    let config = Arc::new(config::load(file)?);
    telemetry::init_service(config.log);
    let mut stop = Stop::listen()?;
    let tls = load_tls(&config.listen)?;
    let listener = bind(&config).await?;
    let address = listener.local_addr().context("the address that is listened on")?;

    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::register(&mut registry, &config.identity.name));
    let starting = Hatchery::start(wiring(&config, &metrics)?);
    let hatchery = tokio::select! {
        biased;
        () = stop.asked() => return Ok(()),
        started = starting => started?,
    };
    let source = HatcherySource::new(hatchery.window(), registry, Arc::clone(&metrics));
    let scheme = if tls.is_some() { "https" } else { "http" };
    let place = format!("{scheme}://{}/mon/status", reach(address));
    say(&format!("hatchery {} serves, {place}\n", hatchery.name()));

    let (end, ended) = watch::channel(false);
    let settings = Settings {
        token: token(&config)?,
        forwarded_header: config.listen.forwarded_header.clone(),
        tls,
    };
    let steer = Some(Arc::new(HatcherySteer(hatchery.helm())) as Arc<dyn Steer>);
    let page = tokio::spawn(Console { source, steer, settings }.serve(listener, closed(ended)));
    let (mut stopped, manager) = (hatchery.stopped(), ServiceManager::from_environment());
    let why = tokio::select! {
        biased;
        () = stop.asked() => None,
        never = be_supervised(&manager, &hatchery) => match never {},
        why = stopped.wait_for(Option::is_some) => why.ok().and_then(|why| why.clone()),
    };
    tracing::info!("stopping: nothing new is begun");
    manager.stopping("nothing new is begun");
    let mut draining = pin!(hatchery.shut_down(GRACE));
    let left = tokio::select! {
        biased;
        left = &mut draining => left,
        () = stop.asked() => {
            tracing::warn!("asked a second time: what is under way is left to the next start");
            0
        }
    };
    if left > 0 {
        tracing::warn!(left, "steps were not finished; the next start takes them up");
    }
    end.send_replace(true);
    // A client that does not read must not hold us up.
    let _ = tokio::time::timeout(Duration::from_secs(2), page).await;
    match why {
        None => Ok(()),
        Some(why) => Err(anyhow::anyhow!("{why}")),
    }
}

/// Tells the service manager when decisions are made, and from there on that they are. Does not end.
async fn be_supervised(manager: &ServiceManager, hatchery: &Hatchery) -> Infallible {
    hatchery.opened().await;
    manager.ready("open for jobs");
    let window = hatchery.window();
    manager.keep_alive(|| window.liveness().iter().all(|check| check.ok)).await;
    std::future::pending().await
}

/// Where a person on this machine reaches what listens on that address.
fn reach(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        format!("localhost:{}", address.port())
    } else {
        address.to_string()
    }
}

/// What opens the page from elsewhere, and every action.
fn token(config: &Config) -> anyhow::Result<Option<SecretString>> {
    let Some(place) = &config.console_token else { return Ok(None) };
    let token = place
        .read(&SystemSurroundings)
        .context("hatchery.vsphere.commonConfiguration.http.token")?;
    Ok(Some(token.expose().to_owned().into()))
}

fn wiring(config: &Arc<Config>, metrics: &Arc<Metrics>) -> anyhow::Result<Wiring> {
    let api = roost_cds::HttpSettings {
        insecure: config.api.insecure,
        ca_file: config.api.ca_file.clone(),
    };
    Ok(Wiring {
        config: Arc::clone(config),
        surroundings: Arc::new(SystemSurroundings),
        vcenter: Arc::new(
            roost_vim::HttpTransport::new(&config.vcenter.trust).context("the vCenter's TLS")?,
        ),
        cds: Arc::new(roost_cds::HttpTransport::new(&api).context("the CDS API's TLS")?),
        clock: Arc::new(SystemClock),
        random: Random::from_system(),
        metrics: Arc::clone(metrics),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: hostname(),
    })
}

async fn bind(config: &Config) -> anyhow::Result<TcpListener> {
    let host = config.listen.address.as_deref().filter(|host| !host.is_empty()).unwrap_or("[::]");
    let place = format!("{host}:{}", config.listen.port);
    let listening = match TcpListener::bind(&place).await {
        // A machine without IPv6 has no `[::]`.
        Err(_) if host == "[::]" => {
            TcpListener::bind(SocketAddr::from(([0, 0, 0, 0], config.listen.port))).await
        }
        other => other,
    };
    listening.with_context(|| {
        format!(
            "listening on {place} (hatchery.vsphere.commonConfiguration.http.addr and http.port)"
        )
    })
}

async fn closed(mut ended: watch::Receiver<bool>) {
    let _ = ended.wait_for(|ended| *ended).await;
}

fn hostname() -> String {
    let read = |path| std::fs::read_to_string(path).ok();
    let name = read("/proc/sys/kernel/hostname").or_else(|| read("/etc/hostname"));
    name.map(|name| name.trim().to_owned()).unwrap_or_default()
}

/// Whoever asks us to stop: Ctrl-C, or the service manager.
struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    fn listen() -> anyhow::Result<Self> {
        let on = |kind| signal(kind).context("listening for signals");
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
