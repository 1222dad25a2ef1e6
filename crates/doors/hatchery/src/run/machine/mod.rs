//! What is done to a VM, each with its phase and deadline. After every change the mirror is told, so that nobody decides on what was before.
//!
//! Whoever changes a VM is at work on it ([`Nest::at_work`]); the verbs leave that to their caller, who usually has several of them to do.

mod claim;
mod clone;
mod error;
mod guest;
mod mark;
mod past;
mod power;
mod ready;
mod templates;

use std::time::Duration;

use roost_fleet::{Phase, PhaseError};
use roost_supervise::{Attempts, Backoff};
use tokio::time::{Instant, sleep};

pub(crate) use self::error::{Step, StepError};
pub(crate) use self::guest::{Launch, LaunchSeen, LoginError, launch_program};
pub(crate) use self::templates::Templates;

use super::nest::Nest;

/// Between two attempts at what may pass.
const FIRST_PAUSE: Duration = Duration::from_secs(2);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

impl Nest {
    /// Whether something failed because the vCenter could not be reached, or just came back. What it was made of is not to blame then.
    pub(crate) fn is_of_link(&self, error: &StepError) -> bool {
        error.is_of_link() || self.mirror.freshness().trouble.is_some()
    }

    /// Does `work` as a phase of a machine, within the phase's deadline.
    async fn phase<T>(
        &self,
        machine: &str,
        phase: Phase,
        work: impl Future<Output = Result<T, StepError>>,
    ) -> Result<T, StepError> {
        let deadline = self.deadlines.of(phase);
        match self.timelines.run(machine, phase, deadline, work).await {
            Ok(done) => Ok(done),
            Err(PhaseError::Failed { source, .. }) => Err(source),
            Err(PhaseError::Overdue { phase, after }) => Err(StepError::Overdue {
                step: phase.into(),
                machine: machine.to_owned(),
                after,
                seen: String::new(),
            }),
        }
    }
}

/// Growing pauses until a deadline.
pub(crate) struct Pauses(Attempts);

impl Pauses {
    pub(crate) fn until(deadline: Instant) -> Self {
        Self(Backoff::new(FIRST_PAUSE, LONGEST_PAUSE).attempts().until(deadline))
    }

    pub(crate) fn within(time: Duration) -> Self {
        Self::until(Instant::now() + time)
    }

    /// Waits a while; false, without waiting, if there is no time left for another attempt.
    pub(crate) async fn pause(&mut self) -> bool {
        let Some(pause) = self.0.failed() else { return false };
        sleep(pause).await;
        true
    }
}
