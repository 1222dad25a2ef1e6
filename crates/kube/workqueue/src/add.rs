use std::time::Duration;

use tokio::time::Instant;

/// How keys are added: at which priority, and when they are due.
#[derive(Debug, Clone, Copy, Default)]
pub struct Add {
    pub(crate) priority: i32,
    pub(crate) delay: Delay,
    pub(crate) rate_limited: bool,
}

/// When an added key may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delay {
    #[default]
    None,
    For(Duration),
    /// A time in the past means at once, also for a rate-limited add.
    Until(Instant),
}

impl Add {
    pub fn at(priority: i32) -> Self {
        Self { priority, ..Self::default() }
    }

    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay: Delay::For(delay), ..self }
    }

    #[must_use]
    pub fn until(self, due: Instant) -> Self {
        Self { delay: Delay::Until(due), ..self }
    }

    /// Counts a failure of the key and waits for its back-off, or for the delay if that is shorter.
    #[must_use]
    pub fn rate_limited(self) -> Self {
        Self { rate_limited: true, ..self }
    }
}
