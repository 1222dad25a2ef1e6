use roost_vim_wire::types::VirtualDevice;

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
    pub(crate) const OWN_UNIT: i32 = 7;
    pub(crate) const UNITS: i32 = 16;

    fn class(self) -> &'static str {
        match self {
            Self::ParaVirtual => "ParaVirtualSCSIController",
            Self::LsiLogic => "VirtualLsiLogicController",
            Self::LsiLogicSas => "VirtualLsiLogicSASController",
            Self::BusLogic => "VirtualBusLogicController",
        }
    }

    pub(crate) fn device(self, key: i32) -> VirtualDevice {
        VirtualDevice {
            key,
            bus_number: Some(0),
            shared_bus: Some("noSharing".into()),
            scsi_ctlr_unit_number: Some(Self::OWN_UNIT),
            ..VirtualDevice::of(self.class())
        }
    }
}

pub(crate) fn new_ide(key: i32) -> VirtualDevice {
    VirtualDevice { key, bus_number: Some(0), ..VirtualDevice::of("VirtualIDEController") }
}

pub(crate) fn new_sata(key: i32) -> VirtualDevice {
    VirtualDevice { key, bus_number: Some(0), ..VirtualDevice::of("VirtualAHCIController") }
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
