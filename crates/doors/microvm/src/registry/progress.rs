use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a transfer is. Clones share it; whoever carries bytes counts them, whoever is asked shows them.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    /// 0 until it is known.
    total: AtomicU64,
}

impl Progress {
    pub fn expect(&self, bytes: u64) {
        self.0.total.store(bytes, Ordering::Relaxed);
    }

    pub fn add(&self, bytes: u64) {
        self.0.done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub fn done(&self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// `None` while nobody knows.
    pub fn total(&self) -> Option<u64> {
        Some(self.0.total.load(Ordering::Relaxed)).filter(|total| *total > 0)
    }

    /// Whole tenths, so that whoever writes it down has little to write. `None` while the whole is not known.
    pub fn tenths(&self) -> Option<u64> {
        Some((self.done().min(self.total()?).saturating_mul(10)) / self.total()?)
    }

    pub fn has_begun(&self) -> bool {
        self.done() > 0
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        match self.total() {
            Some(total) => write!(f, "{} of {} MiB", mib(self.done()), mib(total)),
            None => write!(f, "{} MiB", mib(self.done())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_tells_how_far_it_is() {
        let progress = Progress::default();
        assert_eq!((progress.has_begun(), progress.tenths()), (false, None));
        progress.add(3 << 20);
        assert_eq!(progress.to_string(), "3 MiB");
        progress.expect(10 << 20);
        assert_eq!((progress.tenths(), progress.to_string()), (Some(3), "3 of 10 MiB".to_owned()));
        progress.add(50 << 20);
        assert_eq!(progress.tenths(), Some(10), "never more than all");
    }
}
