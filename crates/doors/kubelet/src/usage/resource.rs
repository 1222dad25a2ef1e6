use std::fmt::Write as _;

use super::{Sample, VmUsage};

/// What `/metrics/resource` answers, as a kubelet writes it: families in their order, each sample with its time.
pub(crate) fn resource_metrics(sample: &Sample) -> String {
    let mut text = Page { text: String::new(), time: sample.time.as_millisecond() };
    text.family(
        "node_cpu_usage_seconds_total",
        "counter",
        "Cumulative cpu time consumed by the node in core-seconds",
    );
    text.line("node_cpu_usage_seconds_total", "", seconds(sample.node.cpu_nanos));
    text.family(
        "node_memory_working_set_bytes",
        "gauge",
        "Current working set of the node in bytes",
    );
    text.line("node_memory_working_set_bytes", "", sample.node.memory);
    for (owner, labels) in [("container", of_container as fn(&VmUsage) -> String), ("pod", of_pod)]
    {
        if sample.vms.is_empty() {
            break;
        }
        let name = format!("{owner}_cpu_usage_seconds_total");
        text.family(
            &name,
            "counter",
            &format!("Cumulative cpu time consumed by the {owner} in core-seconds"),
        );
        for vm in &sample.vms {
            text.line(&name, &labels(vm), seconds(vm.cpu_nanos));
        }
        let name = format!("{owner}_memory_working_set_bytes");
        text.family(&name, "gauge", &format!("Current working set of the {owner} in bytes"));
        for vm in &sample.vms {
            text.line(&name, &labels(vm), vm.memory);
        }
    }
    if sample.vms.iter().any(|vm| vm.started.is_some()) {
        let name = "container_start_time_seconds";
        text.family(name, "gauge", "Start time of the container since unix epoch in seconds");
        for vm in &sample.vms {
            if let Some(started) = vm.started {
                text.line(name, &of_container(vm), started.as_second());
            }
        }
    }
    text.family(
        "resource_scrape_error",
        "gauge",
        "1 if there was an error while getting container metrics, 0 otherwise",
    );
    text.line("resource_scrape_error", "", 0);
    text.text
}

struct Page {
    text: String,
    time: i64,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = write!(self.text, "# HELP {name} [STABLE] {help}\n# TYPE {name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "{name}{labels} {value} {}", self.time);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share of a second in a hundred years is enough")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn of_container(vm: &VmUsage) -> String {
    format!("{{namespace={:?},pod={:?},container={:?}}}", vm.namespace, vm.pod, vm.container)
}

fn of_pod(vm: &VmUsage) -> String {
    format!("{{namespace={:?},pod={:?}}}", vm.namespace, vm.pod)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::super::NodeUsage;
    use super::*;

    #[test]
    fn families_come_in_the_order_of_a_kubelet_and_with_times() {
        let vm = VmUsage {
            namespace: "ns".into(),
            pod: "demo-0".into(),
            uid: "u".into(),
            container: "agent".into(),
            vm: "x".into(),
            backend: "qemu".into(),
            started: Timestamp::from_second(7).ok(),
            cpu_nanos: 1_500_000_000,
            nano_cores: None,
            memory: 4096,
            disk: None,
            network: None,
        };
        let node = NodeUsage { cpu_nanos: 2_000_000_000, memory: 100, ..NodeUsage::default() };
        let mut sample = Sample { time: Timestamp::from_second(9).unwrap(), node, vms: vec![vm] };
        let text = resource_metrics(&sample);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            lines,
            [
                "node_cpu_usage_seconds_total 2 9000",
                "node_memory_working_set_bytes 100 9000",
                r#"container_cpu_usage_seconds_total{namespace="ns",pod="demo-0",container="agent"} 1.5 9000"#,
                r#"container_memory_working_set_bytes{namespace="ns",pod="demo-0",container="agent"} 4096 9000"#,
                r#"pod_cpu_usage_seconds_total{namespace="ns",pod="demo-0"} 1.5 9000"#,
                r#"pod_memory_working_set_bytes{namespace="ns",pod="demo-0"} 4096 9000"#,
                r#"container_start_time_seconds{namespace="ns",pod="demo-0",container="agent"} 7 9000"#,
                "resource_scrape_error 0 9000",
            ]
        );
        sample.vms.clear();
        assert!(!resource_metrics(&sample).contains("container_cpu"), "no VM, no family");
    }
}
