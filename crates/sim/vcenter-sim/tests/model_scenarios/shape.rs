//! What is there at the start, and what of it can be read.

use roost_vcenter_sim::{Options, Power, Product, TemplateOptions};
use roost_vim_wire::methods::{
    AcquireTicket, AddCustomFieldDef, MoveIntoFolderTask, PlaceVm, PlaceVmsXCluster,
    QueryConfigOption, QueryConfigTarget, RecommendDatastores, SetField,
};
use roost_vim_wire::types::{
    ClusterRecommendation, CustomFieldValue, StorageDrsPodSelectionSpec, StoragePlacementSpec,
    VirtualMachineConfigInfo,
};
use roost_vim_wire::{Element, MoRef, Value};

use crate::story::{Story, instant};

#[tokio::test(start_paused = true)]
async fn names_are_those_of_vcsim() {
    let options = Options {
        pools: 1,
        pods: 1,
        templates: vec![TemplateOptions::new("debian12")],
        ..Options::default()
    };
    let story = Story::start(options).await;
    for path in [
        "/DC0",
        "/DC0/host/DC0_C0/DC0_C0_H2",
        "/DC0/host/DC0_C0/Resources/DC0_C0_RP1",
        "/DC0/host/DC0_H0/DC0_H0",
        "/DC0/host/DC0_H0/Resources",
        "/DC0/vm/DC0_C0_RP1_VM1",
        "/DC0/vm/DC0_H0_VM0",
        "/DC0/vm/debian12",
        "/DC0/datastore/LocalDS_0",
        "/DC0/datastore/DC0_POD0",
        "/DC0/network/VM Network",
        "/DC0/network/DVS0",
        "/DC0/network/DC0_DVPG0",
    ] {
        story.find(path).await;
    }
    let plain = Story::start(Options { folders: 1, ..Options::default() }).await;
    for path in
        ["/F0/DC0/vm/F0/DC0_C0_RP0_VM0", "/F0/DC0/host/F0/DC0_C0", "/F0/DC0/datastore/F0/LocalDS_0"]
    {
        plain.find(path).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_alone_has_its_fixed_ids() {
    let story = Story::start(Options { product: Product::HostAgent, ..Options::default() }).await;
    for (path, id) in [
        ("/ha-datacenter", "ha-datacenter"),
        ("/ha-datacenter/vm", "ha-folder-vm"),
        ("/ha-datacenter/host/localhost.localdomain", "ha-compute-res"),
        ("/ha-datacenter/host/localhost.localdomain/Resources", "ha-root-pool"),
        ("/ha-datacenter/host/localhost.localdomain/localhost.localdomain", "ha-host"),
    ] {
        assert_eq!(&*story.find(path).await.id, id, "{path}");
    }
    let vm = story.find("/ha-datacenter/vm/ha-host_VM0").await;
    assert!(vm.id.parse::<u32>().is_ok(), "{vm}");
    story.power_off(&vm).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_top_level_property_of_every_object_can_be_read() {
    let options = Options {
        pools: 1,
        pods: 1,
        templates: vec![TemplateOptions::new("debian12")],
        timings: roost_vcenter_sim::Timings::instant(),
        ..Options::default()
    };
    let story = Story::start(options).await;
    let vm = story.find("/DC0/vm/DC0_C0_RP1_VM0").await;
    story
        .reconfigure(&vm, roost_vim_wire::types::VirtualMachineConfigSpec::default())
        .await
        .unwrap();
    for kind in ["ManagedEntity"] {
        let view = story.client.view(kind).await;
        let spec = roost_vim_wire::types::PropertyFilterSpec::of_view(
            &view,
            vec![roost_vim_wire::types::PropertySpec {
                kind: kind.into(),
                all: Some(true),
                path_set: vec![],
            }],
        );
        let objects = story.client.read_all(spec).await.unwrap();
        assert!(objects.len() > 20, "{}", objects.len());
        for object in objects {
            assert!(object.missing_set.is_empty(), "{}: {:?}", object.obj, object.missing_set);
            assert!(object.prop_set.len() > 8, "{}", object.obj);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn paths_reach_into_objects_and_arrays() {
    let story = Story::start(Options::default()).await;
    let vm = story.find("/DC0/vm/DC0_C0_RP0_VM0").await;
    let config = story.property(&vm, "config").await.unwrap();
    let config = config.as_data::<VirtualMachineConfigInfo>().unwrap();
    assert_eq!((config.name.as_str(), config.hardware.device.len()), ("DC0_C0_RP0_VM0", 13));
    for (path, value) in [
        ("config.hardware.memoryMB", Value::Int(32)),
        ("config.hardware.device[4000].macAddress", Value::string("00:50:56:80:00:03")),
        ("config.hardware.device[2000].backing.thinProvisioned", Value::Bool(true)),
        ("summary.config.numEthernetCards", Value::Int(1)),
        ("guest.guestOperationsReady", Value::Bool(true)),
        ("runtime.powerState", Value::Enum("VirtualMachinePowerState".into(), "poweredOn".into())),
    ] {
        assert_eq!(story.property(&vm, path).await, Some(value), "{path}");
    }
    for unset in [
        "config.annotation",
        "snapshot",
        "runtime.question",
        "config.vAppConfig",
        "config.hardware.device[9]",
    ] {
        assert_eq!(story.property(&vm, unset).await, None, "{unset}");
    }
    let pool = story.find("/DC0/host/DC0_C0/Resources").await;
    assert!(
        story.property(&pool, "runtime.memory.unreservedForVm").await.unwrap().as_i64().unwrap()
            > 0
    );
    let group = story.find("/DC0/network/DC0_DVPG0").await;
    assert_eq!(story.property(&group, "config.uplink").await, Some(Value::Bool(false)));
    let host = story.find("/DC0/host/DC0_H0/DC0_H0").await;
    assert_eq!(story.property(&host, "hardware.cpuInfo.numCpuCores").await, Some(Value::Short(32)));
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_vms_are_there_at_once_and_differ_where_they_must() {
    let options = Options { vms: 10_000, standalone_hosts: 0, hosts: 4, ..Options::default() };
    let story = Story::start(options).await;
    assert_eq!(story.lab.vcenter.vm_names().len(), 10_000);
    let first = story.vm("DC0_C0_RP0_VM0");
    let last = story.vm("DC0_C0_RP0_VM9999");
    assert_ne!((first.uuid, first.ip), (last.uuid, last.ip));
    assert_eq!(last.power, Power::On);
    let pool = story.lab.vcenter.pool("/DC0/host/DC0_C0/Resources").unwrap();
    assert!(
        pool.runtime.cpu.unreserved_for_vm > 0 && pool.runtime.memory.unreserved_for_vm > 0,
        "{:?}",
        pool.runtime
    );
    story.find("/DC0/vm/DC0_C0_RP0_VM7777").await;
}

#[tokio::test(start_paused = true)]
async fn custom_fields_are_defined_set_and_read() {
    let story = Story::start(instant()).await;
    let this = story.client.content.custom_fields_manager.clone().unwrap();
    let define = AddCustomFieldDef {
        this: this.clone(),
        name: "owner".into(),
        mo_type: Some("VirtualMachine".into()),
    };
    let definition = story.client.call(define.clone()).await.unwrap();
    assert_eq!(story.client.call(define).await.unwrap_err().class, "DuplicateName");
    let vm = story.vm_ref("debian12").await;
    let set = |entity: &MoRef, value: &str| SetField {
        this: this.clone(),
        entity: entity.clone(),
        key: definition.key,
        value: value.into(),
    };
    story.client.call(set(&vm, "team-a")).await.unwrap();
    let values = story.property(&vm, "customValue").await.unwrap();
    let value = values.data_items::<CustomFieldValue>().next().unwrap();
    assert_eq!((value.key, value.value.as_deref()), (definition.key, Some("team-a")));
    let folder = story.find("/DC0/vm").await;
    assert_eq!(story.client.call(set(&folder, "x")).await.unwrap_err().class, "InvalidArgument");
}

#[tokio::test(start_paused = true)]
async fn a_datastore_cluster_recommends_its_roomiest_member() {
    let story = Story::start(Options { pods: 1, datastores: 2, ..instant() }).await;
    let pod = story.find("/DC0/datastore/DC0_POD0").await;
    let mut members = Vec::new();
    for name in ["LocalDS_0", "LocalDS_1"] {
        members.push(story.find(&format!("/DC0/datastore/{name}")).await);
    }
    let task = story
        .client
        .call(MoveIntoFolderTask { this: pod.clone(), list: members.clone() })
        .await
        .unwrap();
    story.client.finish(&task).await.unwrap();
    story.lab.vcenter.fill_datastore("LocalDS_0", 1 << 30).unwrap();
    let call = RecommendDatastores {
        this: story.client.content.storage_resource_manager.clone().unwrap(),
        storage_spec: StoragePlacementSpec {
            kind: "create".into(),
            pod_selection_spec: StorageDrsPodSelectionSpec {
                storage_pod: Some(pod),
                ..Default::default()
            },
            ..Default::default()
        },
    };
    let result = story.client.call(call).await.unwrap();
    let first: &ClusterRecommendation = &result.recommendations[0];
    assert_eq!(first.action[0].destination.as_ref(), Some(&members[1]));
}

#[tokio::test(start_paused = true)]
async fn the_world_can_be_moved_from_outside() {
    let story = Story::start(instant()).await;
    let vcenter = &story.lab.vcenter;
    vcenter.add_vm("somebody-elses", Power::On).unwrap();
    assert_eq!(story.vm("somebody-elses").power, Power::On);
    assert!(vcenter.add_vm("somebody-elses", Power::Off).is_err());
    vcenter.set_power("somebody-elses", Power::Off).unwrap();
    assert_eq!(story.vm("somebody-elses").power, Power::Off);
    vcenter.kill_vm("somebody-elses").unwrap();
    assert!(!story.has_vm("somebody-elses"));
    assert!(vcenter.kill_vm("somebody-elses").is_err());
}

#[tokio::test(start_paused = true)]
async fn clusters_say_where_a_vm_would_go_and_what_they_can_run() {
    let story = Story::start(instant()).await;
    let (cluster, pool) =
        (story.find("/DC0/host/DC0_C0").await, story.find(crate::story::POOL).await);
    let ask = Element::new("placementSpec");
    let placed =
        story.client.call(PlaceVm { this: cluster.clone(), placement_spec: ask }).await.unwrap();
    let action = placed.child("recommendations").and_then(|first| first.child("action")).unwrap();
    let host = action.child("targetHost").and_then(Element::moref).unwrap();
    assert!(story.property(&cluster, "host").await.unwrap().refs().any(|found| *found == host));
    let vm = Element::new("vmPlacementSpecs")
        .with(Element::new("configSpec").with(Element::leaf("name", "w")));
    let ask = Element::new("placementSpec").with_field("resourcePools", &pool).with(vm);
    let root = story.client.content.root_folder.clone();
    let placed =
        story.client.call(PlaceVmsXCluster { this: root, placement_spec: ask }).await.unwrap();
    assert_eq!(placed.child("placementInfos").and_then(|info| info.text_of("vmName")), Some("w"));
    let browser =
        story.property(&cluster, "environmentBrowser").await.unwrap().as_ref().cloned().unwrap();
    let option = story
        .client
        .call(QueryConfigOption { this: browser.clone(), ..Default::default() })
        .await
        .unwrap();
    assert!(option.unwrap().children_named("guestOSDescriptor").count() > 3);
    let target = story.client.call(QueryConfigTarget { this: browser, host: None }).await.unwrap();
    assert_eq!(target.unwrap().number_of("numCpus"), Some(32));
    let this = story.vm_ref("debian12").await;
    let ticket =
        story.client.call(AcquireTicket { this, ticket_type: "webmks".into() }).await.unwrap();
    assert!(ticket.text_of("url").unwrap().starts_with("wss://"));
}
