use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Whoever guesses fills no log.
const TELL_EVERY: Duration = Duration::from_secs(10);

/// Tells of wrong tokens: who showed the last one, and how many there were since it was last told.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    told: Option<Instant>,
    since: u64,
}

impl Refusals {
    pub(super) fn wrong_token(&self, peer: Option<IpAddr>) {
        let Some(times) = self.due() else { return };
        let peer = peer.map_or_else(|| "somebody".to_owned(), |peer| peer.to_string());
        tracing::warn!(peer, times, "{peer} showed a token that is not the right one");
    }

    /// How many there were, if it is time to say so.
    fn due(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.since += 1;
        if state.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return None;
        }
        state.told = Some(Instant::now());
        Some(std::mem::take(&mut state.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn whoever_guesses_is_told_of_now_and_then() {
        let refusals = Refusals::default();
        assert_eq!(refusals.due(), Some(1));
        for _ in 0..1000 {
            assert_eq!(refusals.due(), None);
        }
        tokio::time::advance(TELL_EVERY).await;
        assert_eq!(refusals.due(), Some(1001));
    }
}
