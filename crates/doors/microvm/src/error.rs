use std::time::Duration;

/// Why a runtime did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    #[error("VM {vm} does not exist")]
    VmNotFound { vm: String },
    #[error("snapshot {snapshot} does not exist")]
    SnapshotNotFound { snapshot: String },
    #[error("image {image} does not exist")]
    ImageNotFound { image: String },
    #[error("a VM called {name} exists already")]
    NameTaken { name: String },
    #[error("a snapshot called {name} exists already")]
    SnapshotNameTaken { name: String },
    /// The guest has no daemon to run programs.
    #[error("the guest of {vm} runs no commands: {detail}")]
    NoGuestDaemon { vm: String, detail: String },
    #[error("{what} is not offered by this runtime")]
    NotSupported { what: &'static str },
    #[error("{command}: {detail}")]
    Failed { command: String, detail: String },
    #[error("{command} took longer than {after:?} and was ended")]
    Overdue { command: String, after: Duration },
    #[error("starting {command}")]
    Start { command: String, source: std::io::Error },
    #[error("talking to {command}")]
    Pipe { command: String, source: std::io::Error },
    #[error("{command} printed what is not the JSON expected: {printed}")]
    Unreadable { command: String, printed: String, source: serde_json::Error },
}

impl RuntimeError {
    /// Whether the VM is surely not there. Anything else leaves it open.
    pub fn is_vm_gone(&self) -> bool {
        matches!(self, Self::VmNotFound { .. })
    }

    pub fn is_snapshot_gone(&self) -> bool {
        matches!(self, Self::SnapshotNotFound { .. })
    }
}
