//! Reads all of it, not more often than it is worth.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use roost_controller::{Key, Store};
use roost_microvm::VmRecord;

use super::{Network, NodeUsage, Sample, VmUsage, kernel};
use crate::pods::{Host, PodTable, Tracked};

/// Two scrapers within this time see the same sample.
const FRESH: SignedDuration = SignedDuration::from_secs(2);

/// Takes samples of the VMs of a table.
pub(crate) struct Sampler {
    pub(crate) table: PodTable,
    pub(crate) pods: Store<Pod>,
    pub(crate) host: Arc<Host>,
    pub(crate) root_dir: PathBuf,
    pub(crate) last: Mutex<Option<Arc<Sample>>>,
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sampler")
    }
}

impl Sampler {
    pub(crate) fn sample(&self) -> Arc<Sample> {
        let now = self.host.clock.now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sample) = &*last
            && now.duration_since(sample.time) < FRESH
        {
            return Arc::clone(sample);
        }
        let vms = self.table.all().into_iter().filter_map(|(key, pod)| self.of_pod(&key, &pod));
        let fresh = Sample { time: now, node: self.of_node(), vms: vms.collect() };
        let fresh = Arc::new(match &*last {
            Some(before) => with_rates(fresh, before),
            None => fresh,
        });
        *last = Some(Arc::clone(&fresh));
        fresh
    }

    fn of_pod(&self, key: &Key, pod: &Tracked) -> Option<VmUsage> {
        let vm = pod.vm.as_ref().filter(|vm| vm.pid != 0)?;
        let process = PathBuf::from(format!("/proc/{}", vm.pid));
        let read = |name: &str| fs::read_to_string(process.join(name)).ok();
        let ticks = kernel::process_ticks(&read("stat")?)?;
        let container = self
            .pods
            .get(key)
            .and_then(|pod| Some(pod.spec.as_ref()?.containers.first()?.name.clone()));
        let disk = self.host.runtime.disk_file(vm).and_then(|path| fs::metadata(path).ok());
        Some(VmUsage {
            namespace: key.namespace().unwrap_or_default().to_owned(),
            pod: key.name().to_owned(),
            uid: pod.uid.clone(),
            container: container.unwrap_or_else(|| "agent".to_owned()),
            vm: vm.name().to_owned(),
            backend: vm.hypervisor.as_str().to_owned(),
            started: vm.started_at.or(pod.started),
            cpu_nanos: ticks.saturating_mul(kernel::nanos_per_tick()),
            nano_cores: None,
            memory: kernel::kilobytes(&read("status")?, "VmRSS:").unwrap_or_default(),
            // What a sparse file takes, not what it could become.
            disk: disk.map(|file| file.blocks() * 512),
            network: network(vm, &read("net/dev").unwrap_or_default()),
        })
    }

    fn of_node(&self) -> NodeUsage {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let ticks = kernel::busy_ticks(&stat).unwrap_or_default();
        let total = kernel::kilobytes(&memory, "MemTotal:").unwrap_or_default();
        let available = kernel::kilobytes(&memory, "MemAvailable:").unwrap_or_default();
        let disk = rustix::fs::statvfs(&self.root_dir).ok();
        NodeUsage {
            cpu_nanos: ticks.saturating_mul(kernel::nanos_per_tick()),
            nano_cores: None,
            memory: total.saturating_sub(available),
            memory_available: available,
            storage: disk.as_ref().map_or(0, |disk| disk.f_blocks * disk.f_frsize),
            storage_available: disk.as_ref().map_or(0, |disk| disk.f_bavail * disk.f_frsize),
        }
    }
}

/// What the host receives on a guest's interface is what the guest sent.
fn network(vm: &VmRecord, devices: &str) -> Option<Network> {
    let mut sum = Network { name: vm.network_configs.first()?.tap.clone(), ..Network::default() };
    let mut is_known = false;
    for nic in &vm.network_configs {
        if let Some((received, sent)) = kernel::interface(devices, &nic.tap) {
            (sum.received, sum.sent) = (sum.received + sent, sum.sent + received);
            is_known = true;
        }
    }
    is_known.then_some(sum)
}

/// How busy each was since the sample before.
fn with_rates(mut fresh: Sample, before: &Sample) -> Sample {
    let rate = |now: u64, then: u64, since: Timestamp| {
        let took = u64::try_from(since.as_nanosecond() - before.time.as_nanosecond()).ok()?;
        let rate = u128::from(now.checked_sub(then)?) * 1_000_000_000 / u128::from(took.max(1));
        u64::try_from(rate).ok()
    };
    fresh.node.nano_cores = rate(fresh.node.cpu_nanos, before.node.cpu_nanos, fresh.time);
    let known: HashMap<(&str, &str), u64> =
        before.vms.iter().map(|vm| ((vm.uid.as_str(), vm.vm.as_str()), vm.cpu_nanos)).collect();
    for vm in &mut fresh.vms {
        let then = known.get(&(vm.uid.as_str(), vm.vm.as_str()));
        vm.nano_cores = then.and_then(|then| rate(vm.cpu_nanos, *then, fresh.time));
    }
    fresh
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: i64, cpu_nanos: u64) -> Sample {
        let vm = VmUsage {
            namespace: "ns".into(),
            pod: "a".into(),
            uid: "u".into(),
            container: "agent".into(),
            vm: "x".into(),
            backend: String::new(),
            started: None,
            cpu_nanos,
            nano_cores: None,
            memory: 0,
            disk: None,
            network: None,
        };
        let node = NodeUsage { cpu_nanos: cpu_nanos * 2, ..NodeUsage::default() };
        Sample { time: Timestamp::from_second(second).unwrap(), node, vms: vec![vm] }
    }

    #[test]
    fn a_rate_needs_two_samples_of_the_same_process() {
        let second = with_rates(sample(20, 5_000_000_000), &sample(10, 1_000_000_000));
        assert_eq!(second.vms[0].nano_cores, Some(400_000_000), "4 of 10 seconds");
        assert_eq!(second.node.nano_cores, Some(800_000_000));
        let restarted = with_rates(sample(20, 1), &sample(10, 1_000_000_000));
        assert_eq!(restarted.vms[0].nano_cores, None, "a new process begins at nothing");
    }
}
