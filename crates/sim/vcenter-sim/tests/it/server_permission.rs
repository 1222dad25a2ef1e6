//! Privileges that are taken away.

use crate::lab::{Client, Lab, of_object};
use roost_vim_wire::methods::{
    AddAuthorizationRole, CloneVmTask, CreateCustomizationSpec, CreateDirectory, CreateDiskTask,
    CreateFilter, CreateFolder, CreateSnapshotTask, CreateVirtualDiskTask, HasPrivilegeOnEntities,
    ListVStorageObject, MakeDirectory, Permission, PowerOffVmTask, ReconfigVmTask,
    RegisterExtension, RemoveEntityPermission, RemoveSnapshotTask, RescanAllHba,
    RetrieveAllPermissions, SearchDatastoreTask, SetEntityPermissions, SetField, TerminateSession,
    UpdateOptions, WaitForUpdatesEx,
};
use roost_vim_wire::types::{VirtualMachineCloneSpec, VirtualMachineConfigSpec, WaitOptions};
use roost_vim_wire::{Element, Fault, Method, MoRef};

fn denied(fault: &Fault) -> (&str, Option<&str>, Option<MoRef>) {
    (&fault.class, fault.text("privilegeId"), fault.object("object"))
}

async fn power_off(client: &Client, vm: &MoRef) -> Result<MoRef, Fault> {
    client.call(PowerOffVmTask { this: vm.clone() }).await
}

#[tokio::test(start_paused = true)]
async fn a_privilege_can_be_taken_away_and_given_back() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let privilege = "VirtualMachine.Interact.PowerOff";
    lab.vcenter.deny(privilege, None);
    let fault = power_off(&client, &vm).await.unwrap_err();
    assert_eq!(denied(&fault), ("NoPermission", Some(privilege), Some(vm.clone())));
    assert!(client.property(&vm, "name").await.is_some(), "others are not affected");
    lab.vcenter.allow(privilege, None);
    assert!(power_off(&client, &vm).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_privilege_can_be_taken_away_below_an_object() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let (on_host, in_cluster) =
        (client.find("/DC0/vm/DC0_H0_VM0").await, client.find("/DC0/vm/DC0_C0_RP0_VM0").await);
    let pool = client.find("/DC0/host/DC0_C0/Resources").await;
    lab.vcenter.deny("VirtualMachine.Interact.*", Some(pool));
    assert_eq!(power_off(&client, &in_cluster).await.unwrap_err().class, "NoPermission");
    assert!(power_off(&client, &on_host).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_clone_needs_privileges_on_all_that_it_touches() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let (vm, folder) = (client.find("/DC0/vm/DC0_H0_VM0").await, client.find("/DC0/vm").await);
    let (pool, datastore) = (
        client.find("/DC0/host/DC0_C0/Resources").await,
        client.find("/DC0/datastore/LocalDS_0").await,
    );
    let mut spec = VirtualMachineCloneSpec::default();
    spec.location.pool = Some(pool.clone());
    spec.location.datastore = Some(datastore.clone());
    let clone = CloneVmTask { this: vm.clone(), folder: folder.clone(), name: "copy".into(), spec };
    for (privilege, on) in [
        ("VirtualMachine.Provisioning.Clone", vm),
        ("VirtualMachine.Inventory.CreateFromExisting", folder),
        ("Resource.AssignVMToPool", pool),
        ("Datastore.AllocateSpace", datastore),
    ] {
        lab.vcenter.deny(privilege, Some(on.clone()));
        let fault = client.call(clone.clone()).await.unwrap_err();
        assert_eq!(denied(&fault), ("NoPermission", Some(privilege), Some(on.clone())));
        lab.vcenter.allow(privilege, Some(on));
    }
    assert!(client.call(clone).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_reconfiguration_needs_what_its_fields_need() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    lab.vcenter.deny("VirtualMachine.Config.Annotation", None);
    let change = |spec| ReconfigVmTask { this: vm.clone(), spec };
    let annotate = VirtualMachineConfigSpec {
        annotation: Some("x".into()),
        ..VirtualMachineConfigSpec::default()
    };
    let rename =
        VirtualMachineConfigSpec { name: Some("y".into()), ..VirtualMachineConfigSpec::default() };
    assert_eq!(client.call(change(annotate)).await.unwrap_err().class, "NoPermission");
    assert!(client.call(change(rename)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_read_is_missing_and_not_an_error() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let filter = CreateFilter {
        this: client.collector(),
        spec: of_object(&vm, &["name"]),
        partial_updates: false,
    };
    client.call(filter).await.unwrap();
    lab.vcenter.deny("System.Read", Some(vm.clone()));
    let objects = client.read_all(of_object(&vm, &["name", "parent"])).await.unwrap();
    let missing: Vec<_> =
        objects[0].missing_set.iter().map(|missing| missing.path.as_str()).collect();
    assert_eq!((missing, objects[0].prop_set.len()), (vec!["name", "parent"], 0));
    assert_eq!(
        denied(&objects[0].missing_set[0].fault.fault),
        ("NoPermission", Some("System.Read"), Some(vm.clone()))
    );
    let wait = WaitForUpdatesEx {
        this: client.collector(),
        version: None,
        options: Some(WaitOptions { max_wait_seconds: Some(0), max_object_updates: None }),
    };
    let update =
        client.call(wait).await.unwrap().unwrap().filter_set.remove(0).object_set.remove(0);
    assert_eq!(
        (update.change_set.len(), update.missing_set[0].fault.fault.class.as_str()),
        (0, "NoPermission")
    );
}

#[tokio::test(start_paused = true)]
async fn privileges_can_be_asked_for() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let (host, folder) = (client.find("/DC0/host").await, client.find("/DC0/vm").await);
    lab.vcenter.deny("Folder.Create", Some(folder.clone()));
    let asked = HasPrivilegeOnEntities {
        this: client.content.authorization_manager.clone().unwrap(),
        entity: vec![host, folder.clone()],
        session_id: client.session.key.clone(),
        priv_id: vec!["Folder.Create".into(), "Folder.Delete".into()],
    };
    let answers = client.call(asked).await.unwrap();
    let granted: Vec<Vec<bool>> = answers
        .iter()
        .map(|entity| {
            entity.priv_availability.iter().map(|privilege| privilege.is_granted).collect()
        })
        .collect();
    assert_eq!(granted, [[true, true], [false, true]]);
    let create = CreateFolder { this: folder, name: "x".into() };
    assert_eq!(client.call(create).await.unwrap_err().class, "NoPermission");
}

#[tokio::test(start_paused = true)]
async fn files_need_privileges_on_their_datastore() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let path = "/folder/a.txt?dcPath=DC0&dsName=LocalDS_0";
    let datastore = client.find("/DC0/datastore/LocalDS_0").await;
    assert!(client.http("PUT", path, "x").await.unwrap().0.is_success());
    lab.vcenter.deny("Datastore.FileManagement", Some(datastore));
    assert_eq!(client.http("PUT", path, "x").await.unwrap().0, 403);
    assert_eq!(client.http("GET", path, "").await.unwrap().0, 200);
}

/// A role of the server.
const READ_ONLY: i32 = -2;
const POWER_USER: i32 = 4;

fn grant(client: &Client, entity: &MoRef, user: &str, role_id: i32) -> SetEntityPermissions {
    let permission =
        Permission { principal: user.into(), role_id, propagate: true, ..Permission::default() };
    SetEntityPermissions {
        this: client.content.authorization_manager.clone().unwrap(),
        entity: entity.clone(),
        permission: vec![permission],
    }
}

/// A client of a user who has this role there.
async fn with_role(lab: &Lab, admin: &Client, user: &str, entity: &MoRef, role: i32) -> Client {
    admin.call(grant(admin, entity, user, role)).await.unwrap();
    let mut client = lab.anonymous();
    client.log_in(user, "pass").await.unwrap();
    client
}

async fn is_denied<M: Method + std::fmt::Debug>(client: &Client, call: M, lacks: &str, on: &MoRef) {
    let words = format!("{call:?}");
    let Err(fault) = client.call(call).await else { panic!("{words} went through") };
    assert_eq!(denied(&fault), ("NoPermission", Some(lacks), Some(on.clone())), "{words}");
}

#[tokio::test(start_paused = true)]
async fn a_role_that_only_reads_changes_nothing_also_through_a_manager() {
    let lab = Lab::default().await;
    let admin = lab.login().await;
    let (root, content) = (&admin.content.root_folder, &admin.content);
    let vm = admin.find("/DC0/vm/DC0_H0_VM0").await;
    let datastore = admin.find("/DC0/datastore/LocalDS_0").await;
    let host = admin.find("/DC0/host/DC0_H0/DC0_H0").await;
    let snapshot = CreateSnapshotTask { this: vm.clone(), name: "s".into(), ..Default::default() };
    let snapshot = admin.finish(&admin.call(snapshot).await.unwrap()).await.unwrap().unwrap();
    let snapshot = snapshot.as_ref().unwrap().clone();
    let reader = with_role(&lab, &admin, "reader", root, READ_ONLY).await;

    is_denied(&reader, grant(&reader, root, "reader", -1), "Authorization.ModifyPermissions", root)
        .await;
    is_denied(&reader, grant(&reader, &vm, "reader", -1), "Authorization.ModifyPermissions", &vm)
        .await;
    let authorization = content.authorization_manager.clone().unwrap();
    let remove = RemoveEntityPermission {
        this: authorization.clone(),
        entity: root.clone(),
        user: "reader".into(),
        is_group: false,
    };
    is_denied(&reader, remove, "Authorization.ModifyPermissions", root).await;
    let role = AddAuthorizationRole {
        this: authorization.clone(),
        name: "r".into(),
        ..Default::default()
    };
    is_denied(&reader, role, "Authorization.ModifyRoles", root).await;
    let options = UpdateOptions { this: content.setting.clone().unwrap(), ..Default::default() };
    is_denied(&reader, options, "Global.Settings", root).await;
    let extension = RegisterExtension {
        this: content.extension_manager.clone().unwrap(),
        ..Default::default()
    };
    is_denied(&reader, extension, "Extension.Register", root).await;
    let specification = CreateCustomizationSpec {
        this: content.customization_spec_manager.clone().unwrap(),
        ..Default::default()
    };
    is_denied(&reader, specification, "VirtualMachine.Provisioning.ModifyCustSpecs", root).await;
    let field = SetField {
        this: content.custom_fields_manager.clone().unwrap(),
        entity: vm.clone(),
        ..Default::default()
    };
    is_denied(&reader, field, "Global.SetCustomField", &vm).await;
    let end = TerminateSession {
        this: content.session_manager.clone().unwrap(),
        session_id: vec![admin.session.key.clone()],
    };
    is_denied(&reader, end, "Sessions.TerminateSession", root).await;
    let remove = RemoveSnapshotTask { this: snapshot.clone(), ..Default::default() };
    is_denied(&reader, remove.clone(), "VirtualMachine.State.RemoveSnapshot", &vm).await;

    let files = "Datastore.FileManagement";
    let folder = MakeDirectory {
        this: content.file_manager.clone().unwrap(),
        name: "[LocalDS_0] x".into(),
        ..Default::default()
    };
    is_denied(&reader, folder, files, &datastore).await;
    let disk = CreateVirtualDiskTask {
        this: content.virtual_disk_manager.clone().unwrap(),
        name: "[LocalDS_0] x.vmdk".into(),
        ..Default::default()
    };
    is_denied(&reader, disk, files, &datastore).await;
    let namespace = CreateDirectory {
        this: content.datastore_namespace_manager.clone().unwrap(),
        datastore: datastore.clone(),
        ..Default::default()
    };
    is_denied(&reader, namespace, files, &datastore).await;
    let objects = content.vstorage_object_manager.clone().unwrap();
    let backing = Element::new("backingSpec").with_field("datastore", &datastore);
    let object = CreateDiskTask { this: objects.clone(), spec: Element::new("spec").with(backing) };
    is_denied(&reader, object, files, &datastore).await;
    let browser = reader.property(&datastore, "browser").await.unwrap().as_ref().unwrap().clone();
    let search = SearchDatastoreTask {
        this: browser,
        datastore_path: "[LocalDS_0]".into(),
        ..Default::default()
    };
    is_denied(&reader, search, "Datastore.Browse", &datastore).await;
    let storage = reader.property(&host, "configManager.storageSystem").await.unwrap();
    let rescan = RescanAllHba { this: storage.as_ref().unwrap().clone() };
    is_denied(&reader, rescan, "Host.Config.Storage", &host).await;

    assert_eq!(
        reader.call(RetrieveAllPermissions { this: authorization }).await.unwrap().len(),
        2,
        "what needs no privilege is answered"
    );
    assert!(reader.call(ListVStorageObject { this: objects, datastore }).await.is_ok());
    assert!(reader.names(&reader.view("VirtualMachine").await, "VirtualMachine").await.len() > 1);

    let keeper = with_role(&lab, &admin, "keeper", &vm, POWER_USER).await;
    let task = keeper.call(remove).await.unwrap();
    keeper.finish(&task).await.expect("a snapshot is its VM's");
}

#[tokio::test(start_paused = true)]
async fn who_began_a_task_may_cancel_it_and_others_need_the_privilege() {
    let lab = Lab::default().await;
    let admin = lab.login().await;
    let vm = admin.find("/DC0/vm/DC0_H0_VM0").await;
    let keeper = with_role(&lab, &admin, "keeper", &vm, POWER_USER).await;
    let reader = with_role(&lab, &admin, "reader", &vm, READ_ONLY).await;
    let task = power_off(&keeper, &vm).await.unwrap();
    let cancel = roost_vim_wire::methods::CancelTask { this: task };
    is_denied(&reader, cancel.clone(), "Global.CancelTask", &vm).await;
    let own = keeper.call(cancel).await;
    assert_ne!(own.map_err(|fault| fault.class), Err("NoPermission".to_owned()));
}
