//! The devices that every VM has, with the keys that vSphere gives them.

use std::sync::Arc;

use roost_vim_wire::types::{
    Description, DistributedVirtualSwitchPortConnection, VirtualDevice, VirtualDeviceBackingInfo,
    VirtualDeviceConnectInfo,
};
use roost_vim_wire::{Element, MoRef};

use crate::vm::{Device, Disk, Mac, Own};

pub(crate) mod keys {
    pub(crate) const PCI: i32 = 100;
    pub(crate) const IDE: i32 = 200;
    pub(crate) const PS2: i32 = 300;
    pub(crate) const SIO: i32 = 400;
    pub(crate) const VIDEO: i32 = 500;
    pub(crate) const KEYBOARD: i32 = 600;
    pub(crate) const MOUSE: i32 = 700;
    pub(crate) const SCSI: i32 = 1000;
    pub(crate) const DISK: i32 = 2000;
    pub(crate) const CDROM_IDE: i32 = 3000;
    pub(crate) const NIC: i32 = 4000;
    pub(crate) const FLOPPY: i32 = 8000;
    pub(crate) const SERIAL: i32 = 9000;
    pub(crate) const VMCI: i32 = 12_000;
    pub(crate) const SATA: i32 = 15_000;
    pub(crate) const CDROM_SATA: i32 = 16_000;
    pub(crate) const NVME: i32 = 31_000;
    pub(crate) const USB: i32 = 7000;
    pub(crate) const XHCI: i32 = 14_000;
    pub(crate) const TPM: i32 = 11_000;
}

/// The shared bases of the devices that model VMs and templates have.
#[derive(Debug)]
pub(crate) struct StandardDevices {
    fixed: Vec<Arc<VirtualDevice>>,
    pub scsi: Arc<VirtualDevice>,
    pub cdrom: Arc<VirtualDevice>,
    disk: Arc<VirtualDevice>,
}

impl StandardDevices {
    pub(crate) fn new() -> Self {
        let fixed = [
            bus("VirtualIDEController", keys::IDE, 0, "IDE 0"),
            bus("VirtualIDEController", keys::IDE + 1, 1, "IDE 1"),
            bus("VirtualPS2Controller", keys::PS2, 0, "PS2 controller 0"),
            bus("VirtualPCIController", keys::PCI, 0, "PCI controller 0"),
            bus("VirtualSIOController", keys::SIO, 0, "SIO controller 0"),
            attached("VirtualKeyboard", keys::KEYBOARD, "Keyboard", (keys::PS2, 0)),
            attached("VirtualPointingDevice", keys::MOUSE, "Pointing device", (keys::PS2, 1)),
            video_card(),
            attached("VirtualMachineVMCIDevice", keys::VMCI, "VMCI device", (keys::PCI, 17)),
        ];
        Self {
            fixed: fixed.map(Arc::new).into(),
            scsi: Arc::new(VirtualDevice {
                shared_bus: Some("noSharing".into()),
                scsi_ctlr_unit_number: Some(7),
                hot_add_remove: Some(true),
                controller_key: Some(keys::PCI),
                unit_number: Some(3),
                ..bus("ParaVirtualSCSIController", keys::SCSI, 0, "SCSI controller 0")
            }),
            cdrom: Arc::new(cdrom()),
            disk: Arc::new(VirtualDevice {
                backing: Some(VirtualDeviceBackingInfo {
                    disk_mode: Some("persistent".into()),
                    split: Some(false),
                    write_through: Some(false),
                    ..VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo")
                }),
                ..attached("VirtualDisk", keys::DISK, "Hard disk 1", (keys::SCSI, 0))
            }),
        }
    }

    /// The devices that no VM can be without.
    pub(crate) fn fixed(&self) -> Vec<Device> {
        self.fixed.iter().map(Device::shared).collect()
    }

    /// A whole VM: fixed devices, controller, CD drive, one disk and one card.
    pub(crate) fn complete(&self, disk: Disk, nic: &Arc<VirtualDevice>, mac: Mac) -> Vec<Device> {
        let mut devices = self.fixed();
        devices.extend([&self.scsi, &self.cdrom].map(Device::shared));
        devices.push(Device { base: Arc::clone(&self.disk), own: Own::Disk(disk) });
        devices.push(Device { base: Arc::clone(nic), own: Own::Nic(mac) });
        devices
    }
}

/// A card of this class on this network, as the first of its VM.
pub(crate) fn nic(class: &str, backing: VirtualDeviceBackingInfo) -> VirtualDevice {
    VirtualDevice {
        backing: Some(backing),
        connectable: Some(VirtualDeviceConnectInfo {
            start_connected: true,
            allow_guest_control: true,
            connected: true,
            status: Some("untried".into()),
            ..Default::default()
        }),
        address_type: Some("assigned".into()),
        wake_on_lan_enabled: Some(true),
        ..attached(class, keys::NIC, "Network adapter 1", (keys::PCI, 7))
    }
}

pub(crate) fn network_backing(name: &str, network: &MoRef) -> VirtualDeviceBackingInfo {
    VirtualDeviceBackingInfo {
        device_name: Some(name.into()),
        network: Some(network.clone()),
        ..VirtualDeviceBackingInfo::of("VirtualEthernetCardNetworkBackingInfo")
    }
}

pub(crate) fn port_backing(switch_uuid: &str, port_group: &MoRef) -> VirtualDeviceBackingInfo {
    VirtualDeviceBackingInfo {
        port: Some(DistributedVirtualSwitchPortConnection {
            switch_uuid: switch_uuid.into(),
            portgroup_key: Some(port_group.id.as_ref().into()),
            ..Default::default()
        }),
        ..VirtualDeviceBackingInfo::of("VirtualEthernetCardDistributedVirtualPortBackingInfo")
    }
}

fn described(class: &str, key: i32, label: &str) -> VirtualDevice {
    let info = Description { label: label.into(), summary: label.into() };
    VirtualDevice { key, device_info: Some(info), ..VirtualDevice::of(class) }
}

fn bus(class: &str, key: i32, number: i32, label: &str) -> VirtualDevice {
    VirtualDevice { bus_number: Some(number), ..described(class, key, label) }
}

fn attached(class: &str, key: i32, label: &str, (controller, unit): (i32, i32)) -> VirtualDevice {
    VirtualDevice {
        controller_key: Some(controller),
        unit_number: Some(unit),
        ..described(class, key, label)
    }
}

fn video_card() -> VirtualDevice {
    let card = attached("VirtualMachineVideoCard", keys::VIDEO, "Video card", (keys::PCI, 0));
    let leaf = |name, text: &str| Element::leaf(name, text);
    let rest = vec![
        leaf("videoRamSizeInKB", "4096"),
        leaf("numDisplays", "1"),
        leaf("useAutoDetect", "false"),
        leaf("enable3DSupport", "false"),
        leaf("use3dRenderer", "automatic"),
    ];
    VirtualDevice { rest, ..card }
}

fn cdrom() -> VirtualDevice {
    VirtualDevice {
        backing: Some(VirtualDeviceBackingInfo {
            device_name: Some(String::new()),
            use_auto_detect: Some(false),
            rest: vec![Element::leaf("exclusive", "false")],
            ..VirtualDeviceBackingInfo::of("VirtualCdromRemotePassthroughBackingInfo")
        }),
        connectable: Some(VirtualDeviceConnectInfo {
            start_connected: false,
            allow_guest_control: true,
            connected: false,
            status: Some("untried".into()),
            ..Default::default()
        }),
        ..attached("VirtualCdrom", keys::CDROM_IDE, "CD/DVD drive 1", (keys::IDE, 0))
    }
}
