use roost_vcenter_sim::{Options, Timings};
use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{
    CreateFolder, CustomizeVmTask, RelocateVmTask, RenameTask, UpgradeVmTask,
};
use roost_vim_wire::types::{
    OptionValue, PropertyFilterSpec, PropertySpec, VirtualMachineBootOptions,
    VirtualMachineConfigSpec, VirtualMachineRelocateSpec,
};

use crate::lab::watch::Watch;
use crate::story::{FOLDER, Story, customization, instant, named, options};

fn spec() -> VirtualMachineConfigSpec {
    VirtualMachineConfigSpec::default()
}

/// The paths of one object that changed since the watch last looked.
async fn changed(watch: &mut Watch) -> Vec<String> {
    let mut paths = Vec::new();
    while let Some(set) = watch.look(watch.version.as_deref()).await.unwrap() {
        watch.version = Some(set.version.clone());
        let updates = set.filter_set.into_iter().flat_map(|part| part.object_set);
        paths.extend(updates.flat_map(|update| update.change_set).map(|change| change.name));
    }
    paths.sort();
    paths.dedup();
    paths
}

async fn watch(story: &Story, vm: &MoRef, paths: &[&str]) -> Watch {
    let spec = PropertyFilterSpec {
        prop_set: vec![PropertySpec::new("VirtualMachine", paths)],
        object_set: vec![roost_vim_wire::types::ObjectSpec {
            obj: vm.clone(),
            ..Default::default()
        }],
        report_missing_objects_in_results: None,
    };
    let mut watch = Watch::on(&story.client, spec).await;
    changed(&mut watch).await;
    watch
}

#[tokio::test(start_paused = true)]
async fn every_changed_leaf_is_announced_and_nothing_else() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let narrow = [
        "name",
        "config.name",
        "summary.config.name",
        "config.annotation",
        "summary.config.annotation",
        "config.hardware.numCPU",
        "summary.config.numCpu",
        "config.hardware.memoryMB",
        "summary.config.memorySizeMB",
        "runtime.powerState",
        "guest.ipAddress",
        "resourcePool",
        "snapshot",
        "config.template",
    ];
    let mut watch = watch(&story, &vm, &narrow).await;
    story
        .reconfigure(&vm, VirtualMachineConfigSpec { annotation: Some("a".into()), ..spec() })
        .await
        .unwrap();
    assert_eq!(changed(&mut watch).await, ["config.annotation", "summary.config.annotation"]);
    let larger = VirtualMachineConfigSpec { num_cpus: Some(2), memory_mb: Some(2048), ..spec() };
    story.reconfigure(&vm, larger).await.unwrap();
    assert_eq!(
        changed(&mut watch).await,
        [
            "config.hardware.memoryMB",
            "config.hardware.numCPU",
            "summary.config.memorySizeMB",
            "summary.config.numCpu"
        ]
    );
    story.client.rename(&vm, "worker-2").await;
    assert_eq!(changed(&mut watch).await, ["config.name", "name", "summary.config.name"]);
    story.power_on(&vm).await.unwrap();
    story.until_ready("worker-2").await;
    assert_eq!(changed(&mut watch).await, ["guest.ipAddress", "runtime.powerState"]);
    story.power_off(&vm).await.unwrap();
    assert_eq!(changed(&mut watch).await, ["guest.ipAddress", "runtime.powerState"]);
    story.client.call(roost_vim_wire::methods::MarkAsTemplate { this: vm.clone() }).await.unwrap();
    assert_eq!(changed(&mut watch).await, ["config.template", "resourcePool"]);
}

#[tokio::test(start_paused = true)]
async fn an_empty_annotation_clears_it() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    story
        .reconfigure(&vm, VirtualMachineConfigSpec { annotation: Some("mine".into()), ..spec() })
        .await
        .unwrap();
    assert_eq!(story.vm("worker-1").annotation.as_deref(), Some("mine"));
    story.reconfigure(&vm, VirtualMachineConfigSpec { num_cpus: Some(2), ..spec() }).await.unwrap();
    assert_eq!(story.vm("worker-1").annotation.as_deref(), Some("mine"), "absent is not empty");
    story
        .reconfigure(&vm, VirtualMachineConfigSpec { annotation: Some(String::new()), ..spec() })
        .await
        .unwrap();
    assert_eq!(story.property(&vm, "config.annotation").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stale_change_version_is_refused() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let version =
        story.property(&vm, "config.changeVersion").await.unwrap().as_str().unwrap().to_owned();
    let change = |note: &str| VirtualMachineConfigSpec {
        change_version: Some(version.clone()),
        annotation: Some(note.into()),
        ..spec()
    };
    story.reconfigure(&vm, change("first")).await.unwrap();
    let refused = story.reconfigure(&vm, change("second")).await.unwrap_err();
    assert_eq!(refused.class, "ConcurrentAccess");
    assert_eq!(story.vm("worker-1").annotation.as_deref(), Some("first"));
}

#[tokio::test(start_paused = true)]
async fn one_request_renames_annotates_and_resizes() {
    let story = Story::start(options()).await;
    let vm = story.clone_vm("debian12", "spare-1", story.linked().await).await.unwrap();
    let claim = VirtualMachineConfigSpec {
        name: Some("worker-7".into()),
        annotation: Some("job 7".into()),
        num_cpus: Some(8),
        num_cores_per_socket: Some(4),
        memory_mb: Some(16_384),
        ..spec()
    };
    story.reconfigure(&vm, claim).await.unwrap();
    let view = story.vm("worker-7");
    assert_eq!((view.cpus, view.memory_mb, view.annotation.as_deref()), (8, 16_384, Some("job 7")));
    assert!(!story.has_vm("spare-1"));
    let renamed = story
        .lab
        .vcenter
        .events()
        .into_iter()
        .find(|event| event.class == "VmRenamedEvent")
        .unwrap();
    assert_eq!(
        (renamed.text("oldName"), renamed.text("newName")),
        (Some("spare-1"), Some("worker-7"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_running_vm_takes_only_what_it_was_made_for() {
    let story = Story::start(instant()).await;
    let vm = story.worker("worker-1").await;
    for (change, class) in [
        (VirtualMachineConfigSpec { num_cpus: Some(2), ..spec() }, "CpuHotPlugNotSupported"),
        (VirtualMachineConfigSpec { memory_mb: Some(4096), ..spec() }, "MemoryHotPlugNotSupported"),
        (VirtualMachineConfigSpec { memory_mb: Some(512), ..spec() }, "InvalidPowerState"),
        (VirtualMachineConfigSpec { firmware: Some("efi".into()), ..spec() }, "InvalidPowerState"),
        (
            VirtualMachineConfigSpec { cpu_hot_add_enabled: Some(true), ..spec() },
            "InvalidPowerState",
        ),
        (VirtualMachineConfigSpec { num_cpus: Some(0), ..spec() }, "InvalidArgument"),
        (VirtualMachineConfigSpec { memory_mb: Some(1023), ..spec() }, "InvalidArgument"),
    ] {
        assert_eq!(story.reconfigure(&vm, change).await.unwrap_err().class, class);
    }
    let always = VirtualMachineConfigSpec {
        annotation: Some("x".into()),
        extra_config: vec![OptionValue::text("guestinfo.a", "1")],
        boot_options: Some(VirtualMachineBootOptions { boot_delay: Some(5), ..Default::default() }),
        ..spec()
    };
    story.reconfigure(&vm, always).await.unwrap();
    story.power_off(&vm).await.unwrap();
    let hot = VirtualMachineConfigSpec {
        cpu_hot_add_enabled: Some(true),
        memory_hot_add_enabled: Some(true),
        ..spec()
    };
    story.reconfigure(&vm, hot).await.unwrap();
    story.power_on(&vm).await.unwrap();
    let larger = VirtualMachineConfigSpec { num_cpus: Some(4), memory_mb: Some(4096), ..spec() };
    story.reconfigure(&vm, larger).await.unwrap();
    let delay = story.property(&vm, "config.bootOptions.bootDelay").await.unwrap();
    assert_eq!(delay.as_i64(), Some(5));
}

#[tokio::test(start_paused = true)]
async fn extra_config_is_added_changed_and_taken_away() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let set = async |value: &str| {
        let extra_config = vec![OptionValue::text("guestinfo.x", value)];
        story.reconfigure(&vm, VirtualMachineConfigSpec { extra_config, ..spec() }).await.unwrap();
        story.property(&vm, r#"config.extraConfig["guestinfo.x"]"#).await
    };
    let value = set("1").await.unwrap();
    assert_eq!(value.get("value").unwrap().as_str(), Some("1"));
    assert_eq!(set("2").await.unwrap().get("value").unwrap().as_str(), Some("2"));
    assert_eq!(set("").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_template_takes_a_name_and_an_annotation_only() {
    let story = Story::start(instant()).await;
    let template = story.vm_ref("debian12").await;
    let both = VirtualMachineConfigSpec {
        name: Some("debian12-old".into()),
        annotation: Some("old".into()),
        ..spec()
    };
    story.reconfigure(&template, both).await.unwrap();
    assert_eq!(story.vm("debian12-old").annotation.as_deref(), Some("old"));
    let cpus = VirtualMachineConfigSpec { num_cpus: Some(2), ..spec() };
    assert_eq!(story.reconfigure(&template, cpus).await.unwrap_err().class, "NotSupported");
}

#[tokio::test(start_paused = true)]
async fn names_are_unique_in_a_folder_and_checked() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "a", story.linked().await).await.unwrap();
    let other = story.clone_vm("debian12", "b", story.linked().await).await.unwrap();
    let rename = async |name: &str| {
        let task = story
            .client
            .call(RenameTask { this: vm.clone(), new_name: name.into() })
            .await
            .unwrap();
        story.client.finish(&task).await
    };
    let refused = rename("b").await.unwrap_err();
    assert_eq!((refused.class.as_str(), refused.object("object")), ("DuplicateName", Some(other)));
    assert_eq!(rename("").await.unwrap_err().class, "InvalidName");
    rename("a").await.unwrap();
    rename("a/b").await.unwrap();
    assert_eq!(story.vm("a%2fb").moref, vm);
    assert_eq!(story.create(named("b")).await.unwrap_err().class, "DuplicateName");
    let folder = story.find(FOLDER).await;
    let taken = CreateFolder { this: folder.clone(), name: "b".into() };
    assert_eq!(story.client.call(taken).await.unwrap_err().class, "DuplicateName");
    story.client.call(CreateFolder { this: folder, name: "sub".into() }).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_customization_waits_for_the_next_power_on() {
    let story = Story::start(Options { timings: Timings::realistic(), ..options() }).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let customize = CustomizeVmTask { this: vm.clone(), spec: customization(Some("10.0.0.5")) };
    let task = story.client.call(customize.clone()).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert!(story.property(&vm, "config.tools.pendingCustomization").await.is_some());
    let again = story.client.call(customize.clone()).await.unwrap();
    assert_eq!(story.client.finish(&again).await.unwrap_err().class, "CustomizationPending");
    story.power_on(&vm).await.unwrap();
    story.until_ready("worker-1").await;
    assert_eq!(story.vm("worker-1").ip.unwrap().to_string(), "10.0.0.5");
    let status = story.property(&vm, "guest.customizationInfo.customizationStatus").await.unwrap();
    assert_eq!(status.as_str(), Some("TOOLSDEPLOYPKG_SUCCEEDED"));
    let running = story.client.call(customize).await.unwrap();
    assert_eq!(story.client.finish(&running).await.unwrap_err().class, "InvalidPowerState");
}

#[tokio::test(start_paused = true)]
async fn a_vm_moves_to_another_host_pool_and_datastore() {
    let story = Story::start(Options { datastores: 2, pools: 1, ..instant() }).await;
    let vm = story.worker("worker-1").await;
    let target = VirtualMachineRelocateSpec {
        pool: Some(story.find("/DC0/host/DC0_C0/Resources/DC0_C0_RP1").await),
        host: Some(story.find("/DC0/host/DC0_C0/DC0_C0_H2").await),
        datastore: Some(story.find("/DC0/datastore/LocalDS_1").await),
        ..Default::default()
    };
    let before = story.vm("worker-1");
    assert_ne!(before.datastore, "LocalDS_1");
    let task = story
        .client
        .call(RelocateVmTask { this: vm.clone(), spec: target, priority: None })
        .await
        .unwrap();
    story.client.finish(&task).await.unwrap();
    let after = story.vm("worker-1");
    assert_eq!(
        (after.host.as_str(), after.pool.as_deref(), after.datastore.as_str()),
        ("DC0_C0_H2", Some("DC0_C0_RP1"), "LocalDS_1")
    );
    assert!(story.events_of(&vm).contains(&"VmRelocatedEvent".to_owned()));
    let running =
        story.property(&story.find("/DC0/host/DC0_C0/DC0_C0_H2").await, "vm").await.unwrap();
    assert!(running.refs().any(|found| *found == vm));
}

#[tokio::test(start_paused = true)]
async fn hardware_is_upgraded_once() {
    let story = Story::start(instant()).await;
    let vm = story.clone_vm("debian12", "worker-1", story.linked().await).await.unwrap();
    let upgrade = UpgradeVmTask { this: vm.clone(), version: Some("vmx-20".into()) };
    let task = story.client.call(upgrade.clone()).await.unwrap();
    story.client.finish(&task).await.unwrap();
    assert_eq!(story.property(&vm, "config.version").await.unwrap().as_str(), Some("vmx-20"));
    let task = story.client.call(upgrade).await.unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "AlreadyUpgraded");
}
