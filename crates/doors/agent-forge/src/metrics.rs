//! All metrics of this door, under the names that upstream's dashboards know.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "as they stand in the label")]
enum OperationLabel {
    create,
    delete,
    ensure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "as they stand in the label")]
enum ResultLabel {
    success,
    error,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabels {
    operation: OperationLabel,
    result: ResultLabel,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolLabels {
    namespace: String,
    pool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CapacityLabels {
    namespace: String,
    pool: String,
    state: &'static str,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Delete,
    Ensure,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Success,
    Error,
}

impl Outcome {
    pub fn of(is_ok: bool) -> Self {
        if is_ok { Self::Success } else { Self::Error }
    }
}

fn labels(operation: Operation, outcome: Outcome) -> OperationLabels {
    OperationLabels {
        operation: match operation {
            Operation::Create => OperationLabel::create,
            Operation::Delete => OperationLabel::delete,
            Operation::Ensure => OperationLabel::ensure,
        },
        result: match outcome {
            Outcome::Success => ResultLabel::success,
            Outcome::Error => ResultLabel::error,
        },
    }
}

/// What a pool has and wants, by the names of the metric's states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    pub desired: usize,
    pub agent_machines: usize,
    pub waiting_agent_machines: usize,
    pub unready_agent_machines: usize,
    pub without_agent: usize,
    pub matching_agents: usize,
    pub bound_agents: usize,
    pub available_agents: usize,
    pub pending_owned_vms: usize,
    pub demand_deficit: usize,
}

impl Capacity {
    fn states(self) -> [(&'static str, usize); 10] {
        [
            ("desired", self.desired),
            ("agent_machines", self.agent_machines),
            ("waiting_agent_machines", self.waiting_agent_machines),
            ("unready_agent_machines", self.unready_agent_machines),
            ("without_agent", self.without_agent),
            ("matching_agents", self.matching_agents),
            ("bound_agents", self.bound_agents),
            ("available_agents", self.available_agents),
            ("pending_owned_vms", self.pending_owned_vms),
            ("demand_deficit", self.demand_deficit),
        ]
    }
}

#[derive(Debug, Clone)]
pub struct Metrics {
    vms: Family<OperationLabels, Counter>,
    isos: Family<OperationLabels, Counter>,
    capacity: Family<CapacityLabels, Gauge>,
    cpus: Family<PoolLabels, Gauge>,
    memory: Family<PoolLabels, Gauge>,
    disk: Family<PoolLabels, Gauge>,
    frozen: Family<PoolLabels, Gauge>,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            vms: Family::default(),
            isos: Family::default(),
            capacity: Family::default(),
            cpus: Family::default(),
            memory: Family::default(),
            disk: Family::default(),
            frozen: Family::default(),
        };
        let all = registry.sub_registry_with_prefix("agent_forge");
        all.register(
            "vsphere_vm_operations",
            "VMs made and deleted, by outcome",
            metrics.vms.clone(),
        );
        all.register(
            "iso_operations",
            "Looks at ISOs and deletions of them, by outcome",
            metrics.isos.clone(),
        );
        all.register("pool_capacity", "What a pool has and wants", metrics.capacity.clone());
        all.register("pool_vm_cpu_cores", "CPUs of each VM", metrics.cpus.clone());
        all.register("pool_vm_memory_bytes", "Memory of each VM", metrics.memory.clone());
        all.register("pool_vm_disk_bytes", "Disk of each VM", metrics.disk.clone());
        all.register(
            "pool_deletion_frozen",
            "Whether a person must look before VMs of the pool are deleted",
            metrics.frozen.clone(),
        );
        metrics
    }

    pub fn vm(&self, operation: Operation, outcome: Outcome) {
        self.vms.get_or_create(&labels(operation, outcome)).inc();
    }

    pub fn iso(&self, operation: Operation, outcome: Outcome) {
        self.isos.get_or_create(&labels(operation, outcome)).inc();
    }

    pub fn pool(&self, namespace: &str, pool: &str, capacity: Capacity) {
        for (state, count) in capacity.states() {
            let labels = CapacityLabels { namespace: namespace.into(), pool: pool.into(), state };
            self.capacity.get_or_create(&labels).set(count.try_into().unwrap_or(i64::MAX));
        }
    }

    /// CPUs, MiB, GiB.
    pub fn shape(&self, namespace: &str, pool: &str, (cpus, memory, disk): (i32, i32, i32)) {
        let labels = PoolLabels { namespace: namespace.into(), pool: pool.into() };
        self.cpus.get_or_create(&labels).set(cpus.into());
        self.memory.get_or_create(&labels).set(i64::from(memory) << 20);
        self.disk.get_or_create(&labels).set(i64::from(disk) << 30);
    }

    pub fn frozen(&self, namespace: &str, pool: &str, is_frozen: bool) {
        let labels = PoolLabels { namespace: namespace.into(), pool: pool.into() };
        self.frozen.get_or_create(&labels).set(is_frozen.into());
    }

    /// The pool is gone.
    pub fn forget(&self, namespace: &str, pool: &str) {
        for (state, _) in Capacity::default().states() {
            let labels = CapacityLabels { namespace: namespace.into(), pool: pool.into(), state };
            self.capacity.remove(&labels);
        }
        let labels = PoolLabels { namespace: namespace.into(), pool: pool.into() };
        for gauge in [&self.cpus, &self.memory, &self.disk, &self.frozen] {
            gauge.remove(&labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;

    use super::*;

    #[test]
    fn the_series_are_those_of_upstream_and_go_with_their_pool() {
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        metrics.vm(Operation::Create, Outcome::Success);
        metrics.iso(Operation::Ensure, Outcome::Error);
        metrics.pool("blue", "gp", Capacity { demand_deficit: 3, ..Capacity::default() });
        metrics.shape("blue", "gp", (4, 16384, 100));
        metrics.frozen("blue", "gp", true);
        let text = || {
            let mut text = String::new();
            encode(&mut text, &registry).unwrap();
            text
        };
        for line in [
            r#"agent_forge_vsphere_vm_operations_total{operation="create",result="success"} 1"#,
            r#"agent_forge_iso_operations_total{operation="ensure",result="error"} 1"#,
            r#"agent_forge_pool_capacity{namespace="blue",pool="gp",state="demand_deficit"} 3"#,
            r#"agent_forge_pool_vm_cpu_cores{namespace="blue",pool="gp"} 4"#,
            r#"agent_forge_pool_vm_memory_bytes{namespace="blue",pool="gp"} 17179869184"#,
            r#"agent_forge_pool_vm_disk_bytes{namespace="blue",pool="gp"} 107374182400"#,
            r#"agent_forge_pool_deletion_frozen{namespace="blue",pool="gp"} 1"#,
        ] {
            assert!(text().contains(line), "{line} in\n{}", text());
        }
        metrics.forget("blue", "gp");
        assert!(!text().contains("pool=\"gp\""), "{}", text());
    }
}
