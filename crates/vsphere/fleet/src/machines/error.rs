use std::error::Error;
use std::time::Duration;

use roost_vim::wire::Fault;
use roost_vim::{CallError, Faulted, FileError, GuestError, Remedy, RestError, TaskError, VmError};

use crate::{Phase, VmId};

/// Why something was not done to a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    #[error("{machine}: {phase} took longer than {after:?}{seen}")]
    Overdue {
        phase: Phase,
        machine: String,
        after: Duration,
        /// What was seen last, in words that follow on; may be empty.
        seen: String,
    },
    /// The cause names what was done.
    #[error("{machine}")]
    Vm { phase: Phase, machine: String, source: VmError },
    #[error("{machine}: {phase}")]
    Task { phase: Phase, machine: String, source: TaskError },
    #[error("{machine}: {phase}")]
    Call { phase: Phase, machine: String, source: CallError },
    #[error("{machine}: {phase}")]
    Guest { phase: Phase, machine: String, source: GuestError },
    #[error("{machine}: {phase}")]
    Rest { phase: Phase, machine: String, source: RestError },
    #[error("{machine}: {phase}")]
    File { phase: Phase, machine: String, source: FileError },
    /// What was to be asked for cannot be.
    #[error("{machine}: {phase}")]
    Spec { phase: Phase, machine: String, source: Box<dyn Error + Send + Sync> },
    #[error("{machine}: {phase}: {vm} is powered off")]
    PoweredOff { phase: Phase, machine: String, vm: VmId },
    #[error("{machine}: {phase}: {vm} is gone")]
    Gone { phase: Phase, machine: String, vm: VmId },
    #[error("{machine}: {phase}: somebody else changed {vm}")]
    Changed { phase: Phase, machine: String, vm: VmId },
    #[error("{machine}: {phase}: {vm} is not ours")]
    Foreign { phase: Phase, machine: String, vm: VmId },
    #[error("{machine}: {phase}: the script ended with exit code {code}")]
    Exit { phase: Phase, machine: String, code: i32 },
    #[error("{machine}: {phase}: nobody waits for it any more: {why}")]
    Unwanted { phase: Phase, machine: String, why: String },
    /// A VM was to be made, and surely there is none.
    #[error(transparent)]
    NotMade(Box<MachineError>),
}

impl MachineError {
    pub fn vm(phase: Phase, machine: &str) -> impl FnOnce(VmError) -> Self {
        let machine = machine.to_owned();
        move |source| Self::Vm { phase, machine, source }
    }

    pub fn guest(phase: Phase, machine: &str) -> impl FnOnce(GuestError) -> Self {
        let machine = machine.to_owned();
        move |source| Self::Guest { phase, machine, source }
    }

    pub(super) fn task(phase: Phase, machine: &str) -> impl FnOnce(TaskError) -> Self {
        let machine = machine.to_owned();
        move |source| Self::Task { phase, machine, source }
    }

    pub(super) fn call(phase: Phase, machine: &str) -> impl FnOnce(CallError) -> Self {
        let machine = machine.to_owned();
        move |source| Self::Call { phase, machine, source }
    }

    pub fn phase(&self) -> Phase {
        match self {
            Self::Overdue { phase, .. }
            | Self::Vm { phase, .. }
            | Self::Task { phase, .. }
            | Self::Call { phase, .. }
            | Self::Guest { phase, .. }
            | Self::Rest { phase, .. }
            | Self::File { phase, .. }
            | Self::Spec { phase, .. }
            | Self::PoweredOff { phase, .. }
            | Self::Gone { phase, .. }
            | Self::Changed { phase, .. }
            | Self::Foreign { phase, .. }
            | Self::Exit { phase, .. }
            | Self::Unwanted { phase, .. } => *phase,
            Self::NotMade(why) => why.phase(),
        }
    }

    /// Whether a VM was to be made, and surely there is none.
    pub fn nothing_made(&self) -> bool {
        matches!(self, Self::NotMade(_))
    }

    /// Whether the VM does not exist, or no longer.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone { .. })
            || self.fault().is_some_and(|fault| fault.is("ManagedObjectNotFound"))
    }

    /// Whether it may have been done, or may yet be, although nothing says so.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Overdue { .. } => true,
            Self::Vm { source, .. } => source.outcome_unknown(),
            Self::Task { source, .. } => source.outcome_unknown(),
            Self::Call { source, .. } => source.outcome_unknown(),
            Self::Guest { source, .. } => source.outcome_unknown(),
            Self::Rest { source, .. } => source.outcome_unknown(),
            // A file is no machine, and is written anew.
            Self::File { .. }
            | Self::Spec { .. }
            | Self::PoweredOff { .. }
            | Self::Gone { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. }
            | Self::Exit { .. }
            | Self::Unwanted { .. }
            | Self::NotMade(_) => false,
        }
    }

    /// Whether the way to the server was in trouble, and not what was asked of it.
    pub fn is_of_link(&self) -> bool {
        if let Self::NotMade(why) = self {
            return why.is_of_link();
        }
        matches!(self.remedy(), Some(Remedy::Retry | Remedy::Relogin)) && self.fault().is_none()
    }

    /// Whether the same may succeed when it is tried again soon. A server that is away, a full host, a task in the way: these pass. A VM that
    /// asks a person, or is in a state that nobody here changes, does not.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Overdue { .. } => true,
            Self::NotMade(why) => why.may_pass(),
            _ => {
                let stays =
                    |fault: &Fault| fault.is("QuestionPending") || fault.is("InvalidPowerState");
                matches!(self.remedy(), Some(Remedy::Retry | Remedy::Wait | Remedy::Relogin))
                    && !self.fault().is_some_and(stays)
            }
        }
    }

    /// What the server's own error asks for.
    fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Vm { source, .. } => Some(source.remedy()),
            Self::Task { source, .. } => Some(source.remedy()),
            Self::Call { source, .. } => Some(source.remedy()),
            Self::Guest { source, .. } => Some(source.remedy()),
            Self::Rest { source, .. } => Some(source.remedy()),
            Self::File { source, .. } => Some(source.remedy()),
            Self::Overdue { .. }
            | Self::Spec { .. }
            | Self::PoweredOff { .. }
            | Self::Gone { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. }
            | Self::Exit { .. }
            | Self::Unwanted { .. }
            | Self::NotMade(_) => None,
        }
    }

    /// What the server said of it, if it did.
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Vm { source, .. } => source.fault(),
            Self::Task { source, .. } => source.fault(),
            Self::Call { source, .. } => source.fault(),
            Self::Guest { source, .. } => source.fault(),
            Self::File { source, .. } => source.fault(),
            Self::Rest { .. }
            | Self::Overdue { .. }
            | Self::Spec { .. }
            | Self::PoweredOff { .. }
            | Self::Gone { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. }
            | Self::Exit { .. }
            | Self::Unwanted { .. }
            | Self::NotMade(_) => None,
        }
    }

    /// With more words about what was seen.
    #[must_use]
    pub fn seen(self, more: impl FnOnce() -> String) -> Self {
        match self {
            Self::Overdue { phase, machine, after, mut seen } => {
                seen.push_str(&more());
                Self::Overdue { phase, machine, after, seen }
            }
            other => other,
        }
    }
}
