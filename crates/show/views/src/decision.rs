use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{GateView, Mood, RequestId};

/// One verdict and how it came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionView {
    /// Its place in the journal; grows. A decision that repeats itself keeps the one that it had first.
    pub seq: u64,
    pub at: Timestamp,
    /// The door that decided; empty for what the core decided by itself.
    #[serde(default)]
    pub door: String,
    pub subject_kind: SubjectKind,
    /// The id of the request or VM, or the name of the pool.
    pub subject: String,
    /// What people call it, where that is something else.
    pub subject_name: Option<String>,
    pub verdict: Verdict,
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

impl DecisionView {
    /// Without its gates, where it stands beside something else.
    #[must_use]
    pub fn brief(self) -> Self {
        Self { gates: Vec::new(), ..self }
    }

    /// The request that it is about.
    pub fn request(&self) -> Option<RequestId> {
        matches!(self.subject_kind, SubjectKind::Request(_))
            .then(|| RequestId::new(&*self.door, &*self.subject))
    }
}

/// A closed set, because it becomes a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A VM is on its way.
    Spawned,
    /// Not for us, or somebody else has it.
    Skipped,
    /// For us, but not now.
    Deferred,
    /// For us, and it will not be.
    Refused,
    /// It was on its way and did not arrive.
    Failed,
    /// Given back to where it came from.
    Released,
    Deleted,
    /// Somebody wanted it deleted and it stays.
    Kept,
    /// Found after a restart and taken on.
    Adopted,
    /// It has done what it was for.
    Finished,
    /// A person has said so.
    Steered,
    /// An existing VM was brought nearer to what its object says.
    Changed,
    /// A word that a newer service says.
    #[serde(other)]
    Unknown,
}

impl Verdict {
    pub const ALL: [Self; 12] = [
        Self::Spawned,
        Self::Skipped,
        Self::Deferred,
        Self::Refused,
        Self::Failed,
        Self::Released,
        Self::Deleted,
        Self::Kept,
        Self::Adopted,
        Self::Finished,
        Self::Steered,
        Self::Changed,
    ];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.as_str() == word)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spawned => "spawned",
            Self::Skipped => "skipped",
            Self::Deferred => "deferred",
            Self::Refused => "refused",
            Self::Failed => "failed",
            Self::Released => "released",
            Self::Deleted => "deleted",
            Self::Kept => "kept",
            Self::Adopted => "adopted",
            Self::Finished => "finished",
            Self::Steered => "steered",
            Self::Changed => "changed",
            Self::Unknown => "unknown",
        }
    }

    /// Whether something has happened: not that something still waits, is somebody else's, or stays.
    pub fn is_event(self) -> bool {
        !matches!(self, Self::Deferred | Self::Skipped | Self::Kept | Self::Unknown)
    }

    pub fn mood(self) -> Mood {
        match self {
            Self::Spawned | Self::Adopted | Self::Finished => Mood::Good,
            Self::Deferred | Self::Released | Self::Kept => Mood::Waiting,
            Self::Refused | Self::Failed => Mood::Bad,
            Self::Deleted | Self::Steered | Self::Changed => Mood::Busy,
            Self::Skipped | Self::Unknown => Mood::Quiet,
        }
    }
}

/// What a decision is about. In JSON one word.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// By the door's own noun.
    Request(String),
    Vm,
    Pool,
    /// The service itself, when a person steers it.
    Service,
}

impl SubjectKind {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Request(noun) => noun,
            Self::Vm => "vm",
            Self::Pool => "pool",
            Self::Service => "service",
        }
    }
}

impl Serialize for SubjectKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for SubjectKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(match word.as_str() {
            "vm" => Self::Vm,
            "pool" => Self::Pool,
            "service" => Self::Service,
            _ => Self::Request(word),
        })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for SubjectKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "SubjectKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "`vm`, `pool`, `service`, or what the door calls its requests.",
        })
    }
}

/// Which decisions are asked for. What is unset does not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DecisionQuery {
    /// The subject's id or name, of whatever kind it is.
    pub subject: Option<String>,
    pub verdict: Option<String>,
    pub bound_by: Option<String>,
    /// Only what has happened: not that something still waits, is somebody else's, or stays.
    #[serde(default)]
    pub events: bool,
    /// Only those after this number.
    pub after: Option<u64>,
    /// The newest so many of them.
    pub limit: Option<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_newer_service_is_read() {
        assert_eq!(serde_json::from_str::<Verdict>("\"kept\"").unwrap(), Verdict::Kept);
        assert_eq!(serde_json::from_str::<Verdict>("\"danced\"").unwrap(), Verdict::Unknown);
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
            assert_eq!(Verdict::parse(verdict.as_str()), Some(verdict));
        }
    }

    #[test]
    fn a_subject_is_one_word() {
        for (word, kind) in [
            ("vm", SubjectKind::Vm),
            ("service", SubjectKind::Service),
            ("pod", SubjectKind::Request("pod".into())),
        ] {
            let json = format!("\"{word}\"");
            assert_eq!(serde_json::from_str::<SubjectKind>(&json).unwrap(), kind);
            assert_eq!(serde_json::to_string(&kind).unwrap(), json);
        }
    }
}
