use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Sample, VmUsage};

/// What `/stats/summary` answers.
pub(crate) fn summary(node: &str, since: Timestamp, sample: &Sample) -> Value {
    let time = sample.time.to_string();
    let cpu = |nanos: u64, cores: Option<u64>| {
        let mut cpu = json!({"time": time, "usageCoreNanoSeconds": nanos});
        if let Some(cores) = cores {
            cpu["usageNanoCores"] = json!(cores);
        }
        cpu
    };
    let memory = |bytes: u64| json!({"time": time, "workingSetBytes": bytes, "usageBytes": bytes});
    let pod = |vm: &VmUsage| {
        let (cpu, memory) = (cpu(vm.cpu_nanos, vm.nano_cores), memory(vm.memory));
        let started = vm.started.unwrap_or(since).to_string();
        let mut pod = json!({
            "podRef": {"name": vm.pod, "namespace": vm.namespace, "uid": vm.uid},
            "startTime": started,
            "containers": [{"name": vm.container, "startTime": started, "cpu": cpu, "memory": memory}],
            "cpu": cpu,
            "memory": memory,
        });
        if let Some(network) = &vm.network {
            pod["network"] = json!({
                "time": time, "name": network.name,
                "rxBytes": network.received, "txBytes": network.sent,
            });
        }
        if let Some(disk) = vm.disk {
            pod["ephemeral-storage"] = json!({"time": time, "usedBytes": disk});
        }
        pod
    };
    let usage = &sample.node;
    let mut node_memory = memory(usage.memory);
    node_memory["availableBytes"] = json!(usage.memory_available);
    json!({
        "node": {
            "nodeName": node,
            "startTime": since.to_string(),
            "cpu": cpu(usage.cpu_nanos, usage.nano_cores),
            "memory": node_memory,
            "fs": {
                "time": time, "capacityBytes": usage.storage,
                "availableBytes": usage.storage_available,
                "usedBytes": usage.storage.saturating_sub(usage.storage_available),
            },
        },
        "pods": sample.vms.iter().map(pod).collect::<Vec<_>>(),
    })
}
