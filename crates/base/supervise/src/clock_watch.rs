use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use roost_clock::Clock;
use tokio::time::Instant;

/// Clocks are slewed by less than this between two looks.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(2);

/// Notices when wall time does not go on as time does: somebody set the clock, or the machine slept.
#[derive(Debug)]
pub struct ClockWatch {
    clock: Arc<dyn Clock>,
    last: (Timestamp, Instant),
}

impl ClockWatch {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let last = (clock.now(), Instant::now());
        Self { clock, last }
    }

    /// By how much wall time has jumped since the last look, ahead or back, if it has.
    pub fn jump(&mut self) -> Option<SignedDuration> {
        let now = (self.clock.now(), Instant::now());
        let (wall, steady) = std::mem::replace(&mut self.last, now);
        let passed = SignedDuration::try_from(now.1 - steady).unwrap_or(SignedDuration::MAX);
        let jump = now.0.duration_since(wall).checked_sub(passed)?;
        (jump.abs() > TOLERANCE).then_some(jump)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::time::Duration;

    use roost_clock::SimClock;
    use tokio::time::sleep;

    use super::*;

    #[derive(Debug)]
    struct Settable(SimClock, AtomicI64);

    impl Clock for Settable {
        fn now(&self) -> Timestamp {
            self.0.now() + SignedDuration::from_secs(self.1.load(Ordering::SeqCst))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_clock_that_was_set_is_noticed_once() {
        let clock = Arc::new(Settable(SimClock::new(), AtomicI64::new(0)));
        let mut watch = ClockWatch::new(Arc::clone(&clock) as Arc<dyn Clock>);
        sleep(Duration::from_hours(1)).await;
        assert_eq!(watch.jump(), None);
        for seconds in [-3_600, 600] {
            clock.1.store(seconds, Ordering::SeqCst);
            sleep(Duration::from_secs(15)).await;
            assert!(watch.jump().is_some_and(|jump| jump.as_secs().abs() >= 3_600));
            assert_eq!(watch.jump(), None);
        }
    }
}
