//! Privileges that are taken away.

use crate::lab::{Client, Lab, of_object};
use roost_vim_wire::methods::{
    CloneVmTask, CreateFilter, CreateFolder, HasPrivilegeOnEntities, PowerOffVmTask,
    ReconfigVmTask, WaitForUpdatesEx,
};
use roost_vim_wire::types::{VirtualMachineCloneSpec, VirtualMachineConfigSpec, WaitOptions};
use roost_vim_wire::{Fault, MoRef};

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
