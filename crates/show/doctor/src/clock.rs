//! Whether a server's clock and ours show the same time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::report::{Fact, Finding};

/// By how much the server's clock is ahead of ours, give or take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skew {
    ahead: SignedDuration,
    give_or_take: SignedDuration,
}

impl Skew {
    /// `theirs` came as the answer to what was asked at `asked` and took `way` in all.
    pub fn of(theirs: Timestamp, asked: Timestamp, way: Duration) -> Self {
        let half = SignedDuration::try_from(way / 2).unwrap_or(SignedDuration::ZERO);
        Self { ahead: theirs.duration_since(asked) - half, give_or_take: half }
    }
}

/// What a difference does.
#[derive(Debug, Clone, Copy)]
pub struct Clocks {
    pub server: &'static str,
    /// From here on it does harm.
    pub limit: Duration,
    pub harm: &'static str,
    pub nuisance: &'static str,
}

/// Clocks that are kept by NTP differ by far less.
const NOTABLE: SignedDuration = SignedDuration::from_secs(5);
/// Never a failure below this, however short the limit is.
const TOLERABLE: Duration = Duration::from_mins(1);

const CHECK: &str = "clock";

pub fn judge(clocks: Clocks, skew: &Fact<Skew>) -> Finding {
    skew.judge(CHECK, "the server does not tell its time; try again", |skew| of(clocks, *skew))
}

fn of(clocks: Clocks, skew: Skew) -> Finding {
    // What may be the way that the answer took is no difference.
    let apart = (skew.ahead.abs() - skew.give_or_take).max(SignedDuration::ZERO);
    // To the nearest second: 29.98 s is half a minute.
    let secs = (skew.ahead.abs() + SignedDuration::from_millis(500)).as_secs();
    let server = clocks.server;
    let side = if skew.ahead.is_negative() { "behind" } else { "ahead of" };
    let found = format!("{server} is {secs} s {side} this machine");
    let advice =
        format!("let this machine and {server} follow the same time servers (chrony, ntp)");
    if apart.unsigned_abs() >= clocks.limit.max(TOLERABLE) {
        return Finding::fail(CHECK, format!("{found}: {}", clocks.harm)).advice(advice);
    }
    if apart > NOTABLE {
        return Finding::warn(CHECK, format!("{found}: {}", clocks.nuisance)).advice(advice);
    }
    Finding::pass(CHECK, format!("{server} and this machine show the same time"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Verdict;

    const CLOCKS: Clocks = Clocks {
        server: "the vCenter",
        limit: Duration::from_mins(3),
        harm: "VMs would be deleted too early",
        nuisance: "ages are off",
    };

    #[test]
    fn a_difference_counts_by_what_it_would_do() {
        for (ahead, give_or_take, wanted) in [
            (0, 0, Verdict::Pass),
            (-5, 0, Verdict::Pass),
            (30, 0, Verdict::Warn),
            (-30, 0, Verdict::Warn),
            (8, 5, Verdict::Pass),
            (180, 0, Verdict::Fail),
            (-3600, 0, Verdict::Fail),
        ] {
            let secs = SignedDuration::from_secs;
            let skew = Skew { ahead: secs(ahead), give_or_take: secs(give_or_take) };
            assert_eq!(of(CLOCKS, skew).verdict, wanted, "{ahead}");
            let short = Clocks { limit: Duration::from_secs(1), ..CLOCKS };
            if ahead == 30 {
                assert_eq!(of(short, skew).verdict, Verdict::Warn, "a short limit");
            }
        }
    }

    #[test]
    fn half_of_the_way_is_taken_off() {
        let asked = Timestamp::constant(1000, 0);
        let skew = Skew::of(Timestamp::constant(1002, 0), asked, Duration::from_secs(4));
        assert_eq!((skew.ahead.as_secs(), skew.give_or_take.as_secs()), (0, 2));
    }
}
