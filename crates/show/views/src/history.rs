use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// What a service was like, minute by minute, as far as its memory goes back.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryView {
    /// The names of [`SampleView::capacity`], in their order.
    pub limits: Vec<String>,
    /// The names of [`SampleView::doors`], in their order.
    #[serde(default)]
    pub doors: Vec<String>,
    /// Oldest first, at most one for each minute.
    pub samples: Vec<SampleView>,
    /// Oldest first.
    pub marks: Vec<MarkView>,
}

/// One minute.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SampleView {
    /// When it was taken.
    pub at: Timestamp,
    pub waiting: u64,
    pub refused: u64,
    pub starting: u64,
    pub joining: u64,
    pub working: u64,
    pub leaving: u64,
    pub spares: u64,
    /// Requests whose VM began its work since the sample before.
    pub started: u64,
    /// Of those, so many that got a spare.
    pub warm: u64,
    /// How long those had waited.
    pub wait_p50_secs: Option<u64>,
    pub wait_p95_secs: Option<u64>,
    /// What is taken of each limit, promises included.
    pub capacity: Vec<u64>,
    /// The same numbers for each door: waiting, refused, starting, joining, working, leaving.
    #[serde(default)]
    pub doors: Vec<[u32; 6]>,
    /// Towards the vCenter, since the sample before.
    pub calls: u64,
    pub faults: u64,
}

/// Something that explains a change in the curves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MarkView {
    pub at: Timestamp,
    /// `None` while it lasts.
    pub until: Option<Timestamp>,
    pub kind: MarkKind,
    pub words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// The service began.
    Restart,
    /// A person held new VMs back.
    Pause,
    /// Deletions were frozen.
    Freeze,
    /// A server could not be reached.
    LinkLost,
    /// A word that a newer service says.
    #[serde(other)]
    Other,
}

impl MarkKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Restart => "restart",
            Self::Pause => "pause",
            Self::Freeze => "freeze",
            Self::LinkLost => "link lost",
            Self::Other => "other",
        }
    }
}
