//! `roost run`: the service.

mod alone;
mod doors;
pub(crate) mod sections;
mod tls;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use roost_agent_forge::vcenter::ForgeVms;
use roost_clock::{Clock, Random, SystemClock};
use roost_console::{Console, Port, Settings, Starter};
use roost_door::{Feed, FrontDoor, History, House, JoinedCore, Links};
use roost_fleet::Recognise;
use roost_hatchery::config::{Config, PageLinks, Surroundings, SystemSurroundings};
use roost_hatchery::metrics::Metrics;
use roost_hatchery::run::{Hatchery, OpenFleet, Wiring};
use roost_hatchery::{Build, HatcheryDoor, WORDS};
use roost_supervise::{ServiceManager, Tasks};
use roost_vm_operator::OwnVms;
use secrecy::SecretString;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use self::doors::Doors;
pub(crate) use self::doors::client;
use self::sections::Sections;
pub(crate) use self::tls::load as load_tls;
use crate::config::Service;
use crate::fleets::Fleets;
use crate::page::{all_run, keep_open};
use crate::{config, telemetry};
use roost_client::say;

/// Starts of workers that are under way when the service is told to stop get this long; what is not done by then is found by the next start.
const GRACE: Duration = Duration::from_secs(30);

const GLANCE: Duration = Duration::from_secs(1);

pub(crate) async fn run(file: &Path, observe_only: bool) -> anyhow::Result<()> {
    let Service { hatchery, sections, log } = config::load(file)?;
    match hatchery {
        Some(config) => with_hatchery(Arc::new(config), &sections, observe_only).await,
        None => Box::pin(alone::run(&sections, log, observe_only)).await,
    }
}

async fn with_hatchery(
    config: Arc<Config>,
    sections: &Sections,
    observe_only: bool,
) -> anyhow::Result<()> {
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::register(&mut registry, &config.identity.name));
    let lost = metrics.own.clone();
    let _logging = telemetry::init_service(config.log, move || lost.log_line_dropped());
    let mut stop = Stop::listen()?;
    let tls = load_tls(&config.listen)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let listener = bind(&config).await?;
    let address = listener.local_addr().context("the address that is listened on")?;
    let name = &config.identity.name;
    let place = format!("{scheme}://{}", reach(address));
    say(&format!("hatchery {name} starts, {place}\n"));

    let settings = Settings {
        token: token(&config)?,
        forwarded_header: config.listen.forwarded_header.clone(),
        tls: tls.clone(),
    };
    let port = Port::new(listener, tls, starter(name));
    let (end, ended) = watch::channel(false);
    let counted = metrics.own.clone();
    let tasks = keep_open(&port, ended, move |what| counted.task_restarted(what));
    let starting = async {
        let hatchery = start(&config, &metrics, sections, observe_only, &port).await?;
        let fleets = Fleets::default();
        fleets.share(&config.vcenter.endpoint, hatchery.fleet());
        let waits_for = |what: &str| port.waits_for(what);
        let doors = Doors::start(sections, &fleets, observe_only, &waits_for).await;
        if doors.is_err() {
            hatchery.shut_down(Duration::ZERO).await;
            hatchery.fleet().shut_down().await;
        }
        anyhow::Ok((hatchery, doors?))
    };
    let (hatchery, mut doors) = tokio::select! {
        biased;
        () = stop.asked() => return Ok(()),
        started = starting => started?,
    };
    let house = house(&hatchery, &doors, registry, metrics, observe_only, &config.listen.links);
    let does = if observe_only { "observes and changes nothing" } else { "serves" };
    port.show(Console { house: Arc::clone(&house), settings });
    say(&format!("hatchery {name} {does}, {place}\n"));
    for other in &doors.shown {
        say(&format!("{} {does}\n", other.words().name));
    }

    let (mut stopped, manager) = (hatchery.stopped(), ServiceManager::from_environment());
    let has_others = !doors.shown.is_empty();
    let why = tokio::select! {
        biased;
        () = stop.asked() => None,
        never = be_supervised(&manager, &hatchery, &house, &tasks) => match never {},
        why = stopped.wait_for(Option::is_some) => {
            why.ok().and_then(|why| why.clone()).map(|why| why.to_string())
        }
        why = doors.one_ended() => Some(why),
        never = glance(&house.feed, has_others) => match never {},
    };
    tracing::info!("stopping: nothing new is begun");
    manager.stopping("nothing new is begun");
    let mut draining = pin!(async {
        let (left, ()) = tokio::join!(hatchery.shut_down(GRACE), doors.stop());
        hatchery.fleet().shut_down().await;
        left
    });
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
    let _ = tokio::time::timeout(Duration::from_secs(2), tasks.finished()).await;
    match why {
        None => Ok(()),
        Some(why) => Err(anyhow::anyhow!("{why}")),
    }
}

/// Doors of Kubernetes do not tell of every change, so that those who look are told to look again.
async fn glance(feed: &Feed, is_needed: bool) -> Infallible {
    loop {
        tokio::time::sleep(GLANCE).await;
        if is_needed && feed.has_listeners() {
            feed.touch();
        }
    }
}

fn starter(name: &str) -> Starter {
    Starter {
        service: name.to_owned(),
        service_type: "hatchery".to_owned(),
        hostname: hostname(),
        clock: Arc::new(SystemClock),
    }
}

/// The doors that run, as the console shows them.
fn house(
    hatchery: &Hatchery,
    others: &Doors,
    registry: Registry,
    metrics: Arc<Metrics>,
    observes_only: bool,
    links: &PageLinks,
) -> Arc<House> {
    let (feed, clock) = (Feed::default(), Arc::new(SystemClock));
    let build = Build {
        git_hash: env!("ROOST_GIT_HASH").to_owned(),
        build_time: env!("ROOST_BUILD_TIME").to_owned(),
    };
    let controls = (!observes_only).then(|| hatchery.controls());
    let door = HatcheryDoor::new(hatchery.window(), controls, registry, metrics, build, &feed);
    let mut doors = vec![Arc::clone(&door) as Arc<dyn FrontDoor>];
    doors.extend(others.shown.iter().cloned());
    Arc::new(House {
        name: hatchery.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock.now(),
        clock,
        observes_only,
        core: Some(Arc::new(JoinedCore {
            first: door,
            others: others.cores.clone(),
            doors: doors.iter().map(|door| door.words()).collect(),
            registries: others.registries.clone(),
        })),
        doors,
        feed,
        history: History::default(),
        links: Links {
            requests: links.request.iter().map(|it| (WORDS.name.to_owned(), it.clone())).collect(),
            vm: links.vm.clone(),
            docs: links.docs.clone(),
        },
        demonstration: None,
    })
}

/// Tells the service manager when decisions are made, and from there on that they are. Does not end.
async fn be_supervised(
    manager: &ServiceManager,
    hatchery: &Hatchery,
    house: &House,
    tasks: &Tasks,
) -> Infallible {
    if house.observes_only {
        manager.ready("observes only");
    } else {
        hatchery.opened().await;
        manager.ready("open for jobs");
    }
    manager.keep_alive(|| all_run(tasks) && house.liveness().holds()).await;
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

async fn start(
    config: &Arc<Config>,
    metrics: &Arc<Metrics>,
    sections: &Sections,
    observe_only: bool,
    port: &Port,
) -> anyhow::Result<Hatchery> {
    let api = roost_cds::HttpSettings {
        insecure: config.api.insecure,
        ca_file: config.api.ca_file.clone(),
    };
    let cds = Arc::new(roost_cds::HttpTransport::new(&api).context("the CDS API's TLS")?);
    let transport =
        roost_vim::HttpTransport::new(&config.vcenter.trust).context("the vCenter's TLS")?;
    let surroundings: Arc<dyn Surroundings + Send + Sync> = Arc::new(SystemSurroundings);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    port.waits_for("the vCenter to answer");
    let mut others: Vec<Arc<dyn Recognise>> = Vec::new();
    if sections.vm_operator.is_some() {
        others.push(Arc::new(OwnVms));
    }
    if sections.agent_forge.is_some() {
        others.push(Arc::new(ForgeVms));
    }
    let transport = Arc::new(transport);
    let vcenter =
        OpenFleet::open(config, &surroundings, transport, &clock, metrics, others).await?;
    let wiring = Wiring {
        config: Arc::clone(config),
        surroundings,
        vcenter,
        cds,
        clock,
        random: Random::from_system(),
        metrics: Arc::clone(metrics),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: hostname(),
    };
    let started = if observe_only {
        Hatchery::observe(wiring).await
    } else {
        Hatchery::start_telling(wiring, |what| port.waits_for(what)).await
    };
    Ok(started?)
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
