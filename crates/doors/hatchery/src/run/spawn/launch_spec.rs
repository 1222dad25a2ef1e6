//! What the launch of a worker needs in its guest. It is prepared before the job is taken, so that a mistake in it costs the job nothing.

use roost_cds::{
    CallError, ClaimedModel, JobId, KeyError, Purpose, ScriptError, Secret, V1Worker, V2Worker,
};
use roost_fleet::Decided;
use roost_vim::EnvironmentError;

use super::NewWorker;
use crate::config::SecretError;
use crate::model::WorkerModel;
use crate::run::bring_up::LaunchSpec;
use crate::run::machine::{LoginError, launch_program};
use crate::run::spawn::Spawner;

/// Why a launch cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LaunchSpecError {
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error("asking CDS for our region")]
    Region { source: CallError },
    #[error("CDS V2 is not spoken")]
    NoV2,
    #[error("signing the worker's token")]
    Token { source: KeyError },
    #[error("the value of workerLogsOptions.graylog.extraValue")]
    LogSecret { source: SecretError },
    #[error("model {model}")]
    Script { model: String, source: ScriptError },
    #[error("the launch script of model {model}")]
    Program { model: String, source: EnvironmentError },
}

impl LaunchSpecError {
    /// Whether somebody must change something first, or time may.
    pub(crate) fn decided(&self) -> Decided {
        match self {
            Self::Login(LoginError::Secrets { .. }) | Self::Region { .. } => Decided::Deferred,
            Self::Login(LoginError::Config(_))
            | Self::NoV2
            | Self::Token { .. }
            | Self::LogSecret { .. }
            | Self::Script { .. }
            | Self::Program { .. } => Decided::Refused,
        }
    }

    /// From a closed set: it becomes a metric label.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Login(_) => "guest-login",
            Self::Region { .. } | Self::NoV2 => "region",
            Self::Token { .. } => "worker-token",
            Self::LogSecret { .. } => "worker-config",
            Self::Script { .. } | Self::Program { .. } => "launch-script",
        }
    }
}

pub(super) async fn prepare_launch(
    spawner: &Spawner,
    new: &NewWorker,
) -> Result<LaunchSpec, LaunchSpecError> {
    let model = new.model.display_name();
    let credentials = spawner.vms.guest_login(new.model.template(), &new.model).await?;
    let token = token(spawner, new).map_err(|source| LaunchSpecError::Token { source })?;
    let mut config = spawner.setup.worker_config(&new.worker, &model, token)?;
    match &new.job.id {
        JobId::V1(number) => {
            config.booked_job_id = *number;
            config.region = spawner.about.config.region.name.clone().unwrap_or_default();
        }
        JobId::V2(uuid) => {
            let client = spawner.cds.v2().ok_or(LaunchSpecError::NoV2)?;
            config.run_job_id.clone_from(uuid);
            // What CDS said at sign-in outranks the configuration (1.4).
            config.region =
                client.region().await.map_err(|source| LaunchSpecError::Region { source })?;
        }
    }
    let script = new
        .model
        .commands(new.job.id.protocol())
        .script(Purpose::Job, &config)
        .map_err(|source| LaunchSpecError::Script { model: model.clone(), source })?;
    let launch = launch_program(&script, config.environment());
    launch.check().map_err(|source| LaunchSpecError::Program { model, source })?;
    let pre_start =
        spawner.about.config.guests.pre_start_script(new.model.template()).map(str::to_owned);
    Ok(LaunchSpec { credentials, launch, pre_start })
}

fn token(spawner: &Spawner, new: &NewWorker) -> Result<Secret, KeyError> {
    let (name, hatchery_name) = (new.worker.to_string(), spawner.about.hatchery().to_owned());
    let (id, now, key) =
        (spawner.scheduler.uuid(), spawner.about.now(), &spawner.about.config.identity.key);
    match &new.job.id {
        JobId::V1(number) => {
            let model = match &*new.model {
                WorkerModel::V1(model) => ClaimedModel { id: model.id, name: model.name.clone() },
                WorkerModel::V2(_) => ClaimedModel::default(),
            };
            let job_id = *number;
            let worker = V1Worker { name, model, job_id, register_only: false, hatchery_name };
            worker.token(id, now, key)
        }
        JobId::V2(uuid) => {
            let model_name = new.model.display_name();
            let run_job_id = uuid.clone();
            V2Worker { name, model_name, run_job_id, hatchery_name }.token(id, now, key)
        }
    }
}
