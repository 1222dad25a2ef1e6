//! From a configuration to a hatchery that decides.

use std::convert::Infallible;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use roost_cds::{CdnConfig, Registration, Secret, Settings, WorkerNames};
use roost_fleet::{Fleet, FleetSettings, OpenError, PoolId, Recognise};
use roost_supervise::{Chain, Tasks};
use roost_vim::Remedy;
use tokio::sync::{Semaphore, SetOnce, watch};
use tokio::time::sleep;
use url::Url;

use super::cds_calls::CountedCalls;
use super::cleanup::{self, Deletions};
use super::context::{Context, Running, Signals};
use super::models::Models;
use super::observe::{self, CallMeter, NamesSeen};
use super::others::Others;
use super::scheduler::{SchedulerState, lock};
use super::site::{self, Login};
use super::steer::Steering;
use super::workers::Workers;
use super::{Mode, StartError, Stopped, Wiring, demand, keeping, others, register, spawn};
use crate::annotation::HatcheryVms;
use crate::config::{Config, SecretSource, Surroundings};
use crate::door::HATCHERY;
use crate::metrics::Metrics;
use crate::process::ProcessMark;
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
/// Tasks of an earlier process get ten minutes, and what they did half a minute each to be seen.
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
    let OpenFleet { fleet, calls } = vcenter;
    let observer = fleet.observer();
    waits_for("the vCenter to show the places where VMs go");
    let (datacenter, site) = site::find(&observer, &config.vcenter.place)
        .await
        .map_err(|source| StartError::Site { source })?;
    // After the places: a file that names a network that is not there is found before anybody hears of it. A sign-in writes this file's address and key into the hatchery's record, for the one that may be at work under the same name.
    if mode == Mode::Works {
        waits_for("CDS to take the sign-in");
        cds.sign_in().await.map_err(|source| StartError::SignIn { source })?;
    }
    let guests = fleet.machines().guest_operations().await;
    guests.map_err(|source| StartError::Guests { source })?;
    fleet.open_account(HATCHERY, config.ledger_limits(), config.addresses.clone());
    fleet.cover(&datacenter);

    let cdn = CdnConfig {
        tcp_url: config.cdn.tcp_url.clone().unwrap_or_default(),
        tcp_url_enable_tls: config.cdn.tcp_tls,
        http_url: config.cdn.url.clone().unwrap_or_default(),
    };
    let cx = Arc::new(Context {
        scheduler: Arc::new(Mutex::new(SchedulerState::new(&config, fleet.shared_ledger()))),
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
        others: Others::new(ProcessMark::new(clock.now(), random.fork("process").next_u64())),
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
    let tasks = Arc::new(supervised(&cx));
    begin(&cx, &tasks, mode);
    Ok(Running { cx, tasks })
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
            rules: config.fleet.clone(),
        };
        match Fleet::open(settings).await {
            Ok(fleet) => Ok(Self { fleet, calls }),
            Err(OpenError::LoginRefused { user }) => Err(StartError::LoginRefused { user }),
            Err(OpenError::Connect { source }) => Err(StartError::Vcenter { source }),
        }
    }
}

fn supervised(cx: &Context) -> Tasks {
    let metrics = cx.metrics.own.clone();
    Tasks::new(move |what| metrics.task_restarted(what)).outlasting_work(&[INVENTORY, WORKER_LISTS])
}

fn begin(cx: &Arc<Context>, tasks: &Arc<Tasks>, mode: Mode) {
    let on = Arc::clone(cx);
    let all = Arc::clone(tasks);
    tasks.supervise(INVENTORY, move || follow_inventory(Arc::clone(&on), Arc::clone(&all)));
    if mode == Mode::ObservesOnly {
        return;
    }
    supervise(cx, tasks, OPENING, open);
    supervise(cx, tasks, WORKER_LISTS, |cx, tasks| async move {
        cx.follow_workers(&tasks).await;
    });
    if cx.cds.v1().is_some() && cx.config.models_v1 {
        supervise(cx, tasks, "worker-models", |cx, tasks| async move {
            cx.follow_models(&tasks).await;
        });
    }
    if cx.cds.v1().is_some() {
        supervise(cx, tasks, task::V1_QUEUE, demand::listen_v1);
    }
    if cx.cds.v2().is_some() && cx.config.poll_v2 {
        supervise(cx, tasks, task::V2_QUEUE, demand::listen_v2);
    }
    supervise(cx, tasks, others::TASK, others::follow);
    supervise(cx, tasks, task::MAIN, demand::serve);
    supervise(cx, tasks, task::PROVISIONING, keeping::keep);
    supervise(cx, tasks, task::CLEANUP, cleanup::keep_clean);
    supervise(cx, tasks, task::DISABLED, cleanup::keep_right);
    supervise(cx, tasks, task::METRICS, observe::keep_counting);
    if cx.cds.v1().is_some() {
        supervise(cx, tasks, "heartbeat-v1", observe::beat_v1);
    }
    if cx.cds.v2().is_some() {
        supervise(cx, tasks, "heartbeat-v2", observe::beat_v2);
    }
    supervise(cx, tasks, "cds-version", observe::follow_version);
    if register::is_wanted(cx) {
        supervise(cx, tasks, "registration", register::keep_registered);
    }
}

/// A loop that begins once decisions can be made, unless it is what makes them possible.
pub(super) fn supervise<F>(
    cx: &Arc<Context>,
    tasks: &Arc<Tasks>,
    name: &'static str,
    body: impl Fn(Arc<Context>, Arc<Tasks>) -> F + Send + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let (cx, on) = (Arc::clone(cx), Arc::clone(tasks));
    tasks.supervise(name, move || body(Arc::clone(&cx), Arc::clone(&on)));
}

async fn follow_inventory(cx: Arc<Context>, tasks: Arc<Tasks>) {
    loop {
        let followed = tokio::select! {
            biased;
            followed = cx.fleet.follow() => followed,
            never = note_progress(&cx, &tasks) => match never {},
        };
        match followed {
            // The client was shut down.
            Ok(()) => return,
            Err(error) if error.remedy() == Remedy::GiveUp => {
                cx.stop(Stopped::Inventory(Chain(&error).to_string()));
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
async fn note_progress(cx: &Context, tasks: &Tasks) -> Infallible {
    let (mut stream, mut changes) = (cx.mirror.stream(), cx.mirror.changes());
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
async fn open(cx: Arc<Context>, tasks: Arc<Tasks>) {
    tasks.rest(OPENING);
    while !cx.mirror.wait_complete(Duration::from_mins(1)).await {
        tracing::info!("still reading the inventory");
    }
    tasks.beat(OPENING, OPEN_WITHIN + cx.patience());
    while let Err(error) = cx.wait_for_earlier_tasks().await {
        tracing::warn!("the vCenter's tasks are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, OPEN_WITHIN + cx.patience());
    }
    tasks.beat(OPENING, cx.patience());
    while let Err(error) = cx.read_workers().await {
        tracing::warn!("the workers are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, cx.patience());
    }
    while let Err(error) = cx.read_models().await {
        tracing::warn!("the worker models are read again in {PAUSE:?}: {}", Chain(&error));
        sleep(PAUSE).await;
        tasks.beat(OPENING, cx.patience());
    }
    learn_cdn(&cx, &tasks).await;
    let (vms, own) = {
        let snapshot = cx.mirror.snapshot();
        (snapshot.len(), snapshot.owned_by(HATCHERY, cx.hatchery()).count())
    };
    tracing::info!(hatchery = cx.hatchery(), vms, own, "open for jobs");
    // What is there by now is what an earlier process left; what comes from another one after this shows that it is at work.
    tasks.beat(OPENING, cx.patience());
    if cx.ask_earlier_process().await.is_none() {
        // Before anybody decides about them.
        spawn::adopt(&cx, &tasks);
    }
    // Set already if this task began anew after a panic.
    let _ = cx.opened.set(());
    cx.open.send_replace(true);
}

/// What the configuration leaves open about the CDN is asked of CDS. An API without one says so, and workers then get none.
async fn learn_cdn(cx: &Context, tasks: &Tasks) {
    let known = cx.cdn();
    if !known.http_url.is_empty() && !known.tcp_url.is_empty() {
        return;
    }
    loop {
        tasks.beat(OPENING, cx.patience());
        match cx.cds.cdn_config().await {
            Ok(told) => {
                let mut cdn = lock(&cx.cdn);
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
