//! First-class disks without the datastore that they are on: the service at `/vslm/sdk`, and what VMs do with them.

use crate::{Element, MoRef, Value};

methods! {
    on VslmServiceInstance {
        read RetrieveContent = "RetrieveContent" {} -> Element;
    }

    on VslmVStorageObjectManager {
        change VslmCreateDiskTask = "VslmCreateDisk_Task" needs "Datastore.FileManagement"
            task "Datastore.createDisk" "Create a virtual disk object"
        { spec: Element } -> MoRef;
        change VslmRegisterDisk = "VslmRegisterDisk" needs "Datastore.FileManagement"
        { path: String, name: Option<String> } -> Element;
        read VslmListVStorageObjectForSpec = "VslmListVStorageObjectForSpec"
        { query: Vec<Element>, max_result "maxResult": i32 } -> Element;
        read VslmRetrieveVStorageObject = "VslmRetrieveVStorageObject" { id: Element } -> Element;
        change VslmRenameVStorageObject = "VslmRenameVStorageObject" needs "Datastore.FileManagement"
        { id: Element, name: String } -> ();
        change VslmExtendDiskTask = "VslmExtendDisk_Task" needs "Datastore.FileManagement"
            task "Datastore.extendDisk" "Extend a virtual disk object"
        { id: Element, new_capacity_in_mb "newCapacityInMB": i64 } -> MoRef;
        change VslmDeleteVStorageObjectTask = "VslmDeleteVStorageObject_Task" needs "Datastore.FileManagement"
            task "Datastore.deleteDisk" "Delete a virtual disk object"
        { id: Element } -> MoRef;
        change VslmCreateSnapshotTask = "VslmCreateSnapshot_Task" needs "Datastore.FileManagement"
            task "Datastore.createDiskSnapshot" "Create a snapshot of a virtual disk object"
        { id: Element, description: String } -> MoRef;
        change VslmDeleteSnapshotTask = "VslmDeleteSnapshot_Task" needs "Datastore.FileManagement"
            task "Datastore.deleteDiskSnapshot" "Delete a snapshot of a virtual disk object"
        { id: Element, snapshot_id "snapshotId": Element } -> MoRef;
        read VslmRetrieveSnapshotInfo = "VslmRetrieveSnapshotInfo" { id: Element } -> Element;
        change VslmAttachTagToVStorageObject = "VslmAttachTagToVStorageObject"
        { id: Element, category: String, tag: String } -> ();
        change VslmDetachTagFromVStorageObject = "VslmDetachTagFromVStorageObject"
        { id: Element, category: String, tag: String } -> ();
        read VslmListTagsAttachedToVStorageObject = "VslmListTagsAttachedToVStorageObject"
        { id: Element } -> Vec<Element>;
        read VslmListVStorageObjectsAttachedToTag = "VslmListVStorageObjectsAttachedToTag"
        { category: String, tag: String } -> Vec<Element>;
        change VslmReconcileDatastoreInventoryTask = "VslmReconcileDatastoreInventory_Task" needs "Datastore.FileManagement"
            task "Datastore.reconcileDatastoreInventory" "Reconcile datastore inventory"
        { datastore: MoRef } -> MoRef;
        change VslmAttachDiskTask = "VslmAttachDisk_Task" needs "VirtualMachine.Config.AddExistingDisk"
            task "VirtualMachine.attachDisk" "Attach a virtual disk object"
        {
            id: Element,
            vm: MoRef,
            controller_key "controllerKey": Option<i32>,
            unit_number "unitNumber": Option<i32>,
        } -> MoRef;
    }

    on VslmTask {
        read VslmQueryInfo = "VslmQueryInfo" {} -> Element;
        read VslmQueryTaskResult = "VslmQueryTaskResult" {} -> Option<Value>;
        change VslmCancelTask = "VslmCancelTask" {} -> ();
    }

    on VirtualMachine {
        change AttachDiskTask = "AttachDisk_Task" needs "VirtualMachine.Config.AddExistingDisk"
            task "VirtualMachine.attachDisk" "Attach a virtual disk object"
        {
            disk_id "diskId": Element,
            datastore: MoRef,
            controller_key "controllerKey": Option<i32>,
            unit_number "unitNumber": Option<i32>,
        } -> MoRef;
        change DetachDiskTask = "DetachDisk_Task" needs "VirtualMachine.Config.RemoveDisk"
            task "VirtualMachine.detachDisk" "Detach a virtual disk object"
        { disk_id "diskId": Element } -> MoRef;
    }
}
