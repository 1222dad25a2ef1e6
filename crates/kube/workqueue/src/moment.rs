use std::time::Duration;

use tokio::time::Instant;

/// Nanoseconds since the queue was made. Half the size of an `Instant`, which counts at 100,000 keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn between(epoch: Instant, at: Instant) -> Self {
        Self::default().plus(at.saturating_duration_since(epoch))
    }

    pub(crate) fn plus(self, delay: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX)))
    }

    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
