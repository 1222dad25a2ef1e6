//! What the door costs: `cargo bench -p roost-agent-forge`.
//!
//! Calls and simulated times are on paused time and the same in every run. Memory and seconds are this machine's and today's.
#![allow(dead_code, unused_imports, clippy::unwrap_used, reason = "the helpers of the tests")]

#[path = "../tests/it/iso.rs"]
mod iso;
#[path = "../tests/it/lab.rs"]
mod lab;

use serde_json::json;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use crate::lab::{Lab, mins};

/// Long polls of the stream and the keep-alive go on whether a VM is made or not.
const AT_REST: [&str; 2] = ["WaitForUpdatesEx", "CurrentTime"];

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` only want to know that this exists.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    for mib in [128, 1024] {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let passage = runtime.block_on(iso::pass_through(mib));
        let (kib, secs) = (passage.grown_kib, passage.took.as_secs_f64());
        println!(
            "ISO of {mib} MiB: {kib} KiB more of memory (bound 32,768), {} local files, {secs:.1} s",
            passage.local_files.len()
        );
    }
    for nodes in [1, 5, 20] {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(nodes_of_one_pool(nodes));
    }
}

/// A pool that works already gets so many nodes at once.
async fn nodes_of_one_pool(nodes: usize) {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"iso": {"checkInterval": "10h"}}})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    sleep(mins(2)).await;
    let logins = lab.vcenter.counters().calls_of("Login");
    lab.vcenter.reset_counters();
    let begin = Instant::now();
    lab.neighbours.scale(1 + nodes);
    let booted = async |lab: &Lab| lab.vcenter.guest_boots().len() > nodes;
    lab.until("the VMs", mins(60), booted).await;
    let took = begin.elapsed().as_secs_f64();
    lab.until("the nodes", mins(60), async |lab| lab.ready_nodes().await == 1 + nodes).await;
    sleep(mins(2)).await;
    let counters = lab.vcenter.counters();
    let made = counters.calls.iter().filter(|(method, _)| !AT_REST.contains(&method.as_str()));
    let calls: u64 = made.map(|(_, count)| *count).sum();
    let logins = logins + counters.calls_of("Login");
    let each = calls.div_ceil(nodes as u64);
    println!(
        "{nodes} node VMs at once: {calls} calls, {each} for each (bound 15), {logins} login, all booted after {took:.0} s of the vCenter's time"
    );
    forge.stop().await;
}
