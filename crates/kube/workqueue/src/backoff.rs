use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use crate::settings::Backoff;

/// Failures of each key since it was last forgotten. Keys without failures take no room.
#[derive(Debug)]
pub(crate) struct Failures<K> {
    backoff: Backoff,
    counts: HashMap<K, u32>,
}

impl<K: Eq + Hash + Clone> Failures<K> {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self { backoff, counts: HashMap::new() }
    }

    /// Counts one more failure and says how long to wait because of it.
    pub(crate) fn next_delay(&mut self, key: &K) -> Duration {
        let count = match self.counts.get_mut(key) {
            Some(count) => count,
            None => self.counts.entry(key.clone()).or_default(),
        };
        let delay = self.backoff.delay(*count);
        *count = count.saturating_add(1);
        delay
    }

    pub(crate) fn forget(&mut self, key: &K) {
        if !self.counts.is_empty() {
            self.counts.remove(key);
        }
    }

    pub(crate) fn of(&self, key: &K) -> u32 {
        self.counts.get(key).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_and_start_again_when_forgotten() {
        let backoff = Backoff { base: Duration::from_millis(5), cap: Duration::from_secs(1000) };
        let mut failures = Failures::new(backoff);
        let delays: Vec<_> = (0..4).map(|_| failures.next_delay(&"a").as_millis()).collect();
        assert_eq!(delays, [5, 10, 20, 40]);
        for _ in 0..100 {
            failures.next_delay(&"a");
        }
        assert_eq!(failures.next_delay(&"a"), Duration::from_secs(1000));
        assert_eq!(failures.of(&"a"), 105);
        assert_eq!(failures.next_delay(&"b").as_millis(), 5, "each key has its own count");
        failures.forget(&"a");
        assert_eq!(failures.next_delay(&"a").as_millis(), 5);
    }
}
