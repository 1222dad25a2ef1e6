use std::fmt;
use std::time::Duration;

use roost_vim_wire::{Fault, MoRef};

use super::program::EnvironmentError;
use crate::{CallError, Faulted, Remedy, TransferError, WaitError};

/// What was being done in a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuestStep {
    Validate,
    StartProgram,
    ListProcesses,
    Terminate,
    ReadEnvironment,
    Upload,
    Download,
    MakeDirectory,
    ListFiles,
    DeleteFile,
}

impl fmt::Display for GuestStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Validate => "checking the credentials",
            Self::StartProgram => "starting a program",
            Self::ListProcesses => "listing processes",
            Self::Terminate => "ending a process",
            Self::ReadEnvironment => "reading the environment",
            Self::Upload => "uploading a file",
            Self::Download => "downloading a file",
            Self::MakeDirectory => "making a directory",
            Self::ListFiles => "listing files",
            Self::DeleteFile => "deleting a file",
        })
    }
}

/// Why something was not done in a guest.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    #[error("{step} in the guest of {vm}")]
    Call { step: GuestStep, vm: MoRef, source: CallError },
    #[error("{step} in the guest of {vm}: {path}")]
    Transfer { step: GuestStep, vm: MoRef, path: String, source: TransferError },
    #[error("the environment of a program for {vm}")]
    Environment { vm: MoRef, source: EnvironmentError },
    #[error("process {pid} in the guest of {vm} still runs after {after:?}")]
    StillRunning { vm: MoRef, pid: i64, after: Duration },
    /// Guests forget a process some minutes after its end.
    #[error("the guest of {vm} knows nothing of process {pid}, or no longer")]
    ProcessForgotten { vm: MoRef, pid: i64 },
    #[error("waiting for the guest of {vm}")]
    Wait { vm: MoRef, source: WaitError },
}

impl GuestError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Call { source, .. } => source.remedy(),
            Self::Transfer { source, .. } => source.remedy(),
            Self::Wait { source, .. } => source.remedy(),
            Self::Environment { .. } => Remedy::GiveUp,
            Self::StillRunning { .. } => Remedy::Wait,
            Self::ProcessForgotten { .. } => Remedy::Gone,
        }
    }

    /// Whether the guest may have done it although no answer says so. A program is then best looked for before it is started
    /// again.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Call { source, .. } => source.outcome_unknown(),
            Self::Transfer { .. } | Self::StillRunning { .. } | Self::ProcessForgotten { .. } => {
                true
            }
            Self::Environment { .. } | Self::Wait { .. } => false,
        }
    }
}

impl Faulted for GuestError {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Call { source, .. }
            | Self::Transfer { source: TransferError::Call { source }, .. } => source.fault(),
            Self::Wait { source, .. } => source.fault(),
            Self::Transfer { .. }
            | Self::Environment { .. }
            | Self::StillRunning { .. }
            | Self::ProcessForgotten { .. } => None,
        }
    }
}
