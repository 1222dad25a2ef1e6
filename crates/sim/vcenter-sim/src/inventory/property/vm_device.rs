use roost_vim_wire::types::{Description, VirtualDevice, VirtualDeviceBackingInfo};

use crate::inventory::{Inventory, uuid_text};
use crate::vm::{Device, Disk, DiskFile, Own, Power, Vm};
use crate::world::World;

/// The devices as they go over the wire.
pub(super) fn wire_devices(world: &World, vm: &Vm) -> Vec<VirtualDevice> {
    let wire = |device| wire_device(&world.inventory, vm, device);
    vm.config.devices.iter().map(wire).collect()
}

/// One device: the shared base, and over it what is the device's own or follows from the VM.
pub(crate) fn wire_device(inventory: &Inventory, vm: &Vm, device: &Device) -> VirtualDevice {
    let mut wire = VirtualDevice::clone(&device.base);
    if let Some(connectable) = &mut wire.connectable {
        connectable.connected &= vm.power == Power::On;
        connectable.status = Some(if vm.power == Power::On { "ok" } else { "untried" }.into());
    }
    if wire.bus_number.is_some() {
        let attached = |other: &&Device| other.base.controller_key == Some(wire.key);
        wire.device = vm.config.devices.iter().filter(attached).map(Device::key).collect();
    }
    match &device.own {
        Own::Nothing => {
            if let Some(summary) = plain_summary(&wire) {
                describe(&mut wire, Some(summary));
            }
        }
        Own::Nic(mac) => {
            wire.mac_address = Some(mac.to_string());
            describe(&mut wire, card_summary(inventory, device));
        }
        Own::Disk(disk) => {
            wire.capacity_in_kb = Some(disk.capacity_kb);
            wire.capacity_in_bytes = Some(disk.capacity_kb.saturating_mul(1024));
            let backing = wire.backing.get_or_insert_default();
            backing_of(inventory, backing, &disk.file);
            describe(&mut wire, Some(format!("{} KB", grouped(disk))));
        }
    }
    wire
}

/// The network that a card is on, as vCenter words it.
fn card_summary(inventory: &Inventory, device: &Device) -> Option<String> {
    let network = device.network()?;
    let group = inventory.networks.get(&network)?.port_group.as_ref();
    match group.and_then(|group| inventory.switches.get(&group.switch)) {
        Some(switch) => Some(format!("DVSwitch: {}", spaced(&switch.uuid))),
        None => inventory.name(&network).map(str::to_owned),
    }
}

/// `50 2e 4f aa 6f cb 5c f5-ba b3 1a 72 9d 4d 5a 5e`, as switches write their identity.
fn spaced(uuid: &str) -> String {
    let digits: Vec<char> = uuid.chars().filter(char::is_ascii_hexdigit).collect();
    let pairs: Vec<String> = digits.chunks(2).map(|pair| pair.iter().collect()).collect();
    let halves: Vec<String> = pairs.chunks(8).map(|half| half.join(" ")).collect();
    halves.join("-")
}

/// What vCenter says of a device beside its label, where that is not the label again.
fn plain_summary(wire: &VirtualDevice) -> Option<String> {
    let backing = wire.backing.as_ref();
    let file = backing.and_then(|backing| backing.file_name.as_deref());
    let file = file.filter(|file| !file.is_empty());
    let uri = backing.and_then(|backing| {
        let found = backing.rest.iter().find(|element| element.name == "serviceURI");
        found.map(|element| element.text.clone())
    });
    if let Some(uri) = uri {
        return Some(format!("Remote {uri}"));
    }
    let text = match (wire.class.as_str(), file) {
        ("VirtualCdrom", Some(file)) => return Some(format!("ISO {file}")),
        ("VirtualFloppy", Some(file)) => return Some(format!("Image {file}")),
        ("VirtualSerialPort" | "VirtualParallelPort", Some(file)) => {
            return Some(format!("File {file}"));
        }
        ("VirtualCdrom", None) => "Remote device",
        ("VirtualFloppy", None) => "Remote",
        ("VirtualTPM", _) => "Trusted Platform Module",
        ("VirtualHdAudioCard" | "VirtualSoundBlaster16" | "VirtualEnsoniq1371", _) => "Auto detect",
        ("VirtualUSBController", _) => "Auto connect Disabled",
        ("VirtualLsiLogicController", _) => "LSI Logic",
        ("VirtualLsiLogicSASController", _) => "LSI Logic SAS",
        ("VirtualBusLogicController", _) => "BusLogic",
        ("ParaVirtualSCSIController", _) => "VMware paravirtual SCSI",
        ("VirtualAHCIController", _) => "AHCI",
        ("VirtualPointingDevice", _) => "Pointing device; Device",
        ("VirtualMachineVMCIDevice", _) => {
            "Device on the virtual machine PCI bus that provides support for the virtual machine communication interface"
        }
        _ => return None,
    };
    Some(text.into())
}

fn backing_of(inventory: &Inventory, backing: &mut VirtualDeviceBackingInfo, file: &DiskFile) {
    backing.file_name = Some(inventory.datastore_path(&file.path));
    backing.datastore = Some(file.path.datastore.clone());
    backing.thin_provisioned = Some(file.thin);
    backing.eagerly_scrub = backing.eagerly_scrub.or(Some(false));
    backing.uuid = Some(uuid_text(file.uuid));
    backing.parent = file.parent.as_deref().map(|parent| {
        let mut wire = VirtualDeviceBackingInfo { parent: None, ..backing.clone() };
        backing_of(inventory, &mut wire, parent);
        Box::new(wire)
    });
}

fn describe(wire: &mut VirtualDevice, summary: Option<String>) {
    let label = wire.device_info.as_ref().map(|info| info.label.clone()).unwrap_or_default();
    wire.device_info =
        Some(Description { summary: summary.unwrap_or_else(|| label.clone()), label });
}

/// `10,485,760`, as vCenter writes a disk's size.
fn grouped(disk: &Disk) -> String {
    let digits = disk.capacity_kb.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
