use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::LinkView;

/// The vCenter link and how it was lately.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkDetail {
    pub link: LinkView,
    /// The last half hour, oldest first. Minutes in which nothing was asked are there with zeros.
    pub minutes: Vec<LinkMinute>,
    /// By method, the busiest first.
    pub methods: Vec<MethodView>,
    /// The last ones, oldest first.
    pub faults: Vec<FaultView>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkMinute {
    pub began: Timestamp,
    pub calls: u64,
    pub faults: u64,
    pub logins: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MethodView {
    pub method: String,
    pub calls: u64,
    pub faults: u64,
    /// The median of the last ones. For the one that waits for news, how long it waits.
    pub latency_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FaultView {
    pub at: Timestamp,
    pub method: String,
    /// The server's own name for it.
    pub kind: String,
}
