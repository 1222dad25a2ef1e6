//! Volumes and the boot disk.

use super::Problems;
use crate::api::VirtualMachine;
use crate::api::vm::{ScsiType, Volume};

/// The longest name that an object can have.
const NAME_LENGTH: usize = 253;

pub(super) fn check(vm: &VirtualMachine, old: Option<&VirtualMachine>, problems: &mut Problems) {
    let capacity = vm.spec.advanced.as_ref().and_then(|of| of.boot_disk_capacity.as_ref());
    if let Some(capacity) = capacity {
        let at = "spec.advanced.bootDiskCapacity";
        match capacity.value() {
            Ok(bytes) => problems.when(bytes % (1 << 20) != 0, at, "must be a multiple of 1Mi"),
            Err(error) => problems.at(at, error),
        }
    }
    let (mut names, mut claims) = (Vec::new(), Vec::new());
    for (index, volume) in vm.spec.volumes.iter().enumerate() {
        let at = format!("spec.volumes[{index}]");
        volume_name(vm, volume, &at, &names, problems);
        names.push(volume.name.as_str());
        match volume.claim_name() {
            None => problems.at(format!("{at}.persistentVolumeClaim"), "is required"),
            Some("") => problems.at(format!("{at}.persistentVolumeClaim.claimName"), "is required"),
            Some(claim) => {
                let at = format!("{at}.persistentVolumeClaim.claimName");
                problems.when(claims.contains(&claim), at, "is used by another volume");
                claims.push(claim);
            }
        }
        slot(vm, volume, &at, problems);
    }
    for volume in
        old.iter().flat_map(|old| &old.spec.volumes).filter(|volume| !volume.is_removable())
    {
        problems.when(
            !names.contains(&volume.name.as_str()),
            "spec.volumes",
            format!("volume {} is not removable", volume.name),
        );
    }
}

fn volume_name(
    vm: &VirtualMachine,
    volume: &Volume,
    at: &str,
    names: &[&str],
    problems: &mut Problems,
) {
    let at = format!("{at}.name");
    problems.when(names.contains(&volume.name.as_str()), &at, "is used by another volume");
    // The attachment of a volume is an object of this name.
    let attachment = format!("{}-{}", vm.metadata.name.as_deref().unwrap_or_default(), volume.name);
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let is_name = !volume.name.is_empty()
        && attachment.len() <= NAME_LENGTH
        && attachment.chars().all(is_inner)
        && attachment.ends_with(|c: char| c.is_ascii_alphanumeric());
    problems.when(!is_name, at, format!("{attachment} is no name of an object"));
}

fn slot(vm: &VirtualMachine, volume: &Volume, at: &str, problems: &mut Problems) {
    let Some(kind) = volume.controller_type else { return };
    let bus = volume.controller_bus_number;
    problems.when(
        bus.is_some_and(|bus| !(0..kind.max_controllers()).contains(&bus)),
        format!("{at}.controllerBusNumber"),
        format!("{kind} has the buses 0 to {}", kind.max_controllers() - 1),
    );
    let controllers = vm.spec.hardware.iter().flat_map(|hardware| &hardware.scsi_controllers);
    let scsi =
        controllers.filter(|known| Some(known.bus_number) == bus).find_map(|known| known.type_);
    let is_out = volume
        .unit_number
        .is_some_and(|unit| !kind.has_unit(unit, scsi.unwrap_or(ScsiType::ParaVirtual)));
    problems.when(is_out, format!("{at}.unitNumber"), format!("{kind} has no such unit"));
}
