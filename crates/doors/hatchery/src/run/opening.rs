//! From a configuration to a hatchery that decides.

use std::sync::Arc;

use roost_cds::{Registration, Secret, Settings};
use roost_fleet::{Fleet, FleetSettings, OpenError, PoolId, Recognise};
use roost_supervise::Tasks;
use url::Url;

use super::about::About;
use super::cds_calls::CountedCalls;
use super::cleanup::{self, Deletions, JobReturns, Judge};
use super::earlier::EarlierTasks;
use super::inventory::{self, INVENTORY};
use super::listen::{self, Listener};
use super::machine::WorkerVms;
use super::models::Models;
use super::observe::{self, CallMeter, NamesSeen, StateReader};
use super::opener::{self, OPENING};
use super::others::{OtherProcesses, Others};
use super::parts::Parts;
use super::recorder::Recorder;
use super::running::Running;
use super::scheduler::{Scheduler, SchedulerState};
use super::signals::Signals;
use super::site::{self, Login};
use super::verdicts::Verdicts;
use super::worker_setup::WorkerSetup;
use super::workers::Workers;
use super::{Mode, StartError, Wiring, keeping, others, planner, register};
use crate::annotation::HatcheryVms;
use crate::config::{Config, SecretSource, Surroundings};
use crate::door::HATCHERY;
use crate::metrics::Metrics;
use crate::process::ProcessMark;
use crate::status::task;

const WORKER_LISTS: &str = "worker-lists";

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

    let own = ProcessMark::new(clock.now(), random.fork("process").next_u64());
    let started = clock.now();
    let about = Arc::new(About { config, surroundings, clock, version, hostname, started });
    let (mirror, machines) = (fleet.mirror().clone(), fleet.machines().clone());
    let timelines = fleet.timelines().clone();
    let (signals, others) = (Arc::<Signals>::default(), Arc::new(Others::new(own)));
    let recorder = Arc::new(Recorder {
        journal: fleet.journal().clone(),
        names_seen: NamesSeen::default(),
        about: Arc::clone(&about),
        mirror: mirror.clone(),
        metrics: Arc::clone(&metrics),
    });
    let state = SchedulerState::new(&about.config, fleet.shared_ledger());
    let seen = (&mirror, &machines);
    let scheduler = Arc::new(Scheduler::new(state, &random, &about, seen, &others));
    let workers = Arc::new(Workers::new(&about, &cds, &mirror, &scheduler, &signals));
    let deletions = Arc::new(Deletions::new(fleet.guard(about.hatchery())));
    let judge = Arc::new(Judge {
        about: Arc::clone(&about),
        workers: Arc::clone(&workers),
        deletions: Arc::clone(&deletions),
        scheduler: Arc::clone(&scheduler),
    });
    let returns = Arc::new(JobReturns {
        about: Arc::clone(&about),
        cds: cds.clone(),
        scheduler: Arc::clone(&scheduler),
        recorder: Arc::clone(&recorder),
        signals: Arc::clone(&signals),
    });
    let processes = Arc::new(OtherProcesses {
        others,
        about: Arc::clone(&about),
        recorder: Arc::clone(&recorder),
        mirror: mirror.clone(),
        machines: machines.clone(),
    });
    let earlier = EarlierTasks {
        about: Arc::clone(&about),
        vcenter: observer.clone(),
        mirror: mirror.clone(),
        machines: machines.clone(),
    };
    let pool = PoolId::from(&site.pool);
    let vms = Arc::new(WorkerVms {
        machines,
        timelines: timelines.clone(),
        about: Arc::clone(&about),
        vcenter: observer.clone(),
        site,
        cds: cds.clone(),
        signals: Arc::clone(&signals),
    });
    let parts = Parts {
        models: Arc::new(Models::new(&about, &cds, &signals)),
        setup: Arc::new(WorkerSetup::new(&about)),
        vcenter: observer,
        steering: Arc::default(),
        lifecycle: Arc::default(),
        cds_link: Arc::default(),
        standing: Arc::default(),
        earlier: Arc::new(earlier),
        about,
        fleet,
        mirror,
        vms,
        pool,
        cds,
        scheduler,
        recorder,
        timelines,
        workers,
        processes,
        deletions,
        judge,
        returns,
        metrics,
        signals,
        calls,
    };
    let verdicts = Arc::new(parts.verdicts());
    let listener = Arc::new(parts.listener(&verdicts));
    let reader = Arc::new(parts.state_reader());
    let metrics = parts.metrics.own.clone();
    let tasks = Tasks::new(move |what| metrics.task_restarted(what));
    let tasks = Arc::new(tasks.outlasting_work(&[INVENTORY, WORKER_LISTS]));
    supervise(&Arc::new(parts.inventory_follower()), &tasks, INVENTORY, inventory::follow);
    if mode == Mode::Works {
        begin(&parts, &listener, &verdicts, &reader, &tasks);
    }
    Ok(Running {
        steerer: Arc::new(parts.steerer(&listener)),
        lifecycle: parts.lifecycle,
        fleet: parts.fleet,
        cds: parts.cds,
        reader,
        tasks,
    })
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

/// Begins the loops that decide. Each has what it needs and nothing else.
fn begin(
    parts: &Parts,
    listener: &Arc<Listener>,
    verdicts: &Arc<Verdicts>,
    reader: &Arc<StateReader>,
    tasks: &Arc<Tasks>,
) {
    let (config, cds) = (&parts.about.config, &parts.cds);
    let spawner = Arc::new(parts.spawner());
    let heart = Arc::new(parts.heart(reader));
    supervise(&Arc::new(parts.opener(&spawner)), tasks, OPENING, opener::open);
    supervise(&parts.workers, tasks, WORKER_LISTS, |workers, tasks| async move {
        workers.follow(&tasks).await;
    });
    if cds.v1().is_some() && config.models_v1 {
        supervise(&parts.models, tasks, "worker-models", |models, tasks| async move {
            models.follow(&tasks).await;
        });
    }
    if cds.v1().is_some() {
        supervise(listener, tasks, task::V1_QUEUE, listen::listen_v1);
    }
    if cds.v2().is_some() && config.poll_v2 {
        supervise(listener, tasks, task::V2_QUEUE, listen::listen_v2);
    }
    supervise(&Arc::new(parts.take_over(&spawner)), tasks, others::TASK, others::follow);
    let planner = Arc::new(parts.planner(&spawner, verdicts));
    supervise(&planner, tasks, task::MAIN, planner::serve);
    supervise(&Arc::new(parts.pool_keeper()), tasks, task::PROVISIONING, keeping::keep);
    supervise(&Arc::new(parts.retirer()), tasks, task::CLEANUP, cleanup::keep_clean);
    supervise(&Arc::new(parts.corrector()), tasks, task::DISABLED, cleanup::keep_right);
    supervise(&Arc::new(parts.gauges(reader)), tasks, task::METRICS, observe::keep_counting);
    if cds.v1().is_some() {
        supervise(&heart, tasks, "heartbeat-v1", observe::beat_v1);
    }
    if cds.v2().is_some() {
        supervise(&heart, tasks, "heartbeat-v2", observe::beat_v2);
    }
    supervise(&heart, tasks, "cds-version", observe::follow_version);
    if register::is_wanted(config, cds) {
        let registrar = Arc::new(parts.registrar());
        supervise(&registrar, tasks, "registration", register::keep_registered);
    }
}

/// A loop that begins once decisions can be made, unless it is what makes them possible.
fn supervise<T, F>(
    with: &Arc<T>,
    tasks: &Arc<Tasks>,
    name: &'static str,
    body: impl Fn(Arc<T>, Arc<Tasks>) -> F + Send + 'static,
) where
    T: Send + Sync + 'static,
    F: Future<Output = ()> + Send + 'static,
{
    let (with, on) = (Arc::clone(with), Arc::clone(tasks));
    tasks.supervise(name, move || body(Arc::clone(&with), Arc::clone(&on)));
}
