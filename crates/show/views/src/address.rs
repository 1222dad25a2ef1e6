use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One address of the configured ranges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressView {
    pub address: String,
    pub state: AddressState,
    /// Who has it: a VM's name, ours or not.
    pub vm: Option<String>,
    /// Until when it is left alone.
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AddressState {
    Free,
    Used,
    /// Promised to a VM that does not have it yet.
    Reserved,
    /// Free, but not given out again yet.
    Quarantined,
}

impl AddressState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Used => "used",
            Self::Reserved => "reserved",
            Self::Quarantined => "quarantined",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddressesView {
    pub total: u64,
    pub free: u64,
    pub used: u64,
    pub reserved: u64,
    /// Free, but not given out again yet.
    pub quarantined: u64,
    /// When there is one again, in words, if there is none now.
    pub forecast: Option<String>,
}
