use std::time::Duration;

use roost_supervise::{Attempts, Backoff};
use tokio::time::{Instant, sleep};

/// Between two attempts at what may pass.
const MAY_PASS: Backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(15));

/// Whether a verb is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// For as long as its phase lasts.
    WhileItMayPass,
    /// A second try is the caller's business.
    Never,
}

/// Growing pauses until a deadline.
#[derive(Debug)]
pub struct Pauses(Attempts);

impl Pauses {
    pub fn until(deadline: Instant) -> Self {
        Self(MAY_PASS.attempts().until(deadline))
    }

    pub fn within(time: Duration) -> Self {
        Self::until(Instant::now() + time)
    }

    /// Waits a while; false, without waiting, if there is no time left for another attempt.
    pub async fn pause(&mut self) -> bool {
        match self.0.failed() {
            Some(pause) => {
                sleep(pause).await;
                true
            }
            None => false,
        }
    }
}
