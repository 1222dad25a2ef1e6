//! Files and disks on datastores.

use crate::types::HostDatastoreBrowserSearchSpec;
use crate::{Element, MoRef};

methods! {
    on FileManager {
        change MakeDirectory = "MakeDirectory" needs "Datastore.FileManagement"
        {
            name: String,
            datacenter: Option<MoRef>,
            create_parent_directories "createParentDirectories": Option<bool>,
        } -> ();
        change DeleteDatastoreFileTask = "DeleteDatastoreFile_Task" needs "Datastore.FileManagement" task "Datastore.deleteDatastoreFile" "Delete file"
        { name: String, datacenter: Option<MoRef> } -> MoRef;
        change CopyDatastoreFileTask = "CopyDatastoreFile_Task" needs "Datastore.FileManagement" task "Datastore.copyDatastoreFile" "Copy file"
        {
            source_name "sourceName": String,
            source_datacenter "sourceDatacenter": Option<MoRef>,
            destination_name "destinationName": String,
            destination_datacenter "destinationDatacenter": Option<MoRef>,
            force: Option<bool>,
        } -> MoRef;
        change MoveDatastoreFileTask = "MoveDatastoreFile_Task" needs "Datastore.FileManagement" task "Datastore.moveDatastoreFile" "Move file"
        {
            source_name "sourceName": String,
            source_datacenter "sourceDatacenter": Option<MoRef>,
            destination_name "destinationName": String,
            destination_datacenter "destinationDatacenter": Option<MoRef>,
            force: Option<bool>,
        } -> MoRef;
    }

    on HostDatastoreBrowser {
        read SearchDatastoreTask = "SearchDatastore_Task" needs "Datastore.Browse" task "Datastore.searchDatastore" "Search datastore"
        {
            datastore_path "datastorePath": String,
            search_spec "searchSpec": Option<HostDatastoreBrowserSearchSpec>,
        } -> MoRef;
        read SearchDatastoreSubFoldersTask = "SearchDatastoreSubFolders_Task" needs "Datastore.Browse" task "Datastore.searchDatastoreSubFolders" "Search datastore subfolders"
        {
            datastore_path "datastorePath": String,
            search_spec "searchSpec": Option<HostDatastoreBrowserSearchSpec>,
        } -> MoRef;
    }

    on VirtualDiskManager {
        change CreateVirtualDiskTask = "CreateVirtualDisk_Task" needs "Datastore.FileManagement" task "Datastore.createVirtualDisk" "Create virtual disk"
        { name: String, datacenter: Option<MoRef>, spec: Element } -> MoRef;
        change DeleteVirtualDiskTask = "DeleteVirtualDisk_Task" needs "Datastore.FileManagement" task "Datastore.deleteVirtualDisk" "Delete virtual disk"
        { name: String, datacenter: Option<MoRef> } -> MoRef;
        change MoveVirtualDiskTask = "MoveVirtualDisk_Task" needs "Datastore.FileManagement" task "Datastore.moveVirtualDisk" "Move virtual disk"
        {
            source_name "sourceName": String,
            source_datacenter "sourceDatacenter": Option<MoRef>,
            dest_name "destName": String,
            dest_datacenter "destDatacenter": Option<MoRef>,
            force: Option<bool>,
        } -> MoRef;
        change ExtendVirtualDiskTask = "ExtendVirtualDisk_Task" needs "Datastore.FileManagement" task "Datastore.extendVirtualDisk" "Extend virtual disk"
        {
            name: String,
            datacenter: Option<MoRef>,
            new_capacity_kb "newCapacityKb": i64,
            eager_zero "eagerZero": Option<bool>,
        } -> MoRef;
        read QueryVirtualDiskInfoTask = "QueryVirtualDiskInfo_Task" needs "Datastore.Browse" task "Datastore.queryVirtualDiskInfo" "Query virtual disk info"
        { name: String, datacenter: Option<MoRef>, include_parents "includeParents": bool } -> MoRef;
        change InflateVirtualDiskTask = "InflateVirtualDisk_Task" needs "Datastore.FileManagement" task "Datastore.inflateDisk" "Inflate virtual disk"
        { name: String, datacenter: Option<MoRef> } -> MoRef;
        change ShrinkVirtualDiskTask = "ShrinkVirtualDisk_Task" needs "Datastore.FileManagement" task "Datastore.shrinkVirtualDisk" "Shrink virtual disk"
        { name: String, datacenter: Option<MoRef>, copy: Option<bool> } -> MoRef;
        read QueryVirtualDiskUuid = "QueryVirtualDiskUuid" { name: String, datacenter: Option<MoRef> } -> String;
        change CopyVirtualDiskTask = "CopyVirtualDisk_Task" needs "Datastore.FileManagement" task "Datastore.copyVirtualDisk" "Copy virtual disk"
        {
            source_name "sourceName": String,
            source_datacenter "sourceDatacenter": Option<MoRef>,
            dest_name "destName": String,
            dest_datacenter "destDatacenter": Option<MoRef>,
            dest_spec "destSpec": Option<Element>,
            force: Option<bool>,
        } -> MoRef;
    }
}
