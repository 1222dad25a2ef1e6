use roost_vim_wire::{Value, methods};

use crate::inventory::Record;

const STATES: &[(&str, &str)] =
    &[("queued", "Queued"), ("running", "Running"), ("success", "Success"), ("error", "Error")];

/// The task manager's `description`, from which clients take the names that they show.
pub(crate) fn description() -> Value {
    let tasks = methods::all().filter_map(|method| method.task);
    let labels: Vec<_> = tasks.map(|task| (task.id, task.label)).collect();
    let described = |table: &[(&str, &str)]| {
        let all = table.iter().map(|(key, label)| {
            Record::of("ElementDescription")
                .text("label", label)
                .text("summary", label)
                .text("key", key)
        });
        all.collect()
    };
    Record::of("TaskDescription")
        .records("methodInfo", "ElementDescription", described(&labels))
        .records("state", "ElementDescription", described(STATES))
        .value()
}
