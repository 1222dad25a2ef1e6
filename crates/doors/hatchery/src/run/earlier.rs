//! Changes that an earlier process asked for and that the vCenter still works at.
//!
//! Until a clone has ended, its VM may not be in the inventory. Its address would look free, its job unserved, and nobody would take it up. The same holds
//! for the claim of a spare: until it has ended the VM is a spare, and then it has a job, which would be started on a second VM meanwhile.

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Check, Vm, VmId};
use roost_vim::wire::MoRef;
use roost_vim::wire::types::{
    ObjectSpec, PropertyFilterSpec, PropertySpec, TaskInfo, TaskInfoState, UserSession,
};
use roost_vim::{CallError, Properties, TaskError};
use tokio::time::{Instant, timeout_at};

use super::context::Context;
use super::holding::own_annotation;

/// As localization files know a `CloneVM_Task` and a `ReconfigVM_Task`.
const CLONE: &str = "VirtualMachine.clone";
const RECONFIGURE: &str = "VirtualMachine.reconfigure";
const INFO: &str = "info";
/// As long as a clone may take. What takes longer was given up by whoever asked for it.
const PATIENCE: Duration = Duration::from_mins(10);
/// From the end of a task to what it did in the mirror. The stream brings it at once, unless its answer is lost: that is noticed after more than a minute, and then
/// everything is read anew.
const UNTIL_SEEN: Duration = Duration::from_mins(5);

/// A change that is under way.
#[derive(Debug)]
struct Pending {
    task: MoRef,
    /// The VM that is changed; `None` if the task makes one.
    vm: Option<VmId>,
}

impl Context {
    /// Waits until every clone and every change of a VM of ours that runs in our name shows in the inventory or has failed.
    pub(super) async fn wait_for_earlier_tasks(&self) -> Result<(), CallError> {
        let pending = self.pending_changes().await?;
        if pending.is_empty() {
            return Ok(());
        }
        tracing::info!(count = pending.len(), "waiting for tasks of an earlier process");
        let deadline = Instant::now() + PATIENCE;
        for Pending { task, vm } in pending {
            let waiting = self.vcenter.task(task).with_deadline(PATIENCE).wait();
            let result = match timeout_at(deadline, waiting).await {
                Ok(Ok(result)) => result,
                // It failed, and so did nothing, or its task is forgotten, and so is over.
                Ok(Err(TaskError::Failed { .. })) => None,
                Ok(Err(error)) => {
                    tracing::warn!("a task of an earlier process: {}", super::Chain(&error));
                    None
                }
                Err(_) => break,
            };
            if let Some(vm) = vm {
                self.see_change(&vm).await?;
            } else if let Some(made) = result.as_ref().and_then(|value| value.as_ref()) {
                self.see_made(&VmId::from(made)).await?;
            }
        }
        Ok(())
    }

    /// Waits until the mirror shows a VM that was made, unless it is gone again.
    async fn see_made(&self, vm: &VmId) -> Result<(), CallError> {
        if self.machines.read_label(vm).await?.is_none() {
            return Ok(());
        }
        let seen = |row: Option<&_>| row.map_or(Check::NotYet, |_| Check::Met(()));
        if self.mirror.wait_until(vm, UNTIL_SEEN, seen).await.is_err() {
            tracing::warn!(%vm, "{vm}, which an earlier process made, is not seen in the inventory");
        }
        Ok(())
    }

    /// Waits until the mirror shows a VM as it is now.
    async fn see_change(&self, vm: &VmId) -> Result<(), CallError> {
        let Some(label) = self.machines.read_label(vm).await? else { return Ok(()) };
        let seen = |row: Option<&Arc<Vm>>| {
            let is_seen =
                row.is_none_or(|row| row.change_version.as_deref() == label.version.as_deref());
            if is_seen { Check::Met(()) } else { Check::NotYet }
        };
        let _ = self.mirror.wait_until(vm, UNTIL_SEEN, seen).await;
        Ok(())
    }

    async fn pending_changes(&self) -> Result<Vec<Pending>, CallError> {
        let content = self.vcenter.content();
        let Some(manager) = content.task_manager.clone() else { return Ok(Vec::new()) };
        let user = match &content.session_manager {
            Some(manager) => {
                let read = self.vcenter.properties(manager, &["currentSession"]).await?;
                read.data::<UserSession>("currentSession").map(|session| session.user_name.clone())
            }
            None => None,
        };
        let recent = self.vcenter.properties(&manager, &["recentTask"]).await?.refs("recentTask");
        if recent.is_empty() {
            return Ok(Vec::new());
        }
        let infos = self.vcenter.retrieve(infos_of(&recent)).await?.into_iter();
        let pending = infos.filter_map(|object| {
            let task = object.obj.clone();
            let read = Properties::from(object);
            let info = read.data::<TaskInfo>(INFO)?;
            let is_running = matches!(info.state, TaskInfoState::Queued | TaskInfoState::Running);
            let by = info.reason.user_name.as_deref();
            // A server that does not tell who asked leaves open whether it was us.
            let may_be_ours = match (by, &user) {
                (Some(by), Some(user)) => by.eq_ignore_ascii_case(user),
                _ => true,
            };
            if !is_running || !may_be_ours {
                return None;
            }
            match info.description_id.as_str() {
                CLONE => Some(Pending { task, vm: None }),
                RECONFIGURE => {
                    let vm = VmId::from(info.entity.as_ref()?);
                    let row = self.mirror.vm(&vm)?;
                    own_annotation(&row, self.hatchery())?;
                    Some(Pending { task, vm: Some(vm) })
                }
                _ => None,
            }
        });
        Ok(pending.collect())
    }
}

/// A task that is forgotten by now is left out of the answer, where it would otherwise fail the whole of it.
fn infos_of(tasks: &[MoRef]) -> PropertyFilterSpec {
    let object =
        |task: &MoRef| ObjectSpec { obj: task.clone(), skip: Some(false), select_set: Vec::new() };
    PropertyFilterSpec {
        prop_set: vec![PropertySpec::new("Task", &[INFO])],
        object_set: tasks.iter().map(object).collect(),
        report_missing_objects_in_results: Some(true),
    }
}
