use roost_vim_wire::MoRef;
use roost_vim_wire::types::{
    DistributedVirtualSwitchPortConnection, VirtualDevice, VirtualDeviceBackingInfo,
    VirtualDeviceConfigSpec, VirtualDeviceConfigSpecFileOperation as FileOperation,
    VirtualDeviceConfigSpecOperation as Operation, VirtualDeviceConnectInfo,
    VirtualMachineConfigSpec,
};

use crate::story::{Story, instant, named};

fn change(operation: Operation, device: VirtualDevice) -> VirtualDeviceConfigSpec {
    VirtualDeviceConfigSpec { operation: Some(operation), device, ..Default::default() }
}

fn add(device: VirtualDevice) -> VirtualDeviceConfigSpec {
    change(Operation::Add, device)
}

fn controller(key: i32) -> VirtualDevice {
    VirtualDevice {
        key,
        bus_number: Some(0),
        shared_bus: Some("noSharing".into()),
        ..VirtualDevice::of("ParaVirtualSCSIController")
    }
}

fn new_disk(controller: i32, unit: Option<i32>, kb: i64) -> VirtualDeviceConfigSpec {
    let disk = VirtualDevice {
        key: -204,
        backing: Some(VirtualDeviceBackingInfo {
            file_name: Some(String::new()),
            disk_mode: Some("persistent".into()),
            thin_provisioned: Some(true),
            ..VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo")
        }),
        controller_key: Some(controller),
        unit_number: unit,
        capacity_in_kb: Some(kb),
        ..VirtualDevice::of("VirtualDisk")
    };
    VirtualDeviceConfigSpec { file_operation: Some(FileOperation::Create), ..add(disk) }
}

fn cdrom(iso: &str, controller: i32) -> VirtualDevice {
    VirtualDevice {
        key: -203,
        backing: Some(VirtualDeviceBackingInfo {
            file_name: Some(iso.into()),
            ..VirtualDeviceBackingInfo::of("VirtualCdromIsoBackingInfo")
        }),
        connectable: Some(VirtualDeviceConnectInfo {
            start_connected: true,
            allow_guest_control: true,
            connected: true,
            ..Default::default()
        }),
        controller_key: Some(controller),
        unit_number: Some(0),
        ..VirtualDevice::of("VirtualCdrom")
    }
}

async fn card(story: &Story) -> VirtualDevice {
    let switch = story.find("/DC0/network/DVS0").await;
    let uuid = story.property(&switch, "uuid").await.unwrap().as_str().unwrap().to_owned();
    let group = story.find("/DC0/network/DC0_DVPG0").await;
    VirtualDevice {
        key: -205,
        backing: Some(VirtualDeviceBackingInfo {
            port: Some(DistributedVirtualSwitchPortConnection {
                switch_uuid: uuid,
                portgroup_key: Some(group.id.as_ref().into()),
                ..Default::default()
            }),
            ..VirtualDeviceBackingInfo::of("VirtualEthernetCardDistributedVirtualPortBackingInfo")
        }),
        ..VirtualDevice::of("VirtualVmxnet3")
    }
}

/// The request of the reference: controllers, a CD drive with an ISO, a disk and a card, with temporary keys.
async fn iso_vm(story: &Story) -> VirtualMachineConfigSpec {
    let ide = VirtualDevice {
        key: -202,
        bus_number: Some(0),
        ..VirtualDevice::of("VirtualIDEController")
    };
    VirtualMachineConfigSpec {
        device_change: vec![
            add(controller(-201)),
            add(ide),
            add(cdrom("[LocalDS_0] iso/boot.iso", -202)),
            new_disk(-201, Some(0), 20 << 20),
            add(card(story).await),
        ],
        firmware: Some("efi".into()),
        ..named("iso-vm")
    }
}

#[tokio::test(start_paused = true)]
async fn a_vm_is_created_whole_in_one_request() {
    let story = Story::start(instant()).await;
    let spec = iso_vm(&story).await;
    // The image may come after the VM; only its datastore must be there.
    let mut elsewhere = spec.clone();
    elsewhere.device_change[2].device = cdrom("[nowhere] iso/boot.iso", -202);
    assert_eq!(story.create(elsewhere).await.unwrap_err().class, "InvalidDatastore");
    story.lab.vcenter.put_file("[LocalDS_0] iso/boot.iso", "image").unwrap();
    let vm = story.create(spec).await.unwrap();
    let devices = story.vm("iso-vm").devices;
    let key = |class: &str| {
        devices
            .iter()
            .filter(|device| device.class == class)
            .map(|device| device.key)
            .collect::<Vec<_>>()
    };
    for (class, keys) in [
        ("VirtualPCIController", vec![100]),
        ("VirtualIDEController", vec![200, 201]),
        ("VirtualPS2Controller", vec![300]),
        ("VirtualSIOController", vec![400]),
        ("VirtualMachineVideoCard", vec![500]),
        ("VirtualKeyboard", vec![600]),
        ("VirtualPointingDevice", vec![700]),
        ("VirtualMachineVMCIDevice", vec![12_000]),
        ("ParaVirtualSCSIController", vec![1000]),
        ("VirtualDisk", vec![2000]),
        ("VirtualCdrom", vec![3000]),
        ("VirtualVmxnet3", vec![4000]),
    ] {
        assert_eq!(key(class), keys, "{class}");
    }
    let disk = devices.iter().find(|device| device.is_disk()).unwrap();
    assert_eq!(
        disk.backing.as_ref().unwrap().file_name.as_deref(),
        Some("[LocalDS_0] iso-vm/iso-vm.vmdk")
    );
    let scsi = devices.iter().find(|device| device.key == 1000).unwrap();
    assert_eq!(scsi.device, [2000]);
    story.power_on(&vm).await.unwrap();
    let cd =
        story.property(&vm, "config.hardware.device[3000].connectable.connected").await.unwrap();
    assert_eq!(cd.as_bool(), Some(true));
    let locked = roost_vim_wire::methods::DeleteDatastoreFileTask {
        this: story.client.content.file_manager.clone().unwrap(),
        name: "[LocalDS_0] iso/boot.iso".into(),
        datacenter: Some(story.find("/DC0").await),
    };
    let task = story.client.call(locked).await.unwrap();
    assert_eq!(story.client.finish(&task).await.unwrap_err().class, "FileLocked");
}

async fn bare(story: &Story) -> MoRef {
    let device_change = vec![add(controller(-1)), new_disk(-1, Some(0), 10 << 20)];
    story.create(VirtualMachineConfigSpec { device_change, ..named("bare") }).await.unwrap()
}

async fn apply(
    story: &Story,
    vm: &MoRef,
    change: VirtualDeviceConfigSpec,
) -> Result<(), roost_vim_wire::Fault> {
    story
        .reconfigure(
            vm,
            VirtualMachineConfigSpec { device_change: vec![change], ..Default::default() },
        )
        .await
}

fn device(story: &Story, key: i32) -> VirtualDevice {
    story.vm("bare").devices.into_iter().find(|device| device.key == key).unwrap()
}

#[tokio::test(start_paused = true)]
async fn disks_grow_but_do_not_shrink() {
    let story = Story::start(instant()).await;
    let vm = bare(&story).await;
    let resized = |kb: i64| VirtualDevice { capacity_in_kb: Some(kb), ..device(&story, 2000) };
    apply(&story, &vm, change(Operation::Edit, resized(12 << 20))).await.unwrap();
    assert_eq!(device(&story, 2000).capacity_in_kb, Some(12 << 20));
    let refused = apply(&story, &vm, change(Operation::Edit, resized(8 << 20))).await.unwrap_err();
    assert!(refused.is("InvalidDeviceSpec") && refused.class == "InvalidDeviceOperation");
    let mut contradiction = resized(16 << 20);
    contradiction.capacity_in_bytes = Some(5);
    assert_eq!(
        apply(&story, &vm, change(Operation::Edit, contradiction)).await.unwrap_err().class,
        "InvalidDeviceSpec"
    );
}

#[tokio::test(start_paused = true)]
async fn a_device_needs_its_controller_and_a_free_unit() {
    let story = Story::start(instant()).await;
    let vm = bare(&story).await;
    for (disk, class) in [
        (new_disk(1001, Some(0), 1 << 20), "InvalidController"),
        (new_disk(1000, Some(0), 1 << 20), "InvalidDeviceSpec"),
        (new_disk(1000, Some(7), 1 << 20), "InvalidDeviceSpec"),
        (new_disk(1000, None, 1 << 20), "InvalidDeviceSpec"),
    ] {
        let refused = apply(&story, &vm, disk).await.unwrap_err();
        assert_eq!((refused.class.as_str(), refused.text("deviceIndex")), (class, Some("0")));
    }
    apply(&story, &vm, new_disk(1000, Some(1), 1 << 20)).await.unwrap();
    assert_eq!(device(&story, 2001).capacity_in_kb, Some(1 << 20));
    let mut lost = card(&story).await;
    lost.backing = Some(VirtualDeviceBackingInfo {
        device_name: Some("No Such Network".into()),
        ..VirtualDeviceBackingInfo::of("VirtualEthernetCardNetworkBackingInfo")
    });
    assert_eq!(apply(&story, &vm, add(lost)).await.unwrap_err().class, "InvalidDeviceBacking");
}

#[tokio::test(start_paused = true)]
async fn removing_a_disk_keeps_its_file_unless_told_otherwise() {
    let story = Story::start(instant()).await;
    let vm = bare(&story).await;
    let disk = device(&story, 2000);
    let path = disk.backing.as_ref().unwrap().file_name.clone().unwrap();
    apply(&story, &vm, change(Operation::Remove, disk.clone())).await.unwrap();
    assert!(story.vm("bare").devices.iter().all(|device| !device.is_disk()));
    let mut again = disk.clone();
    again.key = -7;
    again.backing.as_mut().unwrap().file_name = Some(path);
    apply(&story, &vm, add(again)).await.unwrap();
    let free = story.lab.vcenter.datastore_free("LocalDS_0");
    let removal = VirtualDeviceConfigSpec {
        file_operation: Some(FileOperation::Destroy),
        ..change(Operation::Remove, device(&story, 2000))
    };
    apply(&story, &vm, removal).await.unwrap();
    assert!(story.lab.vcenter.datastore_free("LocalDS_0") > free);
    let fixed = change(Operation::Remove, device(&story, 500));
    assert_eq!(apply(&story, &vm, fixed).await.unwrap_err().class, "InvalidDeviceOperation");
}

#[tokio::test(start_paused = true)]
async fn cards_come_and_go_while_a_vm_runs() {
    let story = Story::start(instant()).await;
    let vm = bare(&story).await;
    story.power_on(&vm).await.unwrap();
    apply(&story, &vm, add(card(&story).await)).await.unwrap();
    let first = device(&story, 4000);
    assert!(first.connectable.as_ref().unwrap().connected);
    let manual = VirtualDevice {
        address_type: Some("manual".into()),
        mac_address: Some("00:50:56:00:00:2a".into()),
        ..card(&story).await
    };
    apply(&story, &vm, add(manual)).await.unwrap();
    assert_eq!(device(&story, 4001).mac_address.as_deref(), Some("00:50:56:00:00:2a"));
    apply(&story, &vm, change(Operation::Remove, first)).await.unwrap();
    assert_eq!(
        story.property(&vm, "summary.config.numEthernetCards").await.unwrap().as_i64(),
        Some(1)
    );
    let drive = cdrom("", 201);
    assert_eq!(
        apply(&story, &vm, add(drive)).await.unwrap_err().class,
        "InvalidPowerState",
        "IDE is not hot-plugged"
    );
}
