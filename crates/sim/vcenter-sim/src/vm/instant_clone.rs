//! `InstantClone_Task`: a running VM is forked, memory and all.

use roost_vim_wire::MoRef;
use roost_vim_wire::types::{
    VirtualMachineCloneSpec, VirtualMachineConfigSpec, VirtualMachineInstantCloneSpec,
};

use crate::call::{CallContext, Failure};
use crate::vm::fault::{need_connected, need_power, refuse_template, vm};
use crate::vm::{Power, clone};
use crate::world::World;

/// The fork shares its disks with the source and runs at once, in the folder of the source unless told otherwise.
pub(super) fn instant_clone(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    spec: VirtualMachineInstantCloneSpec,
) -> Result<MoRef, Failure> {
    refuse_template(world, this)?;
    need_connected(world, this)?;
    need_power(world, this, Power::On)?;
    let folder =
        spec.location.folder.clone().unwrap_or_else(|| MoRef::clone(&row_folder(world, this)));
    let config = VirtualMachineConfigSpec {
        extra_config: spec.config,
        uuid: spec.bios_uuid,
        ..VirtualMachineConfigSpec::default()
    };
    let clone_spec = VirtualMachineCloneSpec {
        location: spec.location,
        power_on: true,
        config: Some(config),
        ..VirtualMachineCloneSpec::default()
    };
    clone::fork(world, cx, this, (folder, spec.name, clone_spec))
}

fn row_folder(world: &World, this: &MoRef) -> MoRef {
    vm(world, this).map(|row| row.folder.clone()).unwrap_or_default()
}
