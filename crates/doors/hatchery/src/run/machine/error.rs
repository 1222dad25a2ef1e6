use std::fmt;
use std::time::Duration;

use roost_fleet::{Phase, VmId};
use roost_vim::{Faulted, GuestError, Remedy, VmError};

use crate::clone_spec::ClaimError;

/// What was being done to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    In(Phase),
    /// Writing into a VM's annotation that it is to be deleted.
    Marking,
}

impl Step {
    /// From a closed set: it becomes a metric label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::In(phase) => phase.as_str(),
            Self::Marking => "marking",
        }
    }
}

impl From<Phase> for Step {
    fn from(phase: Phase) -> Self {
        Self::In(phase)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::In(phase) => phase.words(),
            Self::Marking => "marking for deletion",
        })
    }
}

/// Why something was not done to a machine.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error("{machine}: {step} took longer than {after:?}{seen}")]
    Overdue {
        step: Step,
        machine: String,
        after: Duration,
        /// What was seen last, in words that follow on; may be empty.
        seen: String,
    },
    /// The cause names what was done.
    #[error("{machine}")]
    Vm { step: Step, machine: String, source: VmError },
    #[error("{machine}: {step}")]
    Guest { step: Step, machine: String, source: GuestError },
    #[error("{machine}: {step}")]
    Claim { step: Step, machine: String, source: ClaimError },
    #[error("{machine}: {step}: {vm} is powered off")]
    PoweredOff { step: Step, machine: String, vm: VmId },
    #[error("{machine}: {step}: {vm} is gone")]
    Gone { step: Step, machine: String, vm: VmId },
    #[error("{machine}: {step}: somebody else changed {vm}")]
    Changed { step: Step, machine: String, vm: VmId },
    #[error("{machine}: {step}: {vm} is not this hatchery's")]
    Foreign { step: Step, machine: String, vm: VmId },
    #[error("{machine}: {step}: the script ended with exit code {code}")]
    Exit { step: Step, machine: String, code: i32 },
    #[error("{machine}: {step}: nobody waits for it any more: {why}")]
    Unwanted { step: Step, machine: String, why: String },
    /// A VM was to be made, and surely there is none.
    #[error(transparent)]
    NotMade(Box<StepError>),
}

impl StepError {
    pub(crate) fn vm(step: impl Into<Step>, machine: &str) -> impl FnOnce(VmError) -> Self {
        let (step, machine) = (step.into(), machine.to_owned());
        move |source| Self::Vm { step, machine, source }
    }

    pub(crate) fn guest(step: impl Into<Step>, machine: &str) -> impl FnOnce(GuestError) -> Self {
        let (step, machine) = (step.into(), machine.to_owned());
        move |source| Self::Guest { step, machine, source }
    }

    pub(crate) fn step(&self) -> Step {
        match self {
            Self::Overdue { step, .. }
            | Self::Vm { step, .. }
            | Self::Guest { step, .. }
            | Self::Claim { step, .. }
            | Self::PoweredOff { step, .. }
            | Self::Gone { step, .. }
            | Self::Changed { step, .. }
            | Self::Foreign { step, .. }
            | Self::Exit { step, .. }
            | Self::Unwanted { step, .. } => *step,
            Self::NotMade(why) => why.step(),
        }
    }

    /// Whether a VM was to be made, and surely there is none.
    pub(crate) fn nothing_made(&self) -> bool {
        matches!(self, Self::NotMade(_))
    }

    /// Whether the VM does not exist, or no longer.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Gone { .. } => true,
            Self::Vm { source, .. } => source.is_fault("ManagedObjectNotFound"),
            Self::Guest { source, .. } => source.is_fault("ManagedObjectNotFound"),
            Self::Overdue { .. }
            | Self::Claim { .. }
            | Self::PoweredOff { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. }
            | Self::Exit { .. }
            | Self::Unwanted { .. }
            | Self::NotMade(_) => false,
        }
    }

    /// Whether it may have been done, or may yet be, although nothing says so.
    pub(crate) fn outcome_unknown(&self) -> bool {
        match self {
            Self::Overdue { .. } => true,
            Self::Vm { source, .. } => source.outcome_unknown(),
            Self::Guest { source, .. } => source.outcome_unknown(),
            Self::Claim { .. }
            | Self::PoweredOff { .. }
            | Self::Gone { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. }
            | Self::Exit { .. }
            | Self::Unwanted { .. }
            | Self::NotMade(_) => false,
        }
    }

    /// Whether the way to the vCenter was in trouble, and not what was asked of it.
    pub(crate) fn is_of_link(&self) -> bool {
        let lost = |remedy| matches!(remedy, Remedy::Retry | Remedy::Relogin);
        match self {
            Self::Vm { source, .. } => source.fault().is_none() && lost(source.remedy()),
            Self::Guest { source, .. } => source.fault().is_none() && lost(source.remedy()),
            Self::NotMade(why) => why.is_of_link(),
            Self::Overdue { .. }
            | Self::Claim { .. }
            | Self::PoweredOff { .. }
            | Self::Gone { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. }
            | Self::Exit { .. }
            | Self::Unwanted { .. } => false,
        }
    }

    /// Whether the same may succeed when it is tried again soon.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Overdue { .. } => true,
            Self::Vm { source, .. } => vm_may_pass(source),
            Self::Guest { source, .. } => may_pass(source.remedy(), source),
            Self::Claim { .. }
            | Self::PoweredOff { .. }
            | Self::Gone { .. }
            | Self::Changed { .. }
            | Self::Foreign { .. }
            | Self::Exit { .. }
            | Self::Unwanted { .. } => false,
            Self::NotMade(why) => why.may_pass(),
        }
    }
}

pub(super) fn vm_may_pass(error: &VmError) -> bool {
    may_pass(error.remedy(), error)
}

/// A server that is away, a full host, a task in the way: these pass. A VM that asks a person, or is in a state that nobody here changes, does
/// not.
pub(super) fn may_pass(remedy: Remedy, error: &impl Faulted) -> bool {
    match remedy {
        Remedy::Retry | Remedy::Wait | Remedy::Relogin => {
            !error.is_fault("QuestionPending") && !error.is_fault("InvalidPowerState")
        }
        Remedy::GiveUp | Remedy::Gone => false,
    }
}
