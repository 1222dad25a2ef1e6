use std::collections::BTreeMap;
use std::time::Duration;

use super::Phase;

/// How long each phase may take.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PhaseDeadlines {
    set: BTreeMap<Phase, Duration>,
}

impl PhaseDeadlines {
    #[must_use]
    pub fn with(mut self, phase: Phase, deadline: Duration) -> Self {
        self.set.insert(phase, deadline);
        self
    }

    pub fn of(&self, phase: Phase) -> Duration {
        self.set.get(&phase).copied().unwrap_or_else(|| usual(phase))
    }
}

/// What upstream users of these calls have settled on; where they had no limit, what is clearly too long.
fn usual(phase: Phase) -> Duration {
    match phase {
        // Tasks of the server: a full clone on a slow datastore takes minutes, a stuck one takes for ever.
        Phase::Cloning | Phase::Creating | Phase::PoweringOff | Phase::Destroying => {
            Duration::from_mins(10)
        }
        Phase::Claiming | Phase::PoweringOn => Duration::from_mins(2),
        Phase::Uploading | Phase::Templating => Duration::from_mins(15),
        // From power to tools, and from tools to an address.
        Phase::Booting | Phase::WaitingForAddress => Duration::from_mins(3),
        Phase::Probing | Phase::Launching => Duration::from_mins(1),
        Phase::Preparing | Phase::ShuttingDown => Duration::from_mins(5),
        Phase::Registering => Duration::from_mins(10),
        Phase::Working => Duration::from_hours(2),
    }
}
