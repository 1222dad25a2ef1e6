use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;

use crate::{DoorName, Gate, Outcome, Refusal, RequestId, Verdict, VmId};

/// What a decision is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Subject {
    /// A request for a machine.
    Request(RequestId),
    Vm {
        id: VmId,
    },
    /// A warm pool, a template, a model: what a door keeps machines ready of.
    Pool {
        door: DoorName,
        id: Arc<str>,
    },
    /// The door itself, when a person steers it.
    Service {
        door: DoorName,
        id: Arc<str>,
    },
}

impl Subject {
    pub fn vm(id: &VmId) -> Self {
        Self::Vm { id: id.clone() }
    }

    /// `None` for a VM: it is what it is, whoever decides about it.
    pub fn door(&self) -> Option<DoorName> {
        match self {
            Self::Request(request) => Some(request.door),
            Self::Vm { .. } => None,
            Self::Pool { door, .. } | Self::Service { door, .. } => Some(*door),
        }
    }
}

impl DoorName {
    /// A request of this door, as what a decision is about.
    pub fn about_request(self, id: impl Into<Arc<str>>) -> Subject {
        Subject::Request(self.request(id))
    }

    pub fn about_pool(self, id: impl Into<Arc<str>>) -> Subject {
        Subject::Pool { door: self, id: id.into() }
    }

    pub fn about_service(self, id: impl Into<Arc<str>>) -> Subject {
        Subject::Service { door: self, id: id.into() }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(request) => write!(f, "{} request {}", request.door, request.id),
            Self::Vm { id } => write!(f, "VM {id}"),
            Self::Pool { door, id } => write!(f, "{door} pool {id}"),
            Self::Service { door, id } => write!(f, "{door} service {id}"),
        }
    }
}

/// What was decided. A closed set, because it becomes a metric label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Decided {
    /// A machine is on its way.
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
}

impl Decided {
    pub const ALL: [Self; 11] = [
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
    ];

    /// Whether something has happened: not that something still waits, is somebody else's, or stays.
    pub fn is_event(self) -> bool {
        !matches!(self, Self::Deferred | Self::Skipped | Self::Kept)
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
        }
    }
}

/// When the subject is looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case", tag = "when", content = "at")]
pub enum NextLook {
    /// Never: it is settled.
    #[default]
    Settled,
    At(Timestamp),
    /// When something that it depends on changes.
    OnChange,
    /// When a person has done something.
    OnPerson,
}

/// One verdict and how it came about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Its place in the journal; grows. A decision that repeats itself keeps the one that it had first.
    pub seq: u64,
    pub at: Timestamp,
    pub subject: Subject,
    pub verdict: Decided,
    /// For people, in one line.
    pub reason: Cow<'static, str>,
    /// In the order in which they were weighed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// The gate that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<&'static str>,
    pub next_look: NextLook,
    /// The VM that came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vm: Option<VmId>,
    /// How often this was decided in a row for this subject, and since when. The same refusal every few seconds is one
    /// decision.
    pub times: u32,
    pub since: Timestamp,
}

/// A decision before it has its place.
#[derive(Debug, Clone)]
pub struct Draft {
    pub(super) subject: Subject,
    pub(super) verdict: Decided,
    pub(super) reason: Cow<'static, str>,
    pub(super) gates: Vec<Gate>,
    pub(super) bound_by: Option<&'static str>,
    pub(super) next_look: NextLook,
    pub(super) vm: Option<VmId>,
}

impl Draft {
    pub fn new(subject: Subject, verdict: Decided, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            subject,
            verdict,
            reason: reason.into(),
            gates: Vec::new(),
            bound_by: None,
            next_look: NextLook::default(),
            vm: None,
        }
    }

    /// With what it was weighed against. The first gate that did not pass is taken for the one that decided.
    #[must_use]
    pub fn gates(mut self, gates: impl Into<Vec<Gate>>) -> Self {
        self.gates = gates.into();
        self.bound_by = self.gates.iter().find(|gate| !gate.passed).map(|gate| gate.name);
        self
    }

    #[must_use]
    pub fn next_look(mut self, next_look: NextLook) -> Self {
        self.next_look = next_look;
        self
    }

    #[must_use]
    pub fn vm(mut self, vm: &VmId) -> Self {
        self.vm = Some(vm.clone());
        self
    }

    /// Whether it comes to the same as an earlier decision. With a gate the numbers in the reason may move; without one the
    /// reason is all there is.
    pub fn says_the_same(&self, before: &Decision) -> bool {
        before.subject == self.subject
            && before.verdict == self.verdict
            && before.bound_by == self.bound_by
            && before.vm == self.vm
            && (self.bound_by.is_some() || before.reason == self.reason)
    }
}

/// A request that got nothing this time.
impl From<&Refusal> for Draft {
    fn from(refusal: &Refusal) -> Self {
        let next_free = refusal.forecast.as_ref().and_then(|forecast| forecast.next_free);
        Self::new(Subject::Request(refusal.request.clone()), Decided::Deferred, refusal.to_string())
            .gates(refusal.gates.clone())
            .next_look(next_free.map_or(NextLook::OnChange, NextLook::At))
    }
}

/// What the guard said of a VM.
impl From<&Verdict> for Draft {
    fn from(verdict: &Verdict) -> Self {
        let (decided, next_look) = match verdict.outcome {
            Outcome::Delete => (Decided::Deleted, NextLook::Settled),
            Outcome::Wait { until: Some(until) } => (Decided::Kept, NextLook::At(until)),
            Outcome::Wait { until: None } | Outcome::Refused => (Decided::Kept, NextLook::OnChange),
            Outcome::Frozen => (Decided::Kept, NextLook::OnPerson),
        };
        let reason = match verdict.bound_by() {
            Some(gate) => format!("{} ({gate})", verdict.why).into(),
            None => verdict.why.clone(),
        };
        Self::new(Subject::vm(&verdict.vm), decided, reason)
            .gates(verdict.gates.clone())
            .next_look(next_look)
            .vm(&verdict.vm)
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.subject, self.verdict.as_str(), self.reason)?;
        match self.next_look {
            NextLook::At(at) => write!(f, " (next look at {at:.0})"),
            NextLook::OnPerson => f.write_str(" (waits for a person)"),
            NextLook::Settled | NextLook::OnChange => Ok(()),
        }
    }
}
