//! Spares: VMs made ahead of their job, powered off, waiting to be claimed.
//!
//! The plan is a function of what is configured and what is seen; it is made anew at each tick and at each claim, and nothing of it is remembered. So
//! a restart loses nothing: what an earlier process left half-made is finished (D30), what is too much goes (D29).

mod backoff;
mod claim;
mod plan;
#[cfg(test)]
mod tests;

use std::fmt;

use jiff::Timestamp;
use roost_cds::Protocol;
use roost_cds::v1::ModelPath;
use roost_fleet::{Power, VmId};

pub use backoff::Backoffs;
pub use claim::claimable;
pub use plan::{PoolStanding, Removal, SparePlan, SpareView, Waiting, plan};

use crate::annotation::Annotation;
use crate::config::{SpareKind, SpareModel};
use crate::names::VmName;

/// A spare of ours in the inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spare {
    pub vm: VmId,
    pub name: String,
    pub kind: SpareKind,
    pub state: SpareState,
    pub born: Option<Timestamp>,
    /// Its V1 model was changed since: it would run what the model no longer is.
    pub is_outdated: bool,
    /// Another VM of ours has its address and comes before it: it must never run beside that one.
    pub shares_address: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpareState {
    /// Powered off: can be claimed.
    Ready,
    /// Somebody here is making or finishing it.
    Making,
    /// Powered on, and nobody here is at work on it: an earlier process was.
    Unfinished,
    /// Promised to a job. Nobody takes it away any more (W17).
    Claimed,
    /// Marked for deletion.
    Dying,
}

/// Why a kind of spares is not made at present, though some are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hold {
    /// Its V1 model must be registered first.
    NeedsRegistration,
    /// Its V1 model is not among those that CDS has enabled.
    NoModel,
    NoTemplate,
}

impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NeedsRegistration => "its model must be registered first",
            Self::NoModel => "there is no such enabled model",
            Self::NoTemplate => "there is no such template",
        })
    }
}

impl SpareKind {
    /// What a VM is a spare for, by its name and annotation; `None` if it is no spare.
    ///
    /// The name decides the protocol, as it does for CDS. A spare that is marked for deletion is no spare by its annotation any more, and still one
    /// by its name, until it is renamed.
    pub fn of(name: &str, annotation: &Annotation) -> Option<Self> {
        let VmName::Spare { protocol, .. } = VmName::of(name) else { return None };
        let model = match protocol {
            Protocol::V1 => SpareModel::V1(ModelPath::parse(&annotation.worker_model_path)),
            Protocol::V2 => SpareModel::V2(annotation.vmware_model_path.clone()),
        };
        let flavor = Some(annotation.flavor.to_lowercase()).filter(|flavor| !flavor.is_empty());
        Some(Self { model, flavor })
    }
}

impl SpareState {
    /// `is_claimed` and `is_made_here` are what the ledger and the running tasks know. Readiness is power and annotation, never an event,
    /// because events age out and spares do not (W8, D42).
    pub fn of(annotation: &Annotation, power: Power, is_claimed: bool, is_made_here: bool) -> Self {
        if is_claimed {
            Self::Claimed
        } else if annotation.doomed.is_some() {
            Self::Dying
        } else if is_made_here {
            Self::Making
        } else if power == Power::Off && annotation.provisioning {
            Self::Ready
        } else {
            Self::Unfinished
        }
    }
}
