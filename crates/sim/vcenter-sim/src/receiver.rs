//! Which kind of object a method belongs to.

use roost_vim_wire::MoRef;

/// Whether objects of this kind have this method. A method that is not listed decides for itself.
pub(crate) fn accepts(this: &MoRef, method: &str) -> bool {
    let row = RECEIVERS.iter().find(|(_, methods)| methods.contains(&method));
    row.is_none_or(|(kinds, _)| kinds.iter().any(|kind| this.kind.is_a(kind)))
}

/// Kinds, and the methods that only objects of these kinds or below have.
const RECEIVERS: &[(&[&str], &[&str])] = &[
    (
        &["VirtualMachine"],
        &[
            "AcquireTicket",
            "CloneVM_Task",
            "CreateSnapshot_Task",
            "CustomizeVM_Task",
            "MarkAsTemplate",
            "MarkAsVirtualMachine",
            "PowerOffVM_Task",
            "PowerOnVM_Task",
            "RebootGuest",
            "ReconfigVM_Task",
            "RelocateVM_Task",
            "RemoveAllSnapshots_Task",
            "ResetVM_Task",
            "RevertToCurrentSnapshot_Task",
            "ShutdownGuest",
            "StandbyGuest",
            "SuspendVM_Task",
            "UnregisterVM",
            "UpgradeVM_Task",
        ],
    ),
    (&["VirtualMachineSnapshot"], &["RemoveSnapshot_Task", "RevertToSnapshot_Task"]),
    (&["ManagedEntity"], &["Destroy_Task", "Rename_Task"]),
    (&["Folder"], &["CreateFolder", "CreateVM_Task", "MoveIntoFolder_Task", "PlaceVmsXCluster"]),
    (&["ResourcePool"], &["CreateResourcePool", "UpdateConfig"]),
    (&["ClusterComputeResource"], &["PlaceVm"]),
    (&["Task"], &["CancelTask"]),
    (&["TaskManager"], &["CreateCollectorForTasks"]),
    (&["TaskHistoryCollector"], &["ReadNextTasks", "ReadPreviousTasks"]),
    (&["EventManager"], &["CreateCollectorForEvents", "QueryEvents"]),
    (&["EventHistoryCollector"], &["ReadNextEvents", "ReadPreviousEvents"]),
    (
        &["HistoryCollector"],
        &["DestroyCollector", "ResetCollector", "RewindCollector", "SetCollectorPageSize"],
    ),
    (&["FileManager"], &["DeleteDatastoreFile_Task", "MakeDirectory", "MoveDatastoreFile_Task"]),
    (&["HostDatastoreBrowser"], &["SearchDatastoreSubFolders_Task", "SearchDatastore_Task"]),
    (&["VirtualDiskManager"], &["CopyVirtualDisk_Task"]),
    (&["StorageResourceManager"], &["RecommendDatastores"]),
    (
        &["GuestProcessManager"],
        &[
            "ListProcessesInGuest",
            "ReadEnvironmentVariableInGuest",
            "StartProgramInGuest",
            "TerminateProcessInGuest",
        ],
    ),
    (
        &["GuestFileManager"],
        &[
            "CreateTemporaryFileInGuest",
            "DeleteFileInGuest",
            "InitiateFileTransferFromGuest",
            "InitiateFileTransferToGuest",
            "ListFilesInGuest",
            "MakeDirectoryInGuest",
        ],
    ),
    (&["GuestAuthManager"], &["ValidateCredentialsInGuest"]),
    (&["CustomFieldsManager"], &["AddCustomFieldDef", "SetField"]),
    (&["EnvironmentBrowser"], &["QueryConfigOption", "QueryConfigOptionEx", "QueryConfigTarget"]),
];

#[cfg(test)]
mod tests {
    use roost_vim_wire::{MoType, methods};

    use super::*;

    #[test]
    fn every_method_in_the_table_is_one_that_we_speak() {
        let unknown = ["ReadPreviousTasks"];
        for method in RECEIVERS.iter().flat_map(|(_, methods)| *methods) {
            assert!(methods::ALL.contains(method) || unknown.contains(method), "{method}");
        }
    }

    #[test]
    fn a_method_is_refused_by_objects_of_another_kind() {
        assert!(accepts(&MoRef::vm("vm-1"), "PowerOnVM_Task"));
        assert!(!accepts(&MoRef::new(MoType::Folder, "group-d1"), "PowerOnVM_Task"));
        assert!(accepts(&MoRef::new(MoType::StoragePod, "group-p1"), "Rename_Task"));
        assert!(accepts(&MoRef::new(MoType::Folder, "group-d1"), "NotInTheTable"));
    }
}
