//! Roost end to end: `roost run` between `roost sim vcenter` and `roost sim cds`, over the wire.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod wire;

use serde_json::json;
use wire::{CdsSim, Site, VcenterSim};

#[tokio::test]
async fn both_simulators_start_side_by_side_with_nothing_in_them() {
    let site = Site::new("e2e-side-by-side");
    let vcenter = VcenterSim::start(&site, &["--vms", "0", "--pace", "instant"]);
    let cds = CdsSim::start(&site, &[]);
    let client = vcenter.client().await;
    assert_eq!(vcenter.vms(&client).await, [""; 0]);
    assert_eq!(vcenter.control.get("guests/programs").await, json!([]));
    assert_eq!(cds.control.get("jobs").await, json!([]));
    client.shutdown().await;
}
