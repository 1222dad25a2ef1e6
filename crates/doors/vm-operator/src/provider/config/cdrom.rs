//! Drives: which image is in, and whether it is connected.

use roost_vim::wire::types::{
    VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecOperation as Operation, VirtualDeviceConnectInfo,
    VirtualMachineConfigSpec,
};
use roost_vim::{BackingFile, remove_device};

use super::super::seen::Seen;
use super::Reach;

const FIRST_KEY: i32 = -600;

/// A drive with an image in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedCdrom {
    /// `[datastore] path`.
    pub(crate) file: String,
    pub(crate) connected: bool,
    pub(crate) guest_control: bool,
}

pub(super) fn differences(
    wanted: &[WantedCdrom],
    seen: &Seen,
    reach: Reach,
    spec: &mut VirtualMachineConfigSpec,
) {
    let drives: Vec<&VirtualDevice> =
        seen.devices().iter().filter(|device| device.is_cdrom()).collect();
    let file = |drive: &VirtualDevice| {
        drive.backing.as_ref().and_then(|backing| backing.file_name.clone())
    };
    let mut free: Vec<&VirtualDevice> = Vec::new();
    let mut missing: Vec<&WantedCdrom> = wanted.iter().collect();
    for drive in drives {
        let found = missing.iter().position(|wanted| file(drive).as_ref() == Some(&wanted.file));
        match found {
            Some(index) => spec.device_change.extend(connected(drive, missing.remove(index))),
            None => free.push(drive),
        }
    }
    if reach != Reach::Everything {
        return;
    }
    let is_ours = |drive: &&VirtualDevice| {
        let backing = drive.backing.as_ref();
        backing.is_some_and(|backing| backing.class == "VirtualCdromIsoBackingInfo")
    };
    let surplus = free.iter().copied().filter(is_ours);
    spec.device_change.extend(surplus.map(|drive| remove_device(drive, BackingFile::Keep)));
    let controllers: Vec<&VirtualDevice> = seen
        .devices()
        .iter()
        .filter(|device| {
            matches!(device.class.as_str(), "VirtualIDEController" | "VirtualAHCIController")
        })
        .collect();
    let is_missing = !missing.is_empty();
    let controller = controllers.first().map_or(FIRST_KEY - 1, |known| known.key);
    if is_missing && controllers.is_empty() {
        spec.device_change.push(add(VirtualDevice {
            key: controller,
            bus_number: Some(0),
            ..VirtualDevice::of("VirtualIDEController")
        }));
    }
    for (index, wanted) in missing.into_iter().enumerate() {
        let key = FIRST_KEY - 10 - i32::try_from(index).unwrap_or_default();
        spec.device_change.push(add(new_drive(wanted, key, controller)));
    }
}

fn add(device: VirtualDevice) -> VirtualDeviceConfigSpec {
    VirtualDeviceConfigSpec {
        operation: Some(Operation::Add),
        device,
        ..VirtualDeviceConfigSpec::default()
    }
}

pub(crate) fn new_drive(wanted: &WantedCdrom, key: i32, controller: i32) -> VirtualDevice {
    VirtualDevice {
        key,
        controller_key: Some(controller),
        backing: Some(VirtualDeviceBackingInfo {
            file_name: Some(wanted.file.clone()),
            ..VirtualDeviceBackingInfo::of("VirtualCdromIsoBackingInfo")
        }),
        connectable: Some(VirtualDeviceConnectInfo {
            start_connected: wanted.connected,
            allow_guest_control: wanted.guest_control,
            connected: wanted.connected,
            ..VirtualDeviceConnectInfo::default()
        }),
        ..VirtualDevice::of("VirtualCdrom")
    }
}

fn connected(drive: &VirtualDevice, wanted: &WantedCdrom) -> Option<VirtualDeviceConfigSpec> {
    let is = drive.connectable.clone().unwrap_or_default();
    if is.start_connected == wanted.connected && is.allow_guest_control == wanted.guest_control {
        return None;
    }
    let device = VirtualDevice {
        connectable: Some(VirtualDeviceConnectInfo {
            start_connected: wanted.connected,
            connected: wanted.connected,
            allow_guest_control: wanted.guest_control,
            ..is
        }),
        ..drive.clone()
    };
    Some(VirtualDeviceConfigSpec {
        operation: Some(Operation::Edit),
        device,
        ..VirtualDeviceConfigSpec::default()
    })
}

/// Drives for a VM that has none, with the controller that they hang on.
pub(crate) fn new_drives(wanted: &[WantedCdrom]) -> Vec<VirtualDeviceConfigSpec> {
    if wanted.is_empty() {
        return Vec::new();
    }
    let controller = VirtualDevice {
        key: FIRST_KEY - 1,
        bus_number: Some(0),
        ..VirtualDevice::of("VirtualIDEController")
    };
    let mut all = vec![add(controller)];
    for (index, wanted) in wanted.iter().enumerate() {
        let unit = i32::try_from(index).unwrap_or_default();
        let mut drive = new_drive(wanted, FIRST_KEY - 10 - unit, FIRST_KEY - 1);
        drive.unit_number = Some(unit);
        all.push(add(drive));
    }
    all
}
