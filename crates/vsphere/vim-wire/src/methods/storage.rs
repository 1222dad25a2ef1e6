//! Disks as objects of their own, directories of datastores that hide theirs, storage recommendations, and kept customizations.

use crate::{Element, MoRef};

methods! {
    on DatastoreNamespaceManager {
        change CreateDirectory = "CreateDirectory" needs "Datastore.FileManagement"
        {
            datastore: MoRef,
            display_name "displayName": Option<String>,
            policy: Option<String>,
            size: Option<i64>,
        } -> String;
        change DeleteDirectory = "DeleteDirectory" needs "Datastore.FileManagement"
        { datacenter: Option<MoRef>, datastore_path "datastorePath": String } -> ();
    }

    on StorageResourceManager {
        change ApplyStorageDrsRecommendationTask = "ApplyStorageDrsRecommendation_Task" needs "StoragePod.Config"
            task "StorageResourceManager.applyRecommendation" "Apply storage DRS recommendations"
        { key: Vec<String> } -> MoRef;
        change ConfigureStorageDrsForPodTask = "ConfigureStorageDrsForPod_Task" needs "StoragePod.Config"
            task "StorageResourceManager.configureStorageDrsForPod" "Configure storage DRS"
        { pod: MoRef, spec: Element, modify: bool } -> MoRef;
    }

    on Folder {
        change CreateStoragePod = "CreateStoragePod" needs "Folder.Create" { name: String } -> MoRef;
    }

    on VcenterVStorageObjectManager {
        change CreateDiskTask = "CreateDisk_Task" needs "Datastore.FileManagement" task "Datastore.createDisk" "Create a virtual disk object"
        { spec: Element } -> MoRef;
        change RegisterDisk = "RegisterDisk" needs "Datastore.FileManagement"
        { path: String, name: Option<String> } -> Element;
        read ListVStorageObject = "ListVStorageObject" { datastore: MoRef } -> Vec<Element>;
        read RetrieveVStorageObject = "RetrieveVStorageObject"
        { id: Element, datastore: MoRef, disk_info_flags "diskInfoFlags": Vec<String> } -> Element;
        change RenameVStorageObject = "RenameVStorageObject" needs "Datastore.FileManagement"
        { id: Element, datastore: MoRef, name: String } -> ();
        change DeleteVStorageObjectTask = "DeleteVStorageObject_Task" needs "Datastore.FileManagement" task "Datastore.deleteDisk" "Delete a virtual disk object"
        { id: Element, datastore: MoRef } -> MoRef;
        change ExtendDiskTask = "ExtendDisk_Task" needs "Datastore.FileManagement" task "Datastore.extendDisk" "Extend a virtual disk object"
        { id: Element, datastore: MoRef, new_capacity_in_mb "newCapacityInMB": i64 } -> MoRef;
        change VStorageObjectCreateSnapshotTask = "VStorageObjectCreateSnapshot_Task" needs "Datastore.FileManagement"
            task "Datastore.createDiskSnapshot" "Create a snapshot of a virtual disk object"
        { id: Element, datastore: MoRef, description: String } -> MoRef;
        read RetrieveSnapshotInfo = "RetrieveSnapshotInfo" { id: Element, datastore: MoRef } -> Element;
        change DeleteSnapshotTask = "DeleteSnapshot_Task" needs "Datastore.FileManagement"
            task "Datastore.deleteDiskSnapshot" "Delete a snapshot of a virtual disk object"
        { id: Element, datastore: MoRef, snapshot_id "snapshotId": Element } -> MoRef;
        change AttachTagToVStorageObject = "AttachTagToVStorageObject" { id: Element, category: String, tag: String } -> ();
        change DetachTagFromVStorageObject = "DetachTagFromVStorageObject" { id: Element, category: String, tag: String } -> ();
        read ListTagsAttachedToVStorageObject = "ListTagsAttachedToVStorageObject" { id: Element } -> Vec<Element>;
        read ListVStorageObjectsAttachedToTag = "ListVStorageObjectsAttachedToTag" { category: String, tag: String } -> Vec<Element>;
        change ReconcileDatastoreInventoryTask = "ReconcileDatastoreInventory_Task" needs "Datastore.FileManagement"
            task "Datastore.reconcileDatastoreInventory" "Reconcile datastore inventory"
        { datastore: MoRef } -> MoRef;
    }

    on CustomizationSpecManager {
        read DoesCustomizationSpecExist = "DoesCustomizationSpecExist" { name: String } -> bool;
        read GetCustomizationSpec = "GetCustomizationSpec" needs "VirtualMachine.Provisioning.ReadCustSpecs"
        { name: String } -> Element;
        change CreateCustomizationSpec = "CreateCustomizationSpec" needs "VirtualMachine.Provisioning.ModifyCustSpecs"
        { item: Element } -> ();
        change OverwriteCustomizationSpec = "OverwriteCustomizationSpec" needs "VirtualMachine.Provisioning.ModifyCustSpecs"
        { item: Element } -> ();
        change DeleteCustomizationSpec = "DeleteCustomizationSpec" needs "VirtualMachine.Provisioning.ModifyCustSpecs"
        { name: String } -> ();
        change DuplicateCustomizationSpec = "DuplicateCustomizationSpec" needs "VirtualMachine.Provisioning.ModifyCustSpecs"
        { name: String, new_name "newName": String } -> ();
        change RenameCustomizationSpec = "RenameCustomizationSpec" needs "VirtualMachine.Provisioning.ModifyCustSpecs"
        { name: String, new_name "newName": String } -> ();
        read CustomizationSpecItemToXml = "CustomizationSpecItemToXml" { item: Element } -> String;
        read XmlToCustomizationSpecItem = "XmlToCustomizationSpecItem"
        { spec_item_xml "specItemXml": String } -> Element;
    }

    on SearchIndex {
        read FindAllByUuid = "FindAllByUuid"
        {
            datacenter: Option<MoRef>,
            uuid: String,
            vm_search "vmSearch": bool,
            instance_uuid "instanceUuid": Option<bool>,
        } -> Vec<MoRef>;
    }

    on ExtensionManager {
        read FindExtension = "FindExtension" { extension_key "extensionKey": String } -> Option<Element>;
        change RegisterExtension = "RegisterExtension" needs "Extension.Register" { extension: Element } -> ();
        change UpdateExtension = "UpdateExtension" needs "Extension.Update" { extension: Element } -> ();
        change UnregisterExtension = "UnregisterExtension" needs "Extension.Unregister"
        { extension_key "extensionKey": String } -> ();
        change SetExtensionCertificate = "SetExtensionCertificate" needs "Extension.Update"
        { extension_key "extensionKey": String, certificate_pem "certificatePem": Option<String> } -> ();
    }
}
