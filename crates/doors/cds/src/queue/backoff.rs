use std::time::Duration;

use tokio::time::Instant;

/// Pauses between attempts to connect: doubled each time, back to the first after a connection that held.
#[derive(Debug)]
pub(crate) struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
}

impl Backoff {
    /// A connection that lived this long was a good one.
    const HELD: Duration = Duration::from_mins(1);

    pub(crate) fn new(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first }
    }

    /// How long to pause after a connection that was opened then, or after none was.
    pub(crate) fn pause(&mut self, connected: Option<Instant>) -> Duration {
        if connected.is_some_and(|since| since.elapsed() >= Self::HELD) {
            self.next = self.first;
        }
        let pause = self.next;
        self.next = (self.next * 2).min(self.longest);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_until_a_connection_holds() {
        let secs = Duration::from_secs;
        let mut backoff = Backoff::new(secs(1), secs(10));
        let failed: Vec<_> = (0..6).map(|_| backoff.pause(None).as_secs()).collect();
        assert_eq!(failed, [1, 2, 4, 8, 10, 10]);
        assert_eq!(backoff.pause(Some(Instant::now())), secs(10), "closed at once");
        let since = Instant::now();
        tokio::time::advance(Backoff::HELD).await;
        assert_eq!(backoff.pause(Some(since)), secs(1));
    }
}
