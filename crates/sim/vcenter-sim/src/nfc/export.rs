//! `ExportVm` and the descriptor that goes with it.

use roost_vim_wire::{Element, MoRef};

use super::door::{EMPTY_DISK, is_hollow};
use super::lease::{Lease, LeaseFile, State, open};
use crate::call::{CallContext, Failure};
use crate::ovf::{DiskRef, describe};
use crate::store;
use crate::vm::fault::{need_connected, need_power};
use crate::vm::{Own, Power, Vm};
use crate::world::World;

/// `VirtualLsiLogicController0:0`, the place of a device in its VM.
pub(super) fn place_of(vm: &Vm, device: i32) -> String {
    let Some(device) = vm.config.device(device) else { return String::new() };
    let controller = device.base.controller_key.and_then(|key| vm.config.device(key));
    let (class, bus) = controller.map_or(("", 0), |controller| {
        (controller.base.class.as_str(), controller.base.bus_number.unwrap_or(0))
    });
    format!("{class}{bus}:{}", device.base.unit_number.unwrap_or(0))
}

pub(crate) fn export(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<MoRef, Failure> {
    need_connected(world, this)?;
    need_power(world, this, Power::Off)?;
    let Some(row) = world.inventory.vms.get(this) else { return Err(Failure::not_found(this)) };
    let mut files = Vec::new();
    for device in &row.config.devices {
        let Own::Disk(disk) = &device.own else { continue };
        let key = format!("/{}/{}", this.id, place_of(row, device.key()));
        let mut file = LeaseFile {
            name: format!("disk-{}.vmdk", files.len()),
            import_key: key.clone(),
            key,
            path: disk.file.path.clone(),
            is_disk: true,
            capacity_kb: disk.capacity_kb,
            size: store::size(world, &disk.file.path).unwrap_or(0),
        };
        if is_hollow(world, &file) {
            file.size = EMPTY_DISK;
        }
        files.push(file);
    }
    let lease = Lease {
        entity: this.clone(),
        state: State::Ready,
        progress: 0,
        touched: cx.now,
        files,
        is_import: false,
        is_secure: cx.secure,
        thumbprint: cx.handle.thumbprint(),
    };
    Ok(open(world, cx.handle, lease))
}

/// The descriptor of a VM, with the files under the names that the caller gave them.
pub(super) fn descriptor(
    world: &World,
    obj: &MoRef,
    parameters: &Element,
) -> Result<Element, Failure> {
    let row = world.inventory.vms.get(obj).ok_or_else(|| Failure::not_found(obj))?;
    let mut disks = Vec::new();
    for file in parameters.children_named("ovfFiles") {
        let place =
            file.text_of("deviceId").and_then(|id| id.rsplit('/').next()).unwrap_or_default();
        let device = row
            .config
            .devices
            .iter()
            .find(|device| device.base.is_disk() && place_of(row, device.key()) == place);
        let Some(device) = device else { return Err(Failure::invalid_argument("cdp.ovfFiles")) };
        disks.push(DiskRef {
            device: device.key(),
            href: file.text_of("path").unwrap_or_default().into(),
            size: file.number_of("size").unwrap_or(0),
        });
    }
    let name = parameters.text_of("name").filter(|name| !name.is_empty()).unwrap_or(&row.name);
    let text = describe(&world.inventory, row, name, &disks);
    Ok(Element::new("returnval").with_field("ovfDescriptor", &text))
}
