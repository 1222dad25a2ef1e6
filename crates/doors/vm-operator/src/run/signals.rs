//! Changes of VMs become signals to their keys. What changes while a VM just runs is no news.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use roost_controller::{Index, Key, Trigger};
use roost_fleet::{Detail, Fleet, Vm, VmChange, VmId};
use roost_vim::wire::types::VirtualDevice;

use crate::api::names::extra_config;
use crate::api::{VirtualMachine, VirtualMachineSnapshot};
use crate::provider::key_of;

/// Keys of `extraConfig` that vSphere, the guest's tools or this program write by themselves.
fn is_noise(key: &str) -> bool {
    const EXACT: &[&str] = &[
        extra_config::NAMESPACED_NAME,
        extra_config::KEEP_DISKS,
        "hpet0.present",
        "sched.swap.derivedName",
        "scsi0.sasWWID",
        "monitor.phys_bits_used",
        "softPowerOff",
        "guestInfo.detailed.data",
        "guestinfo.appInfo",
        "guestinfo.vmware.components.available",
        "guestinfo.vmservice.defer-cloud-init",
        "vmware.tools.internalversion",
        "vmware.tools.requiredversion",
    ];
    const PREFIXES: &[&str] =
        &["numa.autosize.", "vmotion.", "migrate.", "tools.capability.", "guestinfo.vmtools."];
    EXACT.contains(&key)
        || PREFIXES.iter().any(|prefix| key.starts_with(prefix))
        || key.strip_prefix("scsi0:").is_some_and(|rest| rest.strip_suffix(".redo").is_some())
}

/// What of a close-up is news when it changes.
fn fingerprint(detail: &Detail) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (path, value) in detail.properties().iter() {
        match path {
            "config.extraConfig"
            | "config.hardware"
            | "config.changeVersion"
            | "guest.net"
            | "layoutEx"
            | "recentTask" => {}
            _ => {
                path.hash(&mut hasher);
                format!("{value:?}").hash(&mut hasher);
            }
        }
    }
    let mut options: Vec<_> = detail.all_extra_config().filter(|(key, _)| !is_noise(key)).collect();
    options.sort_unstable();
    options.hash(&mut hasher);
    let mut devices: Vec<&VirtualDevice> = detail.devices().iter().collect();
    devices.sort_by_key(|device| device.key);
    format!("{devices:?}").hash(&mut hasher);
    if let Some(hardware) = detail.hardware() {
        (hardware.num_cpu, hardware.memory_mb, hardware.num_cores_per_socket).hash(&mut hasher);
    }
    hasher.finish()
}

pub(crate) struct Signals {
    pub(crate) fleet: Fleet,
    pub(crate) trigger: Trigger,
    /// Objects by the id of their VM, for VMs that are not marked.
    pub(crate) by_unique_id: Index<VirtualMachine>,
    /// Snapshots show what vSphere has of them.
    pub(crate) snapshots: Trigger,
    pub(crate) snapshots_of: Index<VirtualMachineSnapshot>,
}

impl Signals {
    /// Does not end.
    pub(crate) async fn run(self) {
        let mirror = self.fleet.mirror().clone();
        let close_up = self.fleet.close_up().clone();
        let (mut rows, mut details) = (mirror.changes(), close_up.changes());
        let mut shown = mirror.snapshot();
        let mut seen: BTreeMap<VmId, u64> = BTreeMap::new();
        let mut generation = 0;
        loop {
            let now = mirror.snapshot();
            for change in now.since(&shown) {
                let (id, after) = match change {
                    VmChange::Shown(row) => (&row.id, Some(row)),
                    VmChange::Gone(id) => (id, None),
                };
                self.signal_row(shown.vm(id), after);
            }
            shown = now;
            let (changed, latest) = close_up.changed_since(generation);
            generation = latest;
            for vm in changed {
                let Some(detail) = close_up.of(&vm) else {
                    seen.remove(&vm);
                    continue;
                };
                let print = fingerprint(&detail);
                if seen.insert(vm.clone(), print) != Some(print)
                    && let Some(row) = shown.vm(&vm)
                {
                    self.signal(key_of(row), &vm);
                }
            }
            tokio::select! {
                ended = rows.changed() => if ended.is_err() { return },
                ended = details.changed() => if ended.is_err() { return },
            }
        }
    }

    fn signal_row(&self, before: Option<&Arc<Vm>>, after: Option<&Arc<Vm>>) {
        let is_news = match (before, after) {
            (Some(before), Some(after)) => {
                before.power != after.power
                    || before.connection != after.connection
                    || before.guest != after.guest
                    || before.pool != after.pool
                    || before.parent != after.parent
                    || before.name != after.name
                    || before.extra_config(extra_config::PAUSE)
                        != after.extra_config(extra_config::PAUSE)
                    || before.claim.is_some() != after.claim.is_some()
            }
            _ => true,
        };
        if let Some(row) = after.or(before).filter(|_| is_news) {
            self.signal(key_of(row).or_else(|| before.and_then(|row| key_of(row))), &row.id);
        }
    }

    fn signal(&self, key: Option<Key>, vm: &VmId) {
        match key {
            Some(key) => {
                for snapshot in self.snapshots_of.keys(&key.to_string()) {
                    self.snapshots.signal(snapshot);
                }
                self.trigger.signal(key);
            }
            None => {
                for key in self.by_unique_id.keys(vm.as_str()) {
                    self.trigger.signal(key);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_vsphere_writes_by_itself_is_no_news() {
        for key in [
            "vmservice.namespacedName",
            "numa.autosize.cookie",
            "scsi0:1.redo",
            "guestinfo.appInfo",
        ] {
            assert!(is_noise(key), "{key}");
        }
        for key in ["guestinfo.ready", "vmservice.virtualmachine.pause", "scsi0:1.fileName", "a"] {
            assert!(!is_noise(key), "{key}");
        }
    }
}
