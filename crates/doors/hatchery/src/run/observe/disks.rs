use std::collections::BTreeMap;
use std::sync::Arc;

use roost_fleet::{Vm, VmId};
use roost_vim::wire::types::{
    ObjectContent, ObjectSpec, PropertyFilterSpec, PropertySpec, VirtualDevice, VirtualHardware,
};
use roost_vim::{CallError, Observer, Properties};

/// The path is read whole: an array by itself would hide devices of a class that we do not know.
const HARDWARE: &str = "config.hardware";

/// How large the disks of our VMs are. The stream does not tell, so it is asked for once for each version of a VM.
#[derive(Debug, Default)]
pub(super) struct Disks {
    known: BTreeMap<VmId, Known>,
}

#[derive(Debug)]
struct Known {
    version: Arc<str>,
    disk_gb: u64,
}

impl Disks {
    /// Reads what is not known of these VMs in one call, or in none. What is known of others is forgotten.
    pub(super) async fn learn(
        &mut self,
        observer: &Observer,
        vms: &[Arc<Vm>],
    ) -> Result<(), CallError> {
        let ours: BTreeMap<&VmId, &Arc<Vm>> = vms.iter().map(|vm| (&vm.id, vm)).collect();
        self.known.retain(|vm, _| ours.contains_key(vm));
        // Without a version it changes at this moment, and is asked about in the next cycle.
        let unknown: Vec<(&VmId, &Arc<str>)> = vms
            .iter()
            .filter_map(|vm| Some((&vm.id, vm.change_version.as_ref()?)))
            .filter(|(vm, version)| {
                self.known.get(*vm).is_none_or(|known| known.version != **version)
            })
            .collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let versions: BTreeMap<&str, &Arc<str>> =
            unknown.iter().map(|(vm, version)| (vm.as_str(), *version)).collect();
        for object in observer.retrieve(hardware_of(unknown.iter().map(|(vm, _)| *vm))).await? {
            let vm = VmId::from(&object.obj);
            let Some(version) = versions.get(vm.as_str()).map(|version| Arc::clone(version)) else {
                continue;
            };
            if let Some(disk_gb) = disk_gb(object) {
                self.known.insert(vm, Known { version, disk_gb });
            }
        }
        Ok(())
    }

    pub(super) fn get(&self, vm: &VmId) -> Option<u64> {
        self.known.get(vm).map(|known| known.disk_gb)
    }
}

/// A VM that is gone by now is left out of the answer, where it would otherwise fail the whole of it.
fn hardware_of<'a>(vms: impl Iterator<Item = &'a VmId>) -> PropertyFilterSpec {
    let object =
        |vm: &VmId| ObjectSpec { obj: vm.moref(), skip: Some(false), select_set: Vec::new() };
    PropertyFilterSpec {
        prop_set: vec![PropertySpec::new("VirtualMachine", &[HARDWARE])],
        object_set: vms.map(object).collect(),
        report_missing_objects_in_results: Some(true),
    }
}

fn disk_gb(object: ObjectContent) -> Option<u64> {
    let read = Properties::from(object);
    let hardware = read.data::<VirtualHardware>(HARDWARE)?;
    let disks = hardware.device.iter().filter(|device| device.is_disk());
    Some(disks.map(disk_kb).sum::<u64>() >> 20)
}

fn disk_kb(disk: &VirtualDevice) -> u64 {
    let kb = disk.capacity_in_kb.or_else(|| disk.capacity_in_bytes.map(|bytes| bytes >> 10));
    kb.and_then(|kb| kb.try_into().ok()).unwrap_or_default()
}
