use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// `at + after`, or the end of time.
pub(crate) fn later(at: Timestamp, after: Duration) -> Timestamp {
    let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
    at.saturating_add(after).unwrap_or(Timestamp::MAX)
}

/// From `earlier` to `now`; nothing if the clock went back in between.
pub(crate) fn elapsed(earlier: Timestamp, now: Timestamp) -> Duration {
    now.duration_since(earlier).try_into().unwrap_or(Duration::ZERO)
}
