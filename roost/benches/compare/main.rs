//! Roost beside govmomi and vcsim, in one run on one machine: `cargo bench -p roost`.
//!
//! Prints a table with ratios; absolute times are this machine's and today's. `ROOST_BENCH_VMS` (10,000 unless set) is the
//! size of the inventory; vcsim takes minutes to start with 10,000. Needs Go, or says that it does.

mod report;
mod roost_side;
mod servers;

use std::time::Duration;

use roost_oracle::Binary;

use crate::report::Report;
use crate::servers::{OurSim, Reference, median};

/// How often each measurement is repeated; the median counts.
const REPEAT: usize = 5;

fn main() {
    // `cargo test --benches` and `cargo bench -- --list` only want to know that this exists.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let vms = std::env::var("ROOST_BENCH_VMS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_000);
    let Some(govmomi) = roost_oracle::govmomi_bench() else { return };
    println!("inventory: {vms} VMs, each figure the median of {REPEAT}\n");
    let mut report = Report::default();

    let ours = OurSim::start(vms);
    report.seconds("simulator start", "roost sim vcenter", ours.started_in);
    reads(&mut report, "on roost sim vcenter", ours.url(), &govmomi);

    println!("(vcsim starts; about {} s)", vms / 25);
    let Some(vcsim) = Reference::start(vms) else { return };
    report.seconds("simulator start", "vcsim", vcsim.started_in);
    report.ratio("simulator start", "vcsim", "roost sim vcenter", 20.0);
    reads(&mut report, "on vcsim", vcsim.url(), &govmomi);
    decoding(&mut report, &vcsim, &govmomi);
    drop((ours, vcsim));
    report.finish();
}

/// First sync, whole reads and one change, ours and govmomi's, on one server.
fn reads(report: &mut Report, server: &str, url: &str, govmomi: &Binary) {
    let sync = format!("first sync {server}");
    let narrow = roost_side::first_sync(url, REPEAT);
    report.seconds(&sync, "Roost, narrow, property stream", narrow.seconds);
    report.bytes(&sync, "Roost, resident memory of the process after it", narrow.resident_bytes);
    for (set, label) in [
        ("narrow", "govmomi, narrow, RetrievePropertiesEx"),
        ("wide", "govmomi, wide (the Go hatchery's read)"),
    ] {
        let read = servers::govmomi(
            govmomi,
            &["list", "--url", url, "--set", set, "--repeat", &REPEAT.to_string()],
        );
        report.seconds(&sync, label, read.seconds());
    }
    report.ratio(
        &sync,
        "govmomi, wide (the Go hatchery's read)",
        "Roost, narrow, property stream",
        3.0,
    );

    let change = format!("one change seen {server}");
    report.seconds(&change, "Roost", median(roost_side::changes(url, REPEAT)));
    let theirs = servers::govmomi(
        govmomi,
        &["sync", "--url", url, "--set", "narrow", "--change", "--vm", servers::CHANGED_VM],
    );
    report.seconds(&change, "govmomi", theirs.change_seconds());
    if server.contains("roost") {
        report.below(&change, "Roost", Duration::from_millis(50));
    }
}

/// The same recorded answers through both decoders, without a network.
fn decoding(report: &mut Report, vcsim: &Reference, govmomi: &Binary) {
    for (set, target) in [("narrow", Some(10.0)), ("wide", None)] {
        let step = format!("decode of a {set} answer");
        let file = servers::record(govmomi, vcsim.url(), set);
        let theirs = servers::govmomi(
            govmomi,
            &[
                "decode",
                "--file",
                &file.to_string_lossy(),
                "--kind",
                "retrieve",
                "--repeat",
                &REPEAT.to_string(),
            ],
        );
        let ours = roost_side::decode(&file, REPEAT);
        report.seconds(&step, "Roost", ours.seconds);
        report.bytes(&step, "size of the answer", ours.bytes);
        report.seconds(&step, "govmomi", theirs.seconds());
        match target {
            Some(target) => report.ratio(&step, "govmomi", "Roost", target),
            None => report.ratio_only(&step, "govmomi", "Roost"),
        }
    }
}
