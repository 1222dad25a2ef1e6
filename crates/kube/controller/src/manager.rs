use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use prometheus_client::registry::Registry;
use roost_clock::{Clock, Random, SystemClock};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use crate::contact::{Contact, ServerTrouble};
use crate::controller::{Controller, ControllerSettings, Lead, SharedClock};
use crate::events::Events;
use crate::lease::{Candidate, LeaseSettings};
use crate::metrics::Metrics;
use crate::object::Object;
use crate::watch::Watch;
use crate::worker::{Phase, Run};
use crate::writer::Writer;

/// How long running passes may take to finish at shutdown.
const DRAIN: Duration = Duration::from_secs(30);

/// How long dropped passes may take to reach an await. Less than what is left of a lease that is lost.
const STOP: Duration = Duration::from_secs(2);

/// How long to wait before a watch that panicked is started again.
const RESTART: Duration = Duration::from_secs(1);

/// The watches and controllers of a process, and the lease that lets them work.
pub struct Manager {
    client: Client,
    writes_as: String,
    clock: SharedClock,
    random: Random,
    metrics: Metrics,
    lease: Option<LeaseSettings>,
    drain: Duration,
    watches: Vec<Factory>,
    synced: Vec<Box<dyn Fn() -> bool + Send + Sync>>,
    leads: Vec<Box<dyn Lead>>,
    events: Events,
    status: Status,
}

/// Makes a future that runs until it is dropped.
type Factory = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// What a manager is doing, for health checks and views. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Status {
    is_leader: watch::Sender<bool>,
    is_synced: watch::Sender<bool>,
    contact: Contact,
}

impl Status {
    fn new() -> Self {
        Self {
            is_leader: watch::Sender::new(false),
            is_synced: watch::Sender::new(false),
            contact: Contact::default(),
        }
    }

    /// Does this process work, rather than stand by?
    pub fn is_leader(&self) -> bool {
        *self.is_leader.borrow()
    }

    /// Have all watches read their first list?
    pub fn is_synced(&self) -> bool {
        *self.is_synced.borrow()
    }

    /// Why the API server cannot be reached, if it cannot.
    pub fn server_trouble(&self) -> Option<ServerTrouble> {
        self.contact.trouble()
    }

    /// Returns once this process leads.
    pub async fn leads(&self) {
        let _ = self.is_leader.subscribe().wait_for(|is_leader| *is_leader).await;
    }
}

impl Manager {
    /// `field_manager` is the name under which the API server books our writes and events.
    pub fn new(client: Client, field_manager: &str, registry: &mut Registry) -> Self {
        let metrics = Metrics::register(registry);
        let client = metrics.requests.count(client);
        let events = Events::new(client.clone(), field_manager);
        Self {
            client,
            writes_as: field_manager.to_owned(),
            clock: Arc::new(SystemClock),
            random: Random::from_system(),
            metrics,
            lease: None,
            drain: DRAIN,
            watches: Vec::new(),
            synced: Vec::new(),
            leads: Vec::new(),
            events,
            status: Status::new(),
        }
    }

    /// Time and chance of a simulation. To be called before anything is watched.
    #[must_use]
    pub fn with_world(mut self, clock: Arc<dyn Clock>, random: Random) -> Self {
        self.events = self.events.with_clock(Arc::clone(&clock));
        (self.clock, self.random) = (clock, random);
        self
    }

    /// Work only while this lease is held. Without it the process is taken to be the only one.
    #[must_use]
    pub fn with_lease(mut self, lease: LeaseSettings) -> Self {
        self.lease = Some(lease);
        self
    }

    #[must_use]
    pub fn with_drain(mut self, drain: Duration) -> Self {
        self.drain = drain;
        self
    }

    /// The client that it was given, with its requests counted.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The handle that changes objects. A door that only observes is not given it.
    pub fn writer(&self) -> Writer {
        Writer::new(self.client.clone(), &self.writes_as, &self.random)
    }

    pub fn events(&self) -> Events {
        self.events.clone()
    }

    pub fn status(&self) -> Status {
        self.status.clone()
    }

    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn random(&self) -> &Random {
        &self.random
    }

    /// Watches a kind. Where several controllers look at it, they share the one watch.
    pub fn watch<K>(&mut self, api: Api<K>) -> Watch<K>
    where
        K: Object + Resource<DynamicType: Default>,
    {
        self.watch_with(api, K::DynamicType::default(), watcher::Config::default())
    }

    /// The same for kinds that are known only at run time, and for a selection by label or field.
    pub fn watch_with<K: Object>(
        &mut self,
        api: Api<K>,
        resource: K::DynamicType,
        config: watcher::Config,
    ) -> Watch<K> {
        let random = self.random.fork(&K::plural(&resource));
        let seen_by = (self.status.contact.clone(), Arc::clone(&self.clock));
        let watch = Watch::new(api, resource, config, random, seen_by);
        let store = watch.store();
        self.synced.push(Box::new(move || store.is_synced()));
        let run = watch.clone();
        self.watches.push(Arc::new(move || {
            let watch = run.clone();
            Box::pin(async move { watch.run().await })
        }));
        watch
    }

    pub fn controller<K: Object>(
        &mut self,
        name: &str,
        watch: &Watch<K>,
        settings: ControllerSettings,
    ) -> Controller<'_, K> {
        Controller::new(self, name, watch, settings)
    }

    pub(crate) fn add(&mut self, lead: Box<dyn Lead>) {
        self.leads.push(lead);
    }

    /// Watches until `shutdown` returns and does nothing else: no pass, no lease, no event.
    pub async fn observe(self, shutdown: impl Future<Output = ()> + Send) {
        self.run_as(Part::Observes, shutdown).await;
    }

    /// Runs until `shutdown` returns, then drains: no new passes, running ones finish, the lease is given up.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        self.run_as(Part::Works, shutdown).await;
    }

    async fn run_as(self, part: Part, shutdown: impl Future<Output = ()> + Send) {
        let mut watches = JoinSet::new();
        for watch in &self.watches {
            watches.spawn(keep_running(Arc::clone(watch)));
        }
        let tell_synced = async {
            while !self.synced.iter().all(|is_synced| is_synced()) {
                sleep(Duration::from_millis(100)).await;
            }
            self.status.is_synced.send_replace(true);
            std::future::pending::<()>().await;
        };
        let events = self.events.run();
        let contact = self.status.contact.keep(&self.client);
        let part = async {
            match part {
                Part::Works => self.lead_until(shutdown).await,
                Part::Observes => shutdown.await,
            }
        };
        tokio::select! {
            () = part => {}
            () = tell_synced => {}
            () = events => {}
            () = contact => {}
        }
        self.events.flush().await;
    }

    async fn lead_until(&self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = std::pin::pin!(shutdown);
        let Some(settings) = &self.lease else {
            self.work(std::future::pending(), &mut shutdown).await;
            return;
        };
        let (client, clock) = (self.client.clone(), Arc::clone(&self.clock));
        let mut candidate = Candidate::new(client, settings.clone(), clock, &self.random);
        loop {
            self.metrics.leads(candidate.name(), false);
            let until = tokio::select! {
                () = &mut shutdown => return,
                until = candidate.acquire() => until,
            };
            self.metrics.leads(candidate.name(), true);
            let ended = self.work(candidate.hold(until), &mut shutdown).await;
            self.metrics.leads(candidate.name(), false);
            match ended {
                Ended::Shutdown => return candidate.release().await,
                Ended::LostInDrain => return,
                // Somebody else may work already; we stand by and try again.
                Ended::Lost => {}
            }
        }
    }

    /// Works until the lease is lost or the process is to end.
    async fn work<S: Future<Output = ()>>(
        &self,
        lost: impl Future<Output = ()>,
        shutdown: &mut std::pin::Pin<&mut S>,
    ) -> Ended {
        let (phase, run) = watch::channel(Phase::Working);
        let mut leads = JoinSet::new();
        for lead in &self.leads {
            info!(controller = lead.name(), "controller {} works", lead.name());
            leads.spawn(lead.run(Run(run.clone())));
        }
        self.status.is_leader.send_replace(true);
        let mut lost = std::pin::pin!(lost);
        let ended = tokio::select! {
            // First, so that a lost lease stops the work even when it is also time to end.
            biased;
            () = &mut lost => Ended::Lost,
            () = shutdown.as_mut() => Ended::Shutdown,
        };
        let ended = match ended {
            Ended::Lost | Ended::LostInDrain => ended,
            Ended::Shutdown => {
                phase.send_replace(Phase::Draining);
                // Passes that still run need the lease: it is renewed until they are done.
                tokio::select! {
                    biased;
                    () = &mut lost => Ended::LostInDrain,
                    finished = timeout(self.drain, finish(&mut leads)) => {
                        if finished.is_err() {
                            warn!("passes did not finish within {:?} and are dropped", self.drain);
                        }
                        Ended::Shutdown
                    }
                }
            }
        };
        phase.send_replace(Phase::Stopped);
        // Each pass ends at its next await; one that blocks its thread is not waited for for ever.
        if timeout(STOP, finish(&mut leads)).await.is_err() {
            leads.abort_all();
        }
        self.status.is_leader.send_replace(false);
        ended
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Works,
    Observes,
}

async fn finish(leads: &mut JoinSet<()>) {
    while leads.join_next().await.is_some() {}
}

enum Ended {
    Shutdown,
    Lost,
    /// The process is to end, and there is no lease to give up any more.
    LostInDrain,
}

/// A watch that panics is started again: its store keeps what it has, and a list brings the rest.
async fn keep_running(factory: Factory) {
    loop {
        if AssertUnwindSafe(factory()).catch_unwind().await.is_err() {
            error!("a watch panicked and is started again");
        }
        sleep(RESTART).await;
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Manager");
        debug.field("writes_as", &self.writes_as).field("lease", &self.lease);
        debug.finish_non_exhaustive()
    }
}
