//! Simulated time, held back to a speed that people can follow.
//!
//! The simulation runs alone on its thread, on tokio's paused clock, which jumps to the next timer whenever nothing is left to do. The pacer is one
//! more timer: whenever simulated time has moved by a step it holds the whole thread until that moment is due. It changes nothing else, so a seed is
//! the same run at any speed.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use roost_clock::{Clock as _, SystemClock};
use tokio::time::{Instant, sleep};

use crate::cli::Speed;

/// Twenty looks at the clock in a simulated second: time does not seem to jump, also at real time.
const STEP: Duration = Duration::from_millis(50);

/// A machine that is slower than the speed does not run after what it owes.
const MOST_BEHIND: SignedDuration = SignedDuration::from_millis(200);

/// Holds simulated time back to `speed`, until `release` is dropped: from then on it goes as fast as it can.
pub(super) async fn keep_pace(speed: Speed, release: Receiver<()>) {
    let mut released = false;
    let mut since = Anchor::now();
    loop {
        sleep(STEP).await;
        let Speed::Times(times) = speed else { continue };
        if released {
            continue;
        }
        let ahead = since.ahead(times);
        if ahead < -MOST_BEHIND {
            since = Anchor::now();
        }
        if let Ok(ahead) = Duration::try_from(ahead)
            && !ahead.is_zero()
        {
            // Nothing else shall run meanwhile: this is what keeps the clock from jumping on.
            released = release.recv_timeout(ahead) == Err(RecvTimeoutError::Disconnected);
        }
    }
}

/// One moment on both clocks.
struct Anchor {
    simulated: Instant,
    real: Timestamp,
}

impl Anchor {
    fn now() -> Self {
        Self { simulated: Instant::now(), real: SystemClock.now() }
    }

    /// How much too early it is for the simulated time that is now.
    fn ahead(&self, times: f64) -> SignedDuration {
        let due = self.simulated.elapsed().as_secs_f64() / times;
        let due = SignedDuration::try_from_secs_f64(due).unwrap_or(SignedDuration::ZERO);
        due - SystemClock.now().duration_since(self.real)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// No upper bound: the machine may be slow today.
    #[tokio::test(start_paused = true)]
    async fn simulated_time_is_held_back_to_the_speed() {
        let (hold, release) = mpsc::channel();
        let before = SystemClock.now();
        let pacer = tokio::spawn(keep_pace(Speed::Times(100.0), release));
        sleep(Duration::from_secs(10)).await;
        let took = SystemClock.now().duration_since(before);
        assert!(took >= SignedDuration::from_millis(90), "{took:?}");
        drop(hold);
        sleep(Duration::from_hours(1)).await;
        pacer.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn as_fast_as_it_goes_waits_for_nothing() {
        let (_hold, release) = mpsc::channel();
        let began = Instant::now();
        let pacer = tokio::spawn(keep_pace(Speed::Max, release));
        sleep(Duration::from_hours(1)).await;
        assert_eq!(began.elapsed(), Duration::from_hours(1));
        pacer.abort();
    }
}
