//! The service as a process of its own, beside simulators that are others': `cargo bench -p roost --bench service`.
//!
//! How long a start takes with a large inventory, what it holds in memory, what it asks of the vCenter at rest, how many series it exposes.
//! `ROOST_BENCH_VMS` (10,000 unless set) is the size of the inventory.

#[path = "../../tests/wire/mod.rs"]
mod wire;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use wire::{CdsSim, Service, Site, VcenterSim, within};

const WORKERS: u64 = 190;
const SPARES: u64 = 10;

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` only want to know that this exists.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let vms = std::env::var("ROOST_BENCH_VMS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(measure(vms));
}

async fn measure(vms: u64) {
    let site = Site::new("bench-service");
    let number = vms.to_string();
    let vcenter = VcenterSim::start(&site, &["--vms", &number, "--pace", "instant"]);
    let cds = CdsSim::start(&site, &[]);
    let vsphere = format!(
        "iprange = \"10.9.0.0/23\"\ngateway = \"10.9.0.1\"\nworkerProvisioningPoolSize = {SPARES}\n\
         workerProvisioning = [{{ modelVMWare = \"debian12\", number = {SPARES} }}]\n"
    );
    site.write_config(&vcenter, &cds, &vsphere, "maxWorker = 250\nmaxConcurrentProvisioning = 40");
    let service = started(&site, vms, "first start").await;
    for _ in 0..WORKERS {
        cds.add_job("v2", &json!({ "takes_ms": 3_600_000 })).await;
    }
    let deadline = within(600);
    wire::until("all workers are there", deadline, async || {
        let overview = service.http.get("api/v1/overview").await;
        let working = &overview["capacity"]["workers"]["used"];
        working.as_u64() == Some(WORKERS) && missing(&overview) == 0
    })
    .await;
    service.process.kill();

    let service = started(&site, vms, "restart with workers and spares").await;
    sleep(Duration::from_secs(5)).await;
    let before = calls(&vcenter).await;
    sleep(Duration::from_mins(2)).await;
    let after = calls(&vcenter).await;
    println!("at rest, {vms} VMs: {} calls in two minutes (bound 8)", after - before);
    let exposed = service.http.text("mon/metrics").await;
    let series = exposed.lines().filter(|line| !line.starts_with('#')).count();
    println!(
        "metrics, {vms} VMs of which {} are ours: {series} series (bound 2,000)",
        WORKERS + SPARES
    );
    println!("resident memory: {:.1} MB (bound 150 MB)", service.process.resident_mb());
}

async fn started(site: &Site, vms: u64, what: &str) -> Service {
    let began = Instant::now();
    let service = Service::start(site);
    wire::until("it decides", within(600), async || {
        service.http.get("api/v1/overview").await["ready"] == true
    })
    .await;
    println!(
        "{what}, {vms} VMs: decides after {:.2} s (bound 5 s), resident memory {:.1} MB",
        began.elapsed().as_secs_f64(),
        service.process.resident_mb()
    );
    service
}

fn missing(overview: &Value) -> u64 {
    let pools = overview["pools"].as_array().into_iter().flatten();
    pools
        .map(|pool| pool["wanted"].as_u64().unwrap_or(0) - pool["ready"].as_u64().unwrap_or(0))
        .sum()
}

async fn calls(vcenter: &VcenterSim) -> u64 {
    let counters = vcenter.control.get("counters").await;
    let calls = counters["calls"].as_object().into_iter().flatten();
    calls.filter_map(|(_, count)| count.as_u64()).sum()
}
