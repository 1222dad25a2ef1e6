//! Adding, editing and removing devices, as a request's `deviceChange` asks.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

use roost_vim_wire::types::{
    Description, VirtualDevice, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecFileOperation as FileOperation,
    VirtualDeviceConfigSpecOperation as Operation, VirtualDeviceConnectInfo,
};

use crate::call::Failure;
use crate::inventory::Changed;
use crate::store;
use crate::vm::device_key::{Bus, bus_of, next_key};
use crate::vm::fault::{device_fault, invalid_power_state};
use crate::vm::{Device, Disk, Draft, Mac, Own, Power, disk_change, keys, nic_change};
use crate::world::World;

/// Applies all changes in order. Temporary keys, which are negative, are resolved among them.
pub(crate) fn apply(
    world: &mut World,
    draft: &mut Draft,
    changes: &[VirtualDeviceConfigSpec],
) -> Result<(), Failure> {
    let is_media = |change: &VirtualDeviceConfigSpec| {
        let device = draft_device(draft, change);
        device.is_disk() || device.is_cdrom()
    };
    if changes.iter().any(is_media) {
        // What boots decides whether there are tools.
        for path in TOOLS {
            draft.changed(path);
        }
    }
    let mut temporary = HashMap::new();
    for (index, change) in changes.iter().enumerate() {
        match &change.operation {
            Some(Operation::Add) => add(world, draft, change, index, &mut temporary)?,
            Some(Operation::Remove) => remove(draft, change, index)?,
            // Without an operation an existing device is meant.
            Some(Operation::Edit) | None => edit(world, draft, change, index)?,
            Some(Operation::Other(_)) => {
                return Err(device_fault(
                    "InvalidDeviceSpec",
                    index,
                    "operation",
                    "unknown operation",
                ));
            }
        }
    }
    Ok(())
}

const TOOLS: [&str; 6] = [
    "guest.toolsStatus",
    "guest.toolsVersionStatus",
    "guest.toolsVersionStatus2",
    "summary.guest.toolsStatus",
    "summary.guest.toolsVersionStatus",
    "summary.guest.toolsVersionStatus2",
];

/// The device that a change is about: the one that is there, or the one that is asked for.
fn draft_device(draft: &Draft, change: &VirtualDeviceConfigSpec) -> VirtualDevice {
    match draft.config.device(change.device.key) {
        Some(known) => VirtualDevice::clone(&known.base),
        None => change.device.clone(),
    }
}

fn add(
    world: &mut World,
    draft: &mut Draft,
    change: &VirtualDeviceConfigSpec,
    index: usize,
    temporary: &mut HashMap<i32, i32>,
) -> Result<(), Failure> {
    let mut device = change.device.clone();
    let asked_key = device.key;
    if let Some(controller) = device.controller_key {
        device.controller_key = Some(temporary.get(&controller).copied().unwrap_or(controller));
    }
    if let Some(bus) = bus_of(&device.class) {
        let key = add_controller(draft, device, bus, index)?;
        temporary.insert(asked_key, key);
        return Ok(());
    }
    place(draft, &mut device, index)?;
    device.key = next_key(&draft.config, &device);
    temporary.insert(asked_key, device.key);
    connect(&mut device);
    let own = if device.is_disk() {
        Own::Disk(disk_change::new_disk(
            world,
            draft,
            &mut device,
            change.file_operation.as_ref(),
            index,
        )?)
    } else if device.is_nic() {
        Own::Nic(nic_change::prepare(world, draft, &mut device, index)?)
    } else {
        check_media(world, &device)?;
        set_media_datastore(world, &mut device);
        Own::Nothing
    };
    label(draft, &mut device);
    insert(draft, Device { base: Arc::new(device), own });
    Ok(())
}

fn insert(draft: &mut Draft, device: Device) {
    let key = device.key();
    let _ =
        write!(draft.effects.added, "config.hardware.device({key}): ({}) ; ", device.base.class);
    draft.changed(Changed::Added(format!("config.hardware.device[{key}]").into()));
    match device.own {
        Own::Nic(_) => draft.changed("summary.config.numEthernetCards"),
        Own::Disk(_) => draft.changed("summary.config.numVirtualDisks"),
        Own::Nothing => {}
    }
    draft.config.devices.push(device);
}

/// A controller. The fixed ones are there already: a request that adds one means the one it has.
fn add_controller(
    draft: &mut Draft,
    mut device: VirtualDevice,
    bus: Bus,
    index: usize,
) -> Result<i32, Failure> {
    let on_bus = |number: i32| {
        let mut all = draft.config.devices.iter();
        all.find(|other| {
            bus_of(&other.base.class) == Some(bus) && other.base.bus_number == Some(number)
        })
        .map(Device::key)
    };
    let asked = device.bus_number.unwrap_or(0);
    if bus.is_fixed() {
        return on_bus(asked.max(0)).ok_or_else(|| too_many(index));
    }
    let free =
        (0..bus.most()).find(|number| on_bus(*number).is_none()).ok_or_else(|| too_many(index))?;
    let number =
        if (0..bus.most()).contains(&asked) && on_bus(asked).is_none() { asked } else { free };
    device.bus_number = Some(number);
    device.key = bus.first_key() + number;
    device.controller_key = Some(keys::PCI);
    device.unit_number = None;
    device.device.clear();
    if bus == Bus::Scsi {
        device.scsi_ctlr_unit_number = Some(7);
        device.shared_bus.get_or_insert_with(|| "noSharing".into());
        device.hot_add_remove = Some(true);
    }
    label(draft, &mut device);
    let key = device.key;
    insert(draft, Device { base: Arc::new(device), own: Own::Nothing });
    Ok(key)
}

fn too_many(index: usize) -> Failure {
    device_fault(
        "TooManyDevices",
        index,
        "busNumber",
        "there are too many controllers of this type",
    )
}

/// Checks the controller and the unit number, or chooses one.
fn place(draft: &Draft, device: &mut VirtualDevice, index: usize) -> Result<(), Failure> {
    if device.is_nic() {
        device.controller_key = Some(keys::PCI);
        let used: Vec<_> = draft.config.nics().filter_map(|nic| nic.base.unit_number).collect();
        device.unit_number = (7..64).find(|unit| !used.contains(unit));
        if used.len() >= MAX_NICS {
            return Err(device_fault(
                "TooManyDevices",
                index,
                "key",
                "there are too many network adapters",
            ));
        }
        return Ok(());
    }
    if !device.is_disk() && !device.is_cdrom() {
        return Ok(());
    }
    let wanted = device.controller_key;
    let Some(controller) = wanted.and_then(|key| draft.config.device(key)) else {
        let message = "the controller is not there";
        let failure = device_fault("InvalidController", index, "controllerKey", message);
        return Err(failure.with("controllerKey", &wanted.unwrap_or(0)));
    };
    let Some(bus) = bus_of(&controller.base.class) else {
        return Err(device_fault(
            "InvalidController",
            index,
            "controllerKey",
            "it is no controller",
        ));
    };
    if draft.power == Power::On && bus == Bus::Ide {
        return Err(invalid_power_state(Power::Off, draft.power));
    }
    let siblings = draft.config.devices.iter().filter(|other| other.base.controller_key == wanted);
    let used: Vec<_> = siblings.filter_map(|other| other.base.unit_number).collect();
    let free = |unit: &i32| !used.contains(unit) && (bus != Bus::Scsi || *unit != 7);
    match device.unit_number {
        Some(unit) if unit >= 0 => {
            if (0..bus.units()).contains(&unit) && free(&unit) {
                Ok(())
            } else {
                Err(device_fault("InvalidDeviceSpec", index, "unitNumber", "the unit is taken"))
            }
        }
        _ if device.is_disk() => {
            Err(device_fault("InvalidDeviceSpec", index, "unitNumber", "it must be given"))
        }
        _ => {
            device.unit_number = (0..bus.units()).find(free);
            match device.unit_number {
                Some(_) => Ok(()),
                None => {
                    Err(device_fault("InvalidDeviceSpec", index, "unitNumber", "no unit is free"))
                }
            }
        }
    }
}

const MAX_NICS: usize = 10;

/// A device that can be plugged is plugged in, unless the request says otherwise.
fn connect(device: &mut VirtualDevice) {
    let is_port = device.class == "VirtualSerialPort";
    if !device.is_nic() && !device.is_cdrom() && !is_port {
        return;
    }
    let is_nic = device.is_nic() || is_port;
    let connectable = device.connectable.get_or_insert_with(|| VirtualDeviceConnectInfo {
        start_connected: is_nic,
        allow_guest_control: true,
        ..VirtualDeviceConnectInfo::default()
    });
    connectable.connected |= connectable.start_connected;
}

/// An image in a drive or the file of a port is on a datastore that exists. The file itself may come later: a drive is empty until then,
/// and a port makes its file when it is first written to.
fn check_media(world: &World, device: &VirtualDevice) -> Result<(), Failure> {
    let Some(name) = device.backing.as_ref().and_then(|backing| backing.file_name.as_deref())
    else {
        return Ok(());
    };
    if name.is_empty() {
        return Ok(());
    }
    store::locate(world, name, None).map(|_| ())
}

fn label(draft: &Draft, device: &mut VirtualDevice) {
    let is_taken = |label: &String| {
        let mut infos =
            draft.config.devices.iter().filter_map(|other| other.base.device_info.as_ref());
        infos.any(|info| info.label == *label)
    };
    let numbered = |name: &str, first: usize| {
        let mut labels = (first..).map(|number| format!("{name} {number}"));
        labels.find(|label| !is_taken(label)).unwrap_or_else(|| name.to_owned())
    };
    let label = if device.is_disk() {
        numbered("Hard disk", 1)
    } else if device.is_nic() {
        numbered("Network adapter", 1)
    } else if let Some(bus) = bus_of(&device.class) {
        // There is one at most of those for USB.
        match bus {
            Bus::Usb | Bus::Xhci => format!("{} controller", bus.name()),
            _ => format!("{} controller {}", bus.name(), device.bus_number.unwrap_or(0)),
        }
    } else {
        match device.class.as_str() {
            "VirtualCdrom" => numbered("CD/DVD drive", 1),
            "VirtualFloppy" => numbered("Floppy drive", 1),
            "VirtualSerialPort" => numbered("Serial port", 1),
            "VirtualParallelPort" => numbered("Parallel port", 1),
            "VirtualUSB" => numbered("USB", 1),
            "VirtualSCSIPassthrough" => numbered("SCSI device", 1),
            "VirtualPCIPassthrough" => numbered("PCI device", 0),
            "VirtualNVDIMM" => numbered("NVDIMM", 1),
            "VirtualTPM" => "Virtual TPM".to_owned(),
            "VirtualWDT" => "Virtual watchdog timer".to_owned(),
            "VirtualPrecisionClock" => "Precision clock".to_owned(),
            "VirtualHdAudioCard"
            | "VirtualSoundBlaster16"
            | "VirtualEnsoniq1371"
            | "VirtualSoundCard" => "Sound card".to_owned(),
            other => other.trim_start_matches("Virtual").to_owned(),
        }
    };
    device.device_info = Some(Description { summary: label.clone(), label });
}

fn edit(
    world: &mut World,
    draft: &mut Draft,
    change: &VirtualDeviceConfigSpec,
    index: usize,
) -> Result<(), Failure> {
    let key = change.device.key;
    let Some(at) = draft.config.devices.iter().position(|device| device.key() == key) else {
        return Err(device_fault("InvalidDeviceSpec", index, "key", "there is no such device"));
    };
    let old = draft.config.devices[at].clone();
    let mut base = VirtualDevice::clone(&old.base);
    let asked = &change.device;
    if let Some(connectable) = &asked.connectable {
        base.connectable = Some(connectable.clone());
    }
    let own = match old.own {
        Own::Disk(disk) => Own::Disk(disk_change::edit_disk(draft, &disk, asked, index)?),
        Own::Nic(mac) => {
            if let Some(backing) = &asked.backing {
                base.backing = Some(backing.clone());
            }
            Own::Nic(edited_mac(world, asked, &mut base, mac, index)?)
        }
        Own::Nothing => {
            if let Some(backing) = &asked.backing {
                base.backing = Some(backing.clone());
                check_media(world, &base)?;
                set_media_datastore(world, &mut base);
            }
            Own::Nothing
        }
    };
    draft.config.devices[at] = Device { base: Arc::new(base), own };
    let _ = write!(draft.effects.modified, "config.hardware.device({key}); ");
    draft.changed(format!("config.hardware.device[{key}]"));
    Ok(())
}

fn edited_mac(
    world: &World,
    asked: &VirtualDevice,
    base: &mut VirtualDevice,
    old: Mac,
    index: usize,
) -> Result<Mac, Failure> {
    nic_change::resolve_backing(world, base, index)?;
    let is_manual =
        asked.address_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case("manual"));
    match asked.mac_address.as_deref().filter(|_| is_manual) {
        Some(text) => {
            base.address_type = Some("manual".into());
            Mac::parse(text).ok_or_else(|| {
                device_fault("InvalidDeviceSpec", index, "macAddress", "it is no address")
            })
        }
        None => Ok(old),
    }
}

/// The datastore of an image is known by its path.
fn set_media_datastore(world: &World, device: &mut VirtualDevice) {
    if let Some(backing) = &mut device.backing
        && let Some(name) = backing.file_name.as_deref().filter(|name| !name.is_empty())
    {
        backing.datastore = store::locate(world, name, None).ok().map(|file| file.datastore);
    }
}

fn remove(
    draft: &mut Draft,
    change: &VirtualDeviceConfigSpec,
    index: usize,
) -> Result<(), Failure> {
    let key = change.device.key;
    let Some(at) = draft.config.devices.iter().position(|device| device.key() == key) else {
        return Err(device_fault("InvalidDeviceSpec", index, "key", "there is no such device"));
    };
    let device = &draft.config.devices[at];
    let bus = bus_of(&device.base.class);
    let is_fixed = bus.is_some_and(Bus::is_fixed) || FIXED.contains(&key);
    let is_in_use = draft.config.devices.iter().any(|other| other.base.controller_key == Some(key));
    if is_fixed || is_in_use {
        return Err(device_fault(
            "InvalidDeviceOperation",
            index,
            "key",
            "the device cannot be removed",
        ));
    }
    let is_ide = device
        .base
        .controller_key
        .is_some_and(|controller| (keys::IDE..keys::IDE + 2).contains(&controller));
    if draft.power == Power::On && (is_ide || bus.is_some()) {
        return Err(invalid_power_state(Power::Off, draft.power));
    }
    let device = draft.config.devices.remove(at);
    let _ = write!(draft.effects.deleted, "config.hardware.device({key}); ");
    draft.changed(Changed::Removed(format!("config.hardware.device[{key}]").into()));
    match &device.own {
        Own::Disk(Disk { file, .. }) => {
            draft.changed("summary.config.numVirtualDisks");
            if change.file_operation == Some(FileOperation::Destroy) {
                draft.effects.removed.push(file.path.clone());
            }
        }
        Own::Nic(_) => draft.changed("summary.config.numEthernetCards"),
        Own::Nothing => {}
    }
    Ok(())
}

const FIXED: [i32; 4] = [keys::VIDEO, keys::KEYBOARD, keys::MOUSE, keys::VMCI];
