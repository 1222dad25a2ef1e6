//! VMs of disks that lie on their datastore already: the image cache, copies and links, and what is cleaned up.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use roost_clock::SimClock;
use roost_testbed::Site;
use roost_vcenter_sim::{Action, Options, Power, Rule, TemplateOptions, Vcenter};
use roost_vim::wire::types::VirtualDevice;
use roost_vim::{NewLibrary, UploadSource};
use roost_vm_operator::FastDeployMode;
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::names::{annotation, extra_config, label};
use roost_vm_operator::api::vm::PromoteDisksMode;
use roost_vm_operator::api::{
    PowerState, VirtualMachine, VirtualMachineImage, VirtualMachineImageCache,
};
use roost_vm_operator::images::image_name;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, condition, minutes, secs, vm};

const IMAGE: &str = "vmi-1111111111111111a";
const STORE: &str = "LocalDS_0";

const DESCRIPTOR: &str = r#"<Envelope xmlns="http://schemas.dmtf.org/ovf/envelope/1" xmlns:ovf="http://schemas.dmtf.org/ovf/envelope/1" xmlns:rasd="r" xmlns:vmw="v">
<References><File ovf:id="f" ovf:href="d.vmdk" ovf:size="4"/></References>
<DiskSection><Disk ovf:diskId="d" ovf:fileRef="f" ovf:capacity="1" ovf:capacityAllocationUnits="byte * 2^30"/>
<Disk ovf:diskId="blank" ovf:capacity="2" ovf:capacityAllocationUnits="byte * 2^30"/></DiskSection>
<NetworkSection><Network ovf:name="nat"/></NetworkSection>
<VirtualSystem ovf:id="s"><OperatingSystemSection ovf:id="94" vmw:osType="ubuntu64Guest"/><VirtualHardwareSection>
<Item><rasd:ResourceType>3</rasd:ResourceType><rasd:VirtualQuantity>1</rasd:VirtualQuantity></Item>
<Item><rasd:ResourceType>6</rasd:ResourceType><rasd:InstanceID>4</rasd:InstanceID><rasd:Address>0</rasd:Address><rasd:ResourceSubType>VirtualSCSI</rasd:ResourceSubType></Item>
<Item><rasd:ResourceType>10</rasd:ResourceType><rasd:InstanceID>5</rasd:InstanceID><rasd:Connection>nat</rasd:Connection></Item>
<Item><rasd:ResourceType>17</rasd:ResourceType><rasd:InstanceID>6</rasd:InstanceID><rasd:Parent>4</rasd:Parent><rasd:AddressOnParent>0</rasd:AddressOnParent><rasd:HostResource>ovf:/disk/d</rasd:HostResource></Item>
<Item><rasd:ResourceType>17</rasd:ResourceType><rasd:InstanceID>7</rasd:InstanceID><rasd:Parent>4</rasd:Parent><rasd:AddressOnParent>1</rasd:AddressOnParent><rasd:HostResource>ovf:/disk/blank</rasd:HostResource></Item>
</VirtualHardwareSection></VirtualSystem></Envelope>"#;

/// An image of a content library; returns the id of its item.
async fn library_image(lab: &Lab) -> String {
    let client = lab.fleet.client();
    let datastore = lab.site.find(&format!("/DC0/datastore/{STORE}"));
    let new = NewLibrary { name: "images".into(), description: String::new(), datastore };
    let library = client.create_library(&new).await.unwrap();
    let item = client.create_library_item(&library, "tiny", "ovf").await.unwrap();
    let files: [(&str, &dyn UploadSource); 2] = [
        ("tiny.ovf", &Bytes::from_static(DESCRIPTOR.as_bytes())),
        ("d.vmdk", &Bytes::from_static(b"KDMV")),
    ];
    client.upload_item_files(&item, &files).await.unwrap();
    lab.image(IMAGE, "OVF", &item).await;
    item
}

fn of_image(name: &str) -> VirtualMachine {
    let mut wanted = vm(name);
    wanted.spec.image.as_mut().unwrap().name = IMAGE.into();
    wanted
}

/// The namespace of the operator, where its caches are.
pub(crate) async fn home(lab: &Lab) {
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(lab.settings.flow.pod_namespace.clone());
    let namespaces: Api<Namespace> = Api::all(lab.client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
}

async fn lab_with(mode: FastDeployMode) -> (Lab, String) {
    let mut lab = Lab::idle().await;
    lab.settings.provider.features.fast_deploy = Some(mode);
    home(&lab).await;
    let item = library_image(&lab).await;
    lab.start();
    (lab, item)
}

fn caches(lab: &Lab) -> Api<VirtualMachineImageCache> {
    Api::namespaced(lab.client.clone(), &lab.settings.flow.pod_namespace)
}

/// The directories of cached files.
fn cached(lab: &Lab, item: &str) -> Vec<String> {
    let name = image_name(item);
    let all = lab.site.vcenter.datastore_directory(STORE, "").unwrap();
    all.into_iter().filter(|entry| entry.starts_with(&name)).collect()
}

fn cached_files(lab: &Lab, item: &str) -> Vec<String> {
    let directory = cached(lab, item);
    let [directory] = &directory[..] else { panic!("{directory:?}") };
    lab.site.vcenter.datastore_directory(STORE, directory).unwrap()
}

fn disks(lab: &Lab, name: &str) -> Vec<VirtualDevice> {
    let machine = lab.machine(name).unwrap();
    machine.devices.into_iter().filter(VirtualDevice::is_disk).collect()
}

fn parents(lab: &Lab, name: &str) -> Vec<String> {
    let parent = |disk: VirtualDevice| disk.backing?.parent?.file_name;
    disks(lab, name).into_iter().filter_map(parent).collect()
}

async fn until_powered_on(lab: &Lab, name: &str) -> VirtualMachine {
    lab.until("on", name, |vm| vm.current_power_state() == Some(PowerState::PoweredOn)).await
}

fn is_promoted(vm: &VirtualMachine) -> bool {
    condition(vm, ConditionType::DiskPromotionSynced) == Some(("True", "True"))
}

/// Waits, for at most an hour.
async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..18_000 {
        if holds().await {
            return;
        }
        sleep(Duration::from_millis(200)).await;
    }
    panic!("not {what}");
}

/// For the test of the role: an image is cached, changes its version, is used by nobody and goes.
pub(crate) async fn from_first_vm_to_empty_cache(lab: &Lab) {
    let item = library_image(lab).await;
    for (name, version) in [("fast-0", ""), ("fast-1", "2")] {
        let patch = json!({"status": {"providerContentVersion": version}});
        let images: Api<VirtualMachineImage> = lab.api();
        images.patch_status(IMAGE, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        sleep(secs(1)).await;
        // The first one stays linked, so that its image is there when the second comes.
        let mut wanted = of_image(name);
        wanted.spec.promote_disks_mode = Some(PromoteDisksMode::Disabled);
        lab.apply(&wanted).await;
        until_powered_on(lab, name).await;
    }
    for name in ["fast-0", "fast-1"] {
        lab.delete(name).await;
        lab.until_gone(name).await;
    }
    until("without caches", async || {
        caches(lab).list(&ListParams::default()).await.unwrap().items.is_empty()
    })
    .await;
    assert_eq!(cached(lab, &item), Vec::<String>::new(), "files of both versions are gone");
}

#[tokio::test(start_paused = true)]
async fn a_linked_vm_waits_for_its_image_stands_on_it_and_leaves_it_behind() {
    let (lab, item) = lab_with(FastDeployMode::Linked).await;
    // The trial of linked disks comes first, and leaves nothing.
    sleep(minutes(2)).await;
    assert!(lab.site.vcenter.vm_names().iter().all(|name| !name.contains("trial")));
    let store = lab.site.vcenter.datastore_directory(STORE, "").unwrap();
    assert!(store.iter().all(|name| !name.contains("trial")), "{store:?}");

    let rule = Rule::new("CopyVirtualDisk_Task", Action::DelayTask(minutes(5)));
    lab.site.vcenter.faults().add(rule);
    let mut stays = of_image("web-0");
    stays.spec.promote_disks_mode = Some(PromoteDisksMode::Disabled);
    lab.apply(&stays).await;
    sleep(minutes(2)).await;
    let waits = lab.get("web-0").await;
    assert_eq!(waits.labels()[label::IMAGE_CACHE_NAME], image_name(&item));
    let location = &waits.annotations()[annotation::IMAGE_CACHE_LOCATION];
    assert_eq!(location.split(',').count(), 3, "{location}");
    assert_eq!(condition(&waits, ConditionType::ImageCacheReady), Some(("False", "NotReady")));
    assert!(lab.machine("web-0").is_none());
    assert!(cached_files(&lab, &item).iter().all(|name| name.starts_with("partial-")));

    let made = until_powered_on(&lab, "web-0").await;
    assert!(!made.labels().contains_key(label::IMAGE_CACHE_NAME));
    assert!(!made.annotations().contains_key(annotation::IMAGE_CACHE_LOCATION));
    assert_eq!(condition(&made, ConditionType::ImageCacheReady), Some(("True", "True")));
    let files = cached_files(&lab, &item);
    assert_eq!(files.len(), 1, "{files:?}");
    let directory = cached(&lab, &item).remove(0);
    assert_eq!(parents(&lab, "web-0"), [format!("[{STORE}] {directory}/{}", files[0])]);
    assert_eq!(disks(&lab, "web-0").len(), 2, "one of the image, one that is blank");
    let machine = lab.machine("web-0").unwrap();
    assert_eq!((machine.cpus, machine.memory_mb, machine.power), (2, 4096, Power::On));
    assert_eq!(machine.devices.iter().filter(|device| device.is_nic()).count(), 1);
    let kept = machine.extra_config.iter().find(|(key, _)| key == extra_config::KEEP_DISKS);
    assert_eq!(kept.unwrap().1, files[0]);

    // The next one finds the image, and gets disks of its own while it runs.
    lab.apply(&of_image("web-1")).await;
    lab.until("promoted", "web-1", is_promoted).await;
    let counters = lab.site.vcenter.counters();
    assert_eq!(counters.calls_of("CopyVirtualDisk_Task"), 1, "the image was copied once");
    assert_eq!(counters.calls_of("PromoteDisks_Task"), 1);
    assert_eq!(parents(&lab, "web-1"), Vec::<String>::new());

    let cache = caches(&lab).get(&image_name(&item)).await.unwrap();
    let status = cache.status.as_ref().unwrap();
    assert!(cache.is_ready() && status.ovf.is_some());
    assert_eq!(status.locations[0].files[0].name, "d.vmdk");

    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    assert_eq!(cached_files(&lab, &item), files, "the image outlives the VM that stood on it");
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_takes_its_time_holds_no_worker() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.features.fast_deploy = Some(FastDeployMode::Direct);
    lab.settings.workers = 1;
    home(&lab).await;
    library_image(&lab).await;
    lab.start();
    let rule = Rule::new("CopyVirtualDisk_Task", Action::DelayTask(minutes(10)));
    lab.site.vcenter.faults().add(rule);
    lab.apply(&of_image("web-0")).await;
    // The image is being copied, then the disk of the VM is: the only worker makes another VM each time.
    for name in ["other-0", "other-1"] {
        sleep(minutes(7)).await;
        assert!(lab.machine("web-0").is_none());
        lab.apply(&vm(name)).await;
        sleep(minutes(2)).await;
        assert_eq!(lab.machine(name).unwrap().power, Power::On);
    }
    until_powered_on(&lab, "web-0").await;
    assert_eq!(parents(&lab, "web-0"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_fails_leaves_no_directory_and_is_tried_again() {
    let (lab, item) = lab_with(FastDeployMode::Direct).await;
    lab.apply(&of_image("web-0")).await;
    until_powered_on(&lab, "web-0").await;
    assert_eq!(parents(&lab, "web-0"), Vec::<String>::new(), "its disks are copies");
    let full = Action::fail_task("NoDiskSpace", "Insufficient disk space on datastore");
    lab.site.vcenter.faults().add(Rule::new("CopyVirtualDisk_Task", full));
    let second = lab.apply(&of_image("web-1")).await;
    let failed = lab
        .until("failed", "web-1", |vm| {
            condition(vm, ConditionType::Created) == Some(("False", "Error"))
        })
        .await;
    sleep(minutes(1)).await;
    let directory = second.uid().unwrap();
    assert_eq!(lab.site.vcenter.datastore_directory(STORE, &directory), None, "taken back");
    assert!(lab.machine("web-1").is_none());
    let why = roost_vm_operator::api::condition::find(failed.conditions(), ConditionType::Created);
    assert!(why.unwrap().message.contains("NoDiskSpace"), "{why:?}");
    assert_eq!(cached_files(&lab, &item).len(), 1, "the cache is not to blame");
    lab.site.vcenter.faults().clear();
    until_powered_on(&lab, "web-1").await;
    assert!(lab.site.vcenter.datastore_directory(STORE, &directory).is_some());
}

#[tokio::test(start_paused = true)]
async fn where_a_disk_goes_with_the_vm_on_top_of_it_disks_are_copied() {
    let clock = Arc::new(SimClock::new());
    let options = Options {
        clusters: 1,
        standalone_hosts: 0,
        templates: vec![TemplateOptions::new(Site::TEMPLATE)],
        keeps_disks: false,
        ..Options::default()
    };
    let site = Site { vcenter: Vcenter::start(options, clock.clone()), clock };
    let mut lab = Lab::at(site).await;
    lab.settings.provider.features.fast_deploy = Some(FastDeployMode::Linked);
    home(&lab).await;
    let item = library_image(&lab).await;
    lab.start();
    sleep(minutes(2)).await;
    assert!(lab.site.vcenter.vm_names().iter().all(|name| !name.contains("trial")));
    lab.apply(&of_image("web-0")).await;
    until_powered_on(&lab, "web-0").await;
    assert_eq!(parents(&lab, "web-0"), Vec::<String>::new(), "not linked");
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    assert_eq!(cached_files(&lab, &item).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_vm_may_say_itself_how_it_is_deployed() {
    let (lab, item) = lab_with(FastDeployMode::Linked).await;
    sleep(minutes(2)).await;
    for (name, how) in [("direct", "direct"), ("plain", "no")] {
        let mut said = of_image(name);
        said.annotations_mut().insert(annotation::FAST_DEPLOY.into(), how.into());
        lab.apply(&said).await;
        until_powered_on(&lab, name).await;
        assert_eq!(parents(&lab, name), Vec::<String>::new(), "{how}");
    }
    assert_eq!(cached_files(&lab, &item).len(), 1, "by the one of them");
    let plain = lab.get("plain").await;
    assert_eq!(condition(&plain, ConditionType::ImageCacheReady), None);
}

#[tokio::test(start_paused = true)]
async fn files_that_went_missing_are_copied_again() {
    let (lab, item) = lab_with(FastDeployMode::Linked).await;
    sleep(minutes(2)).await;
    lab.apply(&of_image("web-0")).await;
    lab.until("promoted", "web-0", is_promoted).await;
    let directory = cached(&lab, &item).remove(0);
    let finder = lab.fleet.observer().finder("DC0").await.unwrap();
    let datastore = finder.datastore(STORE).await.unwrap();
    let files = lab.fleet.client().datastore(finder.datacenter(), &datastore).await.unwrap();
    files.delete(&files.path(&directory)).await.unwrap();
    lab.apply(&of_image("web-1")).await;
    lab.until("promoted", "web-1", is_promoted).await;
    assert_eq!(cached_files(&lab, &item).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_emptied_when_nobody_needs_it_and_never_below_a_vm() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.features.fast_deploy = Some(FastDeployMode::Linked);
    lab.settings.provider.image_cache_ttl = Some(minutes(120));
    home(&lab).await;
    let item = library_image(&lab).await;
    lab.start();
    sleep(minutes(2)).await;
    let mut linked = of_image("web-0");
    linked.spec.promote_disks_mode = Some(PromoteDisksMode::Disabled);
    lab.apply(&linked).await;
    until_powered_on(&lab, "web-0").await;
    // Longer than files are kept, with the grace period.
    let long = minutes(4 * 60);
    sleep(3 * long).await;
    let files = cached_files(&lab, &item);
    assert_eq!(files.len(), 1, "web-0 stands on it");
    // Its object goes, the VM stays: now it is nobody's, and stands on the file all the same.
    lab.annotate("web-0", annotation::SKIP_DELETE_PLATFORM_RESOURCE, Some("")).await;
    lab.delete("web-0").await;
    lab.until_gone("web-0").await;
    sleep(5 * long).await;
    assert_eq!(cached_files(&lab, &item), files, "somebody's VM stands on it");
    assert_eq!(parents(&lab, "web-0").len(), 1);
    lab.site.vcenter.set_power("web-0", Power::Off).unwrap();
    let moref = lab.machine("web-0").unwrap().moref;
    lab.fleet.client().destroy(&moref).await.unwrap();
    sleep(3 * long).await;
    assert_eq!(cached(&lab, &item), Vec::<String>::new());
    assert!(caches(&lab).get_opt(&image_name(&item)).await.unwrap().is_none());
    // At rest nobody writes, and who comes later finds it as it was at first.
    let writes = lab.writes();
    sleep(long).await;
    assert_eq!(lab.writes() - writes, 0);
    lab.apply(&of_image("web-1")).await;
    lab.until("promoted", "web-1", is_promoted).await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_while_files_are_copied_leaves_no_half_file_for_others() {
    let (mut lab, item) = lab_with(FastDeployMode::Direct).await;
    let rule = Rule::new("CopyVirtualDisk_Task", Action::DelayTask(minutes(5)));
    lab.site.vcenter.faults().add(rule.times(1));
    lab.apply(&of_image("web-0")).await;
    sleep(minutes(2)).await;
    lab.crash().await;
    lab.start();
    until_powered_on(&lab, "web-0").await;
    assert_eq!(cached_files(&lab, &item).len(), 1);
    let rule = Rule::new("CopyVirtualDisk_Task", Action::DelayTask(minutes(5)));
    lab.site.vcenter.faults().add(rule.times(1));
    let second = lab.apply(&of_image("web-1")).await;
    sleep(minutes(2)).await;
    lab.crash().await;
    lab.start();
    until_powered_on(&lab, "web-1").await;
    let directory = second.uid().unwrap();
    let files = lab.site.vcenter.datastore_directory(STORE, &directory).unwrap();
    let is_disk = |name: &&String| name.rsplit_once('.').is_some_and(|(_, kind)| kind == "vmdk");
    assert_eq!(files.iter().filter(is_disk).count(), 2, "{files:?}");
}

#[tokio::test(start_paused = true)]
async fn a_datastore_that_names_directories_itself_is_used_by_its_own_rules() {
    let clock = Arc::new(SimClock::new());
    let options = Options {
        clusters: 1,
        standalone_hosts: 0,
        vsan_datastores: 1,
        templates: vec![TemplateOptions::new(Site::TEMPLATE)],
        ..Options::default()
    };
    let site = Site { vcenter: Vcenter::start(options, clock.clone()), clock };
    let mut lab = Lab::at(site).await;
    lab.settings.provider.features.fast_deploy = Some(FastDeployMode::Direct);
    let classes: Api<k8s_openapi::api::storage::v1::StorageClass> = Api::all(lab.client.clone());
    let patch = json!({"parameters": {"datastore": "vsanDatastore_0"}});
    classes.patch("gold", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    home(&lab).await;
    library_image(&lab).await;
    lab.start();
    lab.apply(&of_image("web-0")).await;
    until_powered_on(&lab, "web-0").await;
    assert_eq!(lab.machine("web-0").unwrap().datastore, "vsanDatastore_0");
    assert!(lab.site.vcenter.counters().calls_of("CreateDirectory") >= 2);
}

#[tokio::test(start_paused = true)]
async fn a_promotion_holds_up_snapshots_and_no_deletion() {
    let (lab, item) = lab_with(FastDeployMode::Linked).await;
    sleep(minutes(2)).await;
    let rule = Rule::new("PromoteDisks_Task", Action::DelayTask(minutes(40)));
    lab.site.vcenter.faults().add(rule);
    for name in ["web-0", "web-1"] {
        lab.apply(&of_image(name)).await;
        until_powered_on(&lab, name).await;
    }
    lab.snapshot("one", "web-0").await;
    sleep(minutes(10)).await;
    assert_eq!(lab.machine("web-0").unwrap().snapshots, Vec::<String>::new(), "not yet");
    let promoting = lab.get("web-1").await;
    let kind = ConditionType::DiskPromotionSynced;
    assert_eq!(condition(&promoting, kind), Some(("False", "DiskPromotionRunning")));
    lab.delete("web-1").await;
    sleep(minutes(8)).await;
    assert!(lab.is_gone("web-1").await, "{:#?}", lab.get("web-1").await.status);
    assert!(lab.machine("web-1").is_none());
    assert_eq!(cached_files(&lab, &item).len(), 1);
    lab.until("promoted", "web-0", is_promoted).await;
    lab.until_snapshot("one").await;
}
