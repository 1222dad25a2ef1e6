//! The form for whoever must not wait: a worker of a queue starts a verb, is gone, and is told of its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use roost_vim::wire::{Method, MoRef, Value};
use tokio::task::AbortHandle;

use super::{Hold, MachineError, Machines};
use crate::{Ended, Phase, Wrote};

/// Work that goes on by itself. Dropping this changes nothing about it.
#[derive(Debug, Clone)]
pub struct Started {
    is_over: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Started {
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire) || self.task.is_finished()
    }

    /// Nobody waits for it any more and nobody is told. What the server works at goes on.
    pub fn forget(&self) {
        self.task.abort();
    }
}

impl Machines {
    /// Starts some verbs and returns at once. `told` hears how they ended, when the hold that the work has is given back.
    ///
    /// ```ignore
    /// let (on, key) = (machines.clone(), key.clone());
    /// machines.start(
    ///     async move { on.shut_down(&hold, GRACE).await },
    ///     move |_ended| queue.add(key),
    /// );
    /// ```
    pub fn start<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, MachineError>> + Send + 'static,
        told: impl FnOnce(Result<T, MachineError>) + Send + 'static,
    ) -> Started {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let task = tokio::spawn(async move {
            let ended = work.await;
            over.store(true, Ordering::Release);
            told(ended);
        });
        Started { is_over, task: task.abort_handle() }
    }

    /// Sends the request for a task, which is one short call, and returns when the server has taken it. The end of the task comes over the stream that all
    /// tasks share; the mirror is told of `wrote`, the hold is given back, then `told` hears of it.
    pub async fn start_task<M: Method<Output = MoRef>>(
        &self,
        hold: Hold,
        phase: Phase,
        call: &M,
        wrote: Wrote,
        told: impl FnOnce(Result<Option<Value>, MachineError>) + Send + 'static,
    ) -> Result<Started, MachineError> {
        let machine = self.name_of(hold.vm());
        let timer = self.timelines().begin(&machine, phase, self.longest(phase));
        let task = match self.client().submit(call).await {
            Ok(task) => task.with_deadline(self.longest(phase)),
            Err(error) => {
                timer.end(Ended::Failed);
                return Err(MachineError::call(phase, &machine)(error));
            }
        };
        let on = self.clone();
        let work = async move {
            let ended = task.wait().await;
            match &ended {
                Ok(_) => {
                    timer.end(Ended::Done);
                    on.mirror().changed(hold.vm(), wrote);
                }
                Err(roost_vim::TaskError::Deadline { .. }) => drop(timer.end(Ended::Overdue)),
                Err(_) => drop(timer.end(Ended::Failed)),
            }
            drop(hold);
            ended.map_err(MachineError::task(phase, &machine))
        };
        Ok(self.start(work, told))
    }
}
