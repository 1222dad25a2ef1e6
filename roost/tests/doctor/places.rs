//! A vCenter that lets us in and does not have, or does not allow, what the file asks for.

use roost_vim::{Client, CloneVm, CreateVm};
use serde_json::json;

use crate::examination::Scene;

const FREE: u64 = 1 << 30;

#[test]
fn what_the_file_names_and_the_vcenter_does_not_have_fails_by_its_key() {
    let scene = Scene::new("doctor-names");
    scene.rewrite("networkString = \"DC0_DVPG0\"", "networkString = \"DC0_DVPG\"\nfolderString = \"ci\"\ndatastoreString = \"ds\"\nresourcePoolString = \"p\"");
    let found = scene.examine(&[]);
    found.expect_failures(&["folder", "datastore", "network", "pool"]);
    for (check, key) in [
        ("folder", "folderString"),
        ("datastore", "datastoreString"),
        ("network", "networkString"),
        ("pool", "resourcePoolString"),
    ] {
        found.expect("fail", check, key);
    }
    found.expect("fail", "network", "DC0_DVPG0");
    found.expect("skip", "space", "");
    scene.rewrite("datacenterString = \"DC0\"", "datacenterString = \"DC9\"");
    let found = scene.examine(&[]);
    found.expect_failures(&["datacenter"]);
    found.expect("skip", "folder", "the datacenter is not known");
}

#[tokio::test]
async fn each_trouble_of_a_template_fails_with_what_to_do() {
    let scene = Scene::with("doctor-templates", &["--templates-without-tools", "bare"]);
    let client = scene.vcenter.client().await;
    make_template_without_card(&client, "mute").await;
    let models = ["bare", "mute", "gone"].map(|name| {
        format!("[[hatchery.vsphere.models]]\nmodelVMWare = \"{name}\"\nusername = \"root\"\npassword = \"demo\"\n")
    });
    scene.rewrite(
        "[[hatchery.vsphere.flavors]]",
        &format!("{}\n[[hatchery.vsphere.flavors]]", models.concat()),
    );
    let found = scene.examine(&[]);
    found.expect("pass", "template", "debian12: template");
    found.expect("fail", "template", "bare: VMware Tools are not installed");
    found.expect("fail", "template", "install open-vm-tools");
    found.expect("fail", "template", "mute: it has no network card");
    found.expect("fail", "template", "gone: no virtual machine");
    client.shutdown().await;
}

async fn make_template_without_card(client: &Client, name: &str) {
    let finder = client.finder("DC0").await.unwrap();
    let folder = finder.vm_folder("").await.unwrap().moref;
    let pool = finder.resource_pool("").await.unwrap().moref;
    let mut request = CreateVm::new(folder, name, pool, "LocalDS_0");
    request.disks.push(roost_vim::NewDisk::thin(1 << 30));
    let vm = client.create_vm(&request).await.unwrap();
    client.mark_as_template(&vm).await.unwrap();
}

#[tokio::test]
async fn each_missing_privilege_is_named_with_its_call_and_object() {
    let scene = Scene::new("doctor-privileges");
    for (privilege, below) in [
        ("VirtualMachine.Interact.PowerOn", "/DC0/vm"),
        ("Resource.AssignVMToPool", "/DC0/host"),
        ("VirtualMachine.Provisioning.DeployTemplate", "/DC0/vm/debian12"),
    ] {
        let denial = json!({"privilege": privilege, "below": below});
        scene.vcenter.control.post("permissions/deny", &denial).await;
    }
    let found = scene.examine(&[]);
    found.expect_failures(&["privileges"; 3]);
    let line = found.expect("fail", "privileges", "folder /DC0/vm: 1 of");
    assert!(line.contains("VirtualMachine.Interact.PowerOn, for PowerOnVM_Task"), "{line}");
    found.expect("fail", "privileges", "Resource.AssignVMToPool, for CloneVM_Task");
    found.expect("fail", "privileges", "template /DC0/vm/debian12: 1 of 2");
}

#[tokio::test]
async fn a_full_datastore_fails_and_one_that_may_become_full_is_a_warning() {
    let scene = Scene::new("doctor-space");
    scene
        .vcenter
        .control
        .put(&format!("datastores/LocalDS_0/free/{}", 20 * FREE), &json!({}))
        .await;
    let found = scene.examine(&[]);
    found.expect_failures(&[]);
    found.expect("warn", "space", "7 more VMs");
    scene.vcenter.control.put("datastores/LocalDS_0/free/1000", &json!({})).await;
    let found = scene.examine(&[]);
    found.expect_failures(&["space"]);
    found.expect("fail", "space", "datastoreString");
}

async fn clone(client: &Client, name: &str, annotation: &str) {
    let finder = client.finder("DC0").await.unwrap();
    let template = finder.template("debian12").await.unwrap().moref;
    let template = client.template_facts(&template).await.unwrap();
    let folder = finder.vm_folder("").await.unwrap().moref;
    let pool = finder.resource_pool("").await.unwrap().moref;
    let mut request = CloneVm::new(folder, name, pool);
    request.annotation = Some(annotation.to_owned());
    client.clone_vm(&template, &request).await.unwrap();
}

#[tokio::test]
async fn an_address_range_that_others_use_is_told_with_who_does() {
    let scene = Scene::new("doctor-addresses");
    let client = scene.vcenter.client().await;
    clone(&client, "database", r#"{"hatchery_name":"other","ip_address":"10.77.0.2"}"#).await;
    let found = scene.examine(&[]);
    found.expect_failures(&[]);
    found.expect("warn", "addresses", "10.77.0.2: database");
    scene.rewrite("10.77.0.0/28", "10.77.0.0/30");
    let found = scene.examine(&[]);
    found.expect_failures(&["addresses"]);
    found.expect("fail", "addresses", "no worker can have one");
    client.shutdown().await;
}

#[tokio::test]
async fn vms_of_this_name_are_counted_and_two_for_one_job_are_a_failure() {
    let scene = Scene::new("doctor-own");
    let client = scene.vcenter.client().await;
    clone(
        &client,
        "calm-noether",
        r#"{"hatchery_name":"roost","worker_name":"calm-noether","job_id":"17"}"#,
    )
    .await;
    clone(&client, "provision-v2-keen-bohr", r#"{"hatchery_name":"roost","provisioning":true}"#)
        .await;
    let found = scene.examine(&[]);
    found.expect_failures(&[]);
    found.expect("pass", "own VMs", "1 workers, 1 spares");
    clone(
        &client,
        "busy-bohr",
        r#"{"hatchery_name":"roost","worker_name":"busy-bohr","job_id":"17"}"#,
    )
    .await;
    let found = scene.examine(&[]);
    found.expect_failures(&["own VMs"]);
    found.expect("fail", "own VMs", "job 17: busy-bohr, calm-noether");
    client.shutdown().await;
}
