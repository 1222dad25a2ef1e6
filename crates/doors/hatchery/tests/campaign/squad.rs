//! Seeds side by side, one thread for each core.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use roost_hatchery::planted::Bug;

use crate::run::{Outcomes, run};

/// Runs seeds until all are done or `enough` says so of one, and hands each outcome to `seen`.
pub(crate) fn work(
    from: u64,
    seeds: u64,
    bug: Option<Bug>,
    seen: impl FnMut(u64, Outcomes) -> bool + Send,
) {
    let (next, end) = (AtomicU64::new(from), AtomicU64::new(from + seeds));
    let seen = Mutex::new(seen);
    let threads = thread::available_parallelism().map_or(2, usize::from).min(8);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    let outcome = run(seed, bug);
                    let is_enough = (seen.lock().unwrap())(seed, outcome);
                    if is_enough {
                        end.store(0, Ordering::Relaxed);
                    }
                }
            });
        }
    });
}
