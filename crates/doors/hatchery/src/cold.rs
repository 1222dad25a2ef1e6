//! Templates from which no VM can be made at the moment, found out by one job at a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_supervise::Backoff;

use crate::time::{is_ahead, later};

/// After the second failure in a row; doubled by each that follows. After the first the next job tries at once, but alone.
const FIRST: Duration = Duration::from_secs(30);
/// What somebody mends is tried again within this time.
const MOST: Duration = Duration::from_mins(5);
/// How long the others wait for what the one that tries finds out. A clone that takes longer says nothing either way.
const FINDING_OUT: Duration = Duration::from_mins(3);

/// Clones for jobs that fail, by template. A start that fails costs its job an attempt, and CDS fails a V2 job at its fifth: behind a full
/// datastore a whole queue would be lost within minutes. So as soon as a clone has failed, one job at a time tries, after longer and longer
/// pauses, and the others wait untaken until a clone succeeds. Spares that are there are claimed all the same.
#[derive(Debug, Clone, Default)]
pub struct ColdStarts {
    failing: BTreeMap<Arc<str>, Failing>,
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    times: u32,
    counted: Timestamp,
    until: Timestamp,
}

impl ColdStarts {
    /// A clone that was begun then has failed. Those that were under way together fail together, and together are one failure.
    pub fn failed(&mut self, template: &Arc<str>, begun: Timestamp, now: Timestamp) {
        let before = self.failing.get(template);
        if before.is_some_and(|failing| begun < failing.counted && failing.counted <= now) {
            return;
        }
        let times = before.map_or(0, |failing| failing.times).saturating_add(1);
        // The first failure says little: others may try at once.
        let pause = Backoff::new(FIRST, MOST).pause(times - 1);
        let failing = Failing { times, counted: now, until: later(now, pause) };
        self.failing.insert(Arc::clone(template), failing);
    }

    /// A clone succeeded, or a person says that it will.
    pub fn succeeded(&mut self, template: &str) {
        self.failing.remove(template);
    }

    /// A clone is begun. If the template fails, it is the only one until more is known.
    pub fn begun(&mut self, template: &str, now: Timestamp) {
        if let Some(failing) = self.failing.get_mut(template) {
            failing.until = later(now, FINDING_OUT);
        }
    }

    /// Until when nothing is cloned from it, and how often that failed in a row.
    pub fn blocked(&self, template: &str, now: Timestamp) -> Option<(Timestamp, u32)> {
        let failing =
            self.failing.get(template).filter(|failing| is_ahead(failing.until, now, MOST))?;
        Some((failing.until, failing.times))
    }

    /// Those that failed and have not succeeded since, with how often in a row.
    pub fn failing(&self) -> impl Iterator<Item = (&Arc<str>, u32)> {
        self.failing.iter().map(|(template, failing)| (template, failing.times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, Duration::from_secs(secs))
    }

    #[test]
    fn after_a_failure_one_at_a_time_tries_after_longer_and_longer_pauses() {
        let (mut cold, template) = (ColdStarts::default(), Arc::from("debian12"));
        assert_eq!(cold.blocked(&template, at(0)), None);
        cold.failed(&template, at(0), at(10));
        assert_eq!(cold.blocked(&template, at(10)), None, "once may be chance");
        cold.begun(&template, at(11));
        assert_eq!(cold.blocked(&template, at(11)), Some((at(191), 1)), "somebody finds out");
        cold.failed(&template, at(11), at(20));
        assert_eq!(cold.blocked(&template, at(20)), Some((at(50), 2)));
        assert_eq!(cold.blocked(&template, at(50)), None);
        let mut pauses = Vec::new();
        for begun in [1_000, 2_000, 3_000, 4_000, 5_000] {
            cold.failed(&template, at(begun), at(begun));
            let (until, _) = cold.blocked(&template, at(begun)).unwrap();
            pauses.push(until.duration_since(at(begun)).as_secs());
        }
        assert_eq!(pauses, [60, 120, 240, 300, 300]);
        assert_eq!(cold.failing().collect::<Vec<_>>(), [(&template, 7)]);
        cold.succeeded(&template);
        assert_eq!((cold.blocked(&template, at(5_001)), cold.failing().count()), (None, 0));
    }

    #[test]
    fn what_was_under_way_together_fails_once() {
        let (mut cold, template) = (ColdStarts::default(), Arc::from("debian12"));
        for end in 10..20 {
            cold.failed(&template, at(0), at(end));
        }
        assert_eq!(cold.failing().collect::<Vec<_>>(), [(&template, 1)]);
        assert_eq!(cold.blocked("ubuntu24", at(20)), None, "others are others");
    }

    #[test]
    fn beginning_with_what_does_not_fail_holds_up_nobody() {
        let mut cold = ColdStarts::default();
        cold.begun("debian12", at(0));
        assert_eq!(cold.blocked("debian12", at(0)), None);
    }
}
