use std::fmt::Debug;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

/// What a person can tell a running service to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Action {
    /// No new workers.
    PauseSpawning,
    ResumeSpawning,
    /// No new workers, and those that run come to their end.
    Drain,
    FreezeDeletions,
    ResumeDeletions,
    /// Through the guard, as every deletion.
    DeleteVm {
        vm: String,
    },
    RefillPool {
        model: String,
    },
    /// Look at it now and not when it is due.
    RecheckJob {
        job: String,
    },
}

/// Why a service does not do what it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{what} is not known")]
    Unknown { what: String },
    #[error("{why}")]
    NotNow { why: String },
}

/// The other half of a running service: [`Source`](crate::Source) is looked at, this one is told. They are two types, so that what only shows
/// things cannot change them.
///
/// Whoever implements it enters every action in the journal: who, what, when, and what came of it. An action may be repeated.
pub trait Steer: Debug + Send + Sync + 'static {
    /// Says in words what came of it.
    fn act<'a>(
        &'a self,
        who: &'a str,
        action: Action,
    ) -> Pin<Box<dyn Future<Output = Result<String, Refused>> + Send + 'a>>;
}
