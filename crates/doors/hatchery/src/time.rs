use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// A time this much later. What a stranger's annotation says may be near the end of the calendar, where addition would panic.
pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    at.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// How long ago that was; zero for what is yet to come.
pub(crate) fn elapsed(since: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(since)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_calendar_is_no_obstacle() {
        assert_eq!(later(Timestamp::MAX, Duration::from_hours(1)), Timestamp::MAX);
        assert_eq!(elapsed(Timestamp::MAX, Timestamp::MIN), Duration::ZERO);
    }
}
