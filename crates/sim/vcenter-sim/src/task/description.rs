use roost_vim_wire::Value;

use crate::inventory::record::Record;

/// What people call the work of a task, by its `descriptionId`.
const METHODS: &[(&str, &str)] = &[
    ("VirtualMachine.clone", "Clone virtual machine"),
    ("Folder.createVm", "Create virtual machine"),
    ("VirtualMachine.reconfigure", "Reconfigure virtual machine"),
    ("VirtualMachine.customize", "Customize virtual machine guest OS"),
    ("VirtualMachine.powerOn", "Power On virtual machine"),
    ("VirtualMachine.powerOff", "Power Off virtual machine"),
    ("VirtualMachine.reset", "Reset virtual machine"),
    ("VirtualMachine.suspend", "Suspend virtual machine"),
    ("VirtualMachine.relocate", "Relocate virtual machine"),
    ("VirtualMachine.rename", "Rename virtual machine"),
    ("VirtualMachine.destroy", "Delete virtual machine"),
    ("VirtualMachine.createSnapshot", "Create virtual machine snapshot"),
    ("VirtualMachine.removeAllSnapshots", "Remove all snapshots"),
    ("VirtualMachine.upgradeVirtualHardware", "Upgrade VM compatibility"),
    ("vm.Snapshot.revert", "Revert snapshot"),
    ("vm.Snapshot.remove", "Remove snapshot"),
    ("Datastore.searchDatastore", "Search datastore"),
    ("Datastore.searchDatastoreSubFolders", "Search datastore subfolders"),
    ("Datastore.deleteDatastoreFile", "Delete file"),
    ("Datastore.moveDatastoreFile", "Move file"),
];

const STATES: &[(&str, &str)] =
    &[("queued", "Queued"), ("running", "Running"), ("success", "Success"), ("error", "Error")];

/// The task manager's `description`, from which clients take the names that they show.
pub(crate) fn description() -> Value {
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
        .records("methodInfo", "ElementDescription", described(METHODS))
        .records("state", "ElementDescription", described(STATES))
        .value()
}
