use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{Sampler, VmUsage};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    vm: String,
    pod: String,
    namespace: String,
    backend: String,
}

/// Usage of VMs and of the node, read when it is scraped.
#[derive(Debug)]
pub(crate) struct UsageCollector(pub(crate) Arc<Sampler>);

#[expect(clippy::cast_precision_loss, reason = "a share of a second in a hundred years is enough")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn gauge(value: u64) -> ConstGauge<i64> {
    ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX))
}

impl Collector for UsageCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let sample = self.0.sample();
        let vms = &sample.vms;
        of_vms(&mut encoder, "vm_cpu_seconds", "Processor time of the VM's process", vms, |vm| {
            Some(ConstCounter::new(seconds(vm.cpu_nanos)))
        })?;
        of_vms(&mut encoder, "vm_memory_rss_bytes", "Memory of the VM's process", vms, |vm| {
            Some(gauge(vm.memory))
        })?;
        let help = "Disk that the VM's own changes take";
        of_vms(&mut encoder, "vm_disk_cow_bytes", help, vms, |vm| vm.disk.map(gauge))?;
        let network = |vm: &VmUsage| vm.network.clone();
        of_vms(&mut encoder, "vm_network_rx_bytes", "Bytes the guest received", vms, |vm| {
            network(vm).map(|network| ConstCounter::new(network.received))
        })?;
        of_vms(&mut encoder, "vm_network_tx_bytes", "Bytes the guest sent", vms, |vm| {
            network(vm).map(|network| ConstCounter::new(network.sent))
        })?;
        let node = &sample.node;
        let mut one = |name: &str, help: &str, metric: &dyn EncodeMetric, kind: MetricType| {
            metric.encode(encoder.encode_descriptor(name, help, None, kind)?)
        };
        let busy = ConstCounter::new(seconds(node.cpu_nanos));
        one("node_cpu_seconds", "Time at work of all processors", &busy, MetricType::Counter)?;
        for (name, help, value) in [
            ("node_memory_used_bytes", "Memory that is not available", node.memory),
            ("node_storage_available_bytes", "Free disk where VMs are", node.storage_available),
            ("node_storage_total_bytes", "Disk where VMs are", node.storage),
        ] {
            one(name, help, &gauge(value), MetricType::Gauge)?;
        }
        Ok(())
    }
}

fn of_vms<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    vms: &[VmUsage],
    metric: impl Fn(&VmUsage) -> Option<M>,
) -> Result<(), std::fmt::Error> {
    let of: Vec<(&VmUsage, M)> = vms.iter().filter_map(|vm| Some((vm, metric(vm)?))).collect();
    let Some((_, first)) = of.first() else { return Ok(()) };
    let mut family = encoder.encode_descriptor(name, help, None, first.metric_type())?;
    for (vm, metric) in &of {
        let labels = Labels {
            vm: vm.vm.clone(),
            pod: vm.pod.clone(),
            namespace: vm.namespace.clone(),
            backend: vm.backend.clone(),
        };
        metric.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
