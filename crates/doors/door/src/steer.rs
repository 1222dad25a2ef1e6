use std::fmt::{self, Debug};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use roost_views::RequestId;
use serde::{Deserialize, Serialize};

/// What a person can tell a running service to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Action {
    /// No new VMs.
    PauseSpawning,
    ResumeSpawning,
    /// No new VMs, and those that run come to their end.
    Drain,
    FreezeDeletions,
    ResumeDeletions {
        found: Found,
    },
    /// Through the guard, as every deletion.
    DeleteVm {
        vm: String,
    },
    RefillPool {
        pool: String,
    },
    /// Look at it now and not when it is due.
    Recheck {
        request: RequestId,
    },
    /// Leave it and its VM as they are.
    PauseRequest {
        request: RequestId,
    },
    ResumeRequest {
        request: RequestId,
    },
}

/// What a person found who has looked at why deletions are frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The VMs that the freeze names are to go.
    Approve,
    /// Something was wrong and is corrected; everything is looked at anew. Deletes nothing by itself, so it is what is meant by those who do
    /// not say.
    #[default]
    StartOver,
}

/// An action, and who wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub action: Action,
    pub by: Person,
    /// In the person's own words; may be anything.
    pub reason: Option<String>,
}

/// Whoever has shown that they may act. Holds nothing that would let somebody else do the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// How they have shown it.
    pub shown: Shown,
    pub from: IpAddr,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    Token,
    /// A client certificate that the configured authority has signed.
    Certificate {
        /// The common name of its subject.
        name: Arc<str>,
    },
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = self.from.to_canonical();
        match &self.shown {
            Shown::Token => write!(f, "whoever has the token, from {from}"),
            Shown::Certificate { name } => write!(f, "{name}, by client certificate, from {from}"),
        }
    }
}

/// Who and why, in one line for the journal.
impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.reason {
            Some(reason) => write!(f, "{} ({reason})", self.by),
            None => write!(f, "{}", self.by),
        }
    }
}

/// Why a service does not do what it was told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{what} is not known")]
    Unknown { what: String },
    #[error("{why}")]
    NotNow { why: String },
}

/// The other half of a door: [`FrontDoor`](crate::FrontDoor) is looked at, this one is told. They are two types, so that what only shows
/// things cannot change them.
///
/// Whoever implements it enters every action in the journal: who, what, when, and what came of it. An action may be repeated.
pub trait Steer: Debug + Send + Sync + 'static {
    /// Says in words what came of it.
    fn act(&self, order: Order) -> Acting<'_>;
}

pub type Acting<'a> = Pin<Box<dyn Future<Output = Result<String, Refused>> + Send + 'a>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_gets_who_and_why_in_one_line() {
        let by = Person { shown: Shown::Token, from: "::ffff:10.0.0.7".parse().unwrap() };
        let order = |reason: Option<&str>| Order {
            action: Action::Drain,
            by: by.clone(),
            reason: reason.map(str::to_owned),
        };
        assert_eq!(order(None).to_string(), "whoever has the token, from 10.0.0.7");
        let with_reason = order(Some("host upgrade")).to_string();
        assert_eq!(with_reason, "whoever has the token, from 10.0.0.7 (host upgrade)");
        let shown = Shown::Certificate { name: "ada".into() };
        let ada = Person { shown, ..by };
        assert_eq!(ada.to_string(), "ada, by client certificate, from 10.0.0.7");
    }
}
