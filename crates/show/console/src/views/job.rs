use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{DecisionView, VmDetail};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JobView {
    pub id: String,
    pub protocol: Protocol,
    pub project: Option<String>,
    pub workflow: Option<String>,
    pub state: JobState,
    pub queued: Option<Timestamp>,
    /// Until its worker started, or until now.
    pub waited_secs: Option<u64>,
    pub model: Option<String>,
    pub flavor: Option<String>,
    /// The name of its VM.
    pub vm: Option<String>,
    /// The last word on it, without its gates.
    pub verdict: Option<DecisionView>,
}

/// Which CDS queue it came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    V1,
    V2,
}

impl Protocol {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// Ordered as a job goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    Waiting,
    /// Its worker is on its way.
    Starting,
    Running,
    Ended,
}

impl JobState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Ended => "ended",
        }
    }
}

/// A job, every decision on it, and what its VM went through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct JobDetail {
    pub job: JobView,
    /// Oldest first, with their gates.
    pub decisions: Vec<DecisionView>,
    pub vm: Option<VmDetail>,
}
