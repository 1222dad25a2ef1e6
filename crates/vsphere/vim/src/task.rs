//! A task on the server, followed through the property stream.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use roost_vim_wire::methods::CancelTask;
use roost_vim_wire::types::TaskInfoState;
use roost_vim_wire::{Fault, LocalizedMethodFault, MoRef, Value};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::client_core::Guarded;
use crate::error::Told;
use crate::remedy::fault_remedy;
use crate::stream::{Command, TaskCell};
use crate::{CallClass, CallError, Client, Faulted, Remedy};

/// How far a task is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// `None` until the server has said anything.
    pub state: Option<TaskInfoState>,
    /// Many tasks never say.
    pub percent: Option<i32>,
}

/// Why a task has no result.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TaskError {
    #[error("task {} failed: {}", task.id, Told(fault))]
    Failed { task: MoRef, fault: Box<LocalizedMethodFault> },
    /// Servers forget finished tasks. Look at what the task was to change.
    #[error("task {} no longer exists, so how it ended is unknown", task.id)]
    Vanished { task: MoRef },
    /// It may still end, either way.
    #[error("task {} did not end within {after:?}", task.id)]
    Deadline { task: MoRef, after: Duration },
    #[error("task {} cannot be followed", task.id)]
    Call { task: MoRef, source: CallError },
}

impl TaskError {
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Failed { fault, .. } => fault_remedy(&fault.fault),
            Self::Vanished { .. } => Remedy::Gone,
            Self::Deadline { .. } => Remedy::Wait,
            Self::Call { source, .. } => source.remedy(),
        }
    }

    /// Whether the task may have done its work, or yet do it, although this does not say so.
    pub fn outcome_unknown(&self) -> bool {
        match self {
            Self::Failed { .. } => false,
            Self::Vanished { .. } | Self::Deadline { .. } | Self::Call { .. } => true,
        }
    }
}

impl Faulted for TaskError {
    fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Failed { fault, .. } => Some(&fault.fault),
            Self::Call { source, .. } => source.fault(),
            Self::Vanished { .. } | Self::Deadline { .. } => None,
        }
    }
}

/// A task that runs on the server. It goes on whether or not anyone waits for it.
#[derive(Debug)]
pub struct Task {
    moref: MoRef,
    client: Arc<Guarded>,
    deadline: Duration,
    following: OnceLock<Following>,
}

/// A place in the stream's list of tasks.
#[derive(Debug)]
struct Following {
    id: u64,
    task: MoRef,
    cell: Arc<TaskCell>,
    commands: mpsc::UnboundedSender<Command>,
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Unfollow { id: self.id, task: self.task.clone() });
    }
}

impl Task {
    pub(crate) fn new(moref: MoRef, client: Arc<Guarded>) -> Self {
        let deadline = client.0.deadline(CallClass::TaskWait);
        Self { moref, client, deadline, following: OnceLock::new() }
    }

    pub fn moref(&self) -> &MoRef {
        &self.moref
    }

    /// Waits this long instead of the usual time.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Waits for the end of the task and returns its result. Survives the loss of the session.
    pub async fn wait(self) -> Result<Option<Value>, TaskError> {
        let mut outcome = self.following().cell.outcome.subscribe();
        let gone = || CallError::Abandoned { method: "WaitForUpdatesEx" };
        match timeout(self.deadline, outcome.wait_for(Option::is_some)).await {
            Ok(Ok(outcome)) => match &*outcome {
                Some(result) => result.clone(),
                None => Err(TaskError::Call { task: self.moref.clone(), source: gone() }),
            },
            Ok(Err(_)) => Err(TaskError::Call { task: self.moref.clone(), source: gone() }),
            Err(_) => Err(TaskError::Deadline { task: self.moref.clone(), after: self.deadline }),
        }
    }

    /// Shows how far the task is, from now on.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.following().cell.progress.subscribe()
    }

    /// Asks the server to cancel the task, which then ends with [`Faulted::is_cancelled`]. Fails if the task cannot be cancelled
    /// or has ended.
    pub async fn cancel(&self, client: &Client) -> Result<(), CallError> {
        client.change(CallClass::Submit, &CancelTask { this: self.moref.clone() }).await
    }

    /// As [`Task::cancel`], for whoever has only its name.
    pub async fn cancel_by_ref(client: &Client, task: &MoRef) -> Result<(), CallError> {
        client.change(CallClass::Submit, &CancelTask { this: task.clone() }).await
    }

    fn following(&self) -> &Following {
        self.following.get_or_init(|| {
            let core = &self.client.0;
            let (id, cell, commands) =
                (core.next_id(), Arc::new(TaskCell::new()), core.hub_commands());
            let follow = Command::Follow { id, task: self.moref.clone(), cell: Arc::clone(&cell) };
            if commands.send(follow).is_err() {
                let source = CallError::ShuttingDown;
                cell.outcome
                    .send_replace(Some(Err(TaskError::Call { task: self.moref.clone(), source })));
            }
            Following { id, task: self.moref.clone(), cell, commands }
        })
    }
}
