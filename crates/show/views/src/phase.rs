use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The part of a VM's life that a phase belongs to. Ordered as a VM goes through them.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A spare becomes the VM of a request. What it went through before is no part of what the request waited for.
    Claiming,
    Making,
    /// Whatever is not known is on its way up.
    #[default]
    Starting,
    /// When it has ended, what the VM is for has begun in it.
    Launching,
    /// Whoever wanted the VM gets to know it.
    Joining,
    /// Does what it was made for. That may last for hours; on one axis, all that led to it would be a dot.
    Working,
    Leaving,
}

impl Part {
    /// Whether it is over with what a request waits for.
    pub fn is_afterwards(self) -> bool {
        matches!(self, Self::Working | Self::Leaving)
    }
}

/// A named wait in the life of a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepView {
    /// One word of a closed set, such as `powering-on`.
    pub phase: String,
    /// The same for people.
    pub words: String,
    #[serde(default)]
    pub part: Part,
    pub began: Timestamp,
    /// `None` while it lasts.
    pub took_ms: Option<u64>,
    /// 0 for a wait without an end.
    pub deadline_ms: u64,
    /// `None` while it lasts.
    pub ended: Option<Ended>,
}

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Done,
    Failed,
    /// Its deadline passed.
    Overdue,
    /// Whoever waited has gone away.
    Abandoned,
}

impl Ended {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Overdue => "overdue",
            Self::Abandoned => "abandoned",
        }
    }
}

/// The wait that a VM is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmPhase {
    /// For people.
    #[serde(rename = "phase")]
    pub words: String,
    /// One word of a closed set, such as `powering-on`.
    #[serde(default, rename = "phase_label")]
    pub label: String,
    #[serde(default, rename = "phase_part")]
    pub part: Part,
    #[serde(rename = "phase_since")]
    pub since: Option<Timestamp>,
}
