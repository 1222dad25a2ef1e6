use serde::{Deserialize, Serialize};

use crate::Facts;

/// A warm pool of one door.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PoolView {
    #[serde(default)]
    pub door: String,
    /// What actions on it name.
    #[serde(default)]
    pub name: String,
    pub template: Option<String>,
    pub wanted: u64,
    pub ready: u64,
    /// Being made.
    pub coming: u64,
    /// Claimed, and on their way to a request.
    pub in_use: u64,
    pub missing: u64,
    /// Why nothing is being made of what is missing, in words.
    pub waiting: Option<String>,
    /// What kind of spares it holds, in few words; `None` if one kind fits all.
    #[serde(default)]
    pub size: Option<String>,
    #[serde(flatten)]
    pub facts: Facts,
}
