//! The verbs against a server that we did not write.
#![allow(clippy::unwrap_used, reason = "these are tests")]

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use roost_clock::SystemClock;
use roost_oracle::{Vcsim, VcsimOptions};
use roost_vim::wire::types::{Hidden, VirtualMachinePowerState as PowerState};
use roost_vim::wire::{MoRef, MoType};
use roost_vim::{
    Annotated, BootDevice, Client, CloneVm, CreateVm, Credentials, Customization, Destroyed,
    EventQuery, FileKind, FindError, Finder, HttpTransport, Kind, Made, NewDisk, NewNic,
    NewSnapshot, NicAddress, PowerChange, Reconfigure, Recursion, Settings, Shutdown, TailFrom,
    TlsTrust, VmError, eject, grow_disk, insert_iso, unlimited_pool,
};
use tokio::time::{Instant, timeout};

struct Lab {
    client: Client,
    finder: Finder,
    _vcsim: Vcsim,
}

async fn lab(options: VcsimOptions) -> Option<Lab> {
    let vcsim = tokio::task::spawn_blocking(|| Vcsim::start(options)).await.unwrap()?;
    let credentials = Credentials::new(vcsim.username(), vcsim.password());
    let settings = Settings::new(&vcsim.endpoint(), credentials).unwrap();
    let transport = Arc::new(HttpTransport::new(&TlsTrust::Insecure).unwrap());
    let client = Client::connect(settings, transport, Arc::new(SystemClock)).await.unwrap();
    let finder = client.finder("").await.unwrap();
    Some(Lab { client, finder, _vcsim: vcsim })
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

impl Lab {
    /// A template, which vcsim has none of at the start.
    async fn template(&self) -> MoRef {
        let vm = self.finder.vm("DC0_C0_RP0_VM0").await.unwrap().moref;
        self.client.power_off(&vm).await.unwrap();
        self.client.mark_as_template(&vm).await.unwrap();
        self.client.mark_as_template(&vm).await.expect("what is a template can be made one again");
        vm
    }

    async fn clone_request(&self, name: &str) -> CloneVm {
        let folder = self.finder.vm_folder("").await.unwrap().moref;
        CloneVm::new(folder, name, self.finder.resource_pool("DC0_C0").await.unwrap().moref)
    }
}

#[tokio::test]
async fn objects_are_found_by_name_path_and_reference() {
    let Some(lab) = lab(VcsimOptions { pools: 1, ..VcsimOptions::default() }).await else { return };
    for (kind, wanted, path) in [
        (Kind::VirtualMachine, "DC0_H0_VM0", "/DC0/vm/DC0_H0_VM0"),
        (Kind::VirtualMachine, "/DC0/vm/DC0_H0_VM1", "/DC0/vm/DC0_H0_VM1"),
        (Kind::VirtualMachine, "*H0_VM[0]", "/DC0/vm/DC0_H0_VM0"),
        (Kind::VmFolder, "", "/DC0/vm"),
        (Kind::ResourcePool, "DC0_C0_RP1", "/DC0/host/DC0_C0/Resources/DC0_C0_RP1"),
        (Kind::ResourcePool, "/DC0/host/DC0_H0/Resources", "/DC0/host/DC0_H0/Resources"),
        (Kind::ResourcePool, "DC0_C0", "/DC0/host/DC0_C0/Resources"),
        (Kind::Network, "VM Network", "/DC0/network/VM Network"),
        (Kind::Network, "DC0_DVPG0", "/DC0/network/DC0_DVPG0"),
        (Kind::Datastore, "", "/DC0/datastore/LocalDS_0"),
        (Kind::Host, "DC0_C0_H2", "/DC0/host/DC0_C0/DC0_C0_H2"),
        (Kind::Host, "DC0_H0", "/DC0/host/DC0_H0/DC0_H0"),
        (Kind::ComputeResource, "DC0_C?", "/DC0/host/DC0_C0"),
    ] {
        let found = lab
            .finder
            .find(kind, wanted)
            .await
            .unwrap_or_else(|error| panic!("{kind} {wanted:?}: {error}"));
        assert_eq!(found.path, path, "{kind} {wanted:?}");
        let again = lab.finder.find(kind, &found.moref.to_string()).await.unwrap();
        assert_eq!(again, found, "by reference");
    }
    let pool = lab.finder.resource_pool("").await.unwrap_err();
    assert!(matches!(pool, FindError::Ambiguous { .. }), "{pool}");

    let switch = lab.finder.network("DVS0").await.unwrap_err();
    assert!(switch.to_string().contains("port groups"), "{switch}");
    let absent = lab.finder.vm("DC0_H0_VN0").await.unwrap_err().to_string();
    assert!(absent.contains("/DC0/vm/DC0_H0_VM0"), "{absent}");
    let no_template = lab.finder.template("DC0_H0_VM0").await.unwrap_err().to_string();
    assert!(no_template.contains("not a template"), "{no_template}");
}

#[tokio::test]
async fn a_clone_goes_from_template_to_destruction() {
    let Some(lab) = lab(VcsimOptions::default()).await else { return };
    let (client, template) = (&lab.client, lab.template().await);
    let facts = client.template_facts(&template).await.unwrap();
    assert!(facts.is_template && facts.nics.len() == 1 && facts.disks.len() == 1, "{facts:?}");
    let network = lab.finder.network("DC0_DVPG0").await.unwrap();
    let request = CloneVm {
        datastore: Some(lab.finder.datastore("LocalDS_0").await.unwrap().moref),
        annotation: Some("owner: test".into()),
        cpus: Some(2),
        memory_mb: Some(512),
        network: Some(client.network_backing(&network.moref).await.unwrap()),
        extra_config: vec![("guestinfo.owner".into(), Hidden("test".into()))],
        customization: Some(Customization {
            nics: vec![NicAddress::Fixed {
                address: [10, 0, 0, 10].into(),
                subnet_mask: [255, 255, 255, 0].into(),
                gateways: vec![[10, 0, 0, 1].into()],
            }],
            ..Customization::linux("local")
        }),
        power_on: true,
        ..lab.clone_request("worker-1").await
    };
    let Made::Now(vm) = client.clone_or_adopt(&facts, &request, |_| true).await.unwrap() else {
        panic!()
    };
    assert_eq!(
        client.ensure_annotation(&vm, "owner: test").await.unwrap(),
        Annotated::Now,
        "vcsim drops it"
    );
    assert_eq!(client.ensure_annotation(&vm, "owner: test").await.unwrap(), Annotated::Already);
    let ours =
        |namesake: &roost_vim::Namesake| namesake.annotation.as_deref() == Some("owner: test");
    assert_eq!(
        client.clone_or_adopt(&facts, &request, ours).await.unwrap(),
        Made::Before(vm.clone())
    );
    let taken = client.clone_or_adopt(&facts, &request, |_| false).await.unwrap_err();
    assert!(matches!(&taken, VmError::NameTaken { existing, .. } if *existing == vm), "{taken}");

    let address = client.wait_for_address(&vm, Some([10, 0, 0, 10].into()), soon()).await.unwrap();
    assert_eq!(address.to_string(), "10.0.0.10");
    assert_eq!(client.power_on(&vm, None).await.unwrap(), PowerChange::Unchanged);
    let read = client
        .properties(&vm, &["summary.config.numCpu", "summary.config.memorySizeMB", "network"])
        .await
        .unwrap();
    assert_eq!(
        (read.i64("summary.config.numCpu"), read.i64("summary.config.memorySizeMB")),
        (Some(2), Some(512))
    );
    assert_eq!(read.refs("network"), [network.moref]);

    client.rename(&vm, "worker-2").await.unwrap();
    assert_eq!(lab.finder.vm("worker-2").await.unwrap().moref, vm);
    assert_eq!(client.shut_down(&vm, Duration::from_secs(20)).await.unwrap(), Shutdown::Soft);
    client.wait_for_power(&vm, &PowerState::PoweredOff, soon()).await.unwrap();
    client.power_on(&vm, None).await.unwrap();
    assert_eq!(client.destroy(&vm).await.unwrap(), Destroyed::Now);
    assert_eq!(client.destroy(&vm).await.unwrap(), Destroyed::AlreadyGone);
}

#[tokio::test]
async fn a_vm_is_created_with_iso_disk_and_card_in_one_request() {
    let Some(lab) = lab(VcsimOptions::default()).await else { return };
    let client = &lab.client;
    let datastore = lab.finder.datastore("").await.unwrap();
    let files = client.datastore(lab.finder.datacenter(), &datastore).await.unwrap();
    let iso = files.path("iso/boot.iso");
    files.upload(&Bytes::from_static(b"an ISO, be sure"), &iso).await.unwrap();
    let network = lab.finder.network("VM Network").await.unwrap();
    let request = CreateVm {
        annotation: Some("created by test".into()),
        disks: vec![NewDisk::thin(2 << 30)],
        iso: Some(iso.clone()),
        nics: vec![NewNic {
            card: "vmxnet3".parse().unwrap(),
            network: client.network_backing(&network.moref).await.unwrap(),
        }],
        boot_order: vec![BootDevice::Cdrom, BootDevice::Disk(0)],
        ..CreateVm::new(
            lab.finder.vm_folder("").await.unwrap().moref,
            "iso-vm",
            lab.finder.resource_pool("DC0_C0").await.unwrap().moref,
            datastore.name.clone(),
        )
    };
    let vm = client.create_or_adopt(&request, |_| false).await.unwrap().into_vm();
    assert_eq!(client.create_or_adopt(&request, |_| true).await.unwrap(), Made::Before(vm.clone()));
    let devices = client.devices(&vm).await.unwrap();
    let drive = devices.iter().find(|device| device.is_cdrom()).unwrap();
    assert_eq!(
        drive.backing.as_ref().unwrap().file_name.as_deref(),
        Some("[LocalDS_0] iso/boot.iso")
    );
    let disk = devices.iter().find(|device| device.is_disk()).unwrap();
    let change = Reconfigure {
        devices: vec![eject(drive), grow_disk(disk, 4 << 30).unwrap().unwrap()],
        annotation: Some("changed by test".into()),
        ..Reconfigure::default()
    };
    client.reconfigure(&vm, &change).await.unwrap();
    let devices = client.devices(&vm).await.unwrap();
    let disk = devices.iter().find(|device| device.is_disk()).unwrap();
    assert_eq!(disk.capacity_in_kb, Some(4 << 20));
    let drive = devices.iter().find(|device| device.is_cdrom()).unwrap();
    assert_eq!(drive.backing.as_ref().unwrap().class, "VirtualCdromRemotePassthroughBackingInfo");
    let swap = Reconfigure { devices: vec![insert_iso(drive, &iso)], ..Reconfigure::default() };
    client.reconfigure(&vm, &swap).await.unwrap();
    client.destroy(&vm).await.unwrap();
}

#[tokio::test]
async fn snapshots_folders_pools_and_fields_come_and_go() {
    let Some(lab) = lab(VcsimOptions::default()).await else { return };
    let client = &lab.client;
    let vm = lab.finder.vm("DC0_H0_VM0").await.unwrap().moref;
    let first = client.create_snapshot(&vm, &NewSnapshot::new("first")).await.unwrap();
    let second = client.create_snapshot(&vm, &NewSnapshot::new("second")).await.unwrap();
    let list = client.snapshots(&vm).await.unwrap();
    assert_eq!(list.current, Some(second.clone()));
    assert_eq!(list.named("second").next().unwrap().parent, Some(first.clone()));
    client.revert_to_snapshot(&first, false).await.unwrap();
    assert_eq!(client.snapshots(&vm).await.unwrap().current, Some(first));
    client.remove_snapshot(&second, false).await.unwrap();
    client.remove_snapshot(&second, false).await.expect("what is gone can be removed again");
    client.remove_all_snapshots(&vm).await.unwrap();
    assert_eq!(client.snapshots(&vm).await.unwrap().all, []);

    let root = lab.finder.vm_folder("").await.unwrap().moref;
    let folder = client.ensure_folder(&root, "team/a").await.unwrap();
    assert_eq!(client.ensure_folder(&root, "team/a").await.unwrap(), folder);
    assert_eq!(lab.finder.vm_folder("team%2fa").await.unwrap().moref, folder);
    let parent = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    let pool = client.ensure_resource_pool(&parent, "ci", unlimited_pool()).await.unwrap();
    assert_eq!(client.ensure_resource_pool(&parent, "ci", unlimited_pool()).await.unwrap(), pool);

    let field = client.ensure_custom_field("owner", Some(&MoType::VirtualMachine)).await.unwrap();
    assert_eq!(client.ensure_custom_field("owner", None).await.unwrap().key, field.key);
    client.set_custom_field(&vm, field.key, "roost").await.unwrap();
}

#[tokio::test]
async fn files_are_uploaded_listed_read_and_deleted() {
    let Some(lab) = lab(VcsimOptions::default()).await else { return };
    let datastore = lab.finder.datastore("").await.unwrap();
    let files = lab.client.datastore(lab.finder.datacenter(), &datastore).await.unwrap();
    let path = files.path("iso/a b/50%.iso");
    for content in ["first", "the second is longer"] {
        files.upload(&Bytes::from_static(content.as_bytes()), &path).await.unwrap();
        let found = files.stat(&path).await.unwrap().unwrap();
        assert_eq!((found.kind, found.bytes), (FileKind::Iso, Some(content.len() as u64)));
        assert_eq!(files.download(&path).await.unwrap().bytes(100).await.unwrap(), content);
    }
    let there: Vec<_> = files.list(&path.parent(), None).await.unwrap().unwrap();
    assert_eq!(there.len(), 1, "no temporary file is left: {there:?}");
    files.make_directory(&path.parent()).await.unwrap();
    files.delete(&path).await.unwrap();
    files.delete(&path).await.expect("what is gone can be deleted again");
    assert!(!files.exists(&path).await.unwrap());
    assert_eq!(files.list(&files.path("nowhere"), None).await.unwrap(), None);
}

#[tokio::test]
async fn events_are_queried_and_followed() {
    let Some(lab) = lab(VcsimOptions::default()).await else { return };
    let client = &lab.client;
    let vm = lab.finder.vm("DC0_H0_VM0").await.unwrap().moref;
    let query = EventQuery {
        recursion: Recursion::All,
        ..EventQuery::of(lab.finder.datacenter().moref.clone())
    };
    let query = query.types(&["VmPoweredOffEvent", "VmPoweredOnEvent"]);
    let mut tail = client.tail_events(query.clone(), TailFrom::Now).await.unwrap();
    let mut seen = Vec::new();
    for _ in 0..3 {
        client.power_off(&vm).await.unwrap();
        client.power_on(&vm, None).await.unwrap();
    }
    while seen.len() < 6 {
        let batch = timeout(Duration::from_secs(20), tail.next()).await.expect("events").unwrap();
        seen.extend(batch.into_iter().map(|event| event.class));
    }
    let round = ["VmPoweredOffEvent", "VmPoweredOnEvent"];
    assert_eq!(seen, [round, round, round].concat());
    let of_vm = client.events(&EventQuery::of(vm).types(&["VmPoweredOffEvent"])).await.unwrap();
    assert_eq!(of_vm.len(), 3);
    assert!(of_vm.is_sorted_by_key(|event| event.key));
}

#[tokio::test]
async fn a_host_without_vcenter_is_worked_with_as_well() {
    let Some(lab) = lab(VcsimOptions { esx: true, ..VcsimOptions::default() }).await else {
        return;
    };
    let client = &lab.client;
    assert_eq!(lab.finder.datacenter().path, "/ha-datacenter");
    let vm = lab.finder.vm("ha-host_VM0").await.unwrap().moref;
    client.power_off(&vm).await.unwrap();
    let datastore = lab.finder.datastore("").await.unwrap();
    let files = client.datastore(lab.finder.datacenter(), &datastore).await.unwrap();
    files.upload(&Bytes::from_static(b"x"), &files.path("a/x.iso")).await.unwrap();
    assert!(files.exists(&files.path("a/x.iso")).await.unwrap());
    let folder = lab.finder.vm_folder("").await.unwrap().moref;
    let pool = lab.finder.resource_pool("").await.unwrap().moref;
    let request = CreateVm {
        disks: vec![NewDisk::thin(1 << 30)],
        ..CreateVm::new(folder, "new", pool, datastore.name)
    };
    let made = client.create_vm(&request).await.unwrap();
    assert!(!client.events(&EventQuery::of(made.clone())).await.unwrap().is_empty());
    client.destroy(&made).await.unwrap();
}
