//! Seeds side by side, one thread for each core.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use roost_hatchery::planted::Bug;

use crate::run::{Outcomes, run};

/// Runs seeds until all are done or `seen` says that it has seen enough, and hands each outcome to it.
pub(crate) fn work(
    seeds: &[u64],
    bug: Option<Bug>,
    seen: impl FnMut(u64, Outcomes) -> bool + Send,
) {
    let (next, end) = (AtomicUsize::new(0), AtomicUsize::new(seeds.len()));
    let seen = Mutex::new(seen);
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    let Some(seed) = seeds.get(index).copied() else { return };
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
