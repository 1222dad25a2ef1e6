use bytes::Bytes;
use roost_vim::wire::types::Hidden;
use roost_vim::{BootDevice, CreateVm, NewDisk, NewNic, Reconfigure, VmError, eject, insert_iso};

use crate::lab::{Lab, within};

#[tokio::test(start_paused = true)]
async fn a_vm_boots_from_an_iso_that_was_uploaded_before() {
    let lab = Lab::start().await;
    let client = &lab.client;
    let datastore = lab.finder.datastore("").await.unwrap();
    let files = client.datastore(lab.finder.datacenter(), &datastore).await.unwrap();
    let (iso, next) = (files.path("iso/discovery.iso"), files.path("iso/next.iso"));
    for path in [&iso, &next] {
        files.upload(&Bytes::from(vec![0; 1 << 20]), path).await.unwrap();
    }
    let network = lab.finder.network("DC0_DVPG0").await.unwrap();
    let request = CreateVm {
        guest_id: "rhel8_64Guest".into(),
        annotation: Some("agent of cluster a".into()),
        cpus: 4,
        cores_per_socket: Some(2),
        memory_mb: 8192,
        disks: vec![NewDisk::thin(20 << 30), NewDisk::thin(100 << 30)],
        iso: Some(iso.clone()),
        nics: vec![NewNic {
            card: "vmxnet3".parse().unwrap(),
            network: client.network_backing(&network.moref).await.unwrap(),
        }],
        boot_order: vec![BootDevice::Cdrom, BootDevice::Disk(0)],
        extra_config: vec![("disk.enableUUID".into(), Hidden("TRUE".into()))],
        ..CreateVm::new(
            lab.finder.vm_folder("").await.unwrap().moref,
            "node-1",
            lab.finder.resource_pool("DC0_C0").await.unwrap().moref,
            datastore.name,
        )
    };
    lab.vcenter.reset_counters();
    let vm = client.create_vm(&request).await.unwrap();
    client.power_on(&vm, None).await.unwrap();
    assert_eq!(
        (lab.calls("CreateVM_Task"), lab.calls("ReconfigVM_Task"), lab.calls("PowerOnVM_Task")),
        (1, 0, 1)
    );
    assert_eq!(lab.annotation(&vm).await, "agent of cluster a");
    let devices = client.devices(&vm).await.unwrap();
    let disks: Vec<_> =
        devices.iter().filter(|device| device.is_disk()).map(|disk| disk.capacity_in_kb).collect();
    assert_eq!(disks, [Some(20 << 20), Some(100 << 20)]);
    assert!(devices.iter().all(|device| device.key > 0), "temporary keys are replaced");

    let drive = devices.iter().find(|device| device.is_cdrom()).unwrap();
    let inserted = |devices: &[roost_vim::wire::types::VirtualDevice]| {
        let drive = devices.iter().find(|device| device.is_cdrom()).unwrap();
        drive.backing.as_ref().and_then(|backing| backing.file_name.clone())
    };
    assert_eq!(inserted(&devices), Some(iso.to_string()));
    let swap = Reconfigure { devices: vec![insert_iso(drive, &next)], ..Reconfigure::default() };
    client.reconfigure(&vm, &swap).await.unwrap();
    assert_eq!(inserted(&client.devices(&vm).await.unwrap()), Some(next.to_string()));
    let empty = Reconfigure { devices: vec![eject(drive)], ..Reconfigure::default() };
    client.reconfigure(&vm, &empty).await.unwrap();
    assert_eq!(inserted(&client.devices(&vm).await.unwrap()), None);
    client.destroy(&vm).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn more_disks_than_a_controller_takes_are_refused_before_the_server_has_to() {
    let lab = Lab::start().await;
    let folder = lab.finder.vm_folder("").await.unwrap().moref;
    let pool = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    let disks = vec![NewDisk::thin(1 << 30); 16];
    let request = CreateVm { disks, ..CreateVm::new(folder, "many", pool, "LocalDS_0") };
    let error = lab.client.create_vm(&request).await.unwrap_err();
    assert!(matches!(error, VmError::Devices { .. }), "{error}");
    assert_eq!(lab.calls("CreateVM_Task"), 0);
    assert!(
        lab.client
            .wait_for_power(&lab.vm("DC0_H0_VM0").await, &"poweredOff".into(), within(1))
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn a_datastore_cluster_says_where() {
    let lab = Lab::with(roost_vcenter_sim::Options { pods: 1, ..Default::default() }).await;
    let pod = lab.finder.datastore_cluster("").await.unwrap();
    let folder = lab.finder.vm_folder("").await.unwrap().moref;
    let pool = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    let disks = vec![NewDisk::thin(1 << 30)];
    let request = CreateVm { disks, ..CreateVm::new(folder.clone(), "a", pool, "") };
    // The cluster is empty at first.
    assert!(lab.client.recommend_for_create(&request, &pod.moref).await.is_err());
    let datastore = lab.finder.datastore("LocalDS_0").await.unwrap().moref;
    let into = roost_vim::wire::methods::MoveIntoFolderTask {
        this: pod.moref.clone(),
        list: vec![datastore.clone()],
    };
    lab.client.submit(&into).await.unwrap().wait().await.unwrap();
    assert_eq!(lab.client.recommend_for_create(&request, &pod.moref).await.unwrap(), datastore);
    let (template, clone) = (lab.template().await, lab.clone_request("b").await);
    assert_eq!(
        lab.client.recommend_for_clone(&template, &clone, &pod.moref).await.unwrap(),
        datastore
    );
}
