//! Every wait has a name and a deadline.

mod common;
mod deadlines;
mod timeline;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use serde::{Serialize, Serializer};

pub use self::deadlines::PhaseDeadlines;
pub use self::timeline::{Ended, PhaseError, PhaseHook, PhaseTimer, Step, Timeline, Timelines};

/// A named wait in the life of a machine. A constant: fleet has those of its own verbs, a door declares the others. Two are the
/// same if their labels are.
#[derive(Debug, Clone, Copy)]
pub struct Phase(&'static PhaseSpec);

/// What a phase is.
#[derive(Debug)]
pub struct PhaseSpec {
    /// For metrics, JSON and configuration. From a closed set.
    pub label: &'static str,
    /// For people: what is being done.
    pub words: &'static str,
    /// Where in the life of a machine it is, for whoever draws it.
    pub part: PhasePart,
    /// How long it takes when all is well; beyond it somebody may want to look.
    pub usual: Duration,
    /// How long it may take unless the configuration says otherwise.
    pub deadline: Duration,
}

/// The parts of a machine's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhasePart {
    /// The machine comes to be.
    Making,
    /// It starts.
    Starting,
    /// What it is for is put into it.
    Preparing,
    /// It does what it is for.
    Working,
    /// It goes.
    Ending,
}

impl Phase {
    pub const fn new(spec: &'static PhaseSpec) -> Self {
        Self(spec)
    }

    /// For metrics and JSON.
    pub fn as_str(self) -> &'static str {
        self.0.label
    }

    /// For people: what is being done.
    pub fn words(self) -> &'static str {
        self.0.words
    }

    pub fn part(self) -> PhasePart {
        self.0.part
    }

    pub fn usual(self) -> Duration {
        self.0.usual
    }

    /// Unless the configuration says otherwise; see [`PhaseDeadlines`].
    pub fn default_deadline(self) -> Duration {
        self.0.deadline
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

impl PartialEq for Phase {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Phase {}

impl PartialOrd for Phase {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Phase {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for Phase {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Serialize for Phase {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}
