use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Something that does not go on until a person has looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NeedView {
    pub kind: NeedKind,
    /// The door that says so; empty for what concerns all.
    #[serde(default)]
    pub door: String,
    /// What is wrong, in one line.
    pub words: String,
    /// What to do about it.
    pub advice: String,
    pub since: Option<Timestamp>,
    /// How many requests or VMs it concerns.
    pub count: u64,
    /// At most [`NeedView::NAMES`] of them, as they are called.
    #[serde(default)]
    pub names: Vec<String>,
    /// A place of the page with all of it.
    pub href: String,
    /// The name of the page in `docs/runbooks`, without its ending.
    pub runbook: Option<String>,
}

impl NeedView {
    /// Enough to know whose it is; the page behind the link has all.
    pub const NAMES: usize = 5;
}

/// A closed set. Ordered as people should look at them: what stops everything first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    /// A server cannot be reached.
    LinkDown,
    /// Deletions are frozen until a person has looked.
    Frozen,
    /// A second process is at work under the same name.
    OtherProcess,
    /// What VMs are made of fails again and again.
    TemplateFails,
    /// VMs came up, and whoever wanted them does not know them.
    NotJoining,
    /// Requests that get no VM as they are.
    Refused,
    /// VMs of requests that do not come up.
    Stuck,
    /// A word that a newer service says.
    #[serde(other)]
    Other,
}

impl NeedKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LinkDown => "link down",
            Self::Frozen => "frozen",
            Self::OtherProcess => "other process",
            Self::TemplateFails => "template fails",
            Self::NotJoining => "not joining",
            Self::Refused => "refused",
            Self::Stuck => "stuck",
            Self::Other => "other",
        }
    }
}
