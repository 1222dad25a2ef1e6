use std::fmt;

use roost_vim_wire::Fault;

use crate::{CallError, Faulted, Remedy, TaskError, TransferError};

/// What was being done with a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileStep {
    Open,
    MakeDirectory,
    Create,
    List,
    Delete,
    Move,
    Copy,
    Upload,
    Verify,
    Download,
}

impl fmt::Display for FileStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "opening datastore",
            Self::MakeDirectory => "making directory",
            Self::Create => "creating",
            Self::List => "listing",
            Self::Delete => "deleting",
            Self::Move => "moving into place",
            Self::Copy => "copying",
            Self::Upload => "uploading",
            Self::Verify => "verifying",
            Self::Download => "downloading",
        })
    }
}

/// Why something was not done with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{step} {path}")]
    Call { step: FileStep, path: String, source: CallError },
    #[error("{step} {path}")]
    Task { step: FileStep, path: String, source: TaskError },
    #[error("{step} {path}")]
    Transfer { step: FileStep, path: String, source: TransferError },
    /// Somebody else writes it, or the server lost some of it.
    #[error("{path} has {has} bytes on the datastore, {wanted} were sent")]
    WrongSize { path: String, has: u64, wanted: u64 },
    #[error("{path} is not on the datastore after it was sent")]
    Lost { path: String },
    #[error("{path} is a directory")]
    IsDirectory { path: String },
}

impl FileError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Call { source, .. } => source.remedy(),
            Self::Task { source, .. } => source.remedy(),
            Self::Transfer { source, .. } => source.remedy(),
            Self::WrongSize { .. } | Self::Lost { .. } => Remedy::Retry,
            Self::IsDirectory { .. } => Remedy::GiveUp,
        }
    }
}

impl Faulted for FileError {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Call { source, .. }
            | Self::Transfer { source: TransferError::Call { source }, .. } => source.fault(),
            Self::Task { source, .. } => source.fault(),
            Self::Transfer { .. }
            | Self::WrongSize { .. }
            | Self::Lost { .. }
            | Self::IsDirectory { .. } => None,
        }
    }
}
