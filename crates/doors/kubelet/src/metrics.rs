//! All metrics of the kubelet, under the names that dashboards know.

use jiff::SignedDuration;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

/// What every name begins with.
pub(crate) const PREFIX: &str = "vk_cocoon";

const BOOT: [f64; 9] = [0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const SAVE: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0];
const TRANSFER: [f64; 7] = [1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
const PROBE: [f64; 8] = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lifecycle {
    op: &'static str,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Boot {
    mode: &'static str,
    backend: &'static str,
}

#[derive(Debug, Clone, Copy)]
struct BootHistogram;

impl MetricConstructor<Histogram> for BootHistogram {
    fn new_metric(&self) -> Histogram {
        Histogram::new(BOOT)
    }
}

/// The kubelet's own counters. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    lifecycle: Family<Lifecycle, Counter>,
    pulls: Family<Outcome, Counter>,
    saves: Family<Outcome, Counter>,
    pushes: Family<Outcome, Counter>,
    from_dir: Family<Outcome, Counter>,
    pub(crate) vms: Gauge,
    pub(crate) orphans: Counter,
    pub(crate) inspect_failures: Counter,
    pub(crate) evict_failures: Counter,
    pub(crate) adopted_by_name: Counter,
    boot: Family<Boot, Histogram, BootHistogram>,
    save_seconds: Histogram,
    push_seconds: Histogram,
    pull_seconds: Histogram,
    probe_seconds: Histogram,
    pub(crate) pings_unavailable: Gauge<i64>,
    pub(crate) cache_bytes: Gauge,
    pub(crate) cache_evictions: Counter,
}

/// Registers a metric and hands it back.
fn put<M: Metric + Clone>(to: &mut Registry, name: &str, help: &str, metric: M) -> M {
    to.register(name, help, metric.clone());
    metric
}

fn seconds(took: SignedDuration) -> f64 {
    took.as_secs_f64().max(0.0)
}

fn outcome(is_ok: bool) -> Outcome {
    Outcome { result: if is_ok { "ok" } else { "failed" } }
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let to = registry.sub_registry_with_prefix(PREFIX);
        Self {
            lifecycle: put(to, "pod_lifecycle", "Pod operations by result", Family::default()),
            pulls: put(to, "snapshot_pull", "Snapshots pulled", Family::default()),
            saves: put(to, "snapshot_save", "Snapshots saved", Family::default()),
            pushes: put(to, "snapshot_push", "Snapshots pushed", Family::default()),
            from_dir: put(
                to,
                "clone_from_dir",
                "VMs cloned from a folder of the host",
                Family::default(),
            ),
            vms: put(to, "vm_table_size", "VMs that back pods", Gauge::default()),
            orphans: put(to, "orphan_vm", "VMs without a pod at a start", Counter::default()),
            inspect_failures: put(
                to,
                "vm_inspect_transient_fail",
                "VMs that could not be looked at",
                Counter::default(),
            ),
            evict_failures: put(
                to,
                "pod_evict_failure",
                "Pods of lost VMs that could not be deleted",
                Counter::default(),
            ),
            adopted_by_name: put(
                to,
                "reconcile_adopt_by_name",
                "VMs found by name at a start",
                Counter::default(),
            ),
            boot: put(
                to,
                "vm_boot_duration_seconds",
                "From the request to a running VM",
                Family::new_with_constructor(BootHistogram),
            ),
            save_seconds: put(
                to,
                "snapshot_save_duration_seconds",
                "Time to save a snapshot",
                Histogram::new(SAVE),
            ),
            push_seconds: put(
                to,
                "snapshot_push_duration_seconds",
                "Time to push a snapshot",
                Histogram::new(TRANSFER),
            ),
            pull_seconds: put(
                to,
                "snapshot_pull_duration_seconds",
                "Time to pull a snapshot",
                Histogram::new(TRANSFER),
            ),
            probe_seconds: put(
                to,
                "probe_duration_seconds",
                "Time of one probe",
                Histogram::new(PROBE),
            ),
            cache_bytes: put(
                to,
                "snapshot_cache_bytes",
                "Disk that pulled snapshots take",
                Gauge::default(),
            ),
            cache_evictions: put(
                to,
                "snapshot_cache_eviction",
                "Pulled snapshots removed because the cache was full",
                Counter::default(),
            ),
            pings_unavailable: put(
                to,
                "ping_unavailable",
                "1 if this process may send no pings, so that an address counts as an answer",
                Gauge::default(),
            ),
        }
    }

    pub(crate) fn lifecycle(&self, op: &'static str, result: &'static str) {
        self.lifecycle.get_or_create(&Lifecycle { op, result }).inc();
    }

    pub(crate) fn snapshot_pull(&self, is_ok: bool, took: SignedDuration) {
        self.pulls.get_or_create(&outcome(is_ok)).inc();
        self.pull_seconds.observe(seconds(took));
    }

    pub(crate) fn snapshot_save(&self, is_ok: bool) {
        self.saves.get_or_create(&outcome(is_ok)).inc();
    }

    pub(crate) fn snapshot_save_took(&self, took: SignedDuration) {
        self.save_seconds.observe(seconds(took));
    }

    pub(crate) fn snapshot_push(&self, is_ok: bool, took: SignedDuration) {
        self.pushes.get_or_create(&outcome(is_ok)).inc();
        self.push_seconds.observe(seconds(took));
    }

    pub(crate) fn clone_from_dir(&self, is_ok: bool) {
        self.from_dir.get_or_create(&outcome(is_ok)).inc();
    }

    pub(crate) fn probe_took(&self, took: SignedDuration) {
        self.probe_seconds.observe(seconds(took));
    }

    pub(crate) fn booted(
        &self,
        mode: &'static str,
        backend: &roost_microvm::Backend,
        took: SignedDuration,
    ) {
        let backend = match backend.as_str() {
            roost_microvm::Backend::FIRECRACKER => "firecracker",
            roost_microvm::Backend::QEMU => "qemu",
            _ => "cloud-hypervisor",
        };
        self.boot.get_or_create(&Boot { mode, backend }).observe(seconds(took));
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode_registry;

    use super::*;

    #[test]
    fn every_metric_stands_on_the_page() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        // A family without a member is not shown.
        let took = SignedDuration::from_secs(1);
        metrics.lifecycle("create", "ok");
        metrics.snapshot_pull(true, took);
        metrics.snapshot_save(true);
        metrics.snapshot_push(true, took);
        metrics.clone_from_dir(true);
        metrics.booted("run", &roost_microvm::Backend::default(), took);
        let mut text = String::new();
        encode_registry(&mut text, &registry).unwrap();
        let page = include_str!("../../../../docs/kubelet.md");
        let mut count = 0;
        for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
            let (name, kind) = line.split_once(' ').unwrap();
            let name = if kind == "counter" { format!("{name}_total") } else { name.to_owned() };
            assert!(page.contains(&format!("`{name}`")), "{name} is not on the page");
            count += 1;
        }
        assert!(count > 15, "only {count} metrics were found");
        // Those that are read when they are scraped.
        for name in ["vm_cpu_seconds_total", "vm_disk_cow_bytes", "node_storage_total_bytes"] {
            assert!(page.contains(&format!("`vk_cocoon_{name}`")), "{name}");
        }
    }
}
