//! What a node VM costs.

use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, mins};

/// Long polls of the stream and the keep-alive go on whether a VM is made or not.
const AT_REST: [&str; 2] = ["WaitForUpdatesEx", "CurrentTime"];

#[tokio::test(start_paused = true)]
async fn a_node_vm_costs_at_most_fifteen_calls_and_one_login_serves_all() {
    let lab = Lab::new().await;
    lab.apply_pool(json!({"spec": {"iso": {"checkInterval": "10h"}}})).await;
    let forge = lab.forge();
    lab.neighbours.scale(1);
    lab.until("a node", mins(60), async |lab| lab.ready_nodes().await == 1).await;
    sleep(mins(2)).await;
    assert_eq!(lab.vcenter.counters().calls_of("Login"), 1);
    lab.vcenter.reset_counters();
    lab.neighbours.scale(2);
    lab.until("another", mins(60), async |lab| lab.ready_nodes().await == 2).await;
    sleep(mins(2)).await;
    let counters = lab.vcenter.counters();
    let made: Vec<_> =
        counters.calls.iter().filter(|(method, _)| !AT_REST.contains(&method.as_str())).collect();
    let calls: u64 = made.iter().map(|(_, count)| **count).sum();
    println!("{calls} calls: {made:?}");
    assert!(calls <= 15, "{calls} calls: {made:?}");
    assert_eq!(counters.calls_of("Login"), 0);
    forge.stop().await;
}
