use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

/// One VM as its VsphereAgent and its pool record it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnedVm {
    #[serde(default)]
    pub name: String,
    /// As vSphere writes it, in lower case. Empty while it is not known.
    #[serde(default, rename = "biosUUID", skip_serializing_if = "String::is_empty")]
    pub bios_uuid: String,
    /// Of the first card, in lower case and with hyphens.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mac_address: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_ref: Option<ObjectReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_ref: Option<ObjectReference>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Where it was made; empty for a pool without failure domains.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure_domain: String,
    /// When phase or reason changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
}

/// Where a VM is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    Provisioning,
    Available,
    Bound,
    Released,
    Orphaned,
    /// A word of another version.
    #[serde(other)]
    Unknown,
}

/// Why it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reason {
    CreateRequested,
    #[serde(rename = "VMCreatePending")]
    VmCreatePending,
    #[serde(rename = "VMAdopted")]
    VmAdopted,
    /// The VM that registered no Agent is being replaced.
    #[serde(rename = "VMReplacing")]
    VmReplacing,
    AgentNotDiscovered,
    AgentAvailable,
    AgentPrepared,
    AgentBound,
    AgentReleased,
    MachineDeleting,
    MachineDeleted,
    AgentMissing,
    AgentDiscoveryExpired,
    #[serde(other)]
    Unknown,
}

impl Phase {
    pub const ALL: [Self; 5] =
        [Self::Provisioning, Self::Available, Self::Bound, Self::Released, Self::Orphaned];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Provisioning => "Provisioning",
            Self::Available => "Available",
            Self::Bound => "Bound",
            Self::Released => "Released",
            Self::Orphaned => "Orphaned",
            Self::Unknown => "Unknown",
        }
    }
}

impl OwnedVm {
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// It is a worker: while its Machine is deleted it is still drained.
    pub fn is_in_use(&self) -> bool {
        self.phase == Some(Phase::Bound) || self.is(Phase::Released, Reason::MachineDeleting)
    }

    pub fn is(&self, phase: Phase, reason: Reason) -> bool {
        self.phase == Some(phase) && self.reason == Some(reason)
    }
}
