//! What the launch of a worker needs in its guest. It is prepared before the job is taken, so that a mistake in it costs the job nothing.

use std::collections::BTreeMap;

use roost_cds::{
    CallError, ClaimedModel, JobId, KeyError, LogOptions, Purpose, ScriptError, Secret, V1Worker,
    V2Worker, WorkerConfig,
};
use roost_fleet::Decided;
use roost_vim::EnvironmentError;

use super::NewWorker;
use crate::config::{Graylog, SecretError, Syslog, WorkerSettings};
use crate::model::WorkerModel;
use crate::run::bring_up::LaunchSpec;
use crate::run::context::Context;
use crate::run::machine::{LoginError, launch_program};

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
    cx: &Context,
    new: &NewWorker,
) -> Result<LaunchSpec, LaunchSpecError> {
    let model = new.model.display_name();
    let credentials = cx.guest_login(new.model.template(), &new.model).await?;
    let token = token(cx, new).map_err(|source| LaunchSpecError::Token { source })?;
    let mut config = cx.worker_config(&new.worker, &model, token)?;
    match &new.job.id {
        JobId::V1(number) => {
            config.booked_job_id = *number;
            config.region = cx.config.region.name.clone().unwrap_or_default();
        }
        JobId::V2(uuid) => {
            let client = cx.cds.v2().ok_or(LaunchSpecError::NoV2)?;
            config.run_job_id.clone_from(uuid);
            // What CDS said at sign-in outranks the configuration.
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
    let pre_start = cx.config.guests.pre_start_script(new.model.template()).map(str::to_owned);
    Ok(LaunchSpec { credentials, launch, pre_start })
}

fn token(cx: &Context, new: &NewWorker) -> Result<Secret, KeyError> {
    let (name, hatchery_name) = (new.worker.to_string(), cx.hatchery().to_owned());
    let (id, now, key) = (cx.uuid(), cx.now(), &cx.config.identity.key);
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

impl Context {
    /// The configuration of any worker. Job and region are for the caller to fill in.
    pub(crate) fn worker_config(
        &self,
        worker: &str,
        model: &str,
        api_token: Secret,
    ) -> Result<WorkerConfig, LaunchSpecError> {
        let WorkerSettings { api_url, api_insecure, cdn, basedir, environment, .. } =
            &self.config.workers;
        let known = self.cdn();
        let (gelf_service_addr, gelf_service_addr_enable_tls) = match &cdn.tcp_url {
            Some(url) => (url.clone(), cdn.tcp_tls),
            None => (known.tcp_url, known.tcp_url_enable_tls),
        };
        Ok(WorkerConfig {
            name: worker.to_owned(),
            base_dir: basedir.clone(),
            log: self.log_options(worker)?,
            hatchery_name: self.hatchery().to_owned(),
            api_endpoint: api_url.clone(),
            api_endpoint_insecure: *api_insecure,
            api_token,
            cdn_endpoint: cdn.url.clone().unwrap_or(known.http_url),
            gelf_service_addr,
            gelf_service_addr_enable_tls,
            model: model.to_owned(),
            inject_env_vars: exposed(environment),
            ..WorkerConfig::default()
        })
    }

    fn log_options(&self, worker: &str) -> Result<LogOptions, LaunchSpecError> {
        let WorkerSettings { log_level, graylog, syslog, .. } = &self.config.workers;
        let Graylog { host, port, protocol, extra_key, extra_value } = graylog;
        let extra = extra_value.as_ref().map(|source| source.read(&*self.surroundings));
        let extra = extra.transpose().map_err(|source| LaunchSpecError::LogSecret { source })?;
        let Syslog { host: syslog_host, port: syslog_port, protocol: syslog_protocol, extra_tag } =
            syslog;
        Ok(LogOptions {
            level: log_level.clone(),
            graylog_host: host.clone(),
            graylog_port: port.to_string(),
            graylog_protocol: protocol.clone(),
            graylog_extra_key: extra_key.clone(),
            graylog_extra_value: extra.unwrap_or_default(),
            service_name: worker.to_owned(),
            syslog_host: syslog_host.clone(),
            syslog_port: syslog_port.to_string(),
            syslog_protocol: syslog_protocol.clone(),
            syslog_extra_tag: extra_tag.clone(),
            ..LogOptions::default()
        })
    }
}

/// The wire type has plain text; it is shown to nobody but the worker.
fn exposed(environment: &[(String, Secret)]) -> BTreeMap<String, String> {
    environment.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect()
}
