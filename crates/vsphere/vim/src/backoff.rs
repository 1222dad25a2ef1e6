use std::time::Duration;

/// Growing pauses: the first, then each twice the one before, up to the most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pub(crate) first: Duration,
    pub(crate) most: Duration,
}

/// The pause after this many failures in a row; none after none.
pub(crate) fn pause(failures: u32, backoff: Backoff) -> Duration {
    match failures {
        0 => Duration::ZERO,
        _ => backoff.first.saturating_mul(2_u32.saturating_pow(failures - 1)).min(backoff.most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most() {
        let backoff = Backoff { first: Duration::from_secs(1), most: Duration::from_secs(30) };
        let pauses: Vec<u64> = (0..8).map(|failures| pause(failures, backoff).as_secs()).collect();
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(pause(u32::MAX, backoff), backoff.most);
    }
}
