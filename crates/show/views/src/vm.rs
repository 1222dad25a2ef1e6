use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::words::{Style, memory};
use crate::{DecisionView, Facts, Mood, RequestId, StepView, VmPhase};

/// One of our own VMs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmView {
    pub id: String,
    pub name: String,
    /// Whose it is.
    #[serde(default)]
    pub door: String,
    pub kind: VmKind,
    pub power: Power,
    /// `None` for one that only waits to be used.
    #[serde(flatten)]
    pub phase: Option<VmPhase>,
    /// What it is for.
    #[serde(default)]
    pub request: Option<RequestId>,
    pub template: Option<String>,
    pub cpus: Option<u64>,
    pub memory_mb: Option<u64>,
    pub address: Option<String>,
    pub created: Option<Timestamp>,
    /// When it began to do what it is for.
    pub started: Option<Timestamp>,
    /// Why it is kept or deleted, in words.
    pub fate: Option<String>,
    #[serde(flatten)]
    pub facts: Facts,
}

impl VmView {
    /// Such as `2 CPU, 4 GiB`.
    pub fn size(&self, style: Style) -> String {
        let cpus = self.cpus.map(|cpus| format!("{cpus} CPU"));
        let memory = self.memory_mb.map(|mb| memory(mb, style));
        cpus.into_iter().chain(memory).collect::<Vec<_>>().join(", ")
    }
}

/// What a VM of ours is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VmKind {
    /// Does one piece of work and goes.
    Worker,
    /// Is what an object asks for, and stays until that goes.
    Machine,
    /// In a warm pool, or on its way there.
    Spare,
    /// Finds out what a template can do.
    Registering,
    /// Becomes a template.
    Building,
    Template,
    /// Marked for deletion, or being deleted.
    Leaving,
}

impl VmKind {
    pub const ALL: [Self; 7] = [
        Self::Worker,
        Self::Machine,
        Self::Spare,
        Self::Registering,
        Self::Building,
        Self::Template,
        Self::Leaving,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Machine => "machine",
            Self::Spare => "spare",
            Self::Registering => "registering",
            Self::Building => "building",
            Self::Template => "template",
            Self::Leaving => "leaving",
        }
    }

    pub fn mood(self) -> Mood {
        match self {
            Self::Worker | Self::Machine => Mood::Good,
            Self::Spare | Self::Registering | Self::Building => Mood::Busy,
            Self::Template | Self::Leaving => Mood::Quiet,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Power {
    On,
    Off,
    Suspended,
    #[serde(other)]
    Unknown,
}

impl Power {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Suspended => "suspended",
            Self::Unknown => "unknown",
        }
    }
}

/// A VM, what it went through and why it is as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VmDetail {
    pub vm: VmView,
    /// Without the secrets that it may carry.
    pub annotation: Option<String>,
    /// Oldest first.
    pub timeline: Vec<StepView>,
    /// Oldest first, with their gates.
    pub decisions: Vec<DecisionView>,
}
