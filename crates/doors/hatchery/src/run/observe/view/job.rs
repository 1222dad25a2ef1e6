use std::sync::Arc;

use jiff::Timestamp;
use roost_cds::{JobId, Protocol};
use roost_fleet::{Decision, PhasePart};
use serde::{Serialize, Serializer};

use super::{Stage, VmDetail};
use crate::door::phase;

/// A job that this hatchery has heard of.
#[derive(Debug, Clone, Serialize)]
pub struct Job {
    #[serde(serialize_with = "as_text")]
    pub id: JobId,
    /// `None` when all that is known of the job is its id.
    pub project: Option<String>,
    pub workflow: Option<String>,
    pub state: JobState,
    pub queued: Option<Timestamp>,
    /// Until its worker was started, or until now.
    pub waited_secs: Option<u64>,
    pub model: Option<String>,
    pub flavor: Option<String>,
    /// Its worker's name, which is its VM's.
    pub worker: Option<Arc<str>>,
    /// The last word on it.
    pub verdict: Option<Arc<Decision>>,
    /// When its worker ended, and how long it ran, as far as that was seen.
    pub ended: Option<Timestamp>,
    pub ran_secs: Option<u64>,
}

impl Job {
    pub fn protocol(&self) -> Protocol {
        self.id.protocol()
    }
}

/// Ordered as a job goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Waiting,
    /// A worker is on its way.
    Starting,
    /// Its VM is up, and CDS does not know the worker yet.
    Joining,
    Running,
    /// It is over, and its VM is still there.
    Leaving,
    Ended,
}

impl JobState {
    /// By where its VM is in its life.
    pub(in crate::run) fn at(stage: Stage) -> Self {
        match stage {
            Stage::Ordered => Self::Starting,
            Stage::Leaving => Self::Leaving,
            Stage::In(phase) if phase == phase::REGISTERING => Self::Joining,
            Stage::In(phase) => match phase.part() {
                PhasePart::Making | PhasePart::Starting | PhasePart::Preparing => Self::Starting,
                PhasePart::Working => Self::Running,
                PhasePart::Ending => Self::Leaving,
            },
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Joining => "joining",
            Self::Running => "running",
            Self::Leaving => "leaving",
            Self::Ended => "ended",
        }
    }
}

/// A job and all that is known about why it is as it is.
#[derive(Debug, Clone, Serialize)]
pub struct JobDetail {
    pub job: Job,
    /// Oldest first.
    pub decisions: Vec<Arc<Decision>>,
    /// While there is one.
    pub vm: Option<VmDetail>,
}

fn as_text<S: Serializer>(id: &JobId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(id)
}
