use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    Job, JobResult, Model, ModelPath, ModelSecret, Service, SpawnError, SpawnInfo, V1SignIn, Worker,
};
use crate::session::Session;
use crate::{
    Answer, Api, Call, CallError, CdnConfig, ErrorKind, HATCHERY_TYPE, JobStatus, MonitoringStatus,
    PublicKey, Registration, Secret, Socket,
};

const POLL_BUDGET: Duration = Duration::from_secs(10);
const BOOK_BUDGET: Duration = Duration::from_secs(10);
const WORKERS_BUDGET: Duration = Duration::from_secs(5);

/// The V1 half of the API, signed in as a hatchery. Cheap to clone; all clones share one session.
#[derive(Debug, Clone)]
pub struct Client {
    session: Arc<Session<V1SignIn>>,
}

/// What a booked job belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Booking {
    pub project_key: String,
    pub workflow_name: String,
    pub workflow_id: i64,
    pub run_id: i64,
    pub node_run_name: String,
    pub node_run_id: i64,
    pub job_name: String,
}

#[derive(Serialize)]
struct BookForm {
    /// Seconds; 0 leaves it to the server, which holds a booking for 120 s.
    delay: i64,
}

impl Client {
    pub(crate) fn new(api: Api, token: Secret, registration: Arc<Registration>) -> Self {
        Self { session: Arc::new(Session::new(api, V1SignIn { token, registration })) }
    }

    fn registration(&self) -> &Registration {
        &self.session.sign_in().registration
    }

    async fn call(&self, call: Call) -> Result<Answer, CallError> {
        self.session.call(|_| call.clone()).await
    }

    /// The first sign-in of a process: now, then every 10 s for at most 5 min.
    pub async fn sign_in(&self) -> Result<Option<Service>, CallError> {
        Ok(self.session.sign_in_patiently().await?.identity.clone())
    }

    /// As which service the API knows us. Without one it refuses to book jobs.
    pub async fn service(&self) -> Result<Option<Service>, CallError> {
        Ok(self.session.current().await?.identity.clone())
    }

    /// The key with which the API signs, as it said at the last sign-in.
    pub async fn api_key(&self) -> Result<Option<PublicKey>, CallError> {
        Ok(self.session.current().await?.api_key.clone())
    }

    /// Ends the session, if there is one.
    pub async fn sign_out(&self) -> Result<(), CallError> {
        self.session.close(&Call::post("/auth/consumer/signout")).await
    }

    /// Signs in anew before the next call, so that the API registers this service again.
    pub(crate) async fn renew(&self) -> Result<(), CallError> {
        let session = self.session.current().await?;
        self.session.forget(&session);
        self.session.current().await.map(|_| ())
    }

    pub(crate) async fn beat(&self, status: &MonitoringStatus) -> Result<(), CallError> {
        self.call(Call::post("/services/heartbeat").json(status)).await.map(|_| ())
    }

    pub async fn cdn_config(&self) -> Result<CdnConfig, CallError> {
        self.call(Call::get("/config/cdn")).await?.json()
    }

    pub(crate) async fn websocket(&self) -> Result<Socket, CallError> {
        self.session.websocket("/ws").await
    }

    /// The jobs that wait for a hatchery like this one and that nobody has booked, oldest first.
    pub async fn waiting_jobs(&self) -> Result<Vec<Job>, CallError> {
        self.call(queue_call(self.registration())).await?.json()
    }

    pub async fn job(&self, id: i64) -> Result<Job, CallError> {
        self.job_call(Call::get(format!("/queue/workflows/{id}/infos"))).await?.json()
    }

    /// A call about one job. The API loads the job to find out who may ask about it, and so refuses for a job that is gone what it refuses for
    /// one of others: 403. If it serves this session otherwise, it is the job.
    async fn job_call(&self, call: Call) -> Result<Answer, CallError> {
        let session = self.session.current().await?;
        let error = match self.call(call).await {
            Err(error) if error.kind() == Some(ErrorKind::Forbidden) => error,
            other => return other,
        };
        let is_served = self.workers().await.is_ok();
        let is_same = Arc::ptr_eq(&session, &self.session.current().await?);
        Err(match error {
            CallError::Api { call, source, .. } if is_served && is_same => {
                CallError::Vanished { call, source }
            }
            error => error,
        })
    }

    /// Holds a job for this hatchery for two minutes. Two hatcheries that ask at the same time may both succeed: what
    /// counts in the end is whose worker takes the job.
    ///
    /// When an answer is lost on the way, the job is looked at, and what an earlier attempt achieved counts. The details
    /// of the booking are then empty.
    pub async fn book(&self, id: i64) -> Result<Booking, CallError> {
        let call = Call::post(format!("/queue/workflows/{id}/book"))
            .json(&BookForm { delay: 0 })
            .within(BOOK_BUDGET);
        match self.job_call(call).await {
            Ok(answer) => answer.json(),
            Err(error) if error.may_have_happened() && self.holds(id).await => {
                Ok(Booking::default())
            }
            Err(error) => Err(error),
        }
    }

    async fn holds(&self, id: i64) -> bool {
        let (Ok(Some(service)), Ok(job)) = (self.service().await, self.job(id).await) else {
            return false;
        };
        service.id != 0 && job.booked_by.id == service.id
    }

    /// Gives a booked job back. Fine when it is not ours (any more): the API frees a job for whoever asks, so a booking that
    /// ran out and went to another hatchery is looked for first and left alone.
    pub async fn release(&self, id: i64) -> Result<(), CallError> {
        let service = self.service().await?.map_or(0, |service| service.id);
        match self.job(id).await {
            Ok(job) if job.booked_by.id != service => return Ok(()),
            Err(error) if error.is_gone() => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(error),
        }
        match self.job_call(Call::delete(format!("/queue/workflows/{id}/book"))).await {
            Err(error) if error.kind() != Some(ErrorKind::JobNotBooked) && !error.is_gone() => {
                Err(error)
            }
            _ => Ok(()),
        }
    }

    pub async fn add_spawn_infos(&self, id: i64, infos: &[SpawnInfo]) -> Result<(), CallError> {
        let call = Call::post(format!("/queue/workflows/{id}/spawn/infos")).json(infos);
        self.job_call(call).await.map(|_| ())
    }

    /// Ends a waiting job as failed. The API refuses it for a job that has a worker, and with the same words for one that is gone; so the job is
    /// looked at.
    pub async fn fail(&self, id: i64, reason: &str) -> Result<(), CallError> {
        let result = JobResult {
            id,
            build_id: id,
            status: JobStatus::Fail,
            reason: reason.to_owned(),
            remote_time: self.session.api().clock().now(),
        };
        match self.call(Call::post(format!("/queue/workflows/{id}/result")).json(&result)).await {
            Err(error) if error.may_have_happened() && self.has_failed(id).await => Ok(()),
            Err(error) if error.kind() == Some(ErrorKind::Forbidden) => {
                Err(self.job(id).await.err().filter(CallError::is_gone).unwrap_or(error))
            }
            other => other.map(|_| ()),
        }
    }

    async fn has_failed(&self, id: i64) -> bool {
        self.job(id).await.is_ok_and(|job| job.status == JobStatus::Fail)
    }

    /// This hatchery's registered workers.
    pub async fn workers(&self) -> Result<Vec<Worker>, CallError> {
        self.call(Call::get("/worker").within(WORKERS_BUDGET)).await?.json()
    }

    /// Disables a worker. If it is building, **its job fails**.
    pub async fn disable_worker(&self, id: &str) -> Result<(), CallError> {
        let id = Call::segment(id);
        self.call(Call::post(format!("/worker/{id}/disable"))).await.map(|_| ())
    }

    /// All models that may be used, by name.
    pub async fn enabled_models(&self) -> Result<Vec<Model>, CallError> {
        self.call(Call::get("/worker/model/enabled")).await?.json()
    }

    pub async fn model(&self, path: &ModelPath) -> Result<Model, CallError> {
        self.call(Call::get(model_path(path))).await?.json()
    }

    pub async fn model_secrets(&self, path: &ModelPath) -> Result<Vec<ModelSecret>, CallError> {
        self.call(Call::get(format!("{}/secret", model_path(path)))).await?.json()
    }

    /// The model's password with its secrets filled in. Asks for the secrets only when there are any to fill in.
    pub async fn model_password(&self, model: &Model) -> Result<Secret, CallError> {
        let password = &model.model_virtual_machine.password;
        if !password.expose().contains("{{.") {
            return Ok(password.clone());
        }
        let secrets = self.model_secrets(&model.path()).await?;
        Ok(super::fill_in_secrets(password, &secrets))
    }

    /// Reserves the registration of a model for six minutes.
    pub async fn book_model(&self, path: &ModelPath) -> Result<(), CallError> {
        self.call(Call::put(format!("{}/book", model_path(path)))).await.map(|_| ())
    }

    /// Says that the registration failed, and frees the model for another try.
    pub async fn report_spawn_error(
        &self,
        path: &ModelPath,
        error: &SpawnError,
    ) -> Result<(), CallError> {
        let call = Call::put(format!("{}/error", model_path(path))).json(error);
        self.call(call).await.map(|_| ())
    }
}

fn model_path(path: &ModelPath) -> String {
    format!("/worker/model/{}/{}", Call::segment(&path.group), Call::segment(&path.name))
}

/// An empty region asks for jobs without one as well.
fn queue_call(registration: &Registration) -> Call {
    let mut call = Call::get("/queue/workflows").query("modelType", HATCHERY_TYPE);
    if let Some(region) = registration.region.as_deref().filter(|region| !region.is_empty()) {
        call = call.query("region", region);
        if !registration.ignore_job_with_no_region {
            call = call.query("region", "");
        }
    }
    call.within(POLL_BUDGET)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::HatcheryKey;

    #[test]
    fn the_poll_asks_for_its_region_and_for_jobs_without_one() {
        let pem = Secret::from(include_str!("../../testdata/hatchery-pkcs1.pem"));
        let mut registration = Registration {
            name: "h".into(),
            http_url: String::new(),
            config: Value::Null,
            key: Arc::new(HatcheryKey::parse(&pem).unwrap()),
            region: None,
            ignore_job_with_no_region: true,
            os_arch: vec![],
            version: String::new(),
        };
        let query = |registration: &Registration| queue_call(registration).path_and_query();
        assert_eq!(query(&registration), "/queue/workflows?modelType=vsphere");
        registration.region = Some("eu west".into());
        assert_eq!(query(&registration), "/queue/workflows?modelType=vsphere&region=eu+west");
        registration.ignore_job_with_no_region = false;
        assert_eq!(
            query(&registration),
            "/queue/workflows?modelType=vsphere&region=eu+west&region="
        );
    }
}
