//! Our queue beside controller-runtime's, in one run on one machine: `cargo bench -p roost-workqueue`.
//!
//! Rounds alternate between the two, and the best one of each counts, because what disturbs a round only ever makes it
//! slower. `ROOST_BENCH_ROUNDS` (5 unless set) is their number. Needs Go, or says that it does.

mod ours;
mod report;
mod theirs;

use crate::report::Report;

/// The bound for a whole turn and for add, get and done together, by wall time and by CPU time.
const TARGET: f64 = 5.0;

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` only want to know that this exists.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let rounds = std::env::var("ROOST_BENCH_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(5);
    let Some(program) = roost_oracle::priorityqueue_bench() else { return };
    println!("best of {rounds} rounds, ns per operation: wall (CPU)\n");
    let mut report = Report::default();
    for keys in [10_000, 100_000] {
        for workers in [1, 4] {
            for _ in 0..rounds {
                report.ours(keys, workers, ours::round(keys, workers));
                report.theirs(keys, workers, theirs::round(&program, keys, workers));
            }
            report.print(keys, workers, TARGET);
        }
    }
    report.print_table();
}

/// As controllers use them: the initial list at -100, ordinary events at 0, and some above.
const PRIORITIES: [i32; 6] = [-100, 0, 0, 0, 10, 100];

/// Turns at a full queue.
const TURNS: usize = 100_000;

/// What one operation of a step took, in nanoseconds, or the bytes that a key needs.
#[derive(Debug, Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
    bytes_per_key: f64,
}
