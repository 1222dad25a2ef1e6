//! What the hatchery itself costs: `cargo bench -p roost-hatchery`.
//!
//! Everything is one process on the embedded simulators, whose tasks and guests take no time here: what is left is ours and the simulators' own.
//! Absolute times are this machine's and today's; how figures change with the size of the inventory is what counts.

#[path = "../../tests/lab/mod.rs"]
mod lab;
mod planner;
mod wire;

use std::time::Duration;

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` only want to know that this exists.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    planner::measure();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        for vms in [100, 1_000, 10_000] {
            wire::warm_jobs(vms).await;
        }
        wire::refill().await;
        wire::restart(10_000).await;
    });
}

/// The value below which the given share of them lies.
fn quantile(times: &mut [Duration], share: f64) -> Duration {
    times.sort();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a short list"
    )]
    let at = ((times.len() - 1) as f64 * share).round() as usize;
    times[at]
}

fn ms(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
