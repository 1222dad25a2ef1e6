//! Running a task on something that exists: who is in the way is waited for, and what is safe to repeat is repeated.

use std::time::Duration;

use roost_supervise::Backoff;
use roost_vim_wire::{Method, MoRef, Value};

use super::error::{Step, VmError};
use crate::{Client, Faulted, Remedy, TaskError};

/// Whether a request that may or may not have been carried out can be sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It names an end state: doing it twice is doing it once.
    Safe,
    Unsafe,
}

/// Pauses between attempts that grow, and an end to them.
#[derive(Debug, Default)]
pub(super) struct Patience {
    attempts: u32,
}

impl Patience {
    const PAUSES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));
    /// With pauses of 1, 2, 4 and 8 seconds: enough for a host to answer again or a file to be let go, short enough for a
    /// caller who has better things to do than to wait for a vCenter that restarts.
    const ATTEMPTS: u32 = 5;

    pub(super) fn is_left(&self) -> bool {
        self.attempts + 1 < Self::ATTEMPTS
    }

    /// Whether another try soon may help against this error. A stale change version stays stale.
    pub(super) fn is_for(&self, error: &VmError) -> bool {
        self.is_left() && error.remedy() == Remedy::Retry && !error.is_fault("ConcurrentAccess")
    }

    /// Waits before the next attempt; false, without waiting, if there is none left.
    pub(super) async fn pause(&mut self) -> bool {
        if !self.is_left() {
            return false;
        }
        self.attempts += 1;
        tokio::time::sleep(Self::PAUSES.pause(self.attempts)).await;
        true
    }
}

impl Client {
    /// Submits a task on `target` and waits for its end.
    pub(super) async fn run<M: Method<Output = MoRef>>(
        &self,
        step: Step,
        target: &MoRef,
        again: Again,
        call: &M,
    ) -> Result<Option<Value>, VmError> {
        let mut patience = Patience::default();
        loop {
            let error = match self.submit(call).await {
                Ok(task) => match task.wait().await {
                    Ok(result) => return Ok(result),
                    Err(source) => VmError::Task { step, target: target.to_string(), source },
                },
                Err(source) => VmError::Call { step, target: target.to_string(), source },
            };
            if !self.may_run_again(&error, again, &mut patience).await {
                return Err(error);
            }
            tracing::debug!(%target, error = &error as &dyn std::error::Error, "{step} {target} once more");
        }
    }

    /// Waits for what stands in the way, if that can be waited for.
    pub(super) async fn may_run_again(
        &self,
        error: &VmError,
        again: Again,
        patience: &mut Patience,
    ) -> bool {
        if let Some(task) = error.task_in_progress() {
            // How the other task ends is not our matter, only that it does.
            return patience.is_left()
                && !matches!(self.task(task).wait().await, Err(TaskError::Deadline { .. }))
                && patience.pause().await;
        }
        // Refused before anything was done.
        let was_refused = error.is_fault("FileLocked");
        (was_refused || again == Again::Safe) && patience.is_for(error) && patience.pause().await
    }
}
