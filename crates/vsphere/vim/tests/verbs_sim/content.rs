//! Content libraries, tags, storage policies, placement.

use std::time::Duration;

use bytes::Bytes;
use roost_vcenter_sim::{Action, Options, Rule};
use roost_vim::wire::types::VirtualMachineConfigSpec;
use roost_vim::wire::{Element, MoRef};
use roost_vim::{
    DeployOvf, NewLibrary, OvfProperty, PlaceVms, Placed, Progress, ReaderSource, RestError,
    UploadSource, UuidKind,
};

use crate::lab::Lab;

const DESCRIPTOR: &str = r#"<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="r" xmlns:vmw="v">
<References><File ovf:id="f" ovf:href="d.vmdk" ovf:size="4"/></References>
<DiskSection><Disk ovf:diskId="d" ovf:fileRef="f" ovf:capacity="1" ovf:capacityAllocationUnits="byte * 2^30"/></DiskSection>
<NetworkSection><Network ovf:name="nat"/></NetworkSection>
<VirtualSystem ovf:id="s"><VirtualHardwareSection>
<Item><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
<Item><rasd:ResourceType>6</rasd:ResourceType><rasd:InstanceID>3</rasd:InstanceID><rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType></Item>
<Item><rasd:ResourceType>17</rasd:ResourceType><rasd:InstanceID>4</rasd:InstanceID><rasd:Parent>3</rasd:Parent><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:HostResource>ovf:/disk/d</rasd:HostResource></Item>
<Item><rasd:ResourceType>10</rasd:ResourceType><rasd:InstanceID>5</rasd:InstanceID><rasd:Connection>nat</rasd:Connection></Item>
</VirtualHardwareSection><ProductSection><Property ovf:key="hostname" ovf:type="string" ovf:userConfigurable="true"/></ProductSection></VirtualSystem></Envelope>"#;

/// A library item that can be deployed.
async fn item(lab: &Lab) -> String {
    let datastore = lab.finder.datastore("LocalDS_0").await.unwrap().moref;
    let new = NewLibrary { name: "images".into(), description: String::new(), datastore };
    let library = lab.client.create_library(&new).await.unwrap();
    let item = lab.client.create_library_item(&library, "tiny", "ovf").await.unwrap();
    let (descriptor, disk) =
        (Bytes::from_static(DESCRIPTOR.as_bytes()), Bytes::from_static(b"KDMV"));
    let files: [(&str, &dyn UploadSource); 2] = [("tiny.ovf", &descriptor), ("d.vmdk", &disk)];
    lab.client.upload_item_files(&item, &files).await.unwrap();
    let libraries = lab.client.libraries().await.unwrap();
    assert_eq!(
        libraries.iter().map(|library| library.name.as_str()).collect::<Vec<_>>(),
        ["images"]
    );
    assert_eq!(lab.client.library_item_ids(&library).await.unwrap(), std::slice::from_ref(&item));
    item
}

async fn request(lab: &Lab, item: &str, name: &str) -> DeployOvf {
    let pool = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    let network = lab.finder.network("DC0_DVPG0").await.unwrap().moref;
    let property =
        OvfProperty { id: "hostname".into(), value: "web-0".into(), ..OvfProperty::default() };
    DeployOvf {
        networks: vec![("nat".into(), network)],
        properties: vec![property],
        config: Some(VirtualMachineConfigSpec {
            instance_uuid: Some("50000000-0000-4000-8000-000000000001".into()),
            memory_mb: Some(2048),
            ..Default::default()
        }),
        ..DeployOvf::new(item, name, pool)
    }
}

#[tokio::test(start_paused = true)]
async fn a_template_of_a_library_becomes_a_vm_with_the_callers_identity() {
    let lab = Lab::start().await;
    let item = item(&lab).await;
    let read = lab.client.library_item(&item).await.unwrap();
    assert_eq!((read.kind.as_str(), read.size), ("ovf", DESCRIPTOR.len() as u64 + 4));
    let text = lab.client.item_file_content(&item, "tiny.ovf", 1 << 20).await.unwrap();
    assert_eq!(text, DESCRIPTOR);
    let storage = lab.client.item_storage(&item).await.unwrap();
    assert!(storage[0].uris[0].ends_with("/d.vmdk"), "{storage:?}");
    let pool = lab.finder.resource_pool("DC0_C0").await.unwrap().moref;
    let filter = lab.client.ovf_filter(&item, &pool).await.unwrap();
    assert_eq!((filter.networks.as_slice(), filter.properties.len()), (&["nat".to_owned()][..], 1));

    let vm = lab.client.deploy_ovf(&request(&lab, &item, "web-0").await).await.unwrap();
    let seen = lab.vcenter.vm("web-0").unwrap();
    assert_eq!((&seen.moref, seen.memory_mb), (&vm, 2048));
    let uuid = "50000000-0000-4000-8000-000000000001";
    let found = lab.client.find_vms_by_uuid(uuid, UuidKind::Instance).await.unwrap();
    assert_eq!(found, [vm]);
    assert_eq!(lab.client.find_vm_by_uuid(uuid, UuidKind::Bios).await.unwrap(), None);
    lab.client.delete_library_item(&item).await.unwrap();
    lab.client.delete_library_item(&item).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_deployment_that_fails_says_why_and_a_lost_session_is_renewed() {
    let lab = Lab::start().await;
    let item = item(&lab).await;
    lab.rule(Rule::new("ImportVAppLRO", Action::fail_task("NoDiskSpace", "full")).once());
    let request = request(&lab, &item, "web-0").await;
    let error = lab.client.deploy_ovf(&request).await.unwrap_err();
    assert!(matches!(&error, RestError::Failed { message, .. } if message == "full"), "{error}");
    lab.vcenter.restart(roost_vcenter_sim::Outage { lasts: Duration::ZERO, refuses: false });
    lab.client.deploy_ovf(&request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn tags_are_made_once_and_decide_with_policies_which_datastores_fit() {
    let lab = Lab::with(Options { datastores: 2, ..Options::default() }).await;
    let category = lab.client.ensure_tag_category("tier", &["Datastore"]).await.unwrap();
    assert_eq!(lab.client.ensure_tag_category("tier", &[]).await.unwrap(), category);
    let tag = lab.client.ensure_tag(&category, "gold").await.unwrap();
    assert_eq!(lab.client.ensure_tag(&category, "gold").await.unwrap(), tag);
    let datastore = lab.finder.datastore("LocalDS_1").await.unwrap().moref;
    lab.client.attach_tag(&tag, &datastore).await.unwrap();
    lab.client.attach_tag(&tag, &datastore).await.unwrap();
    let carried = lab.client.attached_tags(std::slice::from_ref(&datastore)).await.unwrap();
    assert_eq!(carried, [(datastore.clone(), vec![tag.clone()])]);
    lab.client.detach_tag(&tag, &datastore).await.unwrap();

    let policies = lab.client.storage_policies().await.unwrap();
    let named = |name: &str| policies.iter().find(|policy| policy.name == name).unwrap();
    let vsan = named("vSAN Default Storage Policy");
    assert_eq!(lab.client.compatible_datastores(&vsan.id).await.unwrap(), Vec::<MoRef>::new());
    let any = named("VVol No Requirements Policy");
    assert_eq!(lab.client.compatible_datastores(&any.id).await.unwrap().len(), 2);
    assert!(lab.client.compatible_datastores("none").await.is_err());
    let vm = lab.vm("DC0_H0_VM0").await;
    assert_eq!(lab.client.policies_of_vm(&vm).await.unwrap(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn vms_are_placed_among_clusters_or_nowhere() {
    let lab = Lab::with(Options { clusters: 2, ..Options::default() }).await;
    let config = |name: &str, memory: i64| VirtualMachineConfigSpec {
        name: Some(name.into()),
        num_cpus: Some(1),
        memory_mb: Some(memory),
        ..Default::default()
    };
    let mut pools = Vec::new();
    for cluster in ["DC0_C0", "DC0_C1"] {
        pools.push(lab.finder.resource_pool(cluster).await.unwrap().moref);
    }
    let request = PlaceVms {
        pools,
        vms: vec![config("small", 512), config("huge", 1 << 30)],
        wants_host: true,
        wants_datastore: true,
    };
    let placed = lab.client.place_vms(&request).await.unwrap();
    let Placed::At { config: at, host, .. } = &placed[0] else { panic!("{placed:?}") };
    assert!(host.is_some());
    assert_eq!(at.files.as_ref().unwrap().vm_path_name.as_deref(), Some("[LocalDS_0]"));
    let Placed::Nowhere { faults, .. } = &placed[1] else { panic!("{placed:?}") };
    assert_eq!(faults.len(), 2);
    let cluster = lab.finder.compute_resource("DC0_C0").await.unwrap().moref;
    let one = lab.client.place_vm(&cluster, &config("small", 512)).await.unwrap();
    assert!(one[0].relocate.datastore.is_some() && one[0].host.is_some());
}

#[tokio::test(start_paused = true)]
async fn files_disks_and_directories_are_copied_and_deleted() {
    let lab = Lab::with(Options { vsan_datastores: 1, ..Options::default() }).await;
    let found = lab.finder.datastore("LocalDS_0").await.unwrap();
    let files = lab.client.datastore(lab.finder.datacenter(), &found).await.unwrap();
    let from = files.path("DC0_H0_VM0/DC0_H0_VM0.vmdk");
    let (disk, copy) = (files.path("cache/disk.vmdk"), files.path("cache/copy.vmdk"));
    files.make_directory(&disk.parent()).await.unwrap();
    files.copy_disk(&from, &disk, None).await.unwrap().wait().await.unwrap();
    assert_eq!(files.disk_uuid(&disk).await.unwrap().len(), 47);
    files.copy_to(&disk, &copy).await.unwrap();
    files.delete_disk(&disk).await.unwrap();
    files.delete_disk(&disk).await.unwrap();
    assert!(files.exists(&copy).await.unwrap() && !files.exists(&disk).await.unwrap());
    assert!(files.create_namespace(&found.moref, "space").await.is_err(), "not on VMFS");
    let vsan = lab.finder.datastore("vsanDatastore_0").await.unwrap();
    let real = files.create_namespace(&vsan.moref, "space").await.unwrap();
    files.delete_namespace(&real).await.unwrap();

    // An image that comes through a reader, in chunks, again from its start if need be.
    let source = ReaderSource::new(1 << 20, || async {
        Ok(tokio::io::AsyncReadExt::take(tokio::io::repeat(7), 1 << 20))
    });
    lab.rule(Rule::new("PUT /folder", Action::CutAfter).once());
    files.upload(&source, &files.path("iso/boot.iso")).await.unwrap();
    let there = files.stat(&files.path("iso/boot.iso")).await.unwrap().unwrap();
    assert_eq!(there.bytes, Some(1 << 20));
}

#[tokio::test(start_paused = true)]
async fn guests_are_asked_disks_promoted_and_consoles_opened() {
    let lab = Lab::start().await;
    let vm = lab.vm("DC0_H0_VM0").await;
    lab.client.power_on(&vm, None).await.unwrap();
    lab.client.wait_for_guest_operations(&vm, crate::lab::within(600)).await.unwrap();
    lab.client.standby_guest(&vm).await.unwrap();
    lab.client.acquire_ticket(&vm, "webmks").await.unwrap();
    lab.client.power_off(&vm).await.unwrap();
    let task = lab.client.promote_disks(&vm, &[]).await.unwrap();
    let _: tokio::sync::watch::Receiver<Progress> = task.progress();
    task.wait().await.unwrap();
    let extension = || Element::new("extension").with_field("key", &"com.example".to_owned());
    lab.client.ensure_extension(extension()).await.unwrap();
    lab.client.ensure_extension(extension()).await.unwrap();
    assert_eq!(lab.calls("RegisterExtension"), 1);
}
