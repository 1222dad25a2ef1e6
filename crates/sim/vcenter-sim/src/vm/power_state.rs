use roost_vim_wire::types::VirtualMachinePowerState;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    Off,
    On,
    Suspended,
}

impl Power {
    pub(crate) fn wire(self) -> VirtualMachinePowerState {
        match self {
            Self::Off => VirtualMachinePowerState::PoweredOff,
            Self::On => VirtualMachinePowerState::PoweredOn,
            Self::Suspended => VirtualMachinePowerState::Suspended,
        }
    }
}
