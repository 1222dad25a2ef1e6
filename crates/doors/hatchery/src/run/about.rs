//! Who this hatchery is, how it is set up, and what time it is.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_clock::Clock;

use crate::config::{Config, Surroundings};

/// What a round takes beside its calls to CDS, on a machine that is busy with other things.
const ROUND: Duration = Duration::from_mins(2);
/// As many calls to CDS, one after the other, each at the end of its time.
const CALLS: u32 = 20;

/// What does not change while a hatchery runs, and the clock.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) config: Arc<Config>,
    /// Where secrets that stand in files and variables are read.
    pub(crate) surroundings: Arc<dyn Surroundings + Send + Sync>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) version: String,
    pub(crate) hostname: String,
    pub(crate) started: Timestamp,
}

impl About {
    pub(crate) fn hatchery(&self) -> &str {
        &self.config.identity.name
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long a loop takes at most for a round of calls, all of which end at their deadlines: what it promises before it makes them. Both
    /// lists of CDS, each with all its attempts, behind somebody else who reads them, and signing in anew in between; the vCenter's deadlines
    /// are short beside that.
    pub(crate) fn patience(&self) -> Duration {
        ROUND + self.config.api.request_timeout.saturating_mul(CALLS)
    }
}
