//! Clones that an earlier process asked for and that the vCenter still works at.
//!
//! Until such a clone has ended, its VM may not be in the inventory. Its address would look free, its job unserved, and nobody would take it up.

use std::time::Duration;

use roost_fleet::{Check, VmId};
use roost_vim::wire::MoRef;
use roost_vim::wire::types::{
    ObjectSpec, PropertyFilterSpec, PropertySpec, TaskInfo, TaskInfoState, UserSession,
};
use roost_vim::{CallError, Properties, TaskError};
use tokio::time::{Instant, timeout_at};

use super::nest::Nest;

/// As localization files know a `CloneVM_Task`.
const CLONE: &str = "VirtualMachine.clone";
const INFO: &str = "info";
/// As long as a clone may take. One that takes longer was given up by whoever asked for it.
const PATIENCE: Duration = Duration::from_mins(10);
/// From the end of a clone to its VM in the mirror, which the stream brings at once.
const UNTIL_SEEN: Duration = Duration::from_secs(30);

impl Nest {
    /// Waits until every clone that runs in our name is in the inventory or has failed.
    pub(super) async fn wait_for_earlier_clones(&self) -> Result<(), CallError> {
        let clones = self.running_clones().await?;
        if clones.is_empty() {
            return Ok(());
        }
        tracing::info!(count = clones.len(), "waiting for clones of an earlier process");
        let deadline = Instant::now() + PATIENCE;
        for clone in clones {
            let waiting = self.vcenter.task(clone).with_deadline(PATIENCE).wait();
            let result = match timeout_at(deadline, waiting).await {
                Ok(Ok(result)) => result,
                // It failed, and so left nothing, or its task is forgotten, and so is over.
                Ok(Err(TaskError::Failed { .. })) => None,
                Ok(Err(error)) => {
                    tracing::warn!("a clone of an earlier process: {}", super::Chain(&error));
                    None
                }
                Err(_) => break,
            };
            if let Some(vm) = result.as_ref().and_then(|value| value.as_ref()) {
                let seen = |vm: Option<&_>| match vm {
                    Some(_) => Check::Met(()),
                    None => Check::NotYet,
                };
                let _ = self.mirror.wait_until(&VmId::from(vm), UNTIL_SEEN, seen).await;
            }
        }
        Ok(())
    }

    async fn running_clones(&self) -> Result<Vec<MoRef>, CallError> {
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
        let clones = infos.filter_map(|object| {
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
            (info.description_id == CLONE && is_running && may_be_ours).then_some(task)
        });
        Ok(clones.collect())
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
