//! Disks, datastore clusters, placement, kept customizations.

use roost_vcenter_sim::{Options, TemplateOptions};
use roost_vim_wire::methods::{
    CancelTask, CopyDatastoreFileTask, CreateDirectory, CreateDiskTask, CreateStoragePod,
    CreateVirtualDiskTask, DeleteDirectory, DeleteVirtualDiskTask, DoesCustomizationSpecExist,
    FindAllByUuid, FindExtension, ListVStorageObject, MoveIntoFolderTask, PlaceVm,
    PlaceVmsXCluster, PromoteDisksTask, QueryVirtualDiskUuid, RecommendDatastores,
    RegisterExtension,
};
use roost_vim_wire::types::{
    StorageDrsPodSelectionSpec, StoragePlacementSpec, VirtualDevice, VirtualMachineCloneSpec,
    VirtualMachineConfigSpec, VirtualMachineFileInfo, VirtualMachineRelocateSpec,
};
use roost_vim_wire::{Element, MoRef, MoType, methods};

use crate::lab::{Client, Lab};

async fn lab(options: Options) -> (Lab, Client) {
    let lab = Lab::start(options).await;
    let client = lab.login().await;
    (lab, client)
}

fn manager(kind: &str, id: &str) -> MoRef {
    MoRef::new(MoType::from(kind), id)
}

#[tokio::test(start_paused = true)]
async fn a_datastore_cluster_recommends_by_free_space() {
    let (lab, client) = lab(Options { datastores: 3, ..Options::default() }).await;
    let folder = client.find("/DC0/datastore").await;
    let pod = client.call(CreateStoragePod { this: folder, name: "pod".into() }).await.unwrap();
    let mut members = Vec::new();
    for name in ["LocalDS_0", "LocalDS_1", "LocalDS_2"] {
        members.push(client.find(&format!("/DC0/datastore/{name}")).await);
    }
    let task =
        client.call(MoveIntoFolderTask { this: pod.clone(), list: members.clone() }).await.unwrap();
    client.finish(&task).await.unwrap();
    for (name, gib) in [("LocalDS_0", 10_i64), ("LocalDS_1", 30), ("LocalDS_2", 20)] {
        lab.vcenter.fill_datastore(name, gib << 30).unwrap();
    }
    let spec = StoragePlacementSpec {
        kind: "create".into(),
        pod_selection_spec: StorageDrsPodSelectionSpec {
            storage_pod: Some(pod.clone()),
            ..Default::default()
        },
        ..Default::default()
    };
    let manager = client.content.storage_resource_manager.clone().unwrap();
    let result =
        client.call(RecommendDatastores { this: manager, storage_spec: spec }).await.unwrap();
    let order: Vec<&MoRef> = result
        .recommendations
        .iter()
        .filter_map(|row| row.action[0].destination.as_ref())
        .collect();
    assert_eq!(order, [&members[1], &members[2], &members[0]]);
}

#[tokio::test(start_paused = true)]
async fn placement_answers_from_host_load_and_says_when_nothing_fits() {
    let (_, client) = lab(Options { clusters: 2, ..Options::default() }).await;
    let cluster = client.find("/DC0/host/DC0_C0").await;
    let config = |memory: i64| {
        Element::new("configSpec")
            .with_field("name", &"web-0".to_owned())
            .with_field("numCPUs", &2)
            .with_field("memoryMB", &memory)
    };
    let spec = Element::new("placementSpec")
        .with_field("placementType", &"create".to_owned())
        .with(config(1024));
    let placed =
        client.call(PlaceVm { this: cluster.clone(), placement_spec: spec }).await.unwrap();
    let action = placed.child("recommendations").unwrap().child("action").unwrap();
    assert!(action.child("targetHost").and_then(Element::moref).is_some());
    assert!(action.child("relocateSpec").unwrap().child("datastore").is_some());

    // The host that was recommended fills up: another one is recommended, and it alone is none.
    let host = |placed: &Element| {
        let action = placed.child("recommendations").unwrap().child("action").unwrap();
        action.child("targetHost").and_then(Element::moref).unwrap()
    };
    let first = host(&placed);
    let memory = client.property(&first, "hardware.memorySize").await.unwrap();
    let megabytes = memory.as_i64().unwrap() >> 20;
    let large = VirtualMachineConfigSpec {
        name: Some("large".into()),
        num_cpus: Some(1),
        memory_mb: Some(megabytes * 3 / 4),
        files: Some(VirtualMachineFileInfo {
            vm_path_name: Some("[LocalDS_0]".into()),
            ..Default::default()
        }),
        ..Default::default()
    };
    let create = methods::CreateVmTask {
        this: client.find("/DC0/vm").await,
        config: large,
        pool: client.find("/DC0/host/DC0_C0/Resources").await,
        host: Some(first.clone()),
    };
    let task = client.call(create).await.unwrap();
    let large = client.finish(&task).await.unwrap().unwrap().as_ref().unwrap().clone();
    let task = client.call(methods::PowerOnVmTask { this: large, host: None }).await.unwrap();
    client.finish(&task).await.unwrap();
    let place = async |memory: i64, hosts: &[MoRef]| {
        let mut spec = Element::new("placementSpec")
            .with_field("placementType", &"create".to_owned())
            .with(config(memory));
        for host in hosts {
            spec = spec.with_field("hosts", host);
        }
        client.call(PlaceVm { this: cluster.clone(), placement_spec: spec }).await
    };
    let second = host(&place(1024, &[]).await.unwrap());
    assert_ne!(second, first);
    let both = [first.clone(), second.clone()];
    assert_eq!(host(&place(megabytes / 2, &both).await.unwrap()), second);
    let full = place(megabytes / 2, &both[..1]).await.unwrap_err();
    assert_eq!(full.class, "InsufficientMemoryResourcesFault", "it does not fit on the host named");
    assert_eq!(host(&place(64, &both[..1]).await.unwrap()), first, "a small one does");
    let lone = client.find("/DC0/host/DC0_H0/DC0_H0").await;
    assert_eq!(place(64, &[lone]).await.unwrap_err().class, "InvalidArgument");

    let mut across = Element::new("placementSpec");
    for name in ["DC0_C0", "DC0_C1"] {
        let pool = client.find(&format!("/DC0/host/{name}/Resources")).await;
        across = across.with_field("resourcePools", &pool);
    }
    let asked = |memory| {
        let one = Element::new("vmPlacementSpecs").with(config(memory));
        across
            .clone()
            .with(one)
            .with_field("hostRecommRequired", &false)
            .with_field("datastoreRecommRequired", &true)
    };
    let root = client.content.root_folder.clone();
    let placed = client
        .call(PlaceVmsXCluster { this: root.clone(), placement_spec: asked(1024) })
        .await
        .unwrap();
    let row = placed.child("placementInfos").unwrap().child("recommendation").unwrap();
    assert_eq!(row.text_of("reason"), Some("xClusterPlacement"));
    let action = row.child("action").unwrap();
    let home = action.child("configSpec").unwrap().child("files").unwrap();
    assert_eq!(home.text_of("vmPathName"), Some("[LocalDS_0]"));
    assert!(action.child("targetHost").is_none(), "no host was asked for");

    let huge =
        client.call(PlaceVmsXCluster { this: root, placement_spec: asked(1 << 30) }).await.unwrap();
    assert!(huge.child("placementInfos").is_none());
    assert_eq!(huge.children_named("faults").count(), 2, "a reason for each pool");
}

#[tokio::test(start_paused = true)]
async fn promoting_takes_time_by_size_unlinks_the_disk_and_can_be_cancelled() {
    let template = |name: &str, disk_gb| TemplateOptions { disk_gb, ..TemplateOptions::new(name) };
    let (lab, client) = lab(Options {
        templates: vec![template("small", 2), template("large", 80)],
        ..Options::default()
    })
    .await;
    let pool = client.find("/DC0/host/DC0_C0/Resources").await;
    let folder = client.find("/DC0/vm").await;
    let linked = async |name: &str| {
        let template = client.find(&format!("/DC0/vm/{name}")).await;
        let source = client.property(&template, "snapshot.currentSnapshot").await;
        let spec = VirtualMachineCloneSpec {
            location: VirtualMachineRelocateSpec {
                pool: Some(pool.clone()),
                disk_move_type: Some("createNewChildDiskBacking".into()),
                ..Default::default()
            },
            snapshot: source.and_then(|value| value.as_ref().cloned()),
            ..Default::default()
        };
        let (this, folder) = (template, folder.clone());
        let clone = methods::CloneVmTask { this, folder, name: format!("{name}-0"), spec };
        let task = client.call(clone).await.unwrap();
        client.finish(&task).await.unwrap();
        lab.vcenter.vm(&format!("{name}-0")).unwrap().moref
    };
    let has_parent = |name: &str| {
        let vm = lab.vcenter.vm(name).unwrap();
        let disk = vm.devices.into_iter().find(VirtualDevice::is_disk).unwrap();
        disk.backing.unwrap().parent.is_some()
    };
    let (small, large) = (linked("small").await, linked("large").await);
    assert!(has_parent("small-0") && has_parent("large-0"));
    let promote =
        |vm: &MoRef| PromoteDisksTask { this: vm.clone(), unlink: true, disks: Vec::new() };
    let task = client.call(promote(&small)).await.unwrap();
    client.call(CancelTask { this: task.clone() }).await.unwrap();
    assert_eq!(client.finish(&task).await.unwrap_err().class, "RequestCanceled");
    assert!(has_parent("small-0"), "nothing happened");
    let took = async |vm: &MoRef| {
        let started = tokio::time::Instant::now();
        let task = client.call(promote(vm)).await.unwrap();
        client.finish(&task).await.unwrap();
        started.elapsed()
    };
    let (small, large) = (took(&small).await, took(&large).await);
    assert!(small >= std::time::Duration::from_secs(1));
    assert!(large > small * 5, "forty times the disk: {large:?} and {small:?}");
    assert!(!has_parent("small-0") && !has_parent("large-0"));
}

#[tokio::test(start_paused = true)]
async fn disks_directories_and_objects_come_and_go() {
    let (_, client) = lab(Options { vsan_datastores: 1, ..Options::default() }).await;
    let disks = client.content.virtual_disk_manager.clone().unwrap();
    let files = client.content.file_manager.clone().unwrap();
    let vmfs = client.find("/DC0/datastore/LocalDS_0").await;
    let datastore = client.find("/DC0/datastore/vsanDatastore_0").await;
    let datacenter = Some(client.find("/DC0").await);
    let spaces = manager("DatastoreNamespaceManager", "DatastoreNamespaceManager");
    let create = |datastore: &MoRef| CreateDirectory {
        this: spaces.clone(),
        datastore: datastore.clone(),
        display_name: Some("cache".into()),
        policy: None,
        size: None,
    };
    let refused = client.call(create(&vmfs)).await.unwrap_err();
    assert_eq!(refused.class, "CannotCreateFile", "VMFS has directories of its own");
    let path = client.call(create(&datastore)).await.unwrap();
    assert!(path.starts_with("/vmfs/volumes/") && path.ends_with("/cache"), "{path}");
    let spec = Element::new("spec")
        .typed("FileBackedVirtualDiskSpec")
        .with_field("diskType", &"thin".to_owned())
        .with_field("adapterType", &"lsiLogic".to_owned())
        .with_field("capacityKb", &(1_i64 << 20));
    let name = "[vsanDatastore_0] cache/a.vmdk".to_owned();
    let make = CreateVirtualDiskTask {
        this: disks.clone(),
        name: name.clone(),
        datacenter: datacenter.clone(),
        spec,
    };
    let task = client.call(make.clone()).await.unwrap();
    client.finish(&task).await.unwrap();
    let task = client.call(make).await.unwrap();
    assert_eq!(client.finish(&task).await.unwrap_err().class, "FileAlreadyExists");
    let ask = |name: &str| QueryVirtualDiskUuid {
        this: disks.clone(),
        name: name.into(),
        datacenter: datacenter.clone(),
    };
    let uuid = client.call(ask(&name)).await.unwrap();
    assert_eq!(uuid.len(), 47, "{uuid}");
    let copy = CopyDatastoreFileTask {
        this: files,
        source_name: name.clone(),
        source_datacenter: datacenter.clone(),
        destination_name: "[vsanDatastore_0] cache/b.vmdk".into(),
        destination_datacenter: None,
        force: None,
    };
    let task = client.call(copy).await.unwrap();
    client.finish(&task).await.unwrap();
    let delete = DeleteVirtualDiskTask {
        this: disks.clone(),
        name: name.clone(),
        datacenter: datacenter.clone(),
    };
    let task = client.call(delete).await.unwrap();
    client.finish(&task).await.unwrap();
    assert_eq!(client.call(ask(&name)).await.unwrap_err().class, "FileNotFound");
    client.call(ask("[vsanDatastore_0] cache/b.vmdk")).await.unwrap();
    client
        .call(DeleteDirectory {
            this: spaces,
            datacenter: datacenter.clone(),
            datastore_path: path,
        })
        .await
        .unwrap();
    assert!(client.call(ask("[vsanDatastore_0] cache/b.vmdk")).await.is_err());

    let objects = manager("VcenterVStorageObjectManager", "VStorageObjectManager");
    let backing = Element::new("backingSpec")
        .typed("VslmCreateSpecDiskFileBackingSpec")
        .with_field("datastore", &datastore);
    let spec = Element::new("spec")
        .with_field("name", &"fcd".to_owned())
        .with(backing)
        .with_field("capacityInMB", &10_i64);
    let task = client.call(CreateDiskTask { this: objects.clone(), spec }).await.unwrap();
    client.finish(&task).await.unwrap();
    let all = client.call(ListVStorageObject { this: objects, datastore }).await.unwrap();
    assert_eq!(all.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_by_name_is_found_again() {
    let (lab, client) = lab(Options::default()).await;
    let specs = manager("CustomizationSpecManager", "CustomizationSpecManager");
    let ask = DoesCustomizationSpecExist { this: specs, name: "linux".into() };
    assert!(!client.call(ask).await.unwrap());
    let extensions = client.content.extension_manager.clone().unwrap();
    let extension = Element::new("extension")
        .with_field("key", &"com.example.roost".to_owned())
        .with_field("version", &"1".to_owned());
    client.call(RegisterExtension { this: extensions.clone(), extension }).await.unwrap();
    let find = FindExtension { this: extensions, extension_key: "com.example.roost".into() };
    assert!(client.call(find).await.unwrap().is_some());
    let vm = lab.vcenter.vm("DC0_H0_VM0").unwrap();
    let all = client
        .call(FindAllByUuid {
            this: client.content.search_index.clone().unwrap(),
            datacenter: None,
            uuid: vm.uuid,
            vm_search: true,
            instance_uuid: Some(false),
        })
        .await
        .unwrap();
    assert_eq!(all, [vm.moref]);
}

#[tokio::test(start_paused = true)]
async fn a_guest_takes_the_address_of_its_metadata_and_a_drive_is_booted() {
    let (lab, client) =
        lab(Options { autostart: false, control_endpoint: true, ..Options::default() }).await;
    let vm = lab.vcenter.vm("DC0_H0_VM0").unwrap();
    let mac = vm.devices.iter().find_map(|device| device.mac_address.clone()).unwrap();
    let metadata = format!(
        "local-hostname: web-0\nnetwork:\n  version: 2\n  ethernets:\n    eth0:\n      addresses: [10.7.0.9/24]\n      match:\n        macaddress: \"{mac}\"\n"
    );
    let spec = roost_vim_wire::types::VirtualMachineConfigSpec {
        extra_config: vec![roost_vim_wire::types::OptionValue::text(
            "guestinfo.metadata".to_owned(),
            metadata,
        )],
        ..Default::default()
    };
    let task = client.call(methods::ReconfigVmTask { this: vm.moref.clone(), spec }).await.unwrap();
    client.finish(&task).await.unwrap();
    let task =
        client.call(methods::PowerOnVmTask { this: vm.moref.clone(), host: None }).await.unwrap();
    client.finish(&task).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_mins(2)).await;
    let seen = lab.vcenter.vm("DC0_H0_VM0").unwrap();
    assert_eq!(seen.ip, Some("10.7.0.9".parse().unwrap()));
    assert_eq!(seen.host_name.as_deref(), Some("web-0"));
    let boots = lab.vcenter.guest_boots();
    assert_eq!((boots.len(), boots[0].uuid.as_str(), &boots[0].iso), (1, vm.uuid.as_str(), &None));
    assert_eq!(boots[0].macs, [mac]);
    let (_, text) = client.http("GET", "/roost/control/guests/boots", "").await.unwrap();
    assert!(text.contains(&vm.uuid), "{text}");
}
