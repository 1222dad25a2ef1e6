//! Conditions of both kinds, as they stand on the wire.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use roost_controller::{Truth, set_condition};

/// One condition as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) kind: &'static str,
    pub(crate) truth: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Wanted {
    pub(crate) fn yes(
        kind: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { kind, truth: true, reason, message: message.into() }
    }

    pub(crate) fn no(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { kind, truth: false, reason, message: message.into() }
    }

    /// Sets it. True if something changed.
    pub(crate) fn set(
        &self,
        all: &mut Vec<Condition>,
        generation: Option<i64>,
        now: Timestamp,
    ) -> bool {
        let truth = Truth::from(self.truth);
        set_condition(all, self.kind, truth, self.reason, &self.message, generation, now)
    }
}

pub(crate) const READY: &str = "Ready";
pub(crate) const DEMAND_FOUND: &str = "AgentMachineDemandFound";
pub(crate) const INFRA_ENV: &str = "InfraEnvAvailable";
pub(crate) const CAPACITY: &str = "CapacitySatisfied";
pub(crate) const VSPHERE: &str = "VsphereReady";
pub(crate) const ISO: &str = "ISOReady";
pub(crate) const LIMITED: &str = "CapacityLimited";
pub(crate) const BLOCKED: &str = "DeletionBlocked";
pub(crate) const FROZEN: &str = "DeletionFrozen";

/// Those of a pool that nobody else writes.
pub(crate) const OF_POOL: [&str; 9] =
    [READY, DEMAND_FOUND, INFRA_ENV, CAPACITY, VSPHERE, ISO, LIMITED, BLOCKED, FROZEN];
