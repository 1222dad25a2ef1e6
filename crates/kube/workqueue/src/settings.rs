use std::time::Duration;

/// How a queue behaves beyond its fixed rules.
#[derive(Debug, Clone)]
pub struct Settings {
    pub backoff: Backoff,
    /// `None` switches ageing off: then a key of low priority waits for as long as higher ones come.
    pub ageing: Option<Ageing>,
    pub labels: PriorityLabels,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            backoff: Backoff::default(),
            ageing: Some(Ageing::default()),
            labels: PriorityLabels::default(),
        }
    }
}

/// Exponential delay per key: `base`, twice that, four times, up to `cap`.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub base: Duration,
    pub cap: Duration,
}

impl Default for Backoff {
    /// Those of controller-runtime, so that a controller moved to this queue retries as before.
    fn default() -> Self {
        Self { base: Duration::from_millis(5), cap: Duration::from_secs(1000) }
    }
}

impl Backoff {
    pub(crate) fn delay(&self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap)
    }
}

/// A key that could have been taken for `after` rises to the next level in use above it, and again
/// after each further `after`. The priority that is handed out with the key stays as asked.
#[derive(Debug, Clone, Copy)]
pub struct Ageing {
    pub after: Duration,
    /// The highest level that a key reaches by waiting: what lies above stays for urgent work.
    pub ceiling: i32,
}

impl Default for Ageing {
    /// Five minutes: a sixth of the usual resync period, so that a key is served between two of them.
    fn default() -> Self {
        Self { after: Duration::from_mins(5), ceiling: i32::MAX }
    }
}

/// Which key a worker is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Highest priority first, first in first out within one level.
    #[default]
    Priority,
    /// The key that could have been taken for the longest, whatever its priority.
    Age,
}

/// The values that the label `priority` of the depth metric can have: always a closed set.
#[derive(Debug, Clone, Copy)]
pub enum PriorityLabels {
    /// The numbers themselves, as controller-runtime does: the first `limit` that are seen, and one
    /// placeholder for all others.
    Numbers { limit: usize },
    /// A name for each range of priorities.
    Named(fn(i32) -> &'static str),
}

impl Default for PriorityLabels {
    fn default() -> Self {
        Self::Numbers { limit: 25 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delay_never_overflows() {
        let backoff = Backoff { base: Duration::from_secs(1), cap: Duration::MAX };
        assert_eq!(backoff.delay(0), Duration::from_secs(1));
        assert_eq!(backoff.delay(31), Duration::from_secs(1 << 31));
        assert_eq!(backoff.delay(32), Duration::from_secs(u64::from(u32::MAX)));
        assert_eq!(Backoff { base: Duration::MAX, cap: Duration::MAX }.delay(9), Duration::MAX);
    }
}
