//! The search index.

use crate::lab::{Client, Lab, folder};
use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{
    FindByDnsName, FindByInventoryPath, FindByIp, FindByUuid, FindChild,
};

fn index(client: &Client) -> MoRef {
    client.content.search_index.clone().unwrap()
}

#[tokio::test(start_paused = true)]
async fn objects_are_found_by_their_path() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    for (path, kind) in [
        ("/", "Folder"),
        ("DC0", "Datacenter"),
        ("/DC0/vm", "Folder"),
        ("/DC0/vm/DC0_H0_VM0", "VirtualMachine"),
        ("/DC0/host/DC0_C0", "ClusterComputeResource"),
        ("/DC0/host/DC0_C0/DC0_C0_H1", "HostSystem"),
        ("/DC0/host/DC0_C0/Resources", "ResourcePool"),
        ("/DC0/datastore/LocalDS_0", "Datastore"),
        ("/DC0/network/VM Network", "Network"),
        ("/DC0/network/DC0_DVPG0", "DistributedVirtualPortgroup"),
    ] {
        assert_eq!(client.find(path).await.kind.as_str(), kind, "{path}");
        assert_eq!(lab.vcenter.find(path), Some(client.find(path).await));
    }
    for path in ["/DC1", "/DC0/vm/none", "/DC0/vm/DC0_H0_VM0/x"] {
        let call = FindByInventoryPath { this: index(&client), inventory_path: path.into() };
        assert_eq!(client.call(call).await.unwrap(), None, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn children_are_found_by_their_name() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let find = |entity: &MoRef, name: &str| FindChild {
        this: index(&client),
        entity: entity.clone(),
        name: name.into(),
    };
    let vms = client.find("/DC0/vm").await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    assert_eq!(client.call(find(&vms, "DC0_H0_VM0")).await.unwrap(), Some(vm));
    assert_eq!(client.call(find(&vms, "none")).await.unwrap(), None);
    let fault = client.call(find(&folder("group-v999"), "x")).await.unwrap_err();
    assert_eq!(fault.class, "ManagedObjectNotFound");
}

#[tokio::test(start_paused = true)]
async fn vms_and_hosts_are_found_by_their_identity() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let host = client.find("/DC0/host/DC0_H0/DC0_H0").await;
    let find = |uuid: &str, vm_search, instance_uuid| FindByUuid {
        this: index(&client),
        datacenter: None,
        uuid: uuid.into(),
        vm_search,
        instance_uuid,
    };
    let text = |obj: MoRef, path: &'static str| {
        let client = client.clone();
        async move { client.property(&obj, path).await.unwrap().as_str().unwrap().to_owned() }
    };
    let bios = text(vm.clone(), "config.uuid").await;
    let instance = text(vm.clone(), "config.instanceUuid").await;
    assert_eq!(client.call(find(&bios, true, None)).await.unwrap(), Some(vm.clone()));
    assert_eq!(
        client.call(find(&bios.to_uppercase(), true, Some(false))).await.unwrap(),
        Some(vm.clone())
    );
    assert_eq!(client.call(find(&instance, true, Some(true))).await.unwrap(), Some(vm.clone()));
    assert_eq!(client.call(find(&instance, true, None)).await.unwrap(), None);
    assert_eq!(client.call(find(&bios, false, None)).await.unwrap(), None);
    let uuid = text(host.clone(), "summary.hardware.uuid").await;
    assert_eq!(client.call(find(&uuid, false, None)).await.unwrap(), Some(host));
    let datacenter = Some(client.find("/DC0").await);
    let within = FindByUuid { datacenter, ..find(&bios, true, None) };
    assert_eq!(client.call(within).await.unwrap(), Some(vm));
}

#[tokio::test(start_paused = true)]
async fn running_guests_are_found_by_address_and_name() {
    let lab = Lab::default().await;
    let client = lab.login().await;
    let vm = client.find("/DC0/vm/DC0_H0_VM0").await;
    let guest = client.property(&vm, "guest").await.unwrap();
    let text = |field: &str| guest.get(field).unwrap().as_str().unwrap().to_owned();
    let by_ip =
        |ip: String| FindByIp { this: index(&client), datacenter: None, ip, vm_search: true };
    assert_eq!(client.call(by_ip(text("ipAddress"))).await.unwrap(), Some(vm.clone()));
    assert_eq!(client.call(by_ip("192.0.2.1".into())).await.unwrap(), None);
    let by_name = |dns_name: String, vm_search| FindByDnsName {
        this: index(&client),
        datacenter: None,
        dns_name,
        vm_search,
    };
    assert_eq!(client.call(by_name(text("hostName"), true)).await.unwrap(), Some(vm));
    let host = client.find("/DC0/host/DC0_H0/DC0_H0").await;
    assert_eq!(client.call(by_name("DC0_H0".into(), false)).await.unwrap(), Some(host));
}
