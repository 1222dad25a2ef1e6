//! Power, restarts, and what may change only while a VM is off.

use jiff::Timestamp;

use super::Problems;
use crate::api::VirtualMachine;
use crate::api::vm::{Cdrom, Hardware, ImageReference, PowerState};

/// The newest hardware version that is known.
const NEWEST_HARDWARE: i32 = 22;
const OLDEST_HARDWARE: i32 = 13;
const WHILE_ON: &str = "updates to this field are not allowed when VM power is on";

pub(super) fn check(vm: &VirtualMachine, old: Option<&VirtualMachine>, problems: &mut Problems) {
    power_state(vm, old, problems);
    restart(vm, old, problems);
    let is_on = old.is_some_and(|old| stays_on(vm, old));
    hardware_version(vm, old, is_on, problems);
    if let Some(old) = old.filter(|_| is_on) {
        while_on(vm, old, problems);
    }
    let cdroms = cdroms(vm);
    problems.when(
        !cdroms.is_empty() && vm.spec.guest_id.is_empty(),
        "spec.guestID",
        "is required when the VM has a CD-ROM",
    );
    let mut seen: Vec<&ImageReference> = Vec::new();
    for (index, cdrom) in cdroms.iter().enumerate() {
        let place = format!("spec.hardware.cdrom[{index}].image");
        problems.when(seen.contains(&&cdrom.image), &place, "is used by another CD-ROM");
        seen.push(&cdrom.image);
    }
}

/// Is the VM on, and not about to be switched off? A check that holds it off counts as off.
fn stays_on(vm: &VirtualMachine, old: &VirtualMachine) -> bool {
    let is_on = old.current_power_state().or(old.spec.power_state) == Some(PowerState::PoweredOn);
    is_on && vm.spec.power_state != Some(PowerState::PoweredOff) && vm.power_on_checks().is_empty()
}

fn power_state(vm: &VirtualMachine, old: Option<&VirtualMachine>, problems: &mut Problems) {
    let (field, wanted) = ("spec.powerState", vm.spec.power_state);
    match old {
        None => problems.when(
            wanted == Some(PowerState::Suspended),
            field,
            "cannot set a new VM's power state to Suspended",
        ),
        Some(old) => {
            let was = old.spec.power_state;
            problems.when(
                was.is_some() && wanted.is_none(),
                field,
                "cannot set power state to empty string",
            );
            problems.when(
                wanted == Some(PowerState::Suspended) && was == Some(PowerState::PoweredOff),
                field,
                "cannot suspend a VM that is powered off",
            );
        }
    }
}

fn restart(vm: &VirtualMachine, old: Option<&VirtualMachine>, problems: &mut Problems) {
    let (field, wanted) = ("spec.nextRestartTime", &vm.spec.next_restart_time);
    if wanted.is_empty() {
        return;
    }
    if old.is_none() {
        problems.at(field, "cannot restart VM on create");
    } else if wanted.parse::<Timestamp>().is_err() {
        problems.at(field, "must be formatted as RFC3339Nano");
    }
}

fn hardware_version(
    vm: &VirtualMachine,
    old: Option<&VirtualMachine>,
    is_on: bool,
    problems: &mut Problems,
) {
    let (field, wanted) = ("spec.minHardwareVersion", vm.spec.min_hardware_version);
    let is_known = wanted == 0 || (OLDEST_HARDWARE..=NEWEST_HARDWARE).contains(&wanted);
    let range = format!("must be from {OLDEST_HARDWARE} to {NEWEST_HARDWARE}");
    problems.when(!is_known, field, range);
    let Some(old) = old else { return };
    let was = old.spec.min_hardware_version;
    problems.when(wanted < was, field, "cannot downgrade hardware version");
    let is_upgrade = wanted > was && is_on;
    problems.when(is_upgrade, field, "cannot upgrade hardware version unless powered off");
}

fn while_on(vm: &VirtualMachine, old: &VirtualMachine, problems: &mut Problems) {
    problems.when(vm.spec.guest_id != old.spec.guest_id, "spec.guestID", WHILE_ON);
    let slot = |cdrom: &Cdrom| (cdrom.name.clone(), cdrom.image.clone());
    let drives = |vm: &VirtualMachine| cdroms(vm).iter().map(slot).collect::<Vec<_>>();
    problems.when(drives(vm) != drives(old), "spec.hardware.cdrom", WHILE_ON);
    let (new, old) = (hardware(vm), hardware(old));
    // Defaulting adds the controllers that every VM has anyway.
    let is_filled_in = old.ide_controllers.is_empty();
    problems.when(
        new.ide_controllers != old.ide_controllers && !is_filled_in,
        "spec.hardware.ideControllers",
        WHILE_ON,
    );
    problems.when(
        new.nvme_controllers != old.nvme_controllers,
        "spec.hardware.nvmeControllers",
        WHILE_ON,
    );
    problems.when(
        new.sata_controllers != old.sata_controllers,
        "spec.hardware.sataControllers",
        WHILE_ON,
    );
    problems.when(
        new.scsi_controllers != old.scsi_controllers,
        "spec.hardware.scsiControllers",
        WHILE_ON,
    );
}

fn hardware(vm: &VirtualMachine) -> Hardware {
    vm.spec.hardware.clone().unwrap_or_default()
}

fn cdroms(vm: &VirtualMachine) -> &[Cdrom] {
    vm.spec.hardware.as_ref().map(|hardware| hardware.cdrom.as_slice()).unwrap_or_default()
}
