use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::DecisionView;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeletionsView {
    /// Why nothing is deleted until a person says so.
    pub frozen: Option<String>,
    pub last_minute: u64,
}

/// Deletions, what they rest on, and what keeps them within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeletionsDetail {
    /// Why nothing is deleted until a person has looked.
    pub frozen: Option<FreezeView>,
    /// One for each thing that a deletion can rest on.
    pub budgets: Vec<BudgetView>,
    /// VMs that should go and are still there.
    pub candidates: Vec<CandidateView>,
    /// What was deleted and what was kept, oldest first, with the evidence as gates.
    pub decisions: Vec<DecisionView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FreezeView {
    /// In one line, for people.
    pub words: String,
    pub since: Timestamp,
    /// Whether a person froze them, or the guard did.
    pub by_person: bool,
    /// Names of the VMs that would have gone.
    pub vms: Vec<String>,
}

/// How much may be deleted for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetView {
    /// One word of a closed set: `marked`, `finished`, `expired`, `absent`.
    pub basis: String,
    /// The same for people.
    pub words: String,
    /// From the first sighting to the deletion.
    pub grace_secs: u64,
    /// 0: no budget, as many as the server takes.
    pub per_minute: u64,
    /// Of it, in the last minute.
    pub spent: u64,
    /// Whether more than that freezes deletions, or only waits.
    pub freezes: bool,
    /// More than this share of all our VMs within a minute freezes deletions.
    pub share_percent: Option<u64>,
}

/// A VM that should go, and what the guard has seen of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateView {
    pub vm: String,
    pub name: String,
    pub basis: String,
    pub first_seen: Timestamp,
    /// On how many whole and fresh views of both sides; it needs two.
    pub sightings: u32,
}
