//! What a VM is made of, and what is changed of it while it is off.

use bytes::Bytes;
use roost_vcenter_sim::Power;
use roost_vim::wire::methods::MoveIntoFolderTask;
use roost_vim::wire::types::{VirtualDevice, VirtualMachineBootOptions};
use roost_vim::{NewLibrary, UploadSource};
use roost_vm_operator::api::VirtualMachine;
use roost_vm_operator::api::condition::ConditionType;
use roost_vm_operator::api::vm::PowerState;
use serde_json::json;
use tokio::time::sleep;

use crate::lab::{Lab, condition, minutes, secs, vm};

const ISO: &str = "vmi-2222222222222222b";

async fn off(lab: &Lab) {
    let mut off = vm("web-0");
    off.spec.power_state = Some(PowerState::PoweredOff);
    lab.apply(&off).await;
    lab.until("made", "web-0", VirtualMachine::is_created).await;
    sleep(minutes(1)).await;
}

fn drives(lab: &Lab) -> Vec<VirtualDevice> {
    let machine = lab.machine("web-0").unwrap();
    machine.devices.into_iter().filter(|device| &*device.class == "VirtualCdrom").collect()
}

/// An image of the kind that drives take.
async fn iso(lab: &Lab) {
    let client = lab.fleet.client();
    let datastore = lab.site.find("/DC0/datastore/LocalDS_0");
    let new = NewLibrary { name: "discs".into(), description: String::new(), datastore };
    let library = client.create_library(&new).await.unwrap();
    let item = client.create_library_item(&library, "setup", "iso").await.unwrap();
    let disc = Bytes::from_static(b"CD001");
    let files: [(&str, &dyn UploadSource); 1] = [("setup.iso", &disc)];
    client.upload_item_files(&item, &files).await.unwrap();
    lab.image(ISO, "ISO", &item).await;
}

#[tokio::test(start_paused = true)]
async fn a_newer_hardware_version_is_given_to_a_vm_that_is_off() {
    let lab = Lab::new().await;
    off(&lab).await;
    let version = |vm: &VirtualMachine| vm.status.as_ref().map(|of| of.hardware_version);
    assert!(version(&lab.get("web-0").await) < Some(21));
    lab.patch("web-0", json!({ "spec": { "minHardwareVersion": 21 } })).await;
    lab.until("newer", "web-0", |vm| version(vm) == Some(21)).await;
    sleep(minutes(5)).await;
    assert_eq!(lab.site.vcenter.counters().calls_of("UpgradeVM_Task"), 1);
}

#[tokio::test(start_paused = true)]
async fn boot_options_are_set_once_and_others_are_left_as_they_are() {
    let lab = Lab::new().await;
    off(&lab).await;
    let wish = json!({ "bootDelay": "5s", "bootRetry": "Enabled", "bootRetryDelay": "10s",
        "bootOrder": [{ "type": "Disk" }] });
    lab.patch("web-0", json!({ "spec": { "bootOptions": wish } })).await;
    sleep(minutes(1)).await;
    let (machine, path) = (lab.machine("web-0").unwrap().moref, "config.bootOptions");
    let read = lab.fleet.observer().properties(&machine, &[path]).await.unwrap();
    let is = read.data::<VirtualMachineBootOptions>(path).unwrap();
    assert_eq!(
        (is.boot_delay, is.boot_retry_enabled, is.boot_retry_delay),
        (Some(5_000), Some(true), Some(10_000))
    );
    assert_eq!(is.boot_order.len(), 1);
    let calls = lab.site.vcenter.counters().calls_of("ReconfigVM_Task");
    sleep(minutes(60)).await;
    assert_eq!(lab.site.vcenter.counters().calls_of("ReconfigVM_Task"), calls);
}

#[tokio::test(start_paused = true)]
async fn a_boot_disk_grows_and_never_shrinks() {
    let lab = Lab::new().await;
    off(&lab).await;
    let bytes = |lab: &Lab| {
        let machine = lab.machine("web-0").unwrap();
        machine.devices.iter().find(|device| device.is_disk()).unwrap().capacity_in_bytes.unwrap()
    };
    let wish = |text: &str| json!({ "spec": { "advanced": { "bootDiskCapacity": text } } });
    lab.patch("web-0", wish("64Gi")).await;
    sleep(minutes(1)).await;
    assert_eq!(bytes(&lab), 64 << 30);
    lab.patch("web-0", wish("1Gi")).await;
    sleep(minutes(5)).await;
    assert_eq!(bytes(&lab), 64 << 30);
    let events = lab.events().await;
    let says_so = |(reason, note): &(String, String)| {
        reason == "UpdateFailure" && note.contains("bootDiskCapacity")
    };
    assert!(events.iter().any(says_so), "{events:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_drive_comes_with_its_image_and_is_let_go_of_while_the_vm_runs() {
    let lab = Lab::new().await;
    iso(&lab).await;
    off(&lab).await;
    assert!(drives(&lab).is_empty());
    let image = json!({ "kind": "VirtualMachineImage", "name": ISO });
    let wish = json!({ "cdrom": [{ "name": "setup", "image": image, "connected": true }] });
    lab.patch("web-0", json!({ "spec": { "hardware": wish } })).await;
    sleep(minutes(1)).await;
    let is = drives(&lab);
    let file = is[0].backing.as_ref().unwrap().file_name.clone().unwrap();
    assert!(is.len() == 1 && file.ends_with(".iso"), "{file}");
    assert!(is[0].connectable.as_ref().unwrap().start_connected);
    // Of a running VM a drive is let go of, and the drive stays.
    lab.patch("web-0", json!({ "spec": { "powerState": "PoweredOn" } })).await;
    lab.until_on("web-0").await;
    let wish = json!({ "cdrom": [{ "name": "setup", "image": image, "connected": false }] });
    lab.patch("web-0", json!({ "spec": { "hardware": wish } })).await;
    sleep(minutes(1)).await;
    assert!(!drives(&lab)[0].connectable.as_ref().unwrap().start_connected);
    let calls = lab.site.vcenter.counters().calls_of("ReconfigVM_Task");
    sleep(minutes(60)).await;
    assert_eq!(lab.site.vcenter.counters().calls_of("ReconfigVM_Task"), calls, "it is settled");
}

#[tokio::test(start_paused = true)]
async fn an_iso_becomes_a_vm_without_a_system_and_with_a_drive() {
    let lab = Lab::new().await;
    iso(&lab).await;
    let mut blank = vm("web-0");
    blank.spec.image.as_mut().unwrap().name = ISO.into();
    blank.spec.guest_id = "otherGuest64".into();
    let image = json!({ "kind": "VirtualMachineImage", "name": ISO });
    let hardware = json!({ "cdrom": [{ "name": "setup", "image": image, "connected": true }] });
    blank.spec.hardware = Some(serde_json::from_value(hardware).unwrap());
    lab.apply(&blank).await;
    let is_on = |vm: &VirtualMachine| vm.current_power_state() == Some(PowerState::PoweredOn);
    lab.until("on", "web-0", is_on).await;
    let counters = lab.site.vcenter.counters();
    assert_eq!((counters.calls_of("CreateVM_Task"), counters.calls_of("CloneVM_Task")), (1, 0));
    assert_eq!(drives(&lab).len(), 1);
    assert_eq!(lab.machine("web-0").unwrap().path, "/DC0/vm/team-a/web-0");
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_moved_away_is_left_alone_until_it_is_back() {
    let lab = Lab::new().await;
    lab.apply(&vm("web-0")).await;
    lab.until_on("web-0").await;
    let machine = lab.machine("web-0").unwrap().moref;
    let go = async |path: &str| {
        let call = MoveIntoFolderTask { this: lab.site.find(path), list: vec![machine.clone()] };
        lab.fleet.client().submit(&call).await.unwrap().wait().await.unwrap();
    };
    go("/DC0/vm").await;
    let is = |want: (&'static str, &'static str)| {
        move |vm: &VirtualMachine| condition(vm, ConditionType::LocationValid) == Some(want)
    };
    lab.until("elsewhere", "web-0", is(("False", "FolderMismatch"))).await;
    let off = json!({ "spec": { "powerState": "PoweredOff", "powerOffMode": "Hard" } });
    lab.patch("web-0", off).await;
    sleep(minutes(5)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::On);
    go("/DC0/vm/team-a").await;
    lab.until("back", "web-0", is(("True", "True"))).await;
    sleep(secs(30)).await;
    assert_eq!(lab.machine("web-0").unwrap().power, Power::Off);
}

/// Its only worker waits for the end of each.
#[tokio::test(start_paused = true)]
async fn creates_may_block_their_workers() {
    let mut lab = Lab::idle().await;
    lab.settings.provider.async_create = false;
    lab.settings.workers = 1;
    lab.start();
    for name in ["web-0", "web-1"] {
        lab.apply(&vm(name)).await;
    }
    let mut most = 0;
    for _ in 0..600 {
        let tasks = lab.site.vcenter.tasks();
        let is_clone = |task: &&_| is_running_clone(task);
        most = most.max(tasks.iter().filter(is_clone).count());
        sleep(secs(1) / 10).await;
    }
    assert_eq!(most, 1, "one after the other");
    for name in ["web-0", "web-1"] {
        lab.until_on(name).await;
    }
}

fn is_running_clone(task: &roost_vim::wire::types::TaskInfo) -> bool {
    task.description_id == "VirtualMachine.clone" && task.complete_time.is_none()
}
