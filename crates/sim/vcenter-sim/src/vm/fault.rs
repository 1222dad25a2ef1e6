//! The faults of VM operations, with their fields and vCenter's words.

use roost_vim_wire::{Fault, MoRef};

use crate::call::Failure;
use crate::vm::{Power, Vm};
use crate::world::World;

/// The VM is not in the power state that the operation needs.
pub(crate) fn invalid_power_state(requested: Power, existing: Power) -> Failure {
    let shown = match existing {
        Power::Off => "Powered off",
        Power::On => "Powered on",
        Power::Suspended => "Suspended",
    };
    let message =
        format!("The attempted operation cannot be performed in the current state ({shown}).");
    Failure::of("InvalidPowerState", message)
        .with("requestedState", &requested.wire())
        .with("existingState", &existing.wire())
}

pub(crate) fn not_supported(message: &str) -> Failure {
    Failure::of("NotSupported", message)
}

pub(crate) fn vm<'a>(world: &'a World, moref: &MoRef) -> Result<&'a Vm, Failure> {
    world.inventory.vms.get(moref).ok_or_else(|| Failure::not_found(moref))
}

/// Refuses a VM whose host cannot be reached.
pub(crate) fn need_connected(world: &World, moref: &MoRef) -> Result<(), Failure> {
    let row = vm(world, moref)?;
    if row.is_connected {
        return Ok(());
    }
    let host = world.inventory.name(&row.host).unwrap_or_default();
    Err(Failure::of(
        "HostNotConnected",
        format!("Unable to communicate with the remote host {host}, since it is disconnected."),
    ))
}

pub(crate) fn need_power(world: &World, moref: &MoRef, wanted: Power) -> Result<(), Failure> {
    let existing = vm(world, moref)?.power;
    if existing == wanted { Ok(()) } else { Err(invalid_power_state(wanted, existing)) }
}

pub(crate) fn refuse_template(world: &World, moref: &MoRef) -> Result<(), Failure> {
    if vm(world, moref)?.template {
        Err(not_supported("The operation is not supported on the object: it is a template."))
    } else {
        Ok(())
    }
}

/// An `InvalidDeviceSpec` or a subclass of it, about the device at this place in the request.
pub(crate) fn device_fault(class: &str, index: usize, property: &str, message: &str) -> Failure {
    let index = i32::try_from(index).unwrap_or(i32::MAX);
    let fault = Fault::of(class)
        .with("property", &format!("virtualDeviceSpec.device.{property}"))
        .with("deviceIndex", &index);
    Failure::new(fault, format!("Invalid configuration for device '{index}': {message}."))
}
