//! A service of Kubernetes doors without a hatchery.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use prometheus_client::registry::Registry;
use roost_client::say;
use roost_clock::{Clock, SystemClock};
use roost_console::{Console, Port, Settings, Starter};
use roost_door::{Core, Feed, FleetCore, History, House, JoinedCore};
use roost_settings::LogSettings;
use roost_supervise::ServiceManager;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::doors::Doors;
use super::sections::Sections;
use super::{Stop, glance, hostname, reach};
use crate::fleets::Fleets;
use crate::page::{OwnMetrics, all_run, keep_open};
use crate::telemetry;

pub(super) async fn run(
    sections: &Sections,
    log: LogSettings,
    observe_only: bool,
) -> anyhow::Result<()> {
    let mut registry = Registry::default();
    let own = OwnMetrics::register(&mut registry);
    let _logging = telemetry::init_service(log, own.log_line_dropped());
    let mut stop = Stop::listen()?;
    let console = &sections.console;
    let host = console.addr.as_deref().unwrap_or("0.0.0.0");
    let place = format!("{host}:{}", console.port);
    let listener = TcpListener::bind(&place).await;
    let listener = listener
        .with_context(|| format!("listening on {place} (console.addr and console.port)"))?;
    let url = format!("http://{}", reach(listener.local_addr().context("the page's address")?));
    let name = sections.names().join(", ");
    say(&format!("{name}: starts, {url}\n"));

    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let starter = Starter {
        service: name.clone(),
        service_type: "roost".to_owned(),
        hostname: hostname(),
        clock: Arc::clone(&clock),
    };
    let port = Port::new(listener, None, starter);
    let (end, ended) = watch::channel(false);
    let tasks = keep_open(&port, ended, own.task_restarted());
    let (fleets, manager) = (Fleets::default(), ServiceManager::from_environment());
    let waits_for = |what: &str| port.waits_for(what);
    let mut doors = tokio::select! {
        biased;
        () = stop.asked() => return Ok(()),
        doors = Doors::start(sections, &fleets, observe_only, &waits_for) => doors?,
    };
    let mut cores = doors.cores.clone();
    let none = || Arc::new(FleetCore::new(NOBODY, Vec::new)) as Arc<dyn Core>;
    let first = if cores.is_empty() { none() } else { cores.remove(0) };
    let feed = Feed::default();
    let mut registries = doors.registries.clone();
    registries.push(Arc::new(registry));
    let house = Arc::new(House {
        name: name.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: clock.now(),
        clock,
        observes_only: observe_only,
        core: Some(Arc::new(JoinedCore {
            first,
            others: cores,
            doors: doors.shown.iter().map(|door| door.words()).collect(),
            registries,
        })),
        doors: doors.shown.clone(),
        feed,
        history: History::default(),
        links: console.links.clone(),
        demonstration: None,
    });
    let token = console.token.as_ref().map(|token| token.expose().to_owned().into());
    let settings = Settings { token, forwarded_header: None, tls: None };
    port.show(Console { house: Arc::clone(&house), settings });
    let does = if observe_only { "observes and changes nothing" } else { "serves" };
    say(&format!("{name}: {does}, {url}\n"));
    manager.ready(does);
    let supervised = async {
        manager.keep_alive(|| all_run(&tasks) && house.liveness().holds()).await;
        std::future::pending::<()>().await;
    };
    let why = tokio::select! {
        biased;
        () = stop.asked() => None,
        why = doors.one_ended() => Some(why),
        never = glance(&house.feed, true) => match never {},
        () = supervised => None,
    };
    manager.stopping("nothing new is begun");
    tokio::select! {
        biased;
        () = doors.stop() => {}
        () = stop.asked() => tracing::warn!("asked a second time: the rest is left to the next start"),
    }
    end.send_replace(true);
    let _ = tokio::time::timeout(Duration::from_secs(2), tasks.finished()).await;
    match why {
        None => Ok(()),
        Some(why) => Err(anyhow::anyhow!("{why}")),
    }
}

/// For a node alone, which has no vCenter.
const NOBODY: roost_door::DoorWords = roost_door::DoorWords {
    name: "roost",
    noun: "request",
    nouns: "requests",
    group: "project",
    about: "",
};
