use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use roost_cds::{
    Answer, Api, Call, CallError, ConfigError, JobId, JobStatus, Secret, Transport, WorkerConfig,
};
use roost_clock::Clock;
use serde_json::{Value, json};
use tokio::time;
use tracing::{info, warn};
use url::Url;

use super::script::{Worked, work};
use super::talk::Talk;

const TIMEOUT: Duration = Duration::from_secs(10);
const BEAT: Duration = Duration::from_secs(30);
const SESSION_HEADER: &str = "x-cds-jwt";

/// How a worker ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerEnd {
    /// It executed its job and said so.
    Worked(JobStatus),
    /// It showed what its model can do.
    Registered,
    /// Another worker has the job, or the job is gone.
    NothingToDo,
    /// The API disabled it while it worked.
    Dismissed,
    /// It was killed. No word reaches the API.
    Died,
    /// It signed out without a result.
    Left,
}

/// Why a worker could not do what it was started for.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("the environment has no CDS_CONFIG")]
    NoConfig,
    #[error("reading the configuration")]
    Config(#[from] ConfigError),
    #[error("the API's address is not one")]
    Address(#[from] url::ParseError),
    #[error("the worker {worker} signs in")]
    SignIn { worker: String, source: CallError },
    #[error("the API gave the worker {worker} no session")]
    NoSession { worker: String },
    #[error("the worker {worker} reports its result")]
    Result { worker: String, source: CallError },
}

/// A simulated worker, ready to run.
#[derive(Debug)]
pub struct Worker {
    config: WorkerConfig,
    talk: Talk,
    clock: Arc<dyn Clock>,
    capabilities: Vec<String>,
}

impl Worker {
    /// Reads `CDS_CONFIG` from the environment of the guest's program.
    pub fn from_env(
        env: &BTreeMap<String, String>,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WorkerError> {
        let value = env.get(WorkerConfig::VARIABLE).ok_or(WorkerError::NoConfig)?;
        Self::new(WorkerConfig::decode(&Secret::from(value.as_str()))?, transport, clock)
    }

    pub fn new(
        config: WorkerConfig,
        transport: Arc<dyn Transport>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, WorkerError> {
        let url = Url::parse(&config.api_endpoint)?;
        let api = Api::new(transport, &url, TIMEOUT, clock.clone());
        let token = config.api_token.clone();
        let capabilities = ["bash", "curl", "docker", "git"].map(str::to_owned).to_vec();
        Ok(Self { config, talk: Talk { api, token }, clock, capabilities })
    }

    /// The programs that it finds on its machine.
    #[must_use]
    pub fn with_capabilities(self, capabilities: Vec<String>) -> Self {
        Self { capabilities, ..self }
    }

    pub fn name(&self) -> &str {
        &self.config.name
    }

    /// Does what it was started for, from sign-in to sign-out. Dropping the future is the death of the worker.
    pub async fn run(self) -> Result<WorkerEnd, WorkerError> {
        let name = self.config.name.clone();
        let end = match self.config.job() {
            Some(JobId::V1(id)) => self.run_job(V1Job(id)).await,
            Some(JobId::V2(id)) => {
                let region = self.config.region.clone();
                self.run_job(V2Job { region, id }).await
            }
            None => self.register().await,
        };
        match &end {
            Ok(end) => info!(worker = %name, "worker {name} ended: {end:?}"),
            Err(error) => warn!(worker = %name, "worker {name} ended: {error}"),
        }
        end
    }

    async fn register(self) -> Result<WorkerEnd, WorkerError> {
        let session = self.sign_in("/auth/consumer/worker/signin").await?;
        // Gone or not, the registration is done.
        let _ = session.call(&Call::post("/auth/consumer/worker/signout")).await;
        Ok(WorkerEnd::Registered)
    }

    async fn sign_in(&self, path: &str) -> Result<Talk, WorkerError> {
        let machine = json!({
            "BinaryCapabilities": self.capabilities,
            "Version": "",
            "OS": "linux",
            "Arch": "amd64"
        });
        let (answer, _) = self.talk.call(&Call::post(path).json(&machine)).await;
        let worker = || self.config.name.clone();
        let answer = answer.map_err(|source| WorkerError::SignIn { worker: worker(), source })?;
        let token =
            session_of(&answer).ok_or_else(|| WorkerError::NoSession { worker: worker() })?;
        Ok(Talk { api: self.talk.api.clone(), token })
    }

    async fn run_job(self, job: impl Job) -> Result<WorkerEnd, WorkerError> {
        let session = self.sign_in(&job.sign_in()).await?;
        let (taken, _) = session.call(&Call::post(job.take()).json(&json!({}))).await;
        let scripts = match taken.and_then(|answer| answer.json::<Value>()) {
            Ok(answer) => job.scripts(&answer),
            Err(error) => {
                info!(worker = %self.config.name, "the job is not for this worker: {error}");
                let _ = session.call(&Call::post(job.sign_out())).await;
                return Ok(WorkerEnd::NothingToDo);
            }
        };
        let refresh = job.refresh();
        let worked = tokio::select! {
            biased;
            worked = work(&scripts) => worked,
            () = beat_until_dismissed(&session, &refresh) => return Ok(WorkerEnd::Dismissed),
        };
        let status = match worked {
            Worked::Success => JobStatus::Success,
            Worked::Fail => JobStatus::Fail,
            Worked::Died => return Ok(WorkerEnd::Died),
            Worked::Left => {
                let _ = session.call(&Call::post(job.sign_out())).await;
                return Ok(WorkerEnd::Left);
            }
        };
        let body = job.result_body(status, &self.now());
        let (answer, maybe_done) = session.call(&Call::post(job.result()).json(&body)).await;
        match answer {
            Ok(_) => {}
            // The job is not ours any more because an earlier attempt has ended it.
            Err(error) if maybe_done && error.api().is_some() => {}
            Err(source) => {
                let worker = self.config.name.clone();
                return Err(WorkerError::Result { worker, source });
            }
        }
        let _ = session.call(&Call::post(job.sign_out())).await;
        Ok(WorkerEnd::Worked(status))
    }

    fn now(&self) -> String {
        self.clock.now().to_string()
    }
}

/// Shows the API that the worker lives, until it does not want it any more.
async fn beat_until_dismissed(session: &Talk, path: &str) {
    loop {
        time::sleep(BEAT).await;
        let (answer, _) = session.call(&Call::post(path)).await;
        if answer.is_err_and(|error| error.api().is_some()) {
            return;
        }
    }
}

fn session_of(answer: &Answer) -> Option<Secret> {
    answer.headers.get(SESSION_HEADER)?.to_str().ok().map(Secret::from)
}

/// What differs between the two protocols.
trait Job {
    fn sign_in(&self) -> String;
    fn take(&self) -> String;
    fn refresh(&self) -> String;
    fn result(&self) -> String;
    fn sign_out(&self) -> String;
    fn result_body(&self, status: JobStatus, now: &str) -> Value;
    fn scripts(&self, taken: &Value) -> Vec<String>;
}

struct V1Job(i64);

impl Job for V1Job {
    fn sign_in(&self) -> String {
        "/auth/consumer/worker/signin".to_owned()
    }

    fn take(&self) -> String {
        format!("/queue/workflows/{}/take", self.0)
    }

    fn refresh(&self) -> String {
        "/worker/refresh".to_owned()
    }

    fn result(&self) -> String {
        format!("/queue/workflows/{}/result", self.0)
    }

    fn sign_out(&self) -> String {
        "/auth/consumer/worker/signout".to_owned()
    }

    fn result_body(&self, status: JobStatus, now: &str) -> Value {
        json!({"id": self.0, "buildID": self.0, "status": status, "remoteTime": now})
    }

    fn scripts(&self, taken: &Value) -> Vec<String> {
        let actions = taken["NodeJobRun"]["job"]["action"]["actions"].as_array();
        let parameters = actions
            .into_iter()
            .flatten()
            .flat_map(|action| action["parameters"].as_array().into_iter().flatten());
        parameters.filter_map(|parameter| parameter["value"].as_str()).map(str::to_owned).collect()
    }
}

struct V2Job {
    region: String,
    id: String,
}

impl V2Job {
    fn path(&self, rest: &str) -> String {
        format!("/v2/queue/{}/job/{}/{rest}", Call::segment(&self.region), self.id)
    }
}

impl Job for V2Job {
    fn sign_in(&self) -> String {
        self.path("worker/signin")
    }

    fn take(&self) -> String {
        self.path("worker/take")
    }

    fn refresh(&self) -> String {
        self.path("worker/refresh")
    }

    fn result(&self) -> String {
        self.path("result")
    }

    fn sign_out(&self) -> String {
        self.path("worker/signout")
    }

    fn result_body(&self, status: JobStatus, now: &str) -> Value {
        json!({"status": status, "error": "", "time": now})
    }

    fn scripts(&self, taken: &Value) -> Vec<String> {
        let steps = taken["run_job"]["job"]["steps"].as_array();
        let steps = steps.into_iter().flatten();
        steps.filter_map(|step| step["run"].as_str()).map(str::to_owned).collect()
    }
}
