//! What a client tells about itself while it works, for metrics. Every method has an empty default.

use std::fmt::Debug;
use std::time::Duration;

use crate::CallClass;

/// How one request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Done,
    /// The server answered with a fault.
    Fault,
    /// No whole answer came.
    Connection,
    Deadline,
    /// A status without a vim25 message, or a message that cannot be read.
    BadAnswer,
    /// The caller went away.
    Dropped,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Fault => "fault",
            Self::Connection => "connection",
            Self::Deadline => "deadline",
            Self::BadAnswer => "bad answer",
            Self::Dropped => "dropped",
        }
    }
}

/// One request on the wire; a call that was repeated leaves several.
#[derive(Debug, Clone)]
pub struct CallRecord {
    pub method: &'static str,
    pub class: CallClass,
    pub took: Duration,
    /// Of the bodies, before compression.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoginOutcome {
    LoggedIn,
    /// The server refused the credentials.
    Refused,
    /// No answer, or one that says to come back later.
    Failed,
}

impl LoginOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LoggedIn => "logged in",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Called inline from calls and background work: an implementation counts and returns.
pub trait Hooks: Debug + Send + Sync + 'static {
    fn call_finished(&self, record: &CallRecord) {
        let _ = record;
    }

    /// `kind` is one of a closed set of fault classes, or `Other`.
    fn fault(&self, method: &'static str, kind: &'static str) {
        let _ = (method, kind);
    }

    fn login(&self, outcome: LoginOutcome) {
        let _ = outcome;
    }

    /// The property stream had to be built anew after a break.
    fn stream_resynced(&self) {}

    /// Background work of the client panicked; `what` names it. It is started again when it is next needed.
    fn background_panicked(&self, what: &'static str) {
        let _ = what;
    }
}

/// Counts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
