use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{DecisionView, Facts, Mood, Verdict, VmDetail};

/// Which request: two doors may each have one called 42.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestId {
    /// The door's name.
    #[serde(default)]
    pub door: String,
    /// As the door's users know it.
    pub id: String,
}

impl RequestId {
    pub fn new(door: impl Into<String>, id: impl Into<String>) -> Self {
        Self { door: door.into(), id: id.into() }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.id)
    }
}

/// Something that a door is asked for: it wants a VM.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RequestView {
    #[serde(flatten)]
    pub id: RequestId,
    /// What its door calls it.
    #[serde(default)]
    pub noun: String,
    pub state: RequestState,
    pub queued: Option<Timestamp>,
    /// Until its VM did what it is for, or until now.
    pub waited_secs: Option<u64>,
    /// The name of its VM.
    pub vm: Option<String>,
    /// Who wants it: a project, a namespace.
    #[serde(default)]
    pub project: Option<String>,
    /// What it wants, in a few words, where there is little room.
    #[serde(default)]
    pub wants: Option<String>,
    /// The last word on it, without its gates.
    pub verdict: Option<DecisionView>,
    #[serde(flatten)]
    pub facts: Facts,
}

impl RequestView {
    /// How it stands for people: the one place that decides it.
    pub fn standing(&self) -> Standing {
        Standing::of(self.state, self.verdict.as_ref().map(|said| said.verdict))
    }

    /// It is still on its way to a VM that works.
    pub fn is_open(&self) -> bool {
        matches!(self.state, RequestState::Waiting | RequestState::Starting)
    }
}

/// Ordered as a request goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    Waiting,
    /// Its VM is on its way.
    Starting,
    Running,
    Ended,
}

impl RequestState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Ended => "ended",
        }
    }
}

/// How a request stands. One that waits for somebody else, or will get no VM as it is, does not wait for this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    Waiting,
    Starting,
    Running,
    /// Waits for a person to change something.
    Refused,
    /// Waits for somebody else.
    Skipped,
    Ended,
}

impl Standing {
    pub const ALL: [Self; 6] =
        [Self::Waiting, Self::Starting, Self::Running, Self::Refused, Self::Skipped, Self::Ended];

    pub fn of(state: RequestState, last: Option<Verdict>) -> Self {
        match (state, last) {
            (RequestState::Waiting, Some(Verdict::Refused)) => Self::Refused,
            (RequestState::Waiting, Some(Verdict::Skipped)) => Self::Skipped,
            (RequestState::Waiting, _) => Self::Waiting,
            (RequestState::Starting, _) => Self::Starting,
            (RequestState::Running, _) => Self::Running,
            (RequestState::Ended, _) => Self::Ended,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Refused => "refused",
            Self::Skipped => "skipped",
            Self::Ended => "ended",
        }
    }

    pub fn mood(self) -> Mood {
        match self {
            Self::Waiting => Mood::Waiting,
            Self::Starting => Mood::Busy,
            Self::Running => Mood::Good,
            Self::Refused => Mood::Bad,
            Self::Skipped | Self::Ended => Mood::Quiet,
        }
    }
}

/// A request, every decision on it, and what its VM went through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(extend("additionalProperties" = true)))]
pub struct RequestDetail {
    pub request: RequestView,
    /// Oldest first, with their gates.
    pub decisions: Vec<DecisionView>,
    pub vm: Option<VmDetail>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_waits_for_others_does_not_wait_for_us() {
        for (state, last, standing, mood) in [
            (RequestState::Waiting, None, Standing::Waiting, Mood::Waiting),
            (RequestState::Waiting, Some(Verdict::Deferred), Standing::Waiting, Mood::Waiting),
            (RequestState::Waiting, Some(Verdict::Refused), Standing::Refused, Mood::Bad),
            (RequestState::Waiting, Some(Verdict::Skipped), Standing::Skipped, Mood::Quiet),
            (RequestState::Starting, Some(Verdict::Refused), Standing::Starting, Mood::Busy),
            (RequestState::Ended, Some(Verdict::Failed), Standing::Ended, Mood::Quiet),
        ] {
            assert_eq!(Standing::of(state, last), standing);
            assert_eq!(standing.mood(), mood, "{standing:?}");
        }
    }
}
