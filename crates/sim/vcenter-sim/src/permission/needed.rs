//! Which privilege a call needs, and on what.

use roost_vim_wire::methods::{
    CloneVmTask, ConfigureStorageDrsForPodTask, CreateDiskTask, CreateVmTask, DestroyTask,
    MakeDirectory, MarkAsVirtualMachine, MoveDatastoreFileTask, MoveVirtualDiskTask,
    ReconfigVmTask, RegisterDisk, RelocateVmTask, RemoveEntityPermission, RenameTask,
    RenameVStorageObject, SearchDatastoreTask, SetEntityPermissions, SetField,
    ValidateCredentialsInGuest, VslmAttachDiskTask,
};
use roost_vim_wire::types::VirtualMachineConfigSpec;
use roost_vim_wire::{Element, Method, MoRef, MoType, Request, Value, methods};

use crate::world::World;
use crate::{host_config, model, store};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Need {
    pub privilege: &'static str,
    pub on: MoRef,
}

impl From<(&'static str, &MoRef)> for Need {
    fn from((privilege, on): (&'static str, &MoRef)) -> Self {
        Self { privilege, on: on.clone() }
    }
}

/// What the call needs beyond being logged in. Arguments that cannot be decoded need nothing: the call itself will say so.
pub(crate) fn needs(request: &Request<'_>, this: &MoRef, world: &World) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |privilege, on: &MoRef| needs.push(Need { privilege, on: on.clone() });
    match request.method {
        CloneVmTask::NAME => {
            let Ok(call) = request.decode::<CloneVmTask>() else { return needs };
            let template = model::property(world, this, "config.template").ok().flatten();
            match template.and_then(|value| value.as_bool()) {
                Some(true) => need("VirtualMachine.Provisioning.DeployTemplate", this),
                _ => need("VirtualMachine.Provisioning.Clone", this),
            }
            need("VirtualMachine.Inventory.CreateFromExisting", &call.folder);
            if let Some(pool) = &call.spec.location.pool {
                need("Resource.AssignVMToPool", pool);
            }
            if let Some(datastore) = &call.spec.location.datastore {
                need("Datastore.AllocateSpace", datastore);
            }
            if call.spec.customization.is_some() {
                need("VirtualMachine.Provisioning.Customize", this);
            }
        }
        CreateVmTask::NAME => {
            let Ok(call) = request.decode::<CreateVmTask>() else { return needs };
            need("VirtualMachine.Inventory.Create", this);
            need("Resource.AssignVMToPool", &call.pool);
        }
        ReconfigVmTask::NAME => {
            let Ok(call) = request.decode::<ReconfigVmTask>() else { return needs };
            for privilege in reconfigure(&call.spec) {
                need(privilege, this);
            }
        }
        RelocateVmTask::NAME => {
            let Ok(call) = request.decode::<RelocateVmTask>() else { return needs };
            let power = model::property(world, this, "runtime.powerState").ok().flatten();
            let is_on = power.as_ref().and_then(Value::as_str) == Some("poweredOn");
            need(if is_on { "Resource.HotMigrate" } else { "Resource.ColdMigrate" }, this);
            if let Some(pool) = &call.spec.pool {
                need("Resource.AssignVMToPool", pool);
            }
        }
        MarkAsVirtualMachine::NAME => {
            let Ok(call) = request.decode::<MarkAsVirtualMachine>() else { return needs };
            need("VirtualMachine.Provisioning.MarkAsVM", this);
            need("Resource.AssignVMToPool", &call.pool);
        }
        RenameTask::NAME => need(by_kind(this, RENAME), this),
        DestroyTask::NAME => need(by_kind(this, DESTROY), this),
        SetEntityPermissions::NAME | RemoveEntityPermission::NAME => {
            // Both begin with the entity.
            let Ok(call) = request.decode::<RemoveEntityPermission>() else { return needs };
            need("Authorization.ModifyPermissions", &call.entity);
        }
        VslmAttachDiskTask::NAME => {
            let Ok(call) = request.decode::<VslmAttachDiskTask>() else { return needs };
            need("VirtualMachine.Config.AddExistingDisk", &call.vm);
        }
        ConfigureStorageDrsForPodTask::NAME => {
            let Ok(call) = request.decode::<ConfigureStorageDrsForPodTask>() else { return needs };
            need("StoragePod.Config", &call.pod);
        }
        name => {
            let Some(method) = methods::by_name(name) else { return needs };
            let Some(privilege) = method.privilege else { return needs };
            match method.receiver {
                "FileManager"
                | "VirtualDiskManager"
                | "HostDatastoreBrowser"
                | "DatastoreNamespaceManager"
                | "VcenterVStorageObjectManager"
                | "VslmVStorageObjectManager" => {
                    let all = datastores_of(request, world);
                    if all.is_empty() {
                        need(privilege, &place(world, this));
                    }
                    for datastore in &all {
                        need(privilege, datastore);
                    }
                }
                "CustomFieldsManager" => match request.decode::<SetField>() {
                    Ok(call) if !call.entity.is_null() => need(privilege, &call.entity),
                    _ => need(privilege, &place(world, this)),
                },
                "GuestProcessManager" | "GuestFileManager" | "GuestAuthManager" => {
                    // All of them begin with `vm` and `auth`, so any one of them can be decoded as this.
                    let call = request.decode::<ValidateCredentialsInGuest>();
                    need(privilege, &call.map(|call| call.vm).unwrap_or_default());
                }
                _ => need(privilege, &place(world, this)),
            }
        }
    }
    needs
}

/// The entity whose permissions hold for an object: a snapshot is its VM's, a subsystem its host's, a task its entity's, and
/// what belongs to no entity is the whole server's, which is the root folder.
pub(crate) fn place(world: &World, obj: &MoRef) -> MoRef {
    let inventory = &world.inventory;
    let found = match &obj.kind {
        kind if kind.is_a("ManagedEntity") => Some(obj.clone()),
        MoType::VirtualMachineSnapshot => inventory.snapshots.get(obj).cloned(),
        MoType::HostDatastoreBrowser => inventory.datastore_of_browser(obj),
        MoType::EnvironmentBrowser => inventory.compute_of_environment(obj),
        MoType::Task => world.tasks.entity_of(obj).map(|entity| place(world, entity)),
        _ => host_config::host_of(inventory, obj),
    };
    found.unwrap_or_else(|| inventory.root.clone())
}

fn reconfigure(spec: &VirtualMachineConfigSpec) -> Vec<&'static str> {
    let mut all = Vec::new();
    let mut when = |is_set: bool, privilege| all.extend(is_set.then_some(privilege));
    when(spec.name.is_some(), "VirtualMachine.Config.Rename");
    when(spec.annotation.is_some(), "VirtualMachine.Config.Annotation");
    when(spec.num_cpus.is_some(), "VirtualMachine.Config.CPUCount");
    when(spec.memory_mb.is_some(), "VirtualMachine.Config.Memory");
    when(!spec.extra_config.is_empty(), "VirtualMachine.Config.AdvancedConfig");
    when(!spec.device_change.is_empty(), "VirtualMachine.Config.AddRemoveDevice");
    if all.is_empty() {
        all.push("VirtualMachine.Config.Settings");
    }
    all
}

/// The datastores that the arguments of a call name: by path, by address, by themselves, or by the disk that is on one.
fn datastores_of(request: &Request<'_>, world: &World) -> Vec<MoRef> {
    // Decoded as one call of each shape: arguments that a shape does not have are passed over.
    let mut paths = Vec::new();
    paths.extend(request.decode::<MakeDirectory>().map(|call| call.name));
    paths.extend(request.decode::<SearchDatastoreTask>().map(|call| call.datastore_path));
    let moved = request.decode::<MoveDatastoreFileTask>();
    paths.extend(moved.into_iter().flat_map(|call| [call.source_name, call.destination_name]));
    paths.extend(request.decode::<MoveVirtualDiskTask>().map(|call| call.dest_name));
    let name_of = |path: &String| {
        path.strip_prefix('[').and_then(|path| path.split(']').next()).map(ToOwned::to_owned)
    };
    let mut names: Vec<String> = paths.iter().filter_map(name_of).collect();
    if let Ok(call) = request.decode::<RegisterDisk>() {
        let query = call.path.split_once('?').map(|(_, query)| query);
        names.extend(query.and_then(|query| store::parameter(query, "dsName")));
    }
    let mut found: Vec<MoRef> = names.iter().filter_map(|name| datastore(world, name)).collect();
    if let Ok(call) = request.decode::<CreateDiskTask>() {
        let backing = call.spec.child("backingSpec").and_then(|backing| backing.child("datastore"));
        found.extend(backing.and_then(Element::moref));
    }
    if let Ok(call) = request.decode::<RenameVStorageObject>() {
        let named = Some(call.datastore).filter(|datastore| !datastore.is_null());
        found.extend(named.or_else(|| world.disk_objects.datastore_of(&call.id)));
    }
    found.retain(|datastore| world.inventory.datastores.contains(datastore));
    found.dedup();
    found
}

/// The datastore of this name.
pub(crate) fn datastore(world: &World, name: &str) -> Option<MoRef> {
    let all = world.inventory.of_kind(&MoType::Datastore);
    all.into_iter().find(|datastore| world.inventory.name(datastore) == Some(name))
}

fn by_kind(obj: &MoRef, table: &[(&str, &'static str)]) -> &'static str {
    let fits = table.iter().find(|(base, _)| obj.kind.is_a(base));
    fits.map_or("System.Read", |(_, privilege)| privilege)
}

const RENAME: &[(&str, &str)] = &[
    ("VirtualMachine", "VirtualMachine.Config.Rename"),
    ("Folder", "Folder.Rename"),
    ("ResourcePool", "Resource.RenamePool"),
    ("Datastore", "Datastore.Rename"),
    ("Datacenter", "Datacenter.Rename"),
    ("ManagedEntity", "Host.Inventory.RenameCluster"),
];

const DESTROY: &[(&str, &str)] = &[
    ("VirtualMachine", "VirtualMachine.Inventory.Delete"),
    ("Folder", "Folder.Delete"),
    ("ResourcePool", "Resource.DeletePool"),
    ("Datastore", "Datastore.Delete"),
    ("Datacenter", "Datacenter.Delete"),
    ("DistributedVirtualPortgroup", "DVPortgroup.Delete"),
    ("DistributedVirtualSwitch", "DVSwitch.Delete"),
    ("ManagedEntity", "Host.Inventory.DeleteCluster"),
];

/// The privileges that the authorization manager lists.
pub(super) const PRIVILEGES: &[&str] = &[
    "Authorization.ModifyPermissions",
    "Authorization.ModifyRoles",
    "ContentLibrary.AddCertToTrustStore",
    "ContentLibrary.AddLibraryItem",
    "ContentLibrary.CheckInTemplate",
    "ContentLibrary.CreateLocalLibrary",
    "ContentLibrary.CreateSubscribedLibrary",
    "ContentLibrary.DeleteCertFromTrustStore",
    "ContentLibrary.DeleteLibraryItem",
    "ContentLibrary.DeleteLocalLibrary",
    "ContentLibrary.DeleteSubscribedLibrary",
    "ContentLibrary.DownloadSession",
    "ContentLibrary.SyncLibrary",
    "ContentLibrary.SyncLibraryItem",
    "ContentLibrary.UpdateLibrary",
    "ContentLibrary.UpdateLibraryItem",
    "ContentLibrary.UpdateSession",
    "DVPortgroup.Create",
    "DVPortgroup.Delete",
    "DVPortgroup.Modify",
    "DVSwitch.Create",
    "DVSwitch.Delete",
    "DVSwitch.Modify",
    "Datacenter.Create",
    "Datacenter.Delete",
    "Datacenter.Rename",
    "Datastore.AllocateSpace",
    "Datastore.Browse",
    "Datastore.Delete",
    "Datastore.FileManagement",
    "Datastore.Rename",
    "Extension.Register",
    "Extension.Unregister",
    "Extension.Update",
    "Folder.Create",
    "Folder.Delete",
    "Folder.Move",
    "Folder.Rename",
    "Global.CancelTask",
    "Global.Licenses",
    "Global.LogEvent",
    "Global.ManageCustomFields",
    "Global.SetCustomField",
    "Global.Settings",
    "Host.Config.Connection",
    "Host.Config.DateTime",
    "Host.Config.Maintenance",
    "Host.Config.NetService",
    "Host.Config.Network",
    "Host.Config.Storage",
    "Host.Inventory.AddHostToCluster",
    "Host.Inventory.AddStandaloneHost",
    "Host.Inventory.CreateCluster",
    "Host.Inventory.DeleteCluster",
    "Host.Inventory.EditCluster",
    "Host.Inventory.MoveHost",
    "Host.Inventory.RenameCluster",
    "InventoryService.Tagging.AttachTag",
    "InventoryService.Tagging.CreateCategory",
    "InventoryService.Tagging.CreateTag",
    "InventoryService.Tagging.DeleteCategory",
    "InventoryService.Tagging.DeleteTag",
    "InventoryService.Tagging.EditCategory",
    "InventoryService.Tagging.EditTag",
    "Namespaces.Configure",
    "Network.Assign",
    "Resource.AssignVMToPool",
    "Resource.ColdMigrate",
    "Resource.CreatePool",
    "Resource.DeletePool",
    "Resource.EditPool",
    "Resource.HotMigrate",
    "Resource.RenamePool",
    "Sessions.TerminateSession",
    "Sessions.ValidateSession",
    "StoragePod.Config",
    "StorageProfile.Update",
    "StorageProfile.View",
    "System.Anonymous",
    "System.Read",
    "System.View",
    "VApp.ApplicationConfig",
    "VApp.Create",
    "VApp.Export",
    "VApp.Import",
    "VApp.PowerOff",
    "VApp.PowerOn",
    "VApp.Suspend",
    "VirtualMachine.Config.AddExistingDisk",
    "VirtualMachine.Config.AddNewDisk",
    "VirtualMachine.Config.AddRemoveDevice",
    "VirtualMachine.Config.AdvancedConfig",
    "VirtualMachine.Config.Annotation",
    "VirtualMachine.Config.CPUCount",
    "VirtualMachine.Config.DiskExtend",
    "VirtualMachine.Config.EditDevice",
    "VirtualMachine.Config.Memory",
    "VirtualMachine.Config.RemoveDisk",
    "VirtualMachine.Config.Rename",
    "VirtualMachine.Config.Settings",
    "VirtualMachine.Config.UpgradeVirtualHardware",
    "VirtualMachine.GuestOperations.Execute",
    "VirtualMachine.GuestOperations.Modify",
    "VirtualMachine.GuestOperations.Query",
    "VirtualMachine.Interact.ConsoleInteract",
    "VirtualMachine.Interact.PowerOff",
    "VirtualMachine.Interact.PowerOn",
    "VirtualMachine.Interact.Reset",
    "VirtualMachine.Interact.Suspend",
    "VirtualMachine.Inventory.Create",
    "VirtualMachine.Inventory.CreateFromExisting",
    "VirtualMachine.Inventory.Delete",
    "VirtualMachine.Inventory.Register",
    "VirtualMachine.Inventory.Unregister",
    "VirtualMachine.Provisioning.Clone",
    "VirtualMachine.Provisioning.Customize",
    "VirtualMachine.Provisioning.DeployTemplate",
    "VirtualMachine.Provisioning.MarkAsTemplate",
    "VirtualMachine.Provisioning.MarkAsVM",
    "VirtualMachine.Provisioning.ModifyCustSpecs",
    "VirtualMachine.Provisioning.PromoteDisks",
    "VirtualMachine.Provisioning.ReadCustSpecs",
    "VirtualMachine.State.CreateSnapshot",
    "VirtualMachine.State.RemoveSnapshot",
    "VirtualMachine.State.RevertToSnapshot",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_privilege_that_a_method_needs_is_listed() {
        for method in methods::all() {
            if let Some(privilege) = method.privilege {
                assert!(PRIVILEGES.contains(&privilege), "{privilege} of {}", method.name);
            }
        }
    }
}
