use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use roost_cds::WorkerStatus;
use roost_fleet::{Decision, Phase, Power, Step, VmId};
use serde::{Serialize, Serializer};

/// One of our own VMs.
#[derive(Debug, Clone, Serialize)]
pub struct Vm {
    pub id: VmId,
    pub name: Arc<str>,
    pub kind: VmKind,
    pub power: Power,
    /// `None` for one that only waits to be used: a spare that is ready, a template.
    pub stage: Option<Stage>,
    pub stage_since: Option<Timestamp>,
    pub job: Option<Arc<str>>,
    pub model: Option<String>,
    pub template: Option<String>,
    pub flavor: Option<String>,
    pub cpus: u32,
    pub memory_mb: u64,
    pub address: Option<IpAddr>,
    pub created: Option<Timestamp>,
    /// When it became the worker of its job.
    pub started: Option<Timestamp>,
    /// As CDS knows it; `None` if it does not.
    pub worker_status: Option<WorkerStatus>,
    /// Why it stays or goes, in words.
    pub fate: String,
}

/// What a VM of ours is there for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VmKind {
    Worker,
    /// In a pool, or on its way there.
    Spare,
    /// Registers a V1 model.
    Registering,
    /// Becomes the template of a V1 model.
    Building,
    Template,
    /// Marked for deletion, disabled by CDS, or finished.
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

/// Where a VM is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// Everything is reserved and nothing was asked for yet.
    Ordered,
    In(Phase),
    /// Waits for its deletion.
    Leaving,
}

impl Stage {
    /// One word of a closed set.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ordered => "ordered",
            Self::In(phase) => phase.as_str(),
            Self::Leaving => "leaving",
        }
    }

    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Ordered => "about to start",
            Self::In(phase) => phase.words(),
            Self::Leaving => "leaving",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A VM, what it went through, and why it is as it is.
#[derive(Debug, Clone, Serialize)]
pub struct VmDetail {
    pub vm: Vm,
    /// What it says about itself, as far as hatcheries know the keys: what others have written there may be anything.
    pub annotation: String,
    /// Oldest first.
    pub timeline: Vec<Step>,
    /// On the VM, and on others that name it; oldest first.
    pub decisions: Vec<Arc<Decision>>,
}
