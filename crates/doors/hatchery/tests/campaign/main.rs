//! The campaign: random demand, faults and crashes from a seed, and what must be true of every run.
//!
//! ```text
//! cargo test -p roost-hatchery --test campaign                      # the suite: fixed and fresh seeds, replays, planted bugs
//! cargo test -p roost-hatchery --test campaign -- --seeds 5000      # more (also ROOST_SEEDS=5000), from 1 or from --from
//! cargo test -p roost-hatchery --test campaign -- --seed 17         # one, with its story
//! cargo test -p roost-hatchery --test campaign -- --replays 50      # each twice, which must be the same run
//! ```
//!
//! The suite draws some seeds that were never run before and prints them; a failure names its seed. What changes hatchery, fleet or a stand-in
//! is run on 10,000 seeds, shared among all cores, in an optimised build:
//!
//! ```text
//! cargo test --profile campaign -p roost-hatchery --test campaign -- --seeds 10000
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
mod seeds;
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
        Task::Replays { from, seeds } => report::replays(&seeds::from(from, seeds)),
        Task::Seeds { from, number } => {
            println!("\nrunning {number} seeds from {from}");
            report::many(&seeds::from(from, number), args.bug)
        }
        Task::Suite { from } => {
            let (mut all, fresh) = (seeds::fixed(from), seeds::fresh());
            println!(
                "\nrunning {} fixed seeds and {} fresh ones: {fresh:?}",
                all.len(),
                fresh.len()
            );
            all.extend(fresh);
            let mut failed = report::many(&all, args.bug);
            if args.bug.is_none() {
                failed += report::replays(&seeds::from(from, REPLAYED));
                failed += planted::all();
            }
            failed
        }
    };
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
