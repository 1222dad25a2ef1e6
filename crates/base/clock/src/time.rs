use std::fmt::Debug;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall time. Timers are tokio's; this only says what the calendar shows.
pub trait Clock: Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that asks the system")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Wall time read off tokio's clock: one `advance` moves timers and timestamps together.
#[derive(Debug, Clone, Copy)]
pub struct SimClock {
    epoch: Timestamp,
    started: Instant,
}

impl SimClock {
    /// A fixed, unremarkable Thursday: runs of one seed print the same dates on any day.
    pub const EPOCH: Timestamp = Timestamp::constant(1_767_261_600, 0);

    pub fn new() -> Self {
        Self::starting_at(Self::EPOCH)
    }

    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, started: Instant::now() }
    }
}

impl Default for SimClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let elapsed =
            SignedDuration::try_from(self.started.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_sleep_moves_timers_and_timestamps_together() {
        let clock = SimClock::new();
        assert_eq!(clock.now(), SimClock::EPOCH);
        tokio::time::sleep(Duration::from_hours(24)).await;
        assert_eq!(clock.now().duration_since(SimClock::EPOCH), SignedDuration::from_hours(24));
    }
}
