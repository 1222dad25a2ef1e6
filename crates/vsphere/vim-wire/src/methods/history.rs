//! Tasks and events.

use crate::types::{Event, EventFilterSpec, TaskInfo};
use crate::{Element, MoRef};

methods! {
    on Task {
        change CancelTask = "CancelTask" needs "Global.CancelTask"
        {} -> ();
    }

    on TaskManager {
        read CreateCollectorForTasks = "CreateCollectorForTasks" { filter: Element } -> MoRef;
        change CreateTask = "CreateTask" {
            obj: MoRef,
            task_type_id "taskTypeId": String,
            initiated_by "initiatedBy": Option<String>,
            cancelable: bool,
            parent_task_key "parentTaskKey": Option<String>,
            activation_id "activationId": Option<String>,
        } -> TaskInfo;
    }

    on TaskHistoryCollector {
        read ReadNextTasks = "ReadNextTasks" { max_count "maxCount": i32 } -> Vec<TaskInfo>;
    }

    on EventManager {
        read QueryEvents = "QueryEvents" { filter: EventFilterSpec } -> Vec<Event>;
        session CreateCollectorForEvents = "CreateCollectorForEvents" { filter: EventFilterSpec } -> MoRef;
    }

    on EventHistoryCollector {
        session ReadNextEvents = "ReadNextEvents" { max_count "maxCount": i32 } -> Vec<Event>;
        session ReadPreviousEvents = "ReadPreviousEvents" { max_count "maxCount": i32 } -> Vec<Event>;
    }

    on HistoryCollector {
        session SetCollectorPageSize = "SetCollectorPageSize" { max_count "maxCount": i32 } -> ();
        session RewindCollector = "RewindCollector" {} -> ();
        session ResetCollector = "ResetCollector" {} -> ();
        session DestroyCollector = "DestroyCollector" {} -> ();
    }
}
