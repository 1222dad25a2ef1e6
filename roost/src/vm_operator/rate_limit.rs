//! A client that asks the API server only so often: `RATE_LIMIT_QPS` and `RATE_LIMIT_BURST`.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use kube::Client;
use roost_vm_operator::RateLimit;
use tokio::time::Instant;

/// Requests that come too early wait for their turn, in the order in which they came. A watch counts once.
pub(super) fn limited(client: Client, limit: RateLimit) -> Client {
    let namespace = client.default_namespace().to_owned();
    let turns = Arc::new(Mutex::new(Turns { limit, next: None }));
    let service = tower::service_fn(move |request: Request<kube::client::Body>| {
        let client = client.clone();
        let wait = turns.lock().unwrap_or_else(PoisonError::into_inner).take(Instant::now());
        async move {
            tokio::time::sleep(wait).await;
            client.send(request).await
        }
    });
    Client::new(service, namespace)
}

struct Turns {
    limit: RateLimit,
    /// When the next request would be due if all came at an even pace.
    next: Option<Instant>,
}

impl Turns {
    /// How long this request waits. Whoever rested has a burst to spend.
    fn take(&mut self, now: Instant) -> Duration {
        let pace = Duration::from_secs(1) / self.limit.per_second.max(1);
        let saved = pace * self.limit.burst.saturating_sub(1);
        let due = self.next.map_or(now, |next| next.max(now));
        self.next = Some(due + pace);
        due.saturating_duration_since(now + saved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_goes_at_once_and_the_rest_at_an_even_pace() {
        let limit = RateLimit { per_second: 10, burst: 3 };
        let mut turns = Turns { limit, next: None };
        let now = Instant::now();
        let waits: Vec<u128> = (0..5).map(|_| turns.take(now).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let rested = now + Duration::from_mins(1);
        assert_eq!(turns.take(rested), Duration::ZERO);
    }
}
