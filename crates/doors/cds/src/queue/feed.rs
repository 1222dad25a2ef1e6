use jiff::Timestamp;
use tracing::{debug, warn};

use crate::{CallError, JobId, JobStatus, Protocol, Socket, json, v1, v2};

/// A job in a poll's list: enough to choose which to look at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingJob {
    pub id: JobId,
    /// By which fairness counts: the id of a V1 project, the key of a V2 one.
    pub project: String,
    pub queued: Option<Timestamp>,
}

/// What differs between the two queues.
#[derive(Debug)]
pub(crate) enum Feed {
    V1(v1::Client),
    V2(v2::Client),
}

impl Feed {
    pub(crate) fn protocol(&self) -> Protocol {
        match self {
            Self::V1(_) => Protocol::V1,
            Self::V2(_) => Protocol::V2,
        }
    }

    pub(crate) async fn connect(&self) -> Result<Socket, CallError> {
        match self {
            Self::V1(client) => client.websocket().await,
            Self::V2(client) => client.websocket().await,
        }
    }

    /// What the server must be told on every connection before it pushes anything. V2 knows from the session.
    pub(crate) fn subscription(&self) -> Option<String> {
        match self {
            Self::V1(_) => {
                let filters = json::encode(&[v1::EventFilter::queue()]);
                Some(String::from_utf8_lossy(&filters).into_owned())
            }
            Self::V2(_) => None,
        }
    }

    /// The job that a frame names, if it names one for us.
    pub(crate) fn read(&self, frame: &str) -> Option<JobId> {
        let job = match self {
            Self::V1(_) => json::decode(frame.as_bytes()).map(|message: v1::EventMessage| {
                if message.status == "KO" {
                    warn!("the API refused the queue filter: {}", message.error);
                }
                message.event.waiting_job().map(JobId::V1)
            }),
            Self::V2(_) => json::decode(frame.as_bytes())
                .map(|queued: v2::JobQueued| JobId::parse(&queued.job_run_id)),
        };
        job.unwrap_or_else(|error| {
            debug!(protocol = %self.protocol(), "a websocket frame is ignored: {error}");
            None
        })
    }

    pub(crate) async fn poll(&self) -> Result<Vec<WaitingJob>, CallError> {
        Ok(match self {
            Self::V1(client) => {
                let jobs = client.waiting_jobs().await?;
                jobs.into_iter().filter(v1::Job::is_free).map(WaitingJob::from).collect()
            }
            Self::V2(client) => {
                client.waiting_jobs().await?.into_iter().filter_map(WaitingJob::from_v2).collect()
            }
        })
    }
}

impl From<v1::Job> for WaitingJob {
    fn from(job: v1::Job) -> Self {
        Self { id: JobId::V1(job.id), project: job.project_id.to_string(), queued: job.queued }
    }
}

impl WaitingJob {
    fn from_v2(job: v2::RunJob) -> Option<Self> {
        let id = JobId::parse(&job.id)?;
        (job.status == JobStatus::Waiting).then_some(Self {
            id,
            project: job.project_key,
            queued: job.queued,
        })
    }
}
