//! Whatever is done, a client that watches single leaves and only listens holds what a fresh read answers.

use std::collections::BTreeMap;

use roost_vcenter_sim::{HostConnection, Options};
use roost_vim_wire::methods::{
    CreateSnapshotTask, CustomizeVmTask, MarkAsTemplate, MarkAsVirtualMachine, MoveIntoFolderTask,
    RelocateVmTask, RemoveAllSnapshotsTask, ResetVmTask, RevertToCurrentSnapshotTask, SetField,
    SuspendVmTask, UpgradeVmTask,
};
use roost_vim_wire::types::{
    ManagedByInfo, OptionValue, PropertyFilterSpec, PropertySpec, ResourceAllocationInfo,
    ToolsConfigInfo, VirtualDeviceConfigSpec, VirtualDeviceConfigSpecFileOperation,
    VirtualDeviceConfigSpecOperation, VirtualMachineBootOptions, VirtualMachineConfigSpec,
    VirtualMachineRelocateSpec,
};
use roost_vim_wire::{Method, MoRef, Value};

use crate::lab::watch::Watch;
use crate::story::{POOL, Story, customization, options};

const VM_LEAVES: &[&str] = &[
    "name",
    "parent",
    "resourcePool",
    "datastore",
    "network",
    "recentTask",
    "snapshot",
    "rootSnapshot",
    "overallStatus",
    "guestHeartbeatStatus",
    "customValue",
    "environmentBrowser",
    "resourceConfig",
    "config.name",
    "config.annotation",
    "config.template",
    "config.uuid",
    "config.instanceUuid",
    "config.changeVersion",
    "config.modified",
    "config.guestId",
    "config.guestFullName",
    "config.version",
    "config.firmware",
    "config.alternateGuestName",
    "config.files",
    "config.tools",
    "config.tools.syncTimeWithHost",
    "config.tools.pendingCustomization",
    "config.hardware.numCPU",
    "config.hardware.numCoresPerSocket",
    "config.hardware.memoryMB",
    "config.hardware.device",
    "config.hardware.device[2000]",
    "config.hardware.device[4000]",
    "config.hardware.device[4001]",
    "config.extraConfig",
    "config.extraConfig[\"guestinfo.a\"]",
    "config.bootOptions",
    "config.cpuAllocation",
    "config.memoryAllocation",
    "config.cpuHotAddEnabled",
    "config.managedBy",
    "config.swapPlacement",
    "config.nestedHVEnabled",
    "config.changeTrackingEnabled",
    "runtime.powerState",
    "runtime.host",
    "runtime.bootTime",
    "runtime.suspendTime",
    "runtime.connectionState",
    "runtime.maxCpuUsage",
    "runtime.maxMemoryUsage",
    "summary.runtime.powerState",
    "summary.runtime.host",
    "summary.runtime.bootTime",
    "summary.runtime.suspendTime",
    "summary.runtime.connectionState",
    "summary.runtime.maxCpuUsage",
    "summary.runtime.maxMemoryUsage",
    "summary.config.name",
    "summary.config.annotation",
    "summary.config.template",
    "summary.config.numCpu",
    "summary.config.memorySizeMB",
    "summary.config.numEthernetCards",
    "summary.config.numVirtualDisks",
    "summary.config.vmPathName",
    "summary.config.uuid",
    "summary.config.hwVersion",
    "summary.config.guestId",
    "summary.config.cpuReservation",
    "summary.config.memoryReservation",
    "summary.guest.toolsStatus",
    "summary.guest.toolsRunningStatus",
    "summary.guest.hostName",
    "summary.guest.ipAddress",
    "summary.guest.guestId",
    "summary.storage.committed",
    "summary.storage.uncommitted",
    "summary.overallStatus",
    "summary.customValue",
    "summary.quickStats.overallCpuUsage",
    "summary.quickStats.guestMemoryUsage",
    "summary.quickStats.guestHeartbeatStatus",
    "guest.toolsStatus",
    "guest.toolsRunningStatus",
    "guest.guestState",
    "guest.guestOperationsReady",
    "guest.guestStateChangeSupported",
    "guest.hostName",
    "guest.ipAddress",
    "guest.net",
    "guest.customizationInfo",
    "guest.guestId",
    "guest.hwVersion",
    "guest.guestFullName",
];

const POOL_LEAVES: &[&str] = &[
    "name",
    "parent",
    "vm",
    "resourcePool",
    "config",
    "runtime.memory.reservationUsed",
    "runtime.memory.unreservedForVm",
    "runtime.memory.unreservedForPool",
    "runtime.memory.reservationUsedForVm",
    "runtime.memory.overallUsage",
    "runtime.memory.maxUsage",
    "runtime.cpu.reservationUsed",
    "runtime.cpu.unreservedForVm",
    "runtime.cpu.overallUsage",
    "runtime.overallStatus",
    "summary.runtime.memory.overallUsage",
    "summary.quickStats.overallCpuUsage",
    "summary.quickStats.hostMemoryUsage",
    "summary.configuredMemoryMB",
    "summary.config",
];

const HOST_LEAVES: &[&str] = &[
    "name",
    "vm",
    "runtime.connectionState",
    "summary.runtime.connectionState",
    "overallStatus",
    "summary.quickStats.overallCpuUsage",
    "summary.quickStats.overallMemoryUsage",
];

const COMPUTE_LEAVES: &[&str] = &[
    "summary.effectiveCpu",
    "summary.effectiveMemory",
    "summary.numEffectiveHosts",
    "summary.totalCpu",
];

const DATASTORE_LEAVES: &[&str] =
    &["name", "vm", "summary.freeSpace", "info.freeSpace", "summary.name"];

const NETWORK_LEAVES: &[&str] = &["name", "vm", "summary.name"];

const FOLDER_LEAVES: &[&str] = &["name", "parent", "childEntity"];

type State = BTreeMap<MoRef, BTreeMap<String, Value>>;

struct Mirror<'a> {
    story: &'a Story,
    watch: Watch,
    spec: PropertyFilterSpec,
    state: State,
    /// What should have been announced and was not.
    missed: Vec<String>,
}

impl<'a> Mirror<'a> {
    async fn of(story: &'a Story) -> Self {
        let view = story.client.view("ManagedEntity").await;
        let prop_set = [
            ("VirtualMachine", VM_LEAVES),
            ("ResourcePool", POOL_LEAVES),
            ("HostSystem", HOST_LEAVES),
            ("ComputeResource", COMPUTE_LEAVES),
            ("Datastore", DATASTORE_LEAVES),
            ("Network", NETWORK_LEAVES),
            ("Folder", FOLDER_LEAVES),
        ];
        let prop_set =
            prop_set.into_iter().map(|(kind, leaves)| PropertySpec::new(kind, leaves)).collect();
        let spec = PropertyFilterSpec::of_view(&view, prop_set);
        Self {
            story,
            watch: Watch::on(&story.client, spec.clone()).await,
            spec,
            state: State::new(),
            missed: Vec::new(),
        }
    }

    /// Takes all updates in and compares with a fresh read.
    async fn check(&mut self, step: &str) {
        for update in self.watch.updates().await {
            if update.kind == roost_vim_wire::types::ObjectUpdateKind::Leave {
                self.state.remove(&update.obj);
                continue;
            }
            let known = self.state.entry(update.obj).or_default();
            for change in update.change_set {
                match change.val {
                    Some(value) => known.insert(change.name, value),
                    None => known.remove(&change.name),
                };
            }
        }
        let fresh = self.story.client.read_all(self.spec.clone()).await.unwrap();
        assert_eq!(self.state.len(), fresh.len(), "{step}");
        for object in fresh {
            let actual: BTreeMap<_, _> =
                object.prop_set.into_iter().map(|property| (property.name, property.val)).collect();
            let known = &self.state[&object.obj];
            let paths =
                known.keys().chain(actual.keys()).collect::<std::collections::BTreeSet<_>>();
            let missed = paths.into_iter().filter(|path| known.get(*path) != actual.get(*path));
            self.missed.extend(missed.map(|path| {
                let (known, actual) = (known.get(path), actual.get(path));
                format!("{step}: {} {path}: {known:?} is {actual:?}", object.obj)
            }));
            self.state.insert(object.obj, actual);
        }
    }

    async fn does<M: Method<Output = MoRef>>(&mut self, step: &str, call: M) {
        let task = self.story.client.call(call).await.unwrap();
        self.check(&format!("{step}, begun")).await;
        self.story.client.finish(&task).await.unwrap();
        self.check(step).await;
    }
}

fn wide() -> VirtualMachineConfigSpec {
    let reserved =
        |amount| ResourceAllocationInfo { reservation: Some(amount), ..Default::default() };
    VirtualMachineConfigSpec {
        annotation: Some("all of it".into()),
        num_cpus: Some(4),
        num_cores_per_socket: Some(2),
        memory_mb: Some(2048),
        guest_id: Some("ubuntu64Guest".into()),
        alternate_guest_name: Some("other".into()),
        tools: Some(ToolsConfigInfo { sync_time_with_host: Some(true), ..Default::default() }),
        cpu_hot_add_enabled: Some(true),
        cpu_allocation: Some(reserved(100)),
        memory_allocation: Some(reserved(512)),
        extra_config: vec![OptionValue::text("guestinfo.a", "1")],
        swap_placement: Some("hostLocal".into()),
        boot_options: Some(VirtualMachineBootOptions { boot_delay: Some(1), ..Default::default() }),
        change_tracking_enabled: Some(true),
        firmware: Some("efi".into()),
        managed_by: Some(ManagedByInfo { extension_key: "x".into(), kind: "y".into() }),
        nested_hv_enabled: Some(true),
        uuid: Some("11111111-2222-4333-8444-555555555555".into()),
        ..Default::default()
    }
}

fn edit(
    operation: VirtualDeviceConfigSpecOperation,
    device: roost_vim_wire::types::VirtualDevice,
) -> VirtualMachineConfigSpec {
    let file_operation = (device.is_disk()
        && operation == VirtualDeviceConfigSpecOperation::Remove)
        .then_some(VirtualDeviceConfigSpecFileOperation::Destroy);
    let device_change = vec![VirtualDeviceConfigSpec {
        operation: Some(operation),
        file_operation,
        device,
        ..Default::default()
    }];
    VirtualMachineConfigSpec { device_change, ..Default::default() }
}

#[tokio::test(start_paused = true)]
async fn every_leaf_that_changes_is_announced() {
    let story = Story::start(Options { datastores: 2, pools: 1, ..options() }).await;
    let mut mirror = Mirror::of(&story).await;
    mirror.check("at the start").await;
    let vm = story.clone_vm("flat", "worker-1", story.linked().await).await.unwrap();
    mirror.check("clone").await;
    let this = || vm.clone();
    let reconfigure = |spec| roost_vim_wire::methods::ReconfigVmTask { this: vm.clone(), spec };
    mirror.does("reconfigure", reconfigure(wide())).await;
    let customize = CustomizeVmTask { this: this(), spec: customization(Some("10.0.0.7")) };
    mirror.does("customize", customize).await;
    mirror
        .does("power on", roost_vim_wire::methods::PowerOnVmTask { this: this(), host: None })
        .await;
    story.until_ready("worker-1").await;
    mirror.check("boot").await;
    let devices = story.vm("worker-1").devices;
    let mut card = devices.iter().find(|device| device.is_nic()).unwrap().clone();
    card.connectable.as_mut().unwrap().connected = false;
    mirror
        .does(
            "unplug the card",
            reconfigure(edit(VirtualDeviceConfigSpecOperation::Edit, card.clone())),
        )
        .await;
    let second = roost_vim_wire::types::VirtualDevice { key: -1, ..card.clone() };
    mirror
        .does("a second card", reconfigure(edit(VirtualDeviceConfigSpecOperation::Add, second)))
        .await;
    mirror
        .does("no first card", reconfigure(edit(VirtualDeviceConfigSpecOperation::Remove, card)))
        .await;
    let more = VirtualMachineConfigSpec { num_cpus: Some(8), ..Default::default() };
    mirror.does("hot add", reconfigure(more)).await;
    let snapshot =
        CreateSnapshotTask { this: this(), name: "s".into(), memory: true, ..Default::default() };
    mirror.does("snapshot", snapshot).await;
    mirror.does("reset", ResetVmTask { this: this() }).await;
    story.until("its tools run", |story| story.vm("worker-1").tools_running).await;
    mirror.check("rebooted").await;
    let gone = VirtualMachineConfigSpec {
        annotation: Some(String::new()),
        extra_config: vec![OptionValue::text("guestinfo.a", "")],
        ..Default::default()
    };
    mirror.does("clear", reconfigure(gone)).await;
    mirror.does("suspend", SuspendVmTask { this: this() }).await;
    mirror.does("revert", RevertToCurrentSnapshotTask { this: this(), ..Default::default() }).await;
    mirror.does("no snapshots", RemoveAllSnapshotsTask { this: this(), consolidate: None }).await;
    let elsewhere = VirtualMachineRelocateSpec {
        pool: Some(story.find("/DC0/host/DC0_C0/Resources/DC0_C0_RP1").await),
        datastore: Some(story.find("/DC0/datastore/LocalDS_1").await),
        host: Some(story.find("/DC0/host/DC0_C0/DC0_C0_H2").await),
        ..Default::default()
    };
    mirror.does("relocate", RelocateVmTask { this: this(), spec: elsewhere, priority: None }).await;
    let host = story.vm("worker-1").host;
    story.lab.vcenter.set_host_connection(&host, HostConnection::Disconnected).unwrap();
    mirror.check("host lost").await;
    story.lab.vcenter.set_host_connection(&host, HostConnection::Connected).unwrap();
    mirror.check("host back").await;
    mirror.does("power off", roost_vim_wire::methods::PowerOffVmTask { this: this() }).await;
    let disk = story
        .vm("worker-1")
        .devices
        .into_iter()
        .find(roost_vim_wire::types::VirtualDevice::is_disk)
        .unwrap();
    let larger =
        roost_vim_wire::types::VirtualDevice { capacity_in_kb: Some(30 << 20), ..disk.clone() };
    mirror.does("grow", reconfigure(edit(VirtualDeviceConfigSpecOperation::Edit, larger))).await;
    mirror.does("no disk", reconfigure(edit(VirtualDeviceConfigSpecOperation::Remove, disk))).await;
    mirror.does("upgrade", UpgradeVmTask { this: this(), version: Some("vmx-21".into()) }).await;
    story.client.rename(&vm, "worker-2").await;
    mirror.check("rename").await;
    let folder = story.client.create_folder(&story.find("/DC0/vm").await, "sub").await;
    mirror.does("move", MoveIntoFolderTask { this: folder, list: vec![vm.clone()] }).await;
    let fields = story.client.content.custom_fields_manager.clone().unwrap();
    let define = roost_vim_wire::methods::AddCustomFieldDef {
        this: fields.clone(),
        name: "o".into(),
        mo_type: None,
    };
    let key = story.client.call(define).await.unwrap().key;
    story
        .client
        .call(SetField { this: fields, entity: vm.clone(), key, value: "v".into() })
        .await
        .unwrap();
    mirror.check("custom value").await;
    story.client.call(MarkAsTemplate { this: this() }).await.unwrap();
    mirror.check("template").await;
    let pool = story.find(POOL).await;
    story.client.call(MarkAsVirtualMachine { this: this(), pool, host: None }).await.unwrap();
    mirror.check("VM again").await;
    story.lab.vcenter.fill_datastore("LocalDS_0", 1 << 30).unwrap();
    mirror.check("fill").await;
    mirror.does("destroy", roost_vim_wire::methods::DestroyTask { this: this() }).await;
    tokio::time::sleep(std::time::Duration::from_mins(11)).await;
    mirror.check("tasks forgotten").await;
    assert!(
        mirror.missed.is_empty(),
        "{} not announced\n{}",
        mirror.missed.len(),
        mirror.missed.join("\n")
    );
}
