use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{DecisionView, Facts, Mood, OutlookView, Part, Verdict, VmDetail};

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
    /// What `project` is to it: a project, a namespace, a pool.
    #[serde(default)]
    pub group: String,
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
    /// Once it is over.
    #[serde(default)]
    pub outcome: Option<OutcomeView>,
    #[serde(flatten)]
    pub facts: Facts,
}

impl RequestView {
    /// It is still on its way to a VM that works.
    pub fn is_open(&self) -> bool {
        matches!(
            self.state,
            RequestState::Waiting
                | RequestState::Refused
                | RequestState::Skipped
                | RequestState::Starting
                | RequestState::Joining
        )
    }

    /// Nothing goes on with it until a person has done something.
    pub fn needs_person(&self) -> bool {
        let failed = self.verdict.as_ref().is_some_and(|said| said.verdict == Verdict::Failed);
        self.state == RequestState::Refused
            || (failed && matches!(self.state, RequestState::Starting | RequestState::Joining))
    }
}

/// How a request that is over came out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeView {
    pub ended: Option<Timestamp>,
    /// How long its VM did what it is for.
    pub ran_secs: Option<u64>,
    /// In few words, such as `finished`.
    pub result: String,
}

/// What is known of the VM that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Served {
    /// There is none, and none is being made.
    Nothing,
    /// It is in this part of its life.
    By(Part),
    /// It has come and gone, or nobody asks for it any more.
    Over,
}

/// How a request stands. One that waits for somebody else, or will get no VM as it is, does not wait for this service. Ordered as lists show them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestState {
    Waiting,
    /// Waits for a person to change something.
    Refused,
    /// Its VM is being made or comes up.
    Starting,
    /// Its VM is up, and whoever wanted it does not know it yet.
    Joining,
    /// Its VM does what it is for.
    #[serde(alias = "running")]
    Working,
    /// It is over, and its VM is still there.
    Leaving,
    /// Waits for somebody else.
    Skipped,
    Ended,
}

impl RequestState {
    pub const ALL: [Self; 8] = [
        Self::Waiting,
        Self::Refused,
        Self::Starting,
        Self::Joining,
        Self::Working,
        Self::Leaving,
        Self::Skipped,
        Self::Ended,
    ];

    /// The one place that decides it, for tiles, lists, lines of the terminal, JSON and metrics alike.
    pub fn of(served: Served, last: Option<Verdict>) -> Self {
        match (served, last) {
            (Served::Nothing, Some(Verdict::Refused)) => Self::Refused,
            (Served::Nothing, Some(Verdict::Skipped)) => Self::Skipped,
            (Served::Nothing, _) => Self::Waiting,
            (Served::By(part), _) => match part {
                Part::Claiming | Part::Making | Part::Starting | Part::Launching => Self::Starting,
                Part::Joining => Self::Joining,
                Part::Working => Self::Working,
                Part::Leaving => Self::Leaving,
            },
            (Served::Over, _) => Self::Ended,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Starting => "starting",
            Self::Joining => "joining",
            Self::Working => "working",
            Self::Leaving => "leaving",
            Self::Skipped => "skipped",
            Self::Ended => "ended",
        }
    }

    pub fn mood(self) -> Mood {
        match self {
            Self::Waiting => Mood::Waiting,
            Self::Starting | Self::Joining => Mood::Busy,
            Self::Working => Mood::Good,
            Self::Refused => Mood::Bad,
            Self::Leaving | Self::Skipped | Self::Ended => Mood::Quiet,
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
    /// When it probably starts, while it waits. The house fills it in; doors leave it open.
    #[serde(default)]
    pub outlook: Option<OutlookView>,
}

impl RequestDetail {
    pub fn new(request: RequestView, decisions: Vec<DecisionView>, vm: Option<VmDetail>) -> Self {
        Self { request, decisions, vm, outlook: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_waits_for_others_does_not_wait_for_us() {
        let (nothing, by) = (Served::Nothing, Served::By);
        for (served, last, state, mood) in [
            (nothing, None, RequestState::Waiting, Mood::Waiting),
            (nothing, Some(Verdict::Deferred), RequestState::Waiting, Mood::Waiting),
            (nothing, Some(Verdict::Refused), RequestState::Refused, Mood::Bad),
            (nothing, Some(Verdict::Skipped), RequestState::Skipped, Mood::Quiet),
            (by(Part::Making), Some(Verdict::Refused), RequestState::Starting, Mood::Busy),
            (by(Part::Joining), None, RequestState::Joining, Mood::Busy),
            (by(Part::Working), Some(Verdict::Deferred), RequestState::Working, Mood::Good),
            (by(Part::Leaving), Some(Verdict::Spawned), RequestState::Leaving, Mood::Quiet),
            (Served::Over, Some(Verdict::Failed), RequestState::Ended, Mood::Quiet),
        ] {
            assert_eq!(RequestState::of(served, last), state);
            assert_eq!(state.mood(), mood, "{state:?}");
        }
    }

    #[test]
    fn the_word_of_an_older_service_is_read() {
        let read = |word| serde_json::from_value::<RequestState>(serde_json::Value::from(word));
        assert_eq!(read("running").unwrap(), RequestState::Working);
        for state in RequestState::ALL {
            assert_eq!(read(state.as_str()).unwrap(), state);
        }
    }
}
