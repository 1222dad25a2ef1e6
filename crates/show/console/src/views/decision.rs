use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::LimitView;

/// One verdict and how it came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DecisionView {
    /// Its place in the journal; grows. A decision that repeats itself gets a new one each time.
    pub seq: u64,
    pub at: Timestamp,
    pub subject_kind: SubjectKind,
    /// The id of the job or VM, or the name of the pool.
    pub subject: String,
    /// What people call it, where that is something else.
    pub subject_name: Option<String>,
    /// One word of a closed set: `spawned`, `deferred`, `refused` and so on.
    pub verdict: String,
    /// For people, in one line.
    pub reason: String,
    /// The gate that decided.
    pub bound_by: Option<String>,
    /// In the order in which they were weighed. May be left out where the decision stands beside something else.
    #[serde(default)]
    pub gates: Vec<GateView>,
    /// When it is looked at again, in words.
    pub next_look: Option<String>,
    /// The VM that came of it: its name, or its id if nobody knows the name any more.
    pub vm: Option<String>,
    /// How often this was decided in a row, and since when.
    pub times: u32,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    Job,
    Vm,
    Pool,
    /// The service itself, when a person steers it.
    Service,
}

impl SubjectKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Vm => "vm",
            Self::Pool => "pool",
            Self::Service => "service",
        }
    }
}

/// One condition that something was weighed against. It passes while `have + need` stays within `limit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateView {
    pub name: String,
    pub passed: bool,
    pub need: Option<u64>,
    pub have: Option<u64>,
    /// `None` for a condition that is no amount.
    pub limit: Option<LimitView>,
    pub note: Option<String>,
}

/// Which decisions are asked for. What is unset does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DecisionQuery {
    /// The subject's id or name, of whatever kind it is.
    pub subject: Option<String>,
    pub verdict: Option<String>,
    pub bound_by: Option<String>,
    /// Only those after this number.
    pub after: Option<u64>,
    /// The newest so many of them.
    pub limit: Option<usize>,
}
