use serde::{Deserialize, Serialize};

use super::ImageReference;
use crate::api::{GoDuration, Rest};

data! {
    pub struct Hardware {
        pub cdrom: Vec<Cdrom>,
        pub ide_controllers: Vec<BusController>,
        pub nvme_controllers: Vec<NvmeController>,
        pub sata_controllers: Vec<BusController>,
        pub scsi_controllers: Vec<ScsiController>,
    }

    pub struct BootOptions {
        pub firmware: Option<Firmware>,
        pub boot_delay: Option<GoDuration>,
        pub boot_order: Vec<BootDevice>,
        /// `Enabled` or `Disabled`; the schema takes any text.
        pub boot_retry: Option<String>,
        pub boot_retry_delay: Option<GoDuration>,
        pub efi_secure_boot: Option<Switch>,
        pub network_boot_protocol: Option<NetworkBootProtocol>,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cdrom {
    pub name: String,
    pub image: ImageReference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_type: Option<ControllerType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_bus_number: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_number: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connected: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_guest_control: Option<bool>,
    #[serde(flatten)]
    pub rest: Rest,
}

impl Cdrom {
    pub fn is_connected(&self) -> bool {
        self.connected.unwrap_or(true)
    }

    pub fn is_guest_controlled(&self) -> bool {
        self.allow_guest_control.unwrap_or(true)
    }
}

/// An IDE or SATA controller: nothing can be said of it but where it is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BusController {
    pub bus_number: i32,
    #[serde(flatten)]
    pub rest: Rest,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NvmeController {
    pub bus_number: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing_mode: Option<ControllerSharing>,
    #[serde(flatten)]
    pub rest: Rest,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScsiController {
    pub bus_number: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing_mode: Option<ControllerSharing>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ScsiType>,
    #[serde(flatten)]
    pub rest: Rest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootDevice {
    #[serde(rename = "type")]
    pub type_: BootDeviceType,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

words! {
    pub enum ControllerType {
        Ide = "IDE",
        Nvme = "NVME",
        Scsi = "SCSI",
        Sata = "SATA",
    }

    pub enum ControllerSharing {
        None = "None",
        Physical = "Physical",
        Virtual = "Virtual",
    }

    pub enum ScsiType {
        ParaVirtual = "ParaVirtual",
        BusLogic = "BusLogic",
        LsiLogic = "LsiLogic",
        LsiLogicSas = "LsiLogicSAS",
    }

    pub enum BootDeviceType {
        Disk = "Disk",
        Network = "Network",
        CdRom = "CDRom",
    }

    pub enum Firmware {
        Bios = "bios",
        Efi = "efi",
    }

    pub enum Switch {
        Enabled = "Enabled",
        Disabled = "Disabled",
    }

    pub enum NetworkBootProtocol {
        Ip4 = "IP4",
        Ip6 = "IP6",
    }
}

/// SCSI controllers keep one unit for themselves.
const SCSI_RESERVED_UNIT: i32 = 7;

impl ControllerType {
    /// How many controllers of this type a VM can have.
    pub fn max_controllers(self) -> i32 {
        match self {
            Self::Ide => 2,
            Self::Nvme | Self::Scsi | Self::Sata => 4,
        }
    }

    /// May a device sit at this unit? The number of slots of a SCSI controller depends on its type.
    pub fn has_unit(self, unit: i32, scsi: ScsiType) -> bool {
        match self {
            Self::Ide => (0..2).contains(&unit),
            Self::Sata => (0..30).contains(&unit),
            Self::Nvme => (0..64).contains(&unit),
            // One more than there are slots, because one number is reserved.
            Self::Scsi => {
                let numbers = if scsi == ScsiType::ParaVirtual { 65 } else { 16 };
                (0..numbers).contains(&unit) && unit != SCSI_RESERVED_UNIT
            }
        }
    }
}
