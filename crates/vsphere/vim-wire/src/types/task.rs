//! Tasks.

use jiff::Timestamp;

use crate::types::LocalizableMessage;
use crate::{LocalizedMethodFault, MoRef, Value};

data! {
    struct TaskInfo {
        key: String,
        task: MoRef,
        description: Option<LocalizableMessage>,
        name: Option<String>,
        description_id "descriptionId": String,
        entity: Option<MoRef>,
        entity_name "entityName": Option<String>,
        locked: Vec<MoRef>,
        state: TaskInfoState,
        cancelled: bool,
        cancelable: bool,
        error: Option<LocalizedMethodFault>,
        result: Option<Value>,
        progress: Option<i32>,
        reason: TaskReason,
        queue_time "queueTime": Timestamp,
        start_time "startTime": Option<Timestamp>,
        complete_time "completeTime": Option<Timestamp>,
        event_chain_id "eventChainId": i32,
        change_tag "changeTag": Option<String>,
        parent_task_key "parentTaskKey": Option<String>,
        root_task_key "rootTaskKey": Option<String>,
        activation_id "activationId": Option<String>,
    }

    /// Why a task runs: `TaskReasonUser` names the user.
    open TaskReason {
        user_name "userName": Option<String>,
    }
}

names! {
    enum TaskInfoState { Queued = "queued", Running = "running", Success = "success", Error = "error" }
}
