//! Simulated time, held back to a speed that people can follow.
//!
//! The simulation runs alone on its thread, on tokio's paused clock, which jumps to the next timer whenever nothing is left to do. The pacer is one
//! more timer: whenever simulated time has moved by a step it holds the whole thread until that moment is due. It changes nothing else, so a seed is
//! the same run at any speed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use roost_clock::{Clock as _, SystemClock};
use tokio::time::{Instant, sleep};

use super::Speed;

/// Twenty looks at the clock in a simulated second: time does not seem to jump, also at real time.
const STEP: Duration = Duration::from_millis(50);

/// A machine that is slower than the speed does not run after what it owes.
const MOST_BEHIND: SignedDuration = SignedDuration::from_millis(200);

/// How fast simulated time runs; it can be changed while it does.
#[derive(Debug)]
pub(super) struct Pace {
    /// `None`: as fast as it goes.
    times: Mutex<Option<f64>>,
    is_paused: AtomicBool,
}

/// Beyond these nobody sees anything any more.
const SLOWEST: f64 = 0.25;
const FASTEST: f64 = 400.0;
/// How often it is looked whether time goes on.
const PAUSED: Duration = Duration::from_millis(50);

impl Pace {
    pub(super) fn new(speed: Speed) -> Arc<Self> {
        let times = match speed {
            Speed::Times(times) => Some(times),
            Speed::Max => None,
        };
        Arc::new(Self { times: Mutex::new(times), is_paused: AtomicBool::new(false) })
    }

    fn times(&self) -> Option<f64> {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn set(&self, times: f64) {
        *self.times.lock().unwrap_or_else(PoisonError::into_inner) = Some(times);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Relaxed)
    }

    /// So many times as fast as it is. Says what it is then.
    pub(super) fn change(&self, factor: f64) -> String {
        self.set((self.times().unwrap_or(FASTEST) * factor).clamp(SLOWEST, FASTEST));
        format!("time is {self}")
    }

    /// Stops time, or lets it go on.
    pub(super) fn pause(&self) -> String {
        let was = self.is_paused.fetch_xor(true, Ordering::Relaxed);
        if was { "time goes on" } else { "time stands still" }.to_owned()
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.times() {
            _ if self.is_paused() => f.write_str("simulated, stopped"),
            Some(times) => write!(f, "simulated, {times} times as fast"),
            None => f.write_str("simulated, as fast as it goes"),
        }
    }
}

/// Holds simulated time back to its pace, until `release` is dropped: from then on it goes as fast as it can.
pub(super) async fn keep_pace(pace: Arc<Pace>, release: Receiver<()>) {
    let mut released = false;
    let (mut since, mut before) = (Anchor::now(), pace.times());
    loop {
        sleep(STEP).await;
        while pace.is_paused() && !released {
            released = release.recv_timeout(PAUSED) == Err(RecvTimeoutError::Disconnected);
            since = Anchor::now();
        }
        let times = pace.times();
        if times != before {
            (since, before) = (Anchor::now(), times);
        }
        let Some(times) = times.filter(|_| !released) else { continue };
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
        let pacer = tokio::spawn(keep_pace(Pace::new(Speed::Times(100.0)), release));
        sleep(Duration::from_secs(10)).await;
        let took = SystemClock.now().duration_since(before);
        assert!(took >= SignedDuration::from_millis(90), "{took:?}");
        drop(hold);
        sleep(Duration::from_hours(1)).await;
        pacer.abort();
    }

    #[test]
    fn speed_can_be_changed_and_time_stopped() {
        let pace = Pace::new(Speed::Times(25.0));
        assert_eq!(pace.to_string(), "simulated, 25 times as fast");
        assert_eq!(pace.change(2.0), "time is simulated, 50 times as fast");
        for _ in 0..20 {
            pace.change(0.5);
        }
        assert_eq!(pace.times(), Some(SLOWEST));
        assert_eq!(pace.pause(), "time stands still");
        assert_eq!(pace.to_string(), "simulated, stopped");
        assert_eq!(pace.pause(), "time goes on");
    }

    #[tokio::test(start_paused = true)]
    async fn as_fast_as_it_goes_waits_for_nothing() {
        let (_hold, release) = mpsc::channel();
        let began = Instant::now();
        let pacer = tokio::spawn(keep_pace(Pace::new(Speed::Max), release));
        sleep(Duration::from_hours(1)).await;
        assert_eq!(began.elapsed(), Duration::from_hours(1));
        pacer.abort();
    }
}
