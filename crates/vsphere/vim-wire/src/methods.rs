//! The methods, by the object they are called on. Arguments stand in schema order.

use jiff::Timestamp;

use crate::types::{
    CustomFieldDef, CustomizationSpec, Event, EventFilterSpec, FileTransferInformation,
    GuestFileAttributes, GuestListFileInfo, GuestProcessInfo, GuestProgramSpec,
    HostDatastoreBrowserSearchSpec, NamePasswordAuthentication, ObjectContent, OptionValue,
    Password, PropertyFilterSpec, ResourceConfigSpec, RetrieveOptions, RetrieveResult,
    ServiceContent, SessionManagerGenericServiceTicket, SessionManagerHttpServiceRequestSpec,
    StoragePlacementResult, StoragePlacementSpec, TaskInfo, UpdateSet, UserSession,
    VirtualMachineCloneSpec, VirtualMachineConfigSpec, VirtualMachineRelocateSpec, WaitOptions,
};
use crate::xml::{Reader, Start, Writer};
use crate::{Element, Field, MoRef, Value, WireError};

/// What repeating a call could do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing: it only reads.
    Read,
    /// It makes, moves or ends something that lives and dies with the session.
    Session,
    /// It changes the inventory, a file or a guest.
    Change,
}

/// A call: its arguments, its name, and what it answers.
pub trait Method: Default + Send + Sync + 'static {
    const NAME: &'static str;
    const EFFECT: Effect;
    type Output: Field + Send + 'static;

    fn this(&self) -> &MoRef;

    fn write_arguments(&self, w: &mut Writer);

    fn read_argument(&mut self, r: &mut Reader<'_>, child: &Start<'_>) -> Result<(), WireError>;
}

/// A method with [`Effect::Read`]: all that a read-only handle may call.
pub trait ReadMethod: Method {}

methods! {
    // ServiceInstance
    read RetrieveServiceContent = "RetrieveServiceContent" {} -> ServiceContent;
    read CurrentTime = "CurrentTime" {} -> Timestamp;

    // SessionManager
    session Login = "Login" {
        user_name "userName": String,
        password: Password,
        locale: Option<String>,
    } -> UserSession;
    session Logout = "Logout" {} -> ();
    read SessionIsActive = "SessionIsActive" { session_id "sessionID": String, user_name "userName": String } -> bool;
    session TerminateSession = "TerminateSession" { session_id "sessionId": Vec<String> } -> ();
    session AcquireGenericServiceTicket = "AcquireGenericServiceTicket" {
        spec: SessionManagerHttpServiceRequestSpec,
    } -> SessionManagerGenericServiceTicket;

    // PropertyCollector. The first three answer pages that are decoded while they arrive; see `PageDecoder`.
    read RetrievePropertiesEx = "RetrievePropertiesEx" {
        spec_set "specSet": Vec<PropertyFilterSpec>,
        options: RetrieveOptions,
    } -> Option<RetrieveResult>;
    read ContinueRetrievePropertiesEx = "ContinueRetrievePropertiesEx" { token: String } -> Option<RetrieveResult>;
    read WaitForUpdatesEx = "WaitForUpdatesEx" {
        version: Option<String>,
        options: Option<WaitOptions>,
    } -> Option<UpdateSet>;
    read CancelRetrievePropertiesEx = "CancelRetrievePropertiesEx" { token: String } -> ();
    read RetrieveProperties = "RetrieveProperties" {
        spec_set "specSet": Vec<PropertyFilterSpec>,
    } -> Vec<ObjectContent>;
    /// One property of any managed object; how some clients read a plain attribute.
    read Fetch = "Fetch" { prop: String } -> Option<Value>;
    read WaitForUpdates = "WaitForUpdates" { version: Option<String> } -> UpdateSet;
    read CheckForUpdates = "CheckForUpdates" { version: Option<String> } -> Option<UpdateSet>;
    session CancelWaitForUpdates = "CancelWaitForUpdates" {} -> ();
    session CreatePropertyCollector = "CreatePropertyCollector" {} -> MoRef;
    session DestroyPropertyCollector = "DestroyPropertyCollector" {} -> ();
    session CreateFilter = "CreateFilter" {
        spec: PropertyFilterSpec,
        partial_updates "partialUpdates": bool,
    } -> MoRef;
    session DestroyPropertyFilter = "DestroyPropertyFilter" {} -> ();

    // ViewManager and views
    session CreateContainerView = "CreateContainerView" {
        container: MoRef,
        kind "type": Vec<String>,
        recursive: bool,
    } -> MoRef;
    session CreateListView = "CreateListView" { obj: Vec<MoRef> } -> MoRef;
    session ModifyListView = "ModifyListView" { add: Vec<MoRef>, remove: Vec<MoRef> } -> Vec<MoRef>;
    session ResetListView = "ResetListView" { obj: Vec<MoRef> } -> Vec<MoRef>;
    session DestroyView = "DestroyView" {} -> ();

    // SearchIndex
    read FindByInventoryPath = "FindByInventoryPath" { inventory_path "inventoryPath": String } -> Option<MoRef>;
    read FindByUuid = "FindByUuid" {
        datacenter: Option<MoRef>,
        uuid: String,
        vm_search "vmSearch": bool,
        instance_uuid "instanceUuid": Option<bool>,
    } -> Option<MoRef>;
    read FindByIp = "FindByIp" {
        datacenter: Option<MoRef>,
        ip: String,
        vm_search "vmSearch": bool,
    } -> Option<MoRef>;
    read FindByDnsName = "FindByDnsName" {
        datacenter: Option<MoRef>,
        dns_name "dnsName": String,
        vm_search "vmSearch": bool,
    } -> Option<MoRef>;
    read FindChild = "FindChild" { entity: MoRef, name: String } -> Option<MoRef>;

    // VirtualMachine
    change CloneVmTask = "CloneVM_Task" { folder: MoRef, name: String, spec: VirtualMachineCloneSpec } -> MoRef;
    change ReconfigVmTask = "ReconfigVM_Task" { spec: VirtualMachineConfigSpec } -> MoRef;
    change CustomizeVmTask = "CustomizeVM_Task" { spec: CustomizationSpec } -> MoRef;
    change PowerOnVmTask = "PowerOnVM_Task" { host: Option<MoRef> } -> MoRef;
    change PowerOffVmTask = "PowerOffVM_Task" {} -> MoRef;
    change ResetVmTask = "ResetVM_Task" {} -> MoRef;
    change SuspendVmTask = "SuspendVM_Task" {} -> MoRef;
    change ShutdownGuest = "ShutdownGuest" {} -> ();
    change RebootGuest = "RebootGuest" {} -> ();
    change StandbyGuest = "StandbyGuest" {} -> ();
    change MarkAsTemplate = "MarkAsTemplate" {} -> ();
    change MarkAsVirtualMachine = "MarkAsVirtualMachine" { pool: MoRef, host: Option<MoRef> } -> ();
    change UnregisterVm = "UnregisterVM" {} -> ();
    change RelocateVmTask = "RelocateVM_Task" {
        spec: VirtualMachineRelocateSpec,
        priority: Option<String>,
    } -> MoRef;
    change UpgradeVmTask = "UpgradeVM_Task" { version: Option<String> } -> MoRef;
    change CreateSnapshotTask = "CreateSnapshot_Task" {
        name: String,
        description: Option<String>,
        memory: bool,
        quiesce: bool,
    } -> MoRef;
    change RevertToCurrentSnapshotTask = "RevertToCurrentSnapshot_Task" {
        host: Option<MoRef>,
        suppress_power_on "suppressPowerOn": Option<bool>,
    } -> MoRef;
    change RemoveAllSnapshotsTask = "RemoveAllSnapshots_Task" { consolidate: Option<bool> } -> MoRef;

    // VirtualMachineSnapshot
    change RevertToSnapshotTask = "RevertToSnapshot_Task" {
        host: Option<MoRef>,
        suppress_power_on "suppressPowerOn": Option<bool>,
    } -> MoRef;
    change RemoveSnapshotTask = "RemoveSnapshot_Task" {
        remove_children "removeChildren": bool,
        consolidate: Option<bool>,
    } -> MoRef;

    // ManagedEntity, Folder, ResourcePool
    change RenameTask = "Rename_Task" { new_name "newName": String } -> MoRef;
    change DestroyTask = "Destroy_Task" {} -> MoRef;
    change CreateVmTask = "CreateVM_Task" {
        config: VirtualMachineConfigSpec,
        pool: MoRef,
        host: Option<MoRef>,
    } -> MoRef;
    change CreateFolder = "CreateFolder" { name: String } -> MoRef;
    change MoveIntoFolderTask = "MoveIntoFolder_Task" { list: Vec<MoRef> } -> MoRef;
    change CreateResourcePool = "CreateResourcePool" { name: String, spec: ResourceConfigSpec } -> MoRef;
    change UpdateConfig = "UpdateConfig" {
        name: Option<String>,
        config: Option<ResourceConfigSpec>,
    } -> ();

    // Task
    change CancelTask = "CancelTask" {} -> ();
    // TaskManager
    read CreateCollectorForTasks = "CreateCollectorForTasks" { filter: Element } -> MoRef;
    change CreateTask = "CreateTask" {
        obj: MoRef,
        task_type_id "taskTypeId": String,
        initiated_by "initiatedBy": Option<String>,
        cancelable: bool,
        parent_task_key "parentTaskKey": Option<String>,
        activation_id "activationId": Option<String>,
    } -> TaskInfo;
    read ReadNextTasks = "ReadNextTasks" { max_count "maxCount": i32 } -> Vec<TaskInfo>;

    // EventManager and its collectors
    read QueryEvents = "QueryEvents" { filter: EventFilterSpec } -> Vec<Event>;
    session CreateCollectorForEvents = "CreateCollectorForEvents" { filter: EventFilterSpec } -> MoRef;
    session SetCollectorPageSize = "SetCollectorPageSize" { max_count "maxCount": i32 } -> ();
    session ReadNextEvents = "ReadNextEvents" { max_count "maxCount": i32 } -> Vec<Event>;
    session ReadPreviousEvents = "ReadPreviousEvents" { max_count "maxCount": i32 } -> Vec<Event>;
    session RewindCollector = "RewindCollector" {} -> ();
    session ResetCollector = "ResetCollector" {} -> ();
    session DestroyCollector = "DestroyCollector" {} -> ();

    // FileManager, HostDatastoreBrowser, VirtualDiskManager
    change MakeDirectory = "MakeDirectory" {
        name: String,
        datacenter: Option<MoRef>,
        create_parent_directories "createParentDirectories": Option<bool>,
    } -> ();
    change DeleteDatastoreFileTask = "DeleteDatastoreFile_Task" { name: String, datacenter: Option<MoRef> } -> MoRef;
    change MoveDatastoreFileTask = "MoveDatastoreFile_Task" {
        source_name "sourceName": String,
        source_datacenter "sourceDatacenter": Option<MoRef>,
        destination_name "destinationName": String,
        destination_datacenter "destinationDatacenter": Option<MoRef>,
        force: Option<bool>,
    } -> MoRef;
    read SearchDatastoreTask = "SearchDatastore_Task" {
        datastore_path "datastorePath": String,
        search_spec "searchSpec": Option<HostDatastoreBrowserSearchSpec>,
    } -> MoRef;
    read SearchDatastoreSubFoldersTask = "SearchDatastoreSubFolders_Task" {
        datastore_path "datastorePath": String,
        search_spec "searchSpec": Option<HostDatastoreBrowserSearchSpec>,
    } -> MoRef;
    change CopyVirtualDiskTask = "CopyVirtualDisk_Task" {
        source_name "sourceName": String,
        source_datacenter "sourceDatacenter": Option<MoRef>,
        dest_name "destName": String,
        dest_datacenter "destDatacenter": Option<MoRef>,
        dest_spec "destSpec": Option<Element>,
        force: Option<bool>,
    } -> MoRef;
    read RecommendDatastores = "RecommendDatastores" {
        storage_spec "storageSpec": StoragePlacementSpec,
    } -> StoragePlacementResult;

    // Guest operations
    change StartProgramInGuest = "StartProgramInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        spec: GuestProgramSpec,
    } -> i64;
    read ListProcessesInGuest = "ListProcessesInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        pids: Vec<i64>,
    } -> Vec<GuestProcessInfo>;
    change TerminateProcessInGuest = "TerminateProcessInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        pid: i64,
    } -> ();
    read ReadEnvironmentVariableInGuest = "ReadEnvironmentVariableInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        names: Vec<String>,
    } -> Vec<String>;
    read ValidateCredentialsInGuest = "ValidateCredentialsInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
    } -> ();
    change InitiateFileTransferToGuest = "InitiateFileTransferToGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        guest_file_path "guestFilePath": String,
        file_attributes "fileAttributes": GuestFileAttributes,
        file_size "fileSize": i64,
        overwrite: bool,
    } -> String;
    read InitiateFileTransferFromGuest = "InitiateFileTransferFromGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        guest_file_path "guestFilePath": String,
    } -> FileTransferInformation;
    change MakeDirectoryInGuest = "MakeDirectoryInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        directory_path "directoryPath": String,
        create_parent_directories "createParentDirectories": bool,
    } -> ();
    change DeleteFileInGuest = "DeleteFileInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        file_path "filePath": String,
    } -> ();
    read ListFilesInGuest = "ListFilesInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        file_path "filePath": String,
        index: Option<i32>,
        max_results "maxResults": Option<i32>,
        match_pattern "matchPattern": Option<String>,
    } -> GuestListFileInfo;
    change CreateTemporaryFileInGuest = "CreateTemporaryFileInGuest" {
        vm: MoRef,
        auth: NamePasswordAuthentication,
        prefix: String,
        suffix: String,
        directory_path "directoryPath": Option<String>,
    } -> String;

    // CustomFieldsManager, OptionManager
    change AddCustomFieldDef = "AddCustomFieldDef" {
        name: String,
        mo_type "moType": Option<String>,
    } -> CustomFieldDef;
    change SetField = "SetField" { entity: MoRef, key: i32, value: String } -> ();
    read QueryOptions = "QueryOptions" { name: Option<String> } -> Vec<OptionValue>;
    change UpdateOptions = "UpdateOptions" { changed_value "changedValue": Vec<OptionValue> } -> ();

    // AuthorizationManager
    read HasPrivilegeOnEntities = "HasPrivilegeOnEntities" {
        entity: Vec<MoRef>,
        session_id "sessionId": String,
        priv_id "privId": Vec<String>,
    } -> Vec<EntityPrivilege>;
    // EnvironmentBrowser, and the ticket for a console
    read QueryConfigOption = "QueryConfigOption" { key: Option<String>, host: Option<MoRef> } -> Option<Element>;
    read QueryConfigOptionEx = "QueryConfigOptionEx" { spec: Option<Element> } -> Option<Element>;
    read QueryConfigTarget = "QueryConfigTarget" { host: Option<MoRef> } -> Option<Element>;
    change AcquireTicket = "AcquireTicket" { ticket_type "ticketType": String } -> Element;
    // Clusters and the root folder
    read PlaceVm = "PlaceVm" { placement_spec "placementSpec": Element } -> Element;
    read PlaceVmsXCluster = "PlaceVmsXCluster" { placement_spec "placementSpec": Element } -> Element;
}

data! {
    struct EntityPrivilege {
        entity: MoRef,
        priv_availability "privAvailability": Vec<PrivilegeAvailability>,
    }

    struct PrivilegeAvailability {
        priv_id "privId": String,
        is_granted "isGranted": bool,
    }
}
