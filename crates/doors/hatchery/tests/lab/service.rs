//! One hatchery as its operator has it: a file, and a process that runs, dies and comes back.

use std::sync::Arc;

use prometheus_client::registry::Registry;
use roost_cds::JobId;
use roost_clock::{Clock, Random};
use roost_fleet::{Decision, Recognise, Subject};
use roost_hatchery::config::{Config, Surroundings};
use roost_hatchery::door::HATCHERY;
use roost_hatchery::metrics::{Metrics, exposition};
use roost_hatchery::run::{Hatchery, OpenFleet, StartError, Wiring};
use tokio::time::timeout;

use super::doors::{CdsDoor, CrashAt, Fuse, VcenterDoor};
use super::mins;
use super::setup::{Nothing, Setup};
use super::world::World;

pub(crate) struct Service {
    setup: Setup,
    config: Arc<Config>,
    running: Option<Hatchery>,
    registry: Registry,
    fuse: Arc<Fuse>,
    starts: u64,
    /// Tells the chances of two processes of one name apart.
    seat: &'static str,
    /// Doors beside the hatchery, which its fleet is opened for.
    pub(crate) others: Vec<Arc<dyn Recognise>>,
}

/// How a start came out.
#[derive(Debug)]
pub(crate) enum Start {
    Runs,
    /// The fuse blew on the way.
    Died(String),
    Refused(StartError),
}

impl Service {
    pub(crate) fn new(setup: Setup) -> Self {
        let config = Arc::new(setup.load());
        let (registry, fuse) = (Registry::default(), Fuse::new(None));
        let (starts, seat, others) = (0, "", Vec::new());
        Self { setup, config, running: None, registry, fuse, starts, seat, others }
    }

    /// Another process of the same file, on another machine.
    pub(crate) fn second(setup: Setup) -> Self {
        Self { seat: " second", ..Self::new(setup) }
    }

    pub(crate) fn name(&self) -> &str {
        self.setup.name()
    }

    pub(crate) fn setup(&self) -> &Setup {
        &self.setup
    }

    pub(crate) fn config(&self) -> &Arc<Config> {
        &self.config
    }

    pub(crate) fn fuse(&self) -> &Arc<Fuse> {
        &self.fuse
    }

    pub(crate) fn starts(&self) -> u64 {
        self.starts
    }

    /// Starts a process that dies at the given call, if it comes so far.
    pub(crate) async fn start(&mut self, world: &World, crash: Option<CrashAt>) -> Start {
        self.starts += 1;
        self.fuse = Fuse::new(crash);
        self.registry = Registry::default();
        let metrics = Metrics::register(&mut self.registry, self.setup.name());
        let label = format!("{} {}{}", self.setup.name(), self.starts, self.seat);
        let vcenter = VcenterDoor { vcenter: world.vcenter.clone(), fuse: Arc::clone(&self.fuse) };
        let (config, clock) = (Arc::clone(&self.config), world.machine_clock.clone());
        let surroundings: Arc<dyn Surroundings + Send + Sync> = Arc::new(Nothing);
        let (metrics, name) = (Arc::new(metrics), self.setup.name().to_owned());
        let cds = Arc::new(CdsDoor { cds: world.cds.clone(), fuse: Arc::clone(&self.fuse) });
        let random = Random::from_seed(world.seed).fork(&label);
        let others = self.others.clone();
        let starting = async move {
            let clock: Arc<dyn Clock> = clock;
            let vcenter = Arc::new(vcenter);
            let vcenter =
                OpenFleet::open(&config, &surroundings, vcenter, &clock, &metrics, others).await?;
            Hatchery::start(Wiring {
                config,
                surroundings,
                vcenter,
                cds,
                clock,
                random,
                metrics,
                version: "0.57.0".to_owned(),
                hostname: format!("host-of-{name}"),
            })
            .await
        };
        let fuse = Arc::clone(&self.fuse);
        tokio::select! {
            biased;
            why = fuse.blown() => Start::Died(why),
            started = Box::pin(starting) => match started {
                Ok(hatchery) => {
                    self.running = Some(hatchery);
                    Start::Runs
                }
                Err(error) => Start::Refused(error),
            },
        }
    }

    /// Starts a process and waits until it decides.
    pub(crate) async fn open(&mut self, world: &World) {
        match self.start(world, None).await {
            Start::Runs => {}
            Start::Died(why) => panic!("it died at {why}"),
            Start::Refused(error) => panic!("it does not start: {}", chain(&error)),
        }
        let opened = timeout(mins(30), self.hatchery().opened()).await;
        assert!(opened.is_ok(), "half an hour has passed and it is not open");
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    pub(crate) fn hatchery(&self) -> &Hatchery {
        self.running.as_ref().expect("the hatchery runs")
    }

    /// The process dies. What it sent is carried out, and nothing more reaches anybody.
    pub(crate) fn crash(&mut self) {
        self.fuse.blow("a crash");
        self.running = None;
    }

    /// The process is asked to end, and does.
    pub(crate) async fn shut_down(&mut self, grace: std::time::Duration) -> usize {
        let hatchery = self.running.take().expect("the hatchery runs");
        let left = hatchery.shut_down(grace).await;
        hatchery.fleet().shut_down().await;
        left
    }

    pub(crate) fn verdict(&self, job: &JobId) -> Option<Arc<Decision>> {
        let subject = HATCHERY.about_request(job.to_string());
        self.running.as_ref()?.journal().latest(&subject)
    }

    /// What Prometheus would see.
    pub(crate) fn metrics(&self) -> String {
        exposition(&self.registry).unwrap()
    }
}

/// An error and all its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    roost_supervise::Chain(error).to_string()
}
