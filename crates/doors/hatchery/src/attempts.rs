//! How often a worker was tried for a job, and when that is enough.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::JobId;
use roost_supervise::Backoff;

use crate::refusal::Refusal;
use crate::time::{is_ahead, is_recent, later};

/// A job is forgotten this long after its first attempt, however many followed.
const MEMORY: Duration = Duration::from_hours(1);
/// Between the first two attempts of a job, from beginning to beginning; doubled by each that follows. What fails at once would else use up
/// all of them before anybody can look, and with its fifth release CDS fails a V2 job.
const FIRST_PAUSE: Duration = Duration::from_secs(30);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// More jobs than a hatchery starts in an hour; beyond it the oldest are forgotten early.
const MOST_JOBS: usize = 10_000;

/// Counts real attempts: those for which everything was reserved and the job was to be taken. With the usual limit of 5 a job gets five of
/// them, and at its sixth sight it has had enough.
#[derive(Debug, Clone)]
pub struct Attempts {
    limit: Option<u32>,
    jobs: HashMap<JobId, Made>,
    /// Oldest first. An entry whose time is not that of `jobs` is of a job that was forgotten in between.
    order: VecDeque<(Timestamp, JobId)>,
}

#[derive(Debug, Clone, Copy)]
struct Made {
    count: u32,
    first: Timestamp,
    last: Timestamp,
}

/// Why a job is not tried now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotNow {
    Exhausted(Exhausted),
    /// So many attempts failed; the next one is made then.
    Pause {
        made: u32,
        until: Timestamp,
    },
}

/// The job has had all of its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exhausted {
    pub made: u32,
    /// When a V2 job, which no hatchery may fail, is looked at again.
    pub until: Timestamp,
}

impl From<Exhausted> for Refusal {
    fn from(exhausted: Exhausted) -> Self {
        Self::Attempts { made: exhausted.made }
    }
}

impl Attempts {
    /// `None` for no limit.
    pub fn new(limit: Option<u32>) -> Self {
        Self { limit, jobs: HashMap::new(), order: VecDeque::new() }
    }

    /// Whether the job may be tried once more. Counts nothing.
    pub fn check(&self, job: &JobId, now: Timestamp) -> Result<(), NotNow> {
        let Some(made) = self.jobs.get(job).filter(|made| is_recent(made.first, now, MEMORY))
        else {
            return Ok(());
        };
        if self.limit.is_some_and(|limit| made.count >= limit) {
            let until = later(made.first, MEMORY);
            return Err(NotNow::Exhausted(Exhausted { made: made.count, until }));
        }
        let until = later(made.last, pause_after(made.count));
        if is_ahead(until, now, LONGEST_PAUSE) {
            Err(NotNow::Pause { made: made.count, until })
        } else {
            Ok(())
        }
    }

    /// How many there were.
    pub fn made(&self, job: &JobId) -> u32 {
        self.jobs.get(job).map_or(0, |made| made.count)
    }

    /// Counts an attempt and says which one it is, from 1.
    pub fn count(&mut self, job: &JobId, now: Timestamp) -> u32 {
        self.forget_old(now);
        let order = &mut self.order;
        let made = self.jobs.entry(job.clone()).or_insert_with(|| {
            order.push_back((now, job.clone()));
            Made { count: 0, first: now, last: now }
        });
        made.count = made.count.saturating_add(1);
        made.last = now;
        made.count
    }

    /// Takes back the last one: it came to nothing before the job was taken.
    pub fn uncount(&mut self, job: &JobId) {
        if let Some(made) = self.jobs.get_mut(job) {
            made.count = made.count.saturating_sub(1);
        }
    }

    /// For a job that has its worker or is gone.
    pub fn forget(&mut self, job: &JobId) {
        self.jobs.remove(job);
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    fn forget_old(&mut self, now: Timestamp) {
        while let Some((first, job)) = self.order.front() {
            let is_current = self.jobs.get(job).is_some_and(|made| made.first == *first);
            if is_current && is_recent(*first, now, MEMORY) && self.order.len() < MOST_JOBS {
                return;
            }
            if is_current {
                self.jobs.remove(job);
            }
            self.order.pop_front();
        }
    }
}

fn pause_after(attempts: u32) -> Duration {
    Backoff::new(FIRST_PAUSE, LONGEST_PAUSE).pause(attempts)
}

/// What a V1 job that has had enough is failed with.
pub fn failure_message(hatchery: &str, made: u32) -> String {
    format!("hatchery {hatchery:?} failed to start worker after {made} attempts")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: u64) -> Timestamp {
        later(Timestamp::UNIX_EPOCH, Duration::from_mins(minutes))
    }

    #[test]
    fn five_real_attempts_and_the_sixth_sight_is_the_end() {
        let mut attempts = Attempts::new(Some(5));
        let job = JobId::V1(123);
        for number in 1..=5 {
            assert_eq!(attempts.check(&job, at(number * 6)), Ok(()), "sight {number}");
            assert_eq!(u64::from(attempts.count(&job, at(number * 6))), number);
        }
        let enough = Exhausted { made: 5, until: at(66) };
        assert_eq!(attempts.check(&job, at(31)), Err(NotNow::Exhausted(enough)));
        assert_eq!(
            failure_message("h", enough.made),
            r#"hatchery "h" failed to start worker after 5 attempts"#
        );
    }

    #[test]
    fn the_memory_lasts_an_hour_from_the_first_attempt() {
        let mut attempts = Attempts::new(Some(2));
        let job = JobId::V2("j".into());
        attempts.count(&job, at(0));
        attempts.count(&job, at(59));
        assert!(attempts.check(&job, at(59)).is_err());
        assert_eq!(attempts.check(&job, at(60)), Ok(()), "not refreshed by the second");
        assert_eq!(attempts.count(&job, at(60)), 1);
    }

    #[test]
    fn without_a_limit_there_is_no_end_and_a_forgotten_job_starts_anew() {
        let mut attempts = Attempts::new(None);
        let job = JobId::V1(1);
        (0..100).for_each(|_| {
            attempts.count(&job, at(0));
        });
        assert_eq!(attempts.check(&job, at(5)), Ok(()));
        attempts.forget(&job);
        assert!(attempts.is_empty());
        assert_eq!(attempts.count(&job, at(1)), 1);
    }

    #[test]
    fn what_is_taken_back_was_no_attempt() {
        let mut attempts = Attempts::new(Some(1));
        let job = JobId::V1(1);
        attempts.count(&job, at(0));
        attempts.uncount(&job);
        assert_eq!(attempts.check(&job, at(0)), Ok(()));
        attempts.uncount(&JobId::V1(2));
        assert_eq!(attempts.count(&job, at(1)), 1);
        assert!(attempts.check(&job, at(1)).is_err());
    }

    #[test]
    fn pauses_between_attempts_grow_so_that_nothing_is_used_up_at_once() {
        let mut attempts = Attempts::new(None);
        let (job, mut now) = (JobId::V2("j".into()), at(0));
        let mut pauses = Vec::new();
        for _ in 0..6 {
            attempts.count(&job, now);
            let Err(NotNow::Pause { until, .. }) = attempts.check(&job, now) else { panic!() };
            pauses.push(until.duration_since(now).as_secs());
            now = until;
            assert_eq!(attempts.check(&job, now), Ok(()));
        }
        assert_eq!(pauses, [30, 60, 120, 240, 300, 300]);
        attempts.forget(&job);
        assert_eq!(attempts.check(&job, now), Ok(()), "a person may say that it is tried now");
    }

    #[test]
    fn a_clock_that_was_set_back_holds_no_job_up() {
        let mut attempts = Attempts::new(Some(2));
        let job = JobId::V1(1);
        attempts.count(&job, at(600));
        assert!(attempts.check(&job, at(600)).is_err());
        assert_eq!(attempts.check(&job, at(570)), Ok(()), "no pause lasts half an hour");
        attempts.count(&job, at(570));
        assert!(matches!(attempts.check(&job, at(571)), Err(NotNow::Exhausted(_))), "counted on");
        assert_eq!(attempts.check(&job, at(500)), Ok(()), "it was not within an hour");
    }

    #[test]
    fn looking_counts_nothing() {
        let attempts = Attempts::new(Some(1));
        for _ in 0..10 {
            assert_eq!(attempts.check(&JobId::V1(1), at(0)), Ok(()));
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut attempts = Attempts::new(Some(5));
        for number in 0..30_000 {
            let job = JobId::V1(number % 20_000);
            attempts.count(&job, at(0));
            if number % 3 == 0 {
                attempts.forget(&job);
            }
        }
        assert!(
            attempts.len() <= MOST_JOBS && attempts.order.len() <= MOST_JOBS,
            "{}",
            attempts.len()
        );
        attempts.count(&JobId::V1(-1), at(60));
        assert_eq!(attempts.len(), 1);
    }
}
