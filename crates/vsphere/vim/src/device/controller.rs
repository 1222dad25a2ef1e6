use roost_vim_wire::types::VirtualDevice;

use super::DeviceError;

/// The SCSI adapter that a guest sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ScsiController {
    /// For any Linux of this decade.
    #[default]
    ParaVirtual,
    LsiLogic,
    LsiLogicSas,
    BusLogic,
}

impl ScsiController {
    /// The adapter itself sits on unit 7 of its bus.
    const OWN_UNIT: i32 = 7;

    fn class(self) -> &'static str {
        match self {
            Self::ParaVirtual => "ParaVirtualSCSIController",
            Self::LsiLogic => "VirtualLsiLogicController",
            Self::LsiLogicSas => "VirtualLsiLogicSASController",
            Self::BusLogic => "VirtualBusLogicController",
        }
    }

    fn device(self, key: i32) -> VirtualDevice {
        VirtualDevice {
            key,
            bus_number: Some(0),
            shared_bus: Some("noSharing".into()),
            scsi_ctlr_unit_number: Some(Self::OWN_UNIT),
            ..VirtualDevice::of(self.class())
        }
    }
}

/// The controller that the disks of a new VM hang on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskController {
    Scsi(ScsiController),
    Nvme,
    Sata,
    Ide,
}

impl Default for DiskController {
    fn default() -> Self {
        Self::Scsi(ScsiController::default())
    }
}

impl DiskController {
    pub(crate) fn device(self, key: i32) -> VirtualDevice {
        match self {
            Self::Scsi(scsi) => scsi.device(key),
            Self::Nvme => bus("VirtualNVMEController", key, 0),
            Self::Sata => new_sata(key),
            Self::Ide => new_ide(key, 0),
        }
    }

    /// The unit of the disk with this index: all but the one where a SCSI adapter sits.
    pub(crate) fn unit(self, index: usize) -> Result<i32, DeviceError> {
        let (count, taken) = match self {
            Self::Scsi(_) => (16, Some(ScsiController::OWN_UNIT)),
            Self::Nvme => (15, None),
            Self::Sata => (30, None),
            Self::Ide => (2, None),
        };
        let units = (0..count).filter(|unit| Some(*unit) != taken);
        let limit = units.clone().count();
        units.clone().nth(index).ok_or(DeviceError::TooManyDisks { wanted: index + 1, limit })
    }

    /// The key that the server gives the disk on unit 0 of the first such controller.
    pub(crate) fn first_disk_key(self) -> i32 {
        match self {
            Self::Scsi(_) => 2000,
            Self::Ide => 3000,
            Self::Sata => 16_000,
            Self::Nvme => 32_000,
        }
    }
}

fn bus(class: &str, key: i32, number: i32) -> VirtualDevice {
    VirtualDevice { key, bus_number: Some(number), ..VirtualDevice::of(class) }
}

pub(crate) fn new_ide(key: i32, number: i32) -> VirtualDevice {
    bus("VirtualIDEController", key, number)
}

pub(crate) fn new_sata(key: i32) -> VirtualDevice {
    bus("VirtualAHCIController", key, 0)
}

/// Keys for devices that do not exist yet. They are negative, and other devices of the same request may refer to them; the
/// server gives the real ones.
#[derive(Debug)]
pub(crate) struct TemporaryKeys(i32);

impl TemporaryKeys {
    pub(crate) fn new() -> Self {
        Self(-200)
    }

    pub(crate) fn next(&mut self) -> i32 {
        self.0 -= 1;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_leave_out_a_scsi_adapters_own() {
        let scsi = DiskController::default();
        let units: Vec<_> = (0..15).map(|index| scsi.unit(index).unwrap()).collect();
        assert_eq!(units, [0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15]);
        for (controller, limit) in [
            (scsi, 15),
            (DiskController::Nvme, 15),
            (DiskController::Sata, 30),
            (DiskController::Ide, 2),
        ] {
            let too_many = Err(DeviceError::TooManyDisks { wanted: limit + 1, limit });
            assert_eq!(controller.unit(limit), too_many, "{controller:?}");
            assert!(controller.unit(limit - 1).is_ok(), "{controller:?}");
        }
    }
}
