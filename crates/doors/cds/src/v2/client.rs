use std::sync::Arc;
use std::time::Duration;

use super::sign_in::Identity;
use super::{
    AsCodePath, Hatchery, InfoLevel, JobInfo, Model, RunJob, RunJobInfo, V2SignIn, Worker,
};
use crate::session::Session;
use crate::{
    Answer, Api, Call, CallError, CdnConfig, ErrorKind, JobStatus, MonitoringStatus, PublicKey,
    Registration, Secret, Socket,
};

const POLL_BUDGET: Duration = Duration::from_secs(10);
const WORKERS_BUDGET: Duration = Duration::from_secs(5);

/// The V2 half of the API, signed in as a hatchery. Cheap to clone; all clones share one session.
#[derive(Debug, Clone)]
pub struct Client {
    session: Arc<Session<V2SignIn>>,
}

impl Client {
    pub(crate) fn new(api: Api, token: Secret, registration: Arc<Registration>) -> Self {
        Self { session: Arc::new(Session::new(api, V2SignIn { token, registration })) }
    }

    async fn call(&self, call: Call) -> Result<Answer, CallError> {
        self.session.call(|_| call.clone()).await
    }

    /// The first sign-in of a process: now, then every 10 s for at most 5 min.
    pub async fn sign_in(&self) -> Result<Hatchery, CallError> {
        Ok(self.session.sign_in_patiently().await?.identity.hatchery.clone())
    }

    /// The region for which the API lets us start workers. It replaces what the configuration says.
    pub async fn region(&self) -> Result<String, CallError> {
        Ok(self.session.current().await?.identity.region.clone())
    }

    /// The key with which the API signs, as it said at the last sign-in.
    pub async fn api_key(&self) -> Result<Option<PublicKey>, CallError> {
        Ok(self.session.current().await?.api_key.clone())
    }

    pub(crate) async fn renew(&self) -> Result<(), CallError> {
        let session = self.session.current().await?;
        self.session.forget(&session);
        self.session.current().await.map(|_| ())
    }

    pub(crate) async fn beat(&self, status: &MonitoringStatus) -> Result<(), CallError> {
        self.call(Call::post("/v2/hatchery/heartbeat").json(status)).await.map(|_| ())
    }

    pub async fn cdn_config(&self) -> Result<CdnConfig, CallError> {
        self.call(Call::get("/v2/config/cdn")).await?.json()
    }

    pub(crate) async fn websocket(&self) -> Result<Socket, CallError> {
        self.session.websocket("/v2/hatchery/ws").await
    }

    /// The jobs that wait for a hatchery like this one, oldest first.
    pub async fn waiting_jobs(&self) -> Result<Vec<RunJob>, CallError> {
        let os_arch = &self.session.sign_in().registration.os_arch;
        self.session.call(|identity| queue_call(&identity.region, os_arch)).await?.json()
    }

    pub async fn job(&self, id: &str) -> Result<JobInfo, CallError> {
        self.session.call(|identity| Call::get(job_path(identity, id, ""))).await?.json()
    }

    /// Takes a waiting job: from now on it is `Scheduling` in our name, and only a worker of ours may sign in for it.
    ///
    /// When an answer is lost on the way, the job is looked at, and what an earlier attempt achieved counts.
    pub async fn take(&self, id: &str) -> Result<RunJob, CallError> {
        let call = |identity: &Identity| Call::post(job_path(identity, id, "/hatchery/take"));
        match self.session.call(call).await {
            Ok(answer) => answer.json(),
            Err(error) if error.may_have_happened() => match self.job(id).await {
                Ok(JobInfo { run_job, .. }) if self.holds(&run_job) => Ok(run_job),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn holds(&self, job: &RunJob) -> bool {
        job.status == JobStatus::Scheduling
            && job.hatchery_name == self.session.sign_in().registration.name
    }

    /// Gives a taken job back. Fine when it is not ours (any more).
    ///
    /// Releases are scarce: the API counts them, and the fifth fails the job. The API does not look at the job's status
    /// either, so this also queues a job again that has a worker at it.
    pub async fn release(&self, id: &str) -> Result<(), CallError> {
        let call = |identity: &Identity| Call::delete(job_path(identity, id, "/hatchery/take"));
        match self.session.call(call).await {
            Err(error)
                if !matches!(error.kind(), Some(ErrorKind::NotFound | ErrorKind::InvalidData)) =>
            {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    /// Adds a line to the job's log.
    pub async fn add_info(
        &self,
        id: &str,
        level: InfoLevel,
        message: impl Into<String>,
    ) -> Result<(), CallError> {
        let time = self.session.api().clock().now();
        let info = RunJobInfo { level, message: message.into(), time };
        let call = |identity: &Identity| Call::post(job_path(identity, id, "/info")).json(&info);
        self.session.call(call).await.map(|_| ())
    }

    /// This hatchery's registered workers.
    pub async fn workers(&self) -> Result<Vec<Worker>, CallError> {
        self.call(Call::get("/v2/worker").within(WORKERS_BUDGET)).await?.json()
    }

    /// A model from its repository, for V1 jobs that ask for one.
    pub async fn worker_model(&self, path: &AsCodePath) -> Result<Model, CallError> {
        self.call(model_call(path)).await?.json()
    }
}

fn job_path(identity: &Identity, id: &str, rest: &str) -> String {
    let (region, id) = (Call::segment(&identity.region), Call::segment(id));
    format!("/v2/queue/{region}/job/{id}{rest}")
}

fn queue_call(region: &str, os_arch: &[String]) -> Call {
    let call = Call::get(format!("/v2/queue/{}", Call::segment(region))).within(POLL_BUDGET);
    os_arch.iter().fold(call, |call, os_arch| call.query_with_slashes("osarch", os_arch))
}

fn model_call(path: &AsCodePath) -> Call {
    let [project, vcs, repository, name] =
        [&path.project, &path.vcs, &path.repository, &path.name].map(|name| Call::segment(name));
    Call::get(format!("/v2/project/{project}/vcs/{vcs}/repository/{repository}/workermodel/{name}"))
        .query("branch", &path.branch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_reference() {
        let queue = queue_call("default", &["linux/amd64".into(), "linux/arm64".into()]);
        assert_eq!(
            queue.path_and_query(),
            "/v2/queue/default?osarch=linux/amd64&osarch=linux/arm64"
        );
        let path = AsCodePath::parse("P/my vcs/org/name/debian12@refs/heads/main").unwrap();
        assert_eq!(
            model_call(&path).path_and_query(),
            "/v2/project/P/vcs/my%20vcs/repository/org%2Fname/workermodel/debian12?branch=refs%2Fheads%2Fmain"
        );
    }
}
