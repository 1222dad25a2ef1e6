//! The campaign: random demand, faults and crashes from a seed, and what must be true of every run.
//!
//! ```text
//! cargo test -p roost-hatchery --test campaign                      # the suite: 200 seeds, replays, planted bugs
//! cargo test -p roost-hatchery --test campaign -- --seeds 5000      # more (also ROOST_SEEDS=5000)
//! cargo test -p roost-hatchery --test campaign -- --seed 17         # one, with its story
//! cargo test -p roost-hatchery --test campaign -- --replays 50      # each twice, which must be the same run
//! ```
//!
//! A run is a function of its seed. Each seed has a thread's own runtime on paused time, so that hours pass at once.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

#[path = "../lab/mod.rs"]
mod lab;

mod acts;
mod args;
mod draw;
mod keeper;
mod planted;
mod report;
mod run;
mod squad;

use std::process::ExitCode;

use args::{Args, Task};

/// So many seeds of the suite are run a second time.
const REPLAYED: u64 = 6;

fn main() -> ExitCode {
    let seeds = std::env::var("ROOST_SEEDS").ok();
    let args = match Args::parse(std::env::args().skip(1), seeds.as_deref()) {
        Ok(args) => args,
        Err(problem) => {
            eprintln!("campaign: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let failed = match args.task {
        Task::Nothing => 0,
        Task::One { seed } => report::one(seed, args.bug),
        Task::Replays { from, seeds } => report::replays(from, seeds),
        Task::Suite { from, seeds } => {
            let mut failed = report::many(from, seeds, args.bug);
            if args.bug.is_none() && args.is_whole_suite {
                failed += report::replays(from, REPLAYED);
                failed += planted::all();
            }
            failed
        }
    };
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
