use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Whoever guesses fills no log.
const TELL_EVERY: Duration = Duration::from_secs(10);
/// So many peers are told apart. All others together are told of as one.
const MOST_PEERS: usize = 64;

/// Tells of wrong tokens: who showed them, and how many there were since that was last told. Each peer has a turn of its own, so that one who
/// guesses all the time hides nobody.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    of: Mutex<HashMap<Option<IpAddr>, State>>,
}

#[derive(Debug, Clone, Copy)]
struct State {
    told: Instant,
    since: u64,
}

impl Refusals {
    pub(super) fn wrong_token(&self, peer: Option<IpAddr>) {
        let Some((peer, times)) = self.due(peer) else { return };
        let peer = peer.map_or_else(|| "somebody".to_owned(), |peer| peer.to_string());
        tracing::warn!(peer, times, "{peer} showed a token that is not the right one");
    }

    /// Who showed how many, if it is time to say so.
    fn due(&self, peer: Option<IpAddr>) -> Option<(Option<IpAddr>, u64)> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if !of.contains_key(&peer) && of.len() >= MOST_PEERS {
            // Those of whom all was told and who have been quiet since.
            of.retain(|_, state| state.since > 0 || state.told.elapsed() < TELL_EVERY);
        }
        let is_full = !of.contains_key(&peer) && of.len() >= MOST_PEERS;
        let peer = if is_full { None } else { peer };
        let Some(state) = of.get_mut(&peer) else {
            of.insert(peer, State { told: Instant::now(), since: 0 });
            return Some((peer, 1));
        };
        state.since += 1;
        if state.told.elapsed() < TELL_EVERY {
            return None;
        }
        state.told = Instant::now();
        Some((peer, std::mem::take(&mut state.since)))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn peer(number: u32) -> IpAddr {
        Ipv4Addr::from_bits(number).into()
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_guesses_is_told_of_now_and_then() {
        let refusals = Refusals::default();
        assert_eq!(refusals.due(Some(peer(1))), Some((Some(peer(1)), 1)));
        for _ in 0..1000 {
            assert_eq!(refusals.due(Some(peer(1))), None);
        }
        assert_eq!(
            refusals.due(Some(peer(2))),
            Some((Some(peer(2)), 1)),
            "another one is not hidden by it"
        );
        tokio::time::advance(TELL_EVERY).await;
        assert_eq!(refusals.due(Some(peer(1))), Some((Some(peer(1)), 1001)));
    }

    #[tokio::test(start_paused = true)]
    async fn many_peers_fill_neither_the_memory_nor_the_log() {
        let refusals = Refusals::default();
        let told = (0..10_000).filter(|number| refusals.due(Some(peer(*number))).is_some()).count();
        assert!(told <= MOST_PEERS + 1, "{told}");
        assert!(refusals.of.lock().unwrap().len() <= MOST_PEERS + 1);
        tokio::time::advance(TELL_EVERY).await;
        assert_eq!(
            refusals.due(Some(peer(20_000))),
            Some((Some(peer(20_000)), 1)),
            "the quiet ones made room"
        );
    }
}
