use std::time::Duration;

use roost_vcenter_sim::{Options, Power, Product, TemplateOptions, Timings};
use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{CloneVmTask, CreateSnapshotTask};
use roost_vim_wire::types::{
    OptionValue, TaskInfoState, ToolsConfigInfo, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecOperation, VirtualMachineCloneSpec, VirtualMachineConfigSpec,
};

use crate::story::{Story, customization, instant, is_on, options};

#[tokio::test(start_paused = true)]
async fn a_clone_boots_is_customized_and_gets_its_address() {
    let story = Story::start(options()).await;
    let spec = VirtualMachineCloneSpec {
        customization: Some(customization(Some("10.0.7.9"))),
        power_on: true,
        ..story.linked().await
    };
    let clone = story.clone_vm("debian12", "worker-1", spec).await.unwrap();
    let vm = story.vm("worker-1");
    assert!(is_on(&vm) && vm.ip.is_none() && !vm.guest_operations_ready, "nothing runs in it yet");
    story.until_ready("worker-1").await;
    let vm = story.vm("worker-1");
    assert_eq!(vm.ip.unwrap().to_string(), "10.0.7.9");
    assert_eq!(vm.host_name.as_deref(), Some("worker-1"));
    assert_eq!(
        story.events_of(&clone),
        [
            "VmBeingDeployedEvent",
            "VmInstanceUuidAssignedEvent",
            "VmUuidAssignedEvent",
            "VmDeployedEvent",
            "VmStartingEvent",
            "DrsVmPoweredOnEvent",
            "CustomizationStartedEvent",
            "CustomizationSucceeded",
        ]
    );
    let net = story.property(&clone, "guest.net").await.unwrap();
    let nic = net.data_items::<roost_vim_wire::types::GuestNicInfo>().next().unwrap();
    assert_eq!(
        (nic.ip_address.as_slice(), nic.device_config_id),
        (["10.0.7.9".to_owned()].as_slice(), 4000)
    );
}

#[tokio::test(start_paused = true)]
async fn a_clone_keeps_all_that_its_request_says() {
    let story = Story::start(instant()).await;
    let template = story.vm("debian12");
    let config = VirtualMachineConfigSpec {
        annotation: Some(r#"{"owner":"h1"}"#.into()),
        tools: Some(ToolsConfigInfo { sync_time_with_host: Some(true), ..Default::default() }),
        num_cpus: Some(4),
        memory_mb: Some(8192),
        extra_config: vec![OptionValue::text("guestinfo.hatchery", "h1")],
        device_change: vec![grown_disk(&template.devices, 40 << 20)],
        ..Default::default()
    };
    let spec = VirtualMachineCloneSpec { config: Some(config), ..story.linked().await };
    let clone = story.clone_vm("debian12", "worker-1", spec).await.unwrap();
    let vm = story.vm("worker-1");
    assert_eq!(vm.annotation.as_deref(), Some(r#"{"owner":"h1"}"#));
    assert_eq!((vm.cpus, vm.memory_mb, vm.power), (4, 8192, Power::Off));
    assert_eq!(vm.extra_config, [("guestinfo.hatchery".to_owned(), "h1".to_owned())]);
    let disk = vm.devices.iter().find(|device| device.is_disk()).unwrap();
    assert_eq!(disk.capacity_in_kb, Some(40 << 20));
    let tools = story.property(&clone, "config.tools.syncTimeWithHost").await.unwrap();
    assert_eq!(tools.as_bool(), Some(true));
    assert_ne!(vm.uuid, template.uuid);
    let mac = |devices: &[roost_vim_wire::types::VirtualDevice]| {
        devices.iter().find(|device| device.is_nic()).unwrap().mac_address.clone().unwrap()
    };
    assert_ne!(mac(&vm.devices), mac(&template.devices));
    assert!(mac(&vm.devices).starts_with("00:50:56:"));
}

fn grown_disk(
    devices: &[roost_vim_wire::types::VirtualDevice],
    kb: i64,
) -> VirtualDeviceConfigSpec {
    let mut disk = devices.iter().find(|device| device.is_disk()).unwrap().clone();
    disk.capacity_in_kb = Some(kb);
    VirtualDeviceConfigSpec {
        operation: Some(VirtualDeviceConfigSpecOperation::Edit),
        device: disk,
        ..Default::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_card_moves_to_another_network_even_when_only_its_base_class_is_sent() {
    let story = Story::start(Options { portgroups: 2, ..instant() }).await;
    let group = story.find("/DC0/network/DC0_DVPG1").await;
    let switch = story.find("/DC0/network/DVS0").await;
    let uuid = story.property(&switch, "uuid").await.unwrap();
    let template = story.vm("debian12");
    let mut card = template.devices.iter().find(|device| device.is_nic()).unwrap().clone();
    card.class = "VirtualEthernetCard".into();
    card.backing = Some(VirtualDeviceBackingInfo {
        port: Some(roost_vim_wire::types::DistributedVirtualSwitchPortConnection {
            switch_uuid: uuid.as_str().unwrap().into(),
            portgroup_key: Some(group.id.as_ref().into()),
            ..Default::default()
        }),
        ..VirtualDeviceBackingInfo::of("VirtualEthernetCardDistributedVirtualPortBackingInfo")
    });
    let change = VirtualDeviceConfigSpec {
        operation: Some(VirtualDeviceConfigSpecOperation::Edit),
        device: card,
        ..Default::default()
    };
    let mut spec = story.linked().await;
    spec.location.device_change = vec![change];
    let clone = story.clone_vm("debian12", "worker-1", spec).await.unwrap();
    let networks = story.property(&clone, "network").await.unwrap();
    assert_eq!(networks.refs().cloned().collect::<Vec<_>>(), [group]);
    let vm = story.vm("worker-1");
    assert_eq!(vm.devices.iter().find(|device| device.is_nic()).unwrap().class, "VirtualVmxnet3");
}

fn depth(story: &Story, vm: &str) -> usize {
    let vm = story.vm(vm);
    let disk = vm.devices.iter().find(|device| device.is_disk()).unwrap().clone();
    std::iter::successors(disk.backing.as_ref(), |backing| backing.parent.as_deref()).count()
}

#[tokio::test(start_paused = true)]
async fn a_linked_clone_shares_its_parent_only_where_there_is_one() {
    let story = Story::start(instant()).await;
    story.clone_vm("debian12", "linked", story.linked().await).await.unwrap();
    assert_eq!(depth(&story, "linked"), 2, "its own file on the template's base");
    story.clone_vm("flat", "silently-full", story.linked().await).await.unwrap();
    assert_eq!(depth(&story, "silently-full"), 1);
    let full = VirtualMachineCloneSpec {
        location: story.location("moveAllDiskBackingsAndConsolidate").await,
        ..Default::default()
    };
    story.clone_vm("debian12", "full", full).await.unwrap();
    assert_eq!(depth(&story, "full"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_new_child_disk_needs_a_snapshot_to_stand_on() {
    let story = Story::start(instant()).await;
    let new_child = VirtualMachineCloneSpec {
        location: story.location("createNewChildDiskBacking").await,
        ..Default::default()
    };
    let refused = story.clone_vm("debian12", "child", new_child.clone()).await.unwrap_err();
    assert_eq!(
        (refused.class.as_str(), refused.text("invalidProperty")),
        ("InvalidArgument", Some("spec.snapshot"))
    );
    let template = story.vm_ref("debian12").await;
    let info = story.property(&template, "snapshot.currentSnapshot").await.unwrap();
    let spec = VirtualMachineCloneSpec { snapshot: info.as_ref().cloned(), ..new_child };
    story.clone_vm("debian12", "child", spec).await.unwrap();
    assert_eq!(depth(&story, "child"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_linked_clone_is_faster_than_a_full_one() {
    let story = Story::start(Options { timings: Timings::realistic(), ..options() }).await;
    let took = async |to: &str, from: &str| {
        let start = tokio::time::Instant::now();
        story.clone_vm(from, to, story.linked().await).await.unwrap();
        start.elapsed()
    };
    let (linked, full) = (took("linked", "debian12").await, took("full", "flat").await);
    assert!(linked <= Duration::from_secs(11), "{linked:?}");
    assert!(full > linked, "{full:?} {linked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_template_needs_a_pool_to_be_cloned_into() {
    let story = Story::start(instant()).await;
    let refused =
        story.clone_task("debian12", "x", VirtualMachineCloneSpec::default()).await.unwrap_err();
    assert_eq!(refused.text("invalidProperty"), Some("spec.location.pool"));
}

#[tokio::test(start_paused = true)]
async fn two_clones_of_one_name_cannot_both_be() {
    let story = Story::start(options()).await;
    let spec = story.linked().await;
    let first = story.clone_task("debian12", "worker-1", spec.clone()).await.unwrap();
    let second = story.clone_task("debian12", "worker-1", spec.clone()).await.unwrap();
    let refused = story.client.finish(&second).await.unwrap_err();
    assert_eq!((refused.class.as_str(), refused.text("name")), ("DuplicateName", Some("worker-1")));
    let made = story.client.finish(&first).await.unwrap();
    assert_eq!(refused.object("object").as_ref(), made.as_ref().and_then(|value| value.as_ref()));
    let refused = story.clone_vm("debian12", "worker-1", spec).await.unwrap_err();
    assert_eq!(refused.object("object"), Some(story.vm("worker-1").moref));
}

#[tokio::test(start_paused = true)]
async fn a_customization_must_fit_the_cards_and_needs_tools() {
    let story = Story::start(instant()).await;
    let bare = TemplateOptions { tools: false, ..TemplateOptions::new("bare") };
    story.lab.vcenter.add_template(&bare).unwrap();
    let mut spec = VirtualMachineCloneSpec {
        customization: Some(customization(None)),
        ..story.linked().await
    };
    let refused = story.clone_vm("bare", "x", spec.clone()).await.unwrap_err();
    assert_eq!(refused.class, "UncustomizableGuest");
    spec.customization.as_mut().unwrap().nic_setting_map.clear();
    let refused = story.clone_vm("debian12", "x", spec).await.unwrap_err();
    assert_eq!(refused.class, "NicSettingMismatch");
    assert_eq!(
        (refused.text("numberOfNicsInSpec"), refused.text("numberOfNicsInVM")),
        (Some("0"), Some("1"))
    );
    assert!(!story.has_vm("x"), "nothing half-made stays");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_clone_leaves_nothing_behind() {
    let story = Story::start(options()).await;
    let free = story.lab.vcenter.datastore_free("LocalDS_0");
    let task = story.clone_task("flat", "worker-1", story.linked().await).await.unwrap();
    assert!(
        story.lab.vcenter.datastore_free("LocalDS_0") < free,
        "its space is reserved while it runs"
    );
    let clone = roost_vim_wire::methods::CancelTask { this: task.clone() };
    story.client.call(clone.clone()).await.unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "RequestCanceled");
    assert_eq!(story.property(&task, "info.cancelled").await.unwrap().as_bool(), Some(true));
    assert_eq!(story.client.call(clone).await.unwrap_err().class, "InvalidState");
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert!(!story.has_vm("worker-1"));
    assert_eq!(story.lab.vcenter.datastore_free("LocalDS_0"), free);
    story.worker("worker-1").await;
}

#[tokio::test(start_paused = true)]
async fn clones_beyond_the_limit_wait_their_turn() {
    let timings = Timings { concurrent_clones: 2, ..Timings::realistic() };
    let story = Story::start(Options { timings, ..options() }).await;
    let mut tasks = Vec::new();
    for index in 0..4 {
        let spec = story.linked().await;
        tasks.push(story.clone_task("debian12", &format!("worker-{index}"), spec).await.unwrap());
    }
    let states = async || {
        let mut states = Vec::new();
        for task in &tasks {
            let state = story.property(task, "info.state").await.unwrap();
            states.push(TaskInfoState::from(state.as_str().unwrap()));
        }
        states
    };
    let (running, queued) = (TaskInfoState::Running, TaskInfoState::Queued);
    assert_eq!(states().await, [running.clone(), running, queued.clone(), queued]);
    for task in &tasks {
        story.client.finish(task).await.unwrap();
    }
    assert_eq!(story.lab.vcenter.vm_names().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_full_datastore_refuses_a_clone() {
    let story = Story::start(instant()).await;
    story.lab.vcenter.fill_datastore("LocalDS_0", 100 << 20).unwrap();
    let refused = story.clone_vm("flat", "x", story.linked().await).await.unwrap_err();
    assert_eq!(
        (refused.class.as_str(), refused.text("datastore")),
        ("NoDiskSpace", Some("LocalDS_0"))
    );
    story.clone_vm("debian12", "small", story.linked().await).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_clone_goes_to_a_host_of_its_pool() {
    let story = Story::start(instant()).await;
    story.worker("in-cluster").await;
    assert!(story.vm("in-cluster").host.starts_with("DC0_C0_H"), "{}", story.vm("in-cluster").host);
    let mut spec = story.linked().await;
    spec.location.pool = Some(story.find("/DC0/host/DC0_H0/Resources").await);
    story.clone_vm("debian12", "alone", spec).await.unwrap();
    assert_eq!(story.vm("alone").host, "DC0_H0");
}

#[tokio::test(start_paused = true)]
async fn a_clone_may_become_a_template_and_a_vm_may_be_cloned() {
    let story = Story::start(instant()).await;
    let spec = VirtualMachineCloneSpec { template: true, power_on: true, ..story.linked().await };
    story.clone_vm("debian12", "golden", spec).await.unwrap();
    let golden = story.vm("golden");
    assert_eq!((golden.template, golden.pool, golden.power), (true, None, Power::Off));
    story.worker("worker-1").await;
    let source = story.vm_ref("worker-1").await;
    let snapshot =
        CreateSnapshotTask { this: source.clone(), name: "s".into(), ..Default::default() };
    let task = story.client.call(snapshot).await.unwrap();
    story.client.finish(&task).await.unwrap();
    let clone = story.clone_vm("worker-1", "worker-2", story.linked().await).await.unwrap();
    assert!(story.events_of(&source).contains(&"VmBeingClonedEvent".to_owned()));
    assert!(story.events_of(&clone).contains(&"VmClonedEvent".to_owned()));
    assert_eq!(story.vm("worker-2").snapshots, [] as [String; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_clone_that_cannot_power_on_stays_and_says_why() {
    let story = Story::start(Options { host_memory_gb: Some(2), ..instant() }).await;
    let config = VirtualMachineConfigSpec { memory_mb: Some(64 << 10), ..Default::default() };
    let spec =
        VirtualMachineCloneSpec { config: Some(config), power_on: true, ..story.linked().await };
    let refused = story.clone_vm("debian12", "huge", spec).await.unwrap_err();
    assert!(refused.is("InsufficientResourcesFault"), "{}", refused.class);
    assert_eq!(story.vm("huge").power, Power::Off, "what was made stays");
}

#[tokio::test(start_paused = true)]
async fn a_host_alone_cannot_clone() {
    let story = Story::start(Options { product: Product::HostAgent, ..instant() }).await;
    let (this, folder) =
        (story.find("/ha-datacenter/vm/debian12").await, story.find("/ha-datacenter/vm").await);
    let call =
        CloneVmTask { this, folder, name: "x".into(), spec: VirtualMachineCloneSpec::default() };
    assert_eq!(story.client.call(call).await.unwrap_err().class, "NotSupported");
}

#[tokio::test(start_paused = true)]
async fn unknown_places_are_refused_at_once() {
    let story = Story::start(instant()).await;
    let this = story.vm_ref("debian12").await;
    let nowhere = MoRef::new(roost_vim_wire::MoType::Folder, "group-v999");
    let call = CloneVmTask {
        this: this.clone(),
        folder: nowhere,
        name: "x".into(),
        spec: story.linked().await,
    };
    assert_eq!(story.client.call(call).await.unwrap_err().class, "ManagedObjectNotFound");
    let hosts = story.find("/DC0/host").await;
    let call = CloneVmTask { this, folder: hosts, name: "x".into(), spec: story.linked().await };
    assert_eq!(story.client.call(call).await.unwrap_err().class, "InvalidArgument");
    let mut spec = story.linked().await;
    spec.location.datastore = Some(MoRef::new(roost_vim_wire::MoType::Datastore, "datastore-999"));
    assert_eq!(story.clone_vm("debian12", "x", spec).await.unwrap_err().class, "InvalidDatastore");
}
