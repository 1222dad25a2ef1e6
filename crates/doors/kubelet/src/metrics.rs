//! All metrics of the kubelet, under the names that dashboards know.

use std::sync::atomic::AtomicU64;

use jiff::SignedDuration;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

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
}

fn seconds(took: SignedDuration) -> f64 {
    took.as_secs_f64().max(0.0)
}

fn outcome(is_ok: bool) -> Outcome {
    Outcome { result: if is_ok { "ok" } else { "failed" } }
}

impl Metrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            lifecycle: Family::default(),
            pulls: Family::default(),
            saves: Family::default(),
            pushes: Family::default(),
            from_dir: Family::default(),
            vms: Gauge::default(),
            orphans: Counter::<u64, AtomicU64>::default(),
            inspect_failures: Counter::default(),
            evict_failures: Counter::default(),
            adopted_by_name: Counter::default(),
            boot: Family::new_with_constructor(BootHistogram),
            save_seconds: Histogram::new(SAVE),
            push_seconds: Histogram::new(TRANSFER),
            pull_seconds: Histogram::new(TRANSFER),
            probe_seconds: Histogram::new(PROBE),
            pings_unavailable: Gauge::default(),
        };
        let registry = registry.sub_registry_with_prefix("vk_cocoon");
        registry.register("pod_lifecycle", "Pod operations by result", metrics.lifecycle.clone());
        registry.register("snapshot_pull", "Snapshots pulled", metrics.pulls.clone());
        registry.register("snapshot_save", "Snapshots saved", metrics.saves.clone());
        registry.register("snapshot_push", "Snapshots pushed", metrics.pushes.clone());
        registry.register(
            "clone_from_dir",
            "VMs cloned from a folder of the host",
            metrics.from_dir.clone(),
        );
        registry.register("vm_table_size", "VMs that back pods", metrics.vms.clone());
        registry.register("orphan_vm", "VMs without a pod at a start", metrics.orphans.clone());
        registry.register(
            "vm_inspect_transient_fail",
            "VMs that could not be looked at",
            metrics.inspect_failures.clone(),
        );
        registry.register(
            "pod_evict_failure",
            "Pods of lost VMs that could not be deleted",
            metrics.evict_failures.clone(),
        );
        registry.register(
            "reconcile_adopt_by_name",
            "VMs found by name at a start",
            metrics.adopted_by_name.clone(),
        );
        registry.register(
            "vm_boot_duration_seconds",
            "From the request to a running VM",
            metrics.boot.clone(),
        );
        registry.register(
            "snapshot_save_duration_seconds",
            "Time to save a snapshot",
            metrics.save_seconds.clone(),
        );
        registry.register(
            "snapshot_push_duration_seconds",
            "Time to push a snapshot",
            metrics.push_seconds.clone(),
        );
        registry.register(
            "snapshot_pull_duration_seconds",
            "Time to pull a snapshot",
            metrics.pull_seconds.clone(),
        );
        registry.register(
            "probe_duration_seconds",
            "Time of one probe",
            metrics.probe_seconds.clone(),
        );
        registry.register(
            "ping_unavailable",
            "1 if this process may send no pings, so that an address counts as an answer",
            metrics.pings_unavailable.clone(),
        );
        metrics
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
