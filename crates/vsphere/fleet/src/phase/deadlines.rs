use std::collections::BTreeMap;
use std::time::Duration;

use super::Phase;

/// How long each phase may take: what the configuration says, or else what the phase itself does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhaseDeadlines {
    set: BTreeMap<&'static str, Duration>,
}

impl PhaseDeadlines {
    #[must_use]
    pub fn with(mut self, phase: Phase, deadline: Duration) -> Self {
        self.set.insert(phase.as_str(), deadline);
        self
    }

    pub fn of(&self, phase: Phase) -> Duration {
        self.set.get(phase.as_str()).copied().unwrap_or_else(|| phase.default_deadline())
    }
}
