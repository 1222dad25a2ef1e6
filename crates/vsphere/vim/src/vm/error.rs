use std::fmt;

use roost_vim_wire::{Fault, MoRef};

use super::clone::CloneSpecError;
use super::customize::CustomizationError;
use crate::{CallClass, CallError, DeviceError, Faulted, Remedy, TaskError, WaitError};

/// What was being done to a VM, folder or pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Step {
    ReadTemplate,
    Read,
    Clone,
    Create,
    LookUp,
    Reconfigure,
    PowerOn,
    PowerOff,
    Reset,
    Suspend,
    ShutDown,
    Reboot,
    Rename,
    MarkTemplate,
    MarkVirtualMachine,
    Destroy,
    Unregister,
    Relocate,
    Customize,
    Upgrade,
    Promote,
    StandBy,
    AcquireTicket,
    CreateSnapshot,
    Revert,
    RemoveSnapshot,
    CreateFolder,
    CreatePool,
    CustomField,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadTemplate => "reading template",
            Self::Read => "reading",
            Self::Clone => "cloning into",
            Self::Create => "creating",
            Self::LookUp => "looking up",
            Self::Reconfigure => "reconfiguring",
            Self::PowerOn => "powering on",
            Self::PowerOff => "powering off",
            Self::Reset => "resetting",
            Self::Suspend => "suspending",
            Self::ShutDown => "shutting down",
            Self::Reboot => "rebooting",
            Self::Rename => "renaming",
            Self::MarkTemplate => "marking as template",
            Self::MarkVirtualMachine => "marking as virtual machine",
            Self::Destroy => "destroying",
            Self::Unregister => "unregistering",
            Self::Relocate => "relocating",
            Self::Customize => "customizing",
            Self::Upgrade => "upgrading the hardware of",
            Self::Promote => "promoting the disks of",
            Self::StandBy => "asking for standby of",
            Self::AcquireTicket => "getting a console ticket for",
            Self::CreateSnapshot => "taking a snapshot of",
            Self::Revert => "reverting",
            Self::RemoveSnapshot => "removing snapshots of",
            Self::CreateFolder => "creating folder",
            Self::CreatePool => "creating resource pool",
            Self::CustomField => "setting a custom field of",
        })
    }
}

/// Why something was not done to a VM. `target` is the name it shall have, or its reference.
#[derive(Debug, thiserror::Error)]
pub enum VmError {
    #[error("{step} {target}")]
    Call { step: Step, target: String, source: CallError },
    #[error("{step} {target}")]
    Task { step: Step, target: String, source: TaskError },
    #[error("{step} {target}")]
    Wait { step: Step, target: String, source: WaitError },
    #[error("the name {name} is taken by {existing}")]
    NameTaken { name: String, existing: MoRef },
    #[error("the clone request for {name}")]
    CloneSpec { name: String, source: CloneSpecError },
    #[error("the devices of {name}")]
    Devices { name: String, source: DeviceError },
    #[error("the customization of {target}")]
    Customization { target: String, source: CustomizationError },
    #[error("{step} {target}: the server said that it is done and named no object")]
    NoResult { step: Step, target: String },
    #[error("{step} {target}: refused, after an earlier attempt that may still come true")]
    Unsettled { step: Step, target: String, source: Box<VmError> },
}

impl VmError {
    pub(crate) fn call(step: Step, target: &impl ToString) -> impl FnOnce(CallError) -> Self {
        let target = target.to_string();
        move |source| Self::Call { step, target, source }
    }

    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Call { source, .. } => source.remedy(),
            Self::Task { source, .. } => source.remedy(),
            Self::Wait { source, .. } => source.remedy(),
            Self::Unsettled { source, .. } => source.remedy(),
            Self::NameTaken { .. }
            | Self::CloneSpec { .. }
            | Self::Devices { .. }
            | Self::Customization { .. }
            | Self::NoResult { .. } => Remedy::GiveUp,
        }
    }

    /// Whether the request was sent and nothing was heard of it: it may be carried out at any later time.
    pub(super) fn is_unanswered(&self) -> bool {
        let is_of_submit = |source: &CallError| {
            matches!(source, CallError::Deadline { class: CallClass::Submit, .. })
        };
        matches!(self, Self::Call { source, .. } if is_of_submit(source))
    }

    /// Whether the server may have done it, or may still do it, although nothing says so.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Call { source, .. } => source.outcome_unknown(),
            Self::Task { source, .. } => match source {
                TaskError::Vanished { .. }
                | TaskError::Deadline { .. }
                | TaskError::Call { .. } => true,
                TaskError::Failed { .. } => false,
            },
            Self::Wait { .. } | Self::NoResult { .. } | Self::Unsettled { .. } => true,
            Self::NameTaken { .. }
            | Self::CloneSpec { .. }
            | Self::Devices { .. }
            | Self::Customization { .. } => false,
        }
    }
}

impl Faulted for VmError {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Call { source, .. } => source.fault(),
            Self::Task { source, .. } => source.fault(),
            Self::Wait { source, .. } => source.fault(),
            Self::Unsettled { source, .. } => source.fault(),
            Self::NameTaken { .. }
            | Self::CloneSpec { .. }
            | Self::Devices { .. }
            | Self::Customization { .. }
            | Self::NoResult { .. } => None,
        }
    }
}
