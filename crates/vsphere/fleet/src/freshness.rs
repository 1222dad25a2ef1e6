use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::Serialize;

use crate::time::elapsed;

/// How far a view of one side of the world can be believed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Freshness {
    /// Everything that the other side has is in the view. False after a read that failed, was cut short or is still under
    /// way.
    pub complete: bool,
    /// When the other side last confirmed the view. `None` before the first time.
    pub as_of: Option<Timestamp>,
    /// How many things it shows.
    pub items: usize,
    /// What is wrong, if something is.
    pub trouble: Option<String>,
}

/// Why a view is not enough to act on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unfit {
    NeverRead,
    Incomplete,
    Stale { age_secs: u64 },
    Empty,
}

impl Freshness {
    pub fn complete(as_of: Timestamp, items: usize) -> Self {
        Self { complete: true, as_of: Some(as_of), items, trouble: None }
    }

    /// The view is what it was, but the last attempt to renew it failed.
    #[must_use]
    pub fn failed(mut self, trouble: impl Into<String>) -> Self {
        self.complete = false;
        self.trouble = Some(trouble.into());
        self
    }

    pub fn age(&self, now: Timestamp) -> Option<Duration> {
        self.as_of.map(|as_of| elapsed(as_of, now))
    }

    /// Whether it is whole and not older than `max_age`. A view from the future is as bad as an old one: a clock has moved.
    pub fn check(&self, now: Timestamp, max_age: Duration) -> Result<Timestamp, Unfit> {
        let Some(as_of) = self.as_of else { return Err(Unfit::NeverRead) };
        if !self.complete {
            return Err(Unfit::Incomplete);
        }
        let off = elapsed(as_of, now).max(elapsed(now, as_of));
        if off > max_age {
            return Err(Unfit::Stale { age_secs: off.as_secs() });
        }
        Ok(as_of)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NeverRead => f.write_str("was never read"),
            Self::Incomplete => f.write_str("is not complete"),
            Self::Stale { age_secs } => write!(f, "is {age_secs} s old"),
            Self::Empty => f.write_str("is empty"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::later;

    #[test]
    fn only_a_whole_and_recent_view_can_be_acted_on() {
        let at = Timestamp::UNIX_EPOCH;
        let minute = Duration::from_mins(1);
        let whole = Freshness::complete(at, 3);
        for (case, view, now, wanted) in [
            ("just read", whole.clone(), at, Ok(at)),
            ("a minute old", whole.clone(), later(at, minute), Ok(at)),
            (
                "older",
                whole.clone(),
                later(at, minute + Duration::from_secs(1)),
                Err(Unfit::Stale { age_secs: 61 }),
            ),
            (
                "from the future",
                Freshness::complete(later(at, Duration::from_mins(2)), 3),
                at,
                Err(Unfit::Stale { age_secs: 120 }),
            ),
            ("failed", whole.failed("503"), at, Err(Unfit::Incomplete)),
            ("never read", Freshness::default(), at, Err(Unfit::NeverRead)),
        ] {
            assert_eq!(view.check(now, minute), wanted, "{case}");
        }
    }
}
