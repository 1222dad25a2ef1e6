use std::fmt::Write as _;

use roost_fleet::{Decided, Ended};

use crate::assert_generated;
use crate::exposed::{Exposed, exposed};
use roost_hatchery::door::phase;

#[test]
fn the_page_of_metrics_lists_every_metric() {
    let metrics = exposed();
    let mut page = HEAD.to_owned();
    for (title, words, start) in SECTIONS {
        let _ = write!(
            page,
            "\n## {title}\n\n{words}\n\n| Name | Type | Labels | Meaning |\n| --- | --- | --- | --- |\n"
        );
        for (name, metric) in metrics.iter().filter(|(name, _)| section(name) == start) {
            let Exposed { kind, help, labels } = metric;
            let labels: Vec<_> = labels.iter().map(|label| format!("`{label}`")).collect();
            let _ = writeln!(page, "| `{name}` | {kind} | {} | {help} |", labels.join(", "));
        }
    }
    page.push_str("\n## Values of labels\n\n| Label | Values |\n| --- | --- |\n");
    let listed = |values: Vec<&str>| values.join(", ");
    let phases = listed(phase::ALL.iter().map(|phase| phase.as_str()).collect());
    let ends = listed(Ended::ALL.iter().map(|ended| ended.as_str()).collect());
    let verdicts = listed(Decided::ALL.iter().map(|verdict| verdict.as_str()).collect());
    for (label, values) in [
        ("phase", phases.as_str()),
        ("ended", &ends),
        ("verdict", &verdicts),
        (
            "reason",
            "of a decision: the gate that bound it, such as `cpus` or `address`; of a deletion: why, such as `finished`",
        ),
        ("start", "warm, cold"),
        ("tier", "wanted, ready, coming, missing"),
        ("state", "free, used, promised, resting"),
        ("resource", "workers, pending, registering, cpus, memory-mb"),
        ("part", "used, reserved, limit"),
        ("link", "vcenter, inventory, cds-v1, cds-v2"),
        ("server", "vcenter, cds"),
        (
            "pool, template, worker_name, worker_model",
            "as the configuration, CDS and the vCenter name them",
        ),
    ] {
        let _ = writeln!(page, "| {label} | {values} |");
    }
    assert!(metrics.keys().all(|name| SECTIONS.iter().any(|(.., start)| section(name) == *start)));
    assert_generated("docs/metrics.md", &page);
}

fn section(name: &str) -> &str {
    let starts = SECTIONS.iter().map(|(.., start)| *start).filter(|start| name.starts_with(start));
    starts.max_by_key(|start| start.len()).unwrap_or_default()
}

const SECTIONS: [(&str, &str, &str); 4] = [
    (
        "Roost's own",
        "Where the time goes, why things are refused, what it costs. These are the ones to build on.",
        "roost_hatchery_",
    ),
    (
        "vSphere, as CDS has it",
        "Taken anew every 30 seconds and replaced all at once. What cannot be read or counted at the moment is left out, not shown as 0.",
        "cds_hatchery_vsphere_",
    ),
    ("Jobs and workers, as CDS has it", "", "cds_hatchery_"),
    ("The HTTP server, as CDS has it", "", "cds_http_server_"),
];

const HEAD: &str = "# Metrics

Written by the code that exposes them: `ROOST_WRITE_DOCS=1 cargo test -p roost --test operations`. They are at `/mon/metrics`, and at `/metrics`, in Prometheus text form.

Every metric also has the labels `service_name`, the hatchery's name, and `service_type`, always `hatchery`. All that the hatchery of CDS exposes has the same name here, so dashboards and alerts
stay as they are. Values of labels come from closed sets, except names. With 200 VMs of its own among 10,000 there are fewer than 2,000 series. Alerts and a dashboard are in
[`deploy`](../deploy/README.md). Those of the kubelet, `vk_cocoon_*`, are in [kubelet.md](kubelet.md#figures).
";
