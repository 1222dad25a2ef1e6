//! What the campaign prints, in the words of the usual test harness where there are any.

use std::io::Write as _;
use std::time::Duration;

use roost_hatchery::planted::Bug;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::run::{Outcomes, Tally, elapsed, run};
use crate::squad::work;

/// A failing seed is told in full; of the rest only the number.
const TOLD: usize = 20;
/// A line of progress after so many seeds.
const PROGRESS: usize = 1000;

/// Runs one seed and tells its story.
pub(crate) fn one(seed: u64, bug: Option<Bug>) -> u64 {
    let story = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::new(
            std::env::var("RUST_LOG").unwrap_or_else(|_| "info".to_owned()),
        ))
        .with_timer(SimulatedTime)
        .with_target(false)
        .with_writer(std::io::stderr)
        .finish();
    let outcome = tracing::subscriber::with_default(story, || run(seed, bug));
    println!("seed {seed}: {:?}, digest {:016x}", outcome.tally, outcome.digest);
    let failed = u64::from(!outcome.is_well());
    if failed > 0 {
        tell(seed, &outcome, bug);
    }
    result(1 - failed, failed);
    failed
}

/// Seconds since the run began.
struct SimulatedTime;

impl FormatTime for SimulatedTime {
    fn format_time(&self, w: &mut Writer<'_>) -> std::fmt::Result {
        match elapsed() {
            Some(elapsed) => write!(w, "{:9.3}", elapsed.as_secs_f64()),
            None => Ok(()),
        }
    }
}

/// Runs many seeds.
pub(crate) fn many(seeds: &[u64], bug: Option<Bug>) -> u64 {
    let (mut failed, mut sum, mut done) = (Vec::new(), Tally::default(), 0_usize);
    work(seeds, bug, |seed, outcome| {
        sum = added(sum, outcome.tally);
        done += 1;
        if done.is_multiple_of(PROGRESS) {
            println!("{done} of {} seeds, {} failed", seeds.len(), failed.len());
        }
        if !outcome.is_well() {
            if failed.len() < TOLD {
                tell(seed, &outcome, bug);
            }
            failed.push(seed);
        }
        false
    });
    let Tally { jobs, succeeded, launches, deaths, calls, simulated } = sum;
    let hours = simulated.as_secs() / 3600;
    println!(
        "{jobs} jobs, {succeeded} of them a success, {launches} workers launched, {deaths} crashes, {calls} vCenter calls, \
         {hours} simulated hours"
    );
    if !failed.is_empty() {
        failed.sort_unstable();
        println!("failed: {failed:?}");
    }
    let failed = failed.len() as u64;
    result(seeds.len() as u64 - failed, failed);
    failed
}

/// Shows that a run is a function of its seed.
pub(crate) fn replays(seeds: &[u64]) -> u64 {
    println!("\nrunning {} seeds twice", seeds.len());
    let mut failed = 0;
    work(seeds, None, |seed, outcome| {
        let again = run(seed, None);
        if outcome.digest != again.digest {
            println!("seed {seed} gave {:016x} and then {:016x}", outcome.digest, again.digest);
            failed += 1;
        }
        false
    });
    result(seeds.len() as u64 - failed, failed);
    failed
}

pub(crate) fn result(passed: u64, failed: u64) {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "test result: {word}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out"
    );
}

fn tell(seed: u64, outcome: &Outcomes, bug: Option<Bug>) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "seed {seed} failed:");
    for violation in &outcome.violations {
        let _ = writeln!(out, "    {violation:?}");
    }
    if let Some(panic) = &outcome.panic {
        let _ = writeln!(out, "    panicked: {panic}");
    }
    let planted = bug.map(|bug| format!(" --planted {bug:?}")).unwrap_or_default();
    let _ = writeln!(
        out,
        "    replay: cargo test -p roost-hatchery --test campaign -- --seed {seed}{planted}"
    );
}

fn added(a: Tally, b: Tally) -> Tally {
    Tally {
        jobs: a.jobs + b.jobs,
        succeeded: a.succeeded + b.succeeded,
        launches: a.launches + b.launches,
        deaths: a.deaths + b.deaths,
        calls: a.calls + b.calls,
        simulated: a.simulated.saturating_add(b.simulated).min(Duration::MAX),
    }
}
