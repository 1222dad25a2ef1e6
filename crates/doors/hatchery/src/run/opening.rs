//! From a configuration to a hatchery that decides.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_cds::{CdnConfig, Registration, Secret, Settings, WorkerNames};
use roost_fleet::{Fleet, FleetRules, FleetSettings, OpenError, PoolId, Recognise};
use roost_supervise::{Chain, Tasks};
use roost_vim::Remedy;
use tokio::sync::{Semaphore, SetOnce, watch};
use tokio::time::sleep;
use url::Url;

use super::cds_calls::CountedCalls;
use super::cleanup::{self, Deletions};
use super::desk::{Desk, lock};
use super::models::Models;
use super::nest::{Nest, Running, Signals};
use super::observe::{self, CallMeter, NamesSeen};
use super::site::{self, Login};
use super::steer::Steering;
use super::workers::Workers;
use super::{Mode, StartError, Stopped, Wiring, demand, keeping, register, spawn};
use crate::annotation::HatcheryVms;
use crate::config::{Config, SecretSource, Surroundings};
use crate::door::HATCHERY;
use crate::metrics::Metrics;
use crate::status::task;

const PAUSE: Duration = Duration::from_secs(10);
/// Jobs that are asked about at the same time.
const ASKING: usize = 8;
/// A CDN that CDS cannot name is asked for again at this interval.
const CDN_PAUSE: Duration = Duration::from_secs(2);

const INVENTORY: &str = "inventory";
const WORKER_LISTS: &str = "worker-lists";
const OPENING: &str = "opening";
/// A wait for news ends after a minute, a call after less; a whole load is a row of them. Many times that is a stream that hangs.
const UNHEARD: Duration = Duration::from_mins(15);
/// Clones of an earlier process get ten minutes, and their VMs half a minute each to be seen.
const OPEN_WITHIN: Duration = Duration::from_mins(30);

pub(super) async fn start(
    wiring: Wiring,
    mode: Mode,
    waits_for: &(dyn Fn(&str) + Send + Sync),
) -> Result<Running, StartError> {
    let Wiring { config, surroundings, vcenter, cds, clock, random, metrics, version, hostname } =
        wiring;
    let cds = Arc::new(CountedCalls { transport: cds, metrics: metrics.own.clone() });
    let cds = roost_cds::Client::new(
        cds_settings(&config, &*surroundings, &version)?,
        cds,
        Arc::clone(&clock),
    )
    .map_err(|source| StartError::Api { source })?;
    // A sign-in writes this file's address and key into the hatchery's record, for the one that may be at work under the same name.
    if mode == Mode::Works {
        waits_for("CDS to take the sign-in");
        cds.sign_in().await.map_err(|source| StartError::SignIn { source })?;
    }

    let OpenFleet { fleet, calls } = vcenter;
    let observer = fleet.observer();
    waits_for("the vCenter to show the places where VMs go");
    let (datacenter, site) = site::find(&observer, &config.vcenter.place)
        .await
        .map_err(|source| StartError::Site { source })?;
    let guests = fleet.machines().guest_operations().await;
    guests.map_err(|source| StartError::Guests { source })?;
    fleet.open_account(HATCHERY, config.ledger_limits(), config.addresses.clone());
    fleet.cover(&datacenter);

    let cdn = CdnConfig {
        tcp_url: config.cdn.tcp_url.clone().unwrap_or_default(),
        tcp_url_enable_tls: config.cdn.tcp_tls,
        http_url: config.cdn.url.clone().unwrap_or_default(),
    };
    let nest = Arc::new(Nest {
        desk: Arc::new(Mutex::new(Desk::new(&config, fleet.shared_ledger()))),
        names: Mutex::new(WorkerNames::new(random.fork("names"))),
        random: Mutex::new(random.fork("ids")),
        mirror: fleet.mirror().clone(),
        machines: fleet.machines().clone(),
        timelines: fleet.timelines().clone(),
        pool: PoolId::from(&site.pool),
        workers: Workers::default(),
        models: Models::default(),
        deletions: Deletions::new(fleet.guard(&config.identity.name)),
        journal: fleet.journal().clone(),
        signals: Signals::default(),
        steering: Steering::default(),
        started: clock.now(),
        cdn: Mutex::new(cdn),
        asking: Semaphore::new(ASKING),
        queues: Mutex::default(),
        hearts: Mutex::default(),
        calls,
        names_seen: NamesSeen::default(),
        standing: Mutex::default(),
        open: watch::Sender::default(),
        opened: SetOnce::new(),
        stopped: watch::Sender::default(),
        vcenter: observer,
        fleet,
        config,
        surroundings,
        clock,
        site,
        cds,
        metrics,
        version,
        cds_version: Mutex::default(),
        hostname,
    });
    let tasks = Arc::new(supervised(&nest));
    begin(&nest, &tasks, mode);
    Ok(Running { nest, tasks })
}

/// What a hatchery with this configuration says at its sign-in.
pub fn cds_settings(
    config: &Config,
    surroundings: &dyn Surroundings,
    version: &str,
) -> Result<Settings, StartError> {
    let secret = |what, source: &Option<SecretSource>| -> Result<Option<Secret>, StartError> {
        source
            .as_ref()
            .map(|source| source.read(surroundings))
            .transpose()
            .map_err(|source| StartError::Secret { what, source })
    };
    let url = &config.api.url;
    Ok(Settings {
        url: Url::parse(url)
            .map_err(|source| StartError::ApiAddress { url: url.clone(), source })?,
        request_timeout: config.api.request_timeout,
        token: secret("api.token", &config.api.tokens.v1)?,
        token_v2: secret("api.tokenV2", &config.api.tokens.v2)?,
        registration: Registration {
            name: config.identity.name.clone(),
            http_url: config.identity.url.clone(),
            config: config.public_config(),
            key: Arc::clone(&config.identity.key),
            region: config.region.name.clone(),
            ignore_job_with_no_region: config.region.ignore_jobs_without,
            os_arch: config.identity.os_arch.clone(),
            version: version.to_owned(),
        },
    })
}

/// The vCenter of a configuration, opened for this hatchery and whoever else works in it.
#[derive(Debug)]
pub struct OpenFleet {
    pub fleet: Fleet,
    pub(super) calls: Arc<CallMeter>,
}

impl OpenFleet {
    /// Logs in. `others` are the doors beside the hatchery.
    pub async fn open(
        config: &Config,
        surroundings: &Arc<dyn Surroundings + Send + Sync>,
        transport: Arc<dyn roost_vim::Transport>,
        clock: &Arc<dyn roost_clock::Clock>,
        metrics: &Metrics,
        others: Vec<Arc<dyn Recognise>>,
    ) -> Result<Self, StartError> {
        let login = Login::new(&config.vcenter, surroundings);
        let mut vcenter = roost_vim::Settings::new(&config.vcenter.endpoint, login)
            .map_err(|source| StartError::VcenterAddress { source })?;
        let calls = Arc::new(CallMeter::new(metrics.own.clone()));
        vcenter.hooks = calls.clone();
        let mut doors: Vec<Arc<dyn Recognise>> = vec![Arc::new(HatcheryVms)];
        doors.extend(others);
        let settings = FleetSettings {
            vcenter,
            transport,
            clock: Arc::clone(clock),
            doors,
            phases: Some(Arc::new(metrics.own.clone())),
            rules: FleetRules::default(),
        };
        match Fleet::open(settings).await {
            Ok(fleet) => Ok(Self { fleet, calls }),
            Err(OpenError::LoginRefused { user }) => Err(StartError::LoginRefused { user }),
            Err(OpenError::Connect { source }) => Err(StartError::Vcenter { source }),
        }
    }
}

fn supervised(nest: &Nest) -> Tasks {
    let metrics = nest.metrics.own.clone();
    Tasks::new(move |what| metrics.task_restarted(what)).outlasting_work(&[INVENTORY, WORKER_LISTS])
}

fn begin(nest: &Arc<Nest>, tasks: &Arc<Tasks>, mode: Mode) {
    let on = Arc::clone(nest);
    let all = Arc::clone(tasks);
    tasks.supervise(INVENTORY, move || follow_inventory(Arc::clone(&on), Arc::clone(&all)));
    if mode == Mode::ObservesOnly {
        return;
    }
    supervise(nest, tasks, OPENING, open);
    supervise(nest, tasks, WORKER_LISTS, |nest, tasks| async move {
        nest.follow_workers(&tasks).await;
    });
    if nest.cds.v1().is_some() && nest.config.models_v1 {
        supervise(nest, tasks, "worker-models", |nest, tasks| async move {
            nest.follow_models(&tasks).await;
        });
    }
    if nest.cds.v1().is_some() {
        supervise(nest, tasks, task::V1_QUEUE, demand::listen_v1);
    }
    if nest.cds.v2().is_some() && nest.config.poll_v2 {
        supervise(nest, tasks, task::V2_QUEUE, demand::listen_v2);
    }
    supervise(nest, tasks, task::MAIN, demand::serve);
    supervise(nest, tasks, task::PROVISIONING, keeping::keep);
    supervise(nest, tasks, task::CLEANUP, cleanup::keep_clean);
    supervise(nest, tasks, task::DISABLED, cleanup::keep_right);
    supervise(nest, tasks, task::METRICS, observe::keep_counting);
    if nest.cds.v1().is_some() {
        supervise(nest, tasks, "heartbeat-v1", observe::beat_v1);
    }
    if nest.cds.v2().is_some() {
        supervise(nest, tasks, "heartbeat-v2", observe::beat_v2);
    }
    supervise(nest, tasks, "cds-version", observe::follow_version);
    if register::is_wanted(nest) {
        supervise(nest, tasks, "registration", register::keep_registered);
    }
}

/// A loop that begins once decisions can be made, unless it is what makes them possible.
pub(super) fn supervise<F>(
    nest: &Arc<Nest>,
    tasks: &Arc<Tasks>,
    name: &'static str,
    body: impl Fn(Arc<Nest>, Arc<Tasks>) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let (nest, on) = (Arc::clone(nest), Arc::clone(tasks));
    tasks.supervise(name, move || body(Arc::clone(&nest), Arc::clone(&on)));
}

async fn follow_inventory(nest: Arc<Nest>, tasks: Arc<Tasks>) {
    loop {
        let followed = tokio::select! {
            biased;
            followed = nest.fleet.follow() => followed,
            never = note_progress(&nest, &tasks) => match never {},
        };
        match followed {
            // The client was shut down.
            Ok(()) => return,
            Err(error) if error.remedy() == Remedy::GiveUp => {
                nest.stop(Stopped::Inventory(Chain(&error).to_string()));
                return;
            }
            Err(error) => {
                tracing::warn!("the inventory is followed again in {PAUSE:?}: {}", Chain(&error));
                sleep(PAUSE).await;
            }
        }
    }
}

/// The stream is heard at every answer of the vCenter, also at one without news, and at every call that failed.
async fn note_progress(nest: &Nest, tasks: &Tasks) -> Infallible {
    let (mut stream, mut changes) = (nest.mirror.stream(), nest.mirror.changes());
    loop {
        // What it waits for then is the vCenter, and after a refused login for as long as that takes: a restart would only lock the account.
        if stream.borrow_and_update().trouble.is_some() {
            tasks.rest(INVENTORY);
        } else {
            tasks.beat(INVENTORY, UNHEARD);
        }
        let heard = async {
            tokio::select! {
                biased;
                heard = stream.changed() => heard,
                heard = changes.changed() => heard,
            }
        };
        if heard.await.is_err() {
            return pending().await;
        }
    }
}

/// Reads everything once, then lets the loops decide.
async fn open(nest: Arc<Nest>, tasks: Arc<Tasks>) {
    tasks.rest(OPENING);
    while !nest.mirror.wait_complete(Duration::from_mins(1)).await {
        tracing::info!("still reading the inventory");
    }
    tasks.beat(OPENING, OPEN_WITHIN + nest.patience());
    while let Err(error) = nest.wait_for_earlier_clones().await {
        tracing::warn!("the vCenter's tasks are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, OPEN_WITHIN + nest.patience());
    }
    tasks.beat(OPENING, nest.patience());
    while let Err(error) = nest.read_workers().await {
        tracing::warn!("the workers are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, nest.patience());
    }
    while let Err(error) = nest.read_models().await {
        tracing::warn!("the worker models are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, nest.patience());
    }
    learn_cdn(&nest, &tasks).await;
    let (vms, own) = {
        let snapshot = nest.mirror.snapshot();
        (snapshot.len(), snapshot.owned_by(HATCHERY, nest.hatchery()).count())
    };
    tracing::info!(hatchery = nest.hatchery(), vms, own, "open for jobs");
    // Before anybody decides about them.
    spawn::adopt(&nest, &tasks);
    // Set already if this task began anew after a panic.
    let _ = nest.opened.set(());
    nest.open.send_replace(true);
}

/// What the configuration leaves open about the CDN is asked of CDS. An API without one says so, and workers then get none.
async fn learn_cdn(nest: &Nest, tasks: &Tasks) {
    let known = nest.cdn();
    if !known.http_url.is_empty() && !known.tcp_url.is_empty() {
        return;
    }
    loop {
        tasks.beat(OPENING, nest.patience());
        match nest.cds.cdn_config().await {
            Ok(told) => {
                let mut cdn = lock(&nest.cdn);
                if cdn.http_url.is_empty() {
                    cdn.http_url = told.http_url;
                }
                if cdn.tcp_url.is_empty() {
                    (cdn.tcp_url, cdn.tcp_url_enable_tls) = (told.tcp_url, told.tcp_url_enable_tls);
                }
                return;
            }
            Err(error) if error.is_gone() => {
                tracing::warn!("CDS has no CDN service; workers are told of none");
                return;
            }
            Err(error) => {
                tracing::warn!("the CDN is asked for again in {CDN_PAUSE:?}: {}", Chain(&error));
                sleep(CDN_PAUSE).await;
            }
        }
    }
}
