//! Devices of a VM as requests change them. Everything here is pure: it turns a wish and a device that was read into the wire's
//! `VirtualDeviceConfigSpec`.

mod cdrom;
mod controller;
mod disk;
mod network;

use roost_vim_wire::types::{
    VirtualDevice, VirtualDeviceConfigSpec, VirtualDeviceConfigSpecFileOperation as FileOperation,
    VirtualDeviceConfigSpecOperation as Operation, VirtualDeviceConnectInfo,
};

pub(crate) use cdrom::new_cdrom;
pub use cdrom::{CdromBus, eject, insert_iso};
pub use controller::{DiskController, ScsiController};
pub(crate) use controller::{TemporaryKeys, new_ide, new_sata};
pub(crate) use disk::first_disk;
pub use disk::{NewDisk, Provisioning, grow_disk};
pub use network::{Card, NetworkBacking, NetworkError, NewNic, UnknownCard, move_nic};

/// Why a device cannot be changed as wished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    #[error("disk {disk} has {has_bytes} bytes and cannot shrink to {wanted_bytes}")]
    Shrink { disk: String, has_bytes: u64, wanted_bytes: u64 },
    #[error("{wanted_bytes} bytes are more than a disk can have")]
    TooLarge { wanted_bytes: u64 },
    #[error("its disk controller takes {limit} disks, not {wanted}")]
    TooManyDisks { wanted: usize, limit: usize },
}

pub(crate) fn add(device: VirtualDevice) -> VirtualDeviceConfigSpec {
    VirtualDeviceConfigSpec { operation: Some(Operation::Add), device, ..Default::default() }
}

/// Adds a device together with a new file behind it.
pub(crate) fn add_with_file(device: VirtualDevice) -> VirtualDeviceConfigSpec {
    VirtualDeviceConfigSpec { file_operation: Some(FileOperation::Create), ..add(device) }
}

pub(crate) fn edit(device: VirtualDevice) -> VirtualDeviceConfigSpec {
    VirtualDeviceConfigSpec { operation: Some(Operation::Edit), device, ..Default::default() }
}

/// What becomes of the file behind a device that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackingFile {
    Keep,
    Delete,
}

/// Removes a device.
pub fn remove_device(device: &VirtualDevice, file: BackingFile) -> VirtualDeviceConfigSpec {
    VirtualDeviceConfigSpec {
        operation: Some(Operation::Remove),
        file_operation: (file == BackingFile::Delete).then_some(FileOperation::Destroy),
        device: VirtualDevice { key: device.key, ..VirtualDevice::of(&device.class) },
        ..Default::default()
    }
}

/// The label that a person sees, such as `Hard disk 1`; the key where there is none.
pub(crate) fn label(device: &VirtualDevice) -> String {
    match &device.device_info {
        Some(info) if !info.label.is_empty() => info.label.clone(),
        _ => format!("with key {}", device.key),
    }
}

fn connected_at_start() -> VirtualDeviceConnectInfo {
    VirtualDeviceConnectInfo {
        start_connected: true,
        allow_guest_control: true,
        connected: true,
        ..Default::default()
    }
}

/// What a request writes for one element, for tests that compare it with recorded traffic.
#[cfg(test)]
pub(crate) fn written(name: &str, field: &impl roost_vim_wire::Field) -> String {
    let mut writer = roost_vim_wire::xml::Writer::default();
    field.write(&mut writer, name);
    String::from_utf8(writer.into_bytes()).unwrap()
}

/// XML without the line breaks and indentation that make a sample readable.
#[cfg(test)]
pub(crate) fn compact(sample: &str) -> String {
    sample.lines().map(str::trim_start).collect()
}
