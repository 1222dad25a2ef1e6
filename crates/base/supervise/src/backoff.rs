use std::time::Duration;

use roost_clock::Random;
use tokio::time::Instant;

/// Growing pauses: the first, then each twice the one before, up to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
}

impl Backoff {
    pub const fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest }
    }

    /// The pause after this many failures in a row; none after none.
    pub fn pause(self, failures: u32) -> Duration {
        match failures {
            0 => Duration::ZERO,
            _ => self.first.saturating_mul(2_u32.saturating_pow(failures - 1)).min(self.longest),
        }
    }

    /// Counts failures from here on.
    pub fn attempts(self) -> Attempts {
        Attempts { backoff: self, failures: 0, deadline: None, jitter: None }
    }
}

/// Attempts at one thing, and how long to pause after each that failed.
#[derive(Debug, Clone)]
pub struct Attempts {
    backoff: Backoff,
    failures: u32,
    deadline: Option<Instant>,
    /// Boxed: attempts are held across waits, and few of them draw.
    jitter: Option<Box<Random>>,
}

impl Attempts {
    /// No attempt begins after this time.
    #[must_use]
    pub fn until(self, deadline: Instant) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Each pause is drawn between half of itself and all of it, so that clients of one server do not come back at the same moment.
    #[must_use]
    pub fn with_jitter(self, random: Random) -> Self {
        Self { jitter: Some(Box::new(random)), ..self }
    }

    /// One more failed. The pause before the next, or `None` if that would begin after the deadline.
    pub fn failed(&mut self) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        let whole = self.backoff.pause(self.failures);
        let pause = match &mut self.jitter {
            Some(random) => random.duration(whole / 2, whole),
            None => whole,
        };
        let in_time = self.deadline.is_none_or(|deadline| Instant::now() + pause < deadline);
        in_time.then_some(pause)
    }

    /// One succeeded: the next pause is the first again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// How many failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const BACKOFF: Backoff = Backoff::new(SECOND, Duration::from_secs(30));

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<u64> = (0..8).map(|failures| BACKOFF.pause(failures).as_secs()).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(BACKOFF.pause(u32::MAX), Duration::from_secs(30));
    }

    #[test]
    fn a_success_begins_with_the_first_pause_again() {
        let mut attempts = BACKOFF.attempts();
        let pauses: Vec<_> = (0..3).filter_map(|_| attempts.failed()).collect();
        assert_eq!(pauses, [SECOND, SECOND * 2, SECOND * 4]);
        attempts.reset();
        assert_eq!((attempts.failures(), attempts.failed()), (0, Some(SECOND)));
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_begins_after_the_deadline() {
        let mut attempts = BACKOFF.attempts().until(Instant::now() + SECOND * 10);
        let mut pauses = Vec::new();
        while let Some(pause) = attempts.failed() {
            tokio::time::sleep(pause).await;
            pauses.push(pause.as_secs());
        }
        assert_eq!(pauses, [1, 2, 4], "after 7 s the next would begin at 15 s");
    }

    #[test]
    fn jitter_keeps_between_half_and_all_of_a_pause() {
        let mut attempts = BACKOFF.attempts().with_jitter(Random::from_seed(1));
        let mut drawn = Vec::new();
        for failures in 1..200 {
            let (whole, pause) = (BACKOFF.pause(failures), attempts.failed().unwrap());
            assert!(pause >= whole / 2 && pause <= whole, "{pause:?} of {whole:?}");
            drawn.push(pause);
        }
        drawn.sort();
        drawn.dedup();
        assert!(drawn.len() > 100, "they differ");
    }
}
