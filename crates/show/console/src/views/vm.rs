use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::DecisionView;

/// One of our own VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VmView {
    pub id: String,
    pub name: String,
    pub kind: VmKind,
    /// `on`, `off` or `suspended`.
    pub power: String,
    /// The wait that it is in, in words.
    pub phase: Option<String>,
    pub phase_since: Option<Timestamp>,
    /// The id of its job.
    pub job: Option<String>,
    pub model: Option<String>,
    pub template: Option<String>,
    pub flavor: Option<String>,
    pub cpus: Option<u64>,
    pub memory_mb: Option<u64>,
    pub address: Option<String>,
    pub created: Option<Timestamp>,
    /// When the worker's script was started.
    pub started: Option<Timestamp>,
    /// As CDS knows it.
    pub worker_status: Option<String>,
    /// Why it is kept or deleted, in words.
    pub fate: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VmKind {
    Worker,
    /// In a warm pool, or on its way there.
    Spare,
    /// Registers a V1 model.
    Registering,
    /// Becomes a template.
    Building,
    Template,
    /// Marked for deletion, or being deleted.
    Leaving,
}

impl VmKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Spare => "spare",
            Self::Registering => "registering",
            Self::Building => "building",
            Self::Template => "template",
            Self::Leaving => "leaving",
        }
    }
}

/// A VM, what it went through and why it is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VmDetail {
    pub vm: VmView,
    /// Without the secrets that it may carry.
    pub annotation: Option<String>,
    /// Oldest first.
    pub timeline: Vec<StepView>,
    /// Oldest first, with their gates.
    pub decisions: Vec<DecisionView>,
}

/// A named wait in the life of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StepView {
    /// One word of a closed set, such as `powering-on`.
    pub phase: String,
    /// The same for people.
    pub words: String,
    pub began: Timestamp,
    /// `None` while it lasts.
    pub took_ms: Option<u64>,
    pub deadline_ms: u64,
    /// `done`, `failed`, `overdue` or `abandoned`; `None` while it lasts.
    pub ended: Option<String>,
}
