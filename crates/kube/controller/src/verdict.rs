//! What the outcome of a pass means for the queue and for the metrics. Pure.

use std::time::Duration;

use jiff::Timestamp;
use roost_workqueue::Add;

use crate::next::{Next, Remedy};

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Next(Next),
    Error(Remedy),
    Panicked,
    TimedOut,
}

/// As `controller_runtime_reconcile_total` counts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Counted {
    Success,
    Error,
    Requeue,
    RequeueAfter,
}

impl Counted {
    pub(crate) const ALL: [Self; 4] =
        [Self::Success, Self::Error, Self::Requeue, Self::RequeueAfter];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::Requeue => "requeue",
            Self::RequeueAfter => "requeue_after",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requeue {
    No,
    RateLimited,
    After(Duration),
}

impl Requeue {
    pub(crate) fn add(self, priority: i32) -> Option<Add> {
        match self {
            Self::No => None,
            Self::RateLimited => Some(Add::at(priority).rate_limited()),
            Self::After(delay) => Some(Add::at(priority).after(delay)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) counted: Counted,
    pub(crate) requeue: Requeue,
    /// The key's back-off starts from the beginning.
    pub(crate) is_forgiven: bool,
}

/// An error that asks for a person is not forgiven: if a change brings the key back and it fails otherwise, its back-off goes on.
pub(crate) fn judge(outcome: Outcome, now: Timestamp) -> Verdict {
    let verdict = |counted, requeue, is_forgiven| Verdict { counted, requeue, is_forgiven };
    let after = |delay: Duration| {
        if delay.is_zero() {
            verdict(Counted::Requeue, Requeue::RateLimited, false)
        } else {
            verdict(Counted::RequeueAfter, Requeue::After(delay), true)
        }
    };
    match outcome {
        Outcome::Next(Next::AwaitChange) | Outcome::Error(Remedy::AwaitChange) => {
            verdict(Counted::Success, Requeue::No, true)
        }
        Outcome::Next(Next::Now) => after(Duration::ZERO),
        Outcome::Next(Next::After(delay)) | Outcome::Error(Remedy::After(delay)) => after(delay),
        Outcome::Next(Next::At(time)) => {
            // A time that has passed is the shortest wait there is, so that a pass which asks for one cannot spin.
            let delay = Duration::try_from(time.duration_since(now)).unwrap_or_default();
            after(delay)
        }
        Outcome::Error(Remedy::Person) => verdict(Counted::Error, Requeue::No, false),
        Outcome::Error(Remedy::Backoff) | Outcome::Panicked | Outcome::TimedOut => {
            verdict(Counted::Error, Requeue::RateLimited, false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_does_what_the_outcome_asks_for() {
        let now = Timestamp::from_second(1000).unwrap();
        let at = |second| Next::At(Timestamp::from_second(second).unwrap());
        let secs = Duration::from_secs;
        let (ok, error) = (Counted::Success, Counted::Error);
        let (again, later) = (Counted::Requeue, Counted::RequeueAfter);
        for (case, outcome, counted, requeue, is_forgiven) in [
            ("settled", Outcome::Next(Next::AwaitChange), ok, Requeue::No, true),
            ("now", Outcome::Next(Next::Now), again, Requeue::RateLimited, false),
            ("after", Outcome::Next(Next::After(secs(9))), later, Requeue::After(secs(9)), true),
            ("at", Outcome::Next(at(1009)), later, Requeue::After(secs(9)), true),
            ("at a time that has passed", Outcome::Next(at(9)), again, Requeue::RateLimited, false),
            ("error", Outcome::Error(Remedy::Backoff), error, Requeue::RateLimited, false),
            ("a person", Outcome::Error(Remedy::Person), error, Requeue::No, false),
            ("later", Outcome::Error(Remedy::After(secs(9))), later, Requeue::After(secs(9)), true),
            (
                "later, at once",
                Outcome::Error(Remedy::After(secs(0))),
                again,
                Requeue::RateLimited,
                false,
            ),
            ("a signal comes", Outcome::Error(Remedy::AwaitChange), ok, Requeue::No, true),
            ("panic", Outcome::Panicked, error, Requeue::RateLimited, false),
            ("timeout", Outcome::TimedOut, error, Requeue::RateLimited, false),
        ] {
            let expected = Verdict { counted, requeue, is_forgiven };
            assert_eq!(judge(outcome, now), expected, "{case}");
        }
    }
}
