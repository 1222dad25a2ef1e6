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

/// Whether that was within `span`. What lies further ahead than that was noted before the clock was set back, and counts no more.
pub(crate) fn is_recent(at: Timestamp, now: Timestamp, span: Duration) -> bool {
    elapsed(at, now).max(elapsed(now, at)) < span
}

/// Whether an end is yet to come. One further ahead than the `longest` there is was set before the clock was set back, and is over.
pub(crate) fn is_ahead(until: Timestamp, now: Timestamp, longest: Duration) -> bool {
    now < until && elapsed(now, until) <= longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_clock_noted_before_it_was_set_back_holds_up_nothing() {
        let at = |minutes| later(Timestamp::UNIX_EPOCH, Duration::from_mins(minutes));
        let five = Duration::from_mins(5);
        assert!(is_recent(at(60), at(64), five) && !is_recent(at(60), at(65), five));
        assert!(is_recent(at(60), at(56), five) && !is_recent(at(60), at(55), five));
        assert!(is_ahead(at(60), at(55), five) && !is_ahead(at(60), at(60), five));
        assert!(!is_ahead(at(60), at(54), five), "nothing is put off for so long");
    }

    #[test]
    fn the_end_of_the_calendar_is_no_obstacle() {
        assert_eq!(later(Timestamp::MAX, Duration::from_hours(1)), Timestamp::MAX);
        assert_eq!(elapsed(Timestamp::MAX, Timestamp::MIN), Duration::ZERO);
    }
}
