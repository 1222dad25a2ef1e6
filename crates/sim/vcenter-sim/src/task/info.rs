use roost_vim_wire::types::{TaskInfo, TaskReason};
use roost_vim_wire::{Field, MoRef, MoType, Value, methods};

use crate::task::{State, Task, Tasks};

impl Task {
    /// The schema allows nothing but entities here; a manager's task names none.
    fn entity(&self) -> Option<&MoRef> {
        Some(&self.entity).filter(|entity| entity.kind.is_a("ManagedEntity"))
    }

    pub(super) fn info(&self) -> TaskInfo {
        let (result, error) = match &self.state {
            State::Queued(_) | State::Running(_) => (None, None),
            State::Success(result) => (result.clone(), None),
            State::Error(error) => (None, Some(error.clone())),
        };
        TaskInfo {
            key: self.moref.id.as_ref().into(),
            task: self.moref.clone(),
            description: None,
            name: Some(self.method.into()),
            description_id: description_id(self.method, &self.entity),
            entity: self.entity().cloned(),
            entity_name: self.entity().map(|_| self.entity_name.as_ref().into()),
            locked: Vec::new(),
            state: self.state.wire(),
            cancelled: self.is_cancelled,
            cancelable: self.is_cancelable,
            error,
            result,
            progress: self.progress,
            reason: TaskReason {
                user_name: Some(self.user.as_ref().into()),
                ..TaskReason::of("TaskReasonUser")
            },
            queue_time: self.queued,
            start_time: self.started,
            complete_time: self.completed,
            event_chain_id: self.chain,
            change_tag: None,
            parent_task_key: None,
            root_task_key: None,
            activation_id: None,
        }
    }
}

impl Tasks {
    /// `None`: no such path.
    #[expect(clippy::option_option, reason = "the inner one is an unset property")]
    pub(crate) fn property(&self, task: &MoRef, path: &str) -> Option<Option<Value>> {
        let task = self.get(task)?;
        Some(match path {
            "info" => task.info().to_value(),
            "info.state" => task.state.wire().to_value(),
            "info.progress" => task.progress.to_value(),
            "info.cancelled" => task.is_cancelled.to_value(),
            "info.cancelable" => task.is_cancelable.to_value(),
            "info.startTime" => task.started.to_value(),
            "info.completeTime" => task.completed.to_value(),
            "info.entity" => task.entity().cloned().to_value(),
            "info.error" | "info.result" if !task.state.is_finished() => None,
            _ => return None,
        })
    }

    pub(crate) fn info(&self, task: &MoRef) -> Option<TaskInfo> {
        self.get(task).map(Task::info)
    }
}

/// `VirtualMachine.clone` for `CloneVM_Task`, as localization files know it.
fn description_id(method: &str, entity: &MoRef) -> String {
    let kind = match &entity.kind {
        MoType::VirtualMachineSnapshot => "vm.Snapshot",
        MoType::ClusterComputeResource | MoType::ComputeResource => "ComputeResource",
        kind => kind.as_str(),
    };
    let text = methods::by_name(method).and_then(|method| method.task);
    match text.and_then(|text| text.id.rsplit_once('.')) {
        Some((_, verb)) => format!("{kind}.{verb}"),
        None => format!("{kind}.{method}"),
    }
}
