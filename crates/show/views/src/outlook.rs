use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{RequestId, Unit};

/// When a request that waits probably gets its VM, and what is in its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutlookView {
    /// From 1.
    pub place: u64,
    /// How many wait.
    pub of: u64,
    /// The gate that it waits for.
    pub gate: Option<String>,
    /// The gates after it that would say no as well.
    pub next_gates: Vec<String>,
    /// Who holds what it needs, those first that are expected to end first. At most [`OutlookView::HOLDERS`].
    pub holders: Vec<HolderView>,
    /// What [`HolderView::project`] is to the one that waits: a project, a namespace.
    #[serde(default = "project")]
    pub group: String,
    /// How many hold it in all.
    pub held_by: u64,
    /// When it probably starts. `None` if too little is known for a guess.
    pub estimate: Option<EstimateView>,
    /// What the estimate rests on, or why there is none.
    pub basis: String,
}

/// What an older service meant.
fn project() -> String {
    "project".to_owned()
}

impl OutlookView {
    /// Enough to see whose they are.
    pub const HOLDERS: usize = 12;
}

/// A VM that holds something that a request needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HolderView {
    pub vm: String,
    pub request: Option<RequestId>,
    /// Who wants it.
    pub project: Option<String>,
    pub amount: u64,
    #[serde(default)]
    pub unit: Unit,
    /// When it probably gives it back.
    pub ends: Option<Timestamp>,
}

/// A guess, and named as one wherever it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EstimateView {
    pub at: Timestamp,
    pub in_secs: u64,
}
