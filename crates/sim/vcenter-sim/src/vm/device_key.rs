//! The numbers that vSphere gives devices.

use roost_vim_wire::types::VirtualDevice;

use crate::vm::{Config, keys};

/// What a controller drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bus {
    Pci,
    Ide,
    Ps2,
    Sio,
    Scsi,
    Sata,
    Nvme,
    Usb,
    Xhci,
}

impl Bus {
    /// Whether every VM has it from the start.
    pub(crate) fn is_fixed(self) -> bool {
        matches!(self, Self::Pci | Self::Ide | Self::Ps2 | Self::Sio)
    }

    pub(crate) fn first_key(self) -> i32 {
        match self {
            Self::Pci => keys::PCI,
            Self::Ide => keys::IDE,
            Self::Ps2 => keys::PS2,
            Self::Sio => keys::SIO,
            Self::Scsi => keys::SCSI,
            Self::Sata => keys::SATA,
            Self::Nvme => keys::NVME,
            Self::Usb => keys::USB,
            Self::Xhci => keys::XHCI,
        }
    }

    /// How many of the kind a VM can have.
    pub(crate) fn most(self) -> i32 {
        match self {
            Self::Scsi | Self::Sata | Self::Nvme => 4,
            Self::Ide => 2,
            Self::Pci | Self::Ps2 | Self::Sio | Self::Usb | Self::Xhci => 1,
        }
    }

    /// How many devices one of them drives.
    pub(crate) fn units(self) -> i32 {
        match self {
            Self::Ide => 2,
            Self::Sata => 30,
            Self::Nvme => 15,
            Self::Scsi => 16,
            Self::Pci | Self::Ps2 | Self::Sio | Self::Usb | Self::Xhci => 32,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pci => "PCI",
            Self::Ide => "IDE",
            Self::Ps2 => "PS2",
            Self::Sio => "SIO",
            Self::Scsi => "SCSI",
            Self::Sata => "SATA",
            Self::Nvme => "NVME",
            Self::Usb => "USB",
            Self::Xhci => "USB xHCI",
        }
    }
}

/// The bus of a controller class; `None` for any other device.
pub(crate) fn bus_of(class: &str) -> Option<Bus> {
    Some(match class {
        "VirtualPCIController" => Bus::Pci,
        "VirtualIDEController" => Bus::Ide,
        "VirtualPS2Controller" => Bus::Ps2,
        "VirtualSIOController" => Bus::Sio,
        "ParaVirtualSCSIController"
        | "VirtualLsiLogicController"
        | "VirtualLsiLogicSASController"
        | "VirtualBusLogicController"
        | "VirtualSCSIController" => Bus::Scsi,
        "VirtualAHCIController" | "VirtualSATAController" => Bus::Sata,
        "VirtualNVMEController" => Bus::Nvme,
        "VirtualUSBController" => Bus::Usb,
        "VirtualUSBXHCIController" => Bus::Xhci,
        _ => return None,
    })
}

/// The key of a new device whose controller and unit are known.
pub(crate) fn next_key(config: &Config, device: &VirtualDevice) -> i32 {
    let is_free = |key: &i32| config.device(*key).is_none();
    let controller = device.controller_key.and_then(|key| config.device(key));
    let unit = device.unit_number.unwrap_or(0).max(0);
    let by_place = controller.and_then(|controller| {
        let number = controller.base.bus_number.unwrap_or(0);
        match bus_of(&controller.base.class)? {
            Bus::Scsi if device.is_disk() => Some(keys::DISK + number * 16 + unit),
            Bus::Ide => Some(keys::CDROM_IDE + number * 2 + unit),
            Bus::Sata => Some(keys::CDROM_SATA + number * 30 + unit),
            Bus::Nvme => Some(keys::NVME + 1000 + number * 15 + unit),
            _ => None,
        }
    });
    let first = match device.class.as_str() {
        _ if device.is_nic() => keys::NIC,
        _ if device.is_disk() => keys::DISK,
        _ if device.is_cdrom() => keys::CDROM_IDE,
        "VirtualFloppy" => keys::FLOPPY,
        "VirtualSerialPort" => keys::SERIAL,
        "VirtualTPM" => keys::TPM,
        _ => 13_000,
    };
    by_place.filter(is_free).unwrap_or_else(|| (first..first + 1000).find(is_free).unwrap_or(first))
}
