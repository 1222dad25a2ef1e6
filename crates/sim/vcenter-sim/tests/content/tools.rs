//! `govc` at the same things.

use http::Method;
use roost_vcenter_sim::Options;
use serde_json::{Value, json};

use crate::govc::{Lab, field};
use crate::rest::{DESCRIPTOR, DISK, Rest};
use crate::wire_door::{instant, quick};

/// A library item that can be deployed.
pub(crate) async fn small_item(rest: &Rest) -> String {
    let library =
        rest.post("/api/content/local-library", json!({ "name": "small", "type": "LOCAL" })).await;
    let spec = json!({ "name": "tiny", "library_id": library, "type": "ovf" });
    let item = rest.post("/api/content/library/item", spec).await;
    let session = rest
        .post("/api/content/library/item/update-session", json!({ "library_item_id": item }))
        .await;
    let session = session.as_str().unwrap();
    for (name, content) in [("tiny.ovf", DESCRIPTOR.as_bytes()), ("tiny-disk1.vmdk", DISK)] {
        let at = format!("/api/content/library/item/update-session/{session}/file");
        let file = rest.post(&at, json!({ "name": name, "source_type": "PUSH" })).await;
        let uri = file["upload_endpoint"]["uri"].as_str().unwrap();
        rest.send(Method::PUT, uri.strip_prefix("http://vc.test").unwrap(), content.to_vec()).await;
    }
    rest.post(
        &format!("/api/content/library/item/update-session/{session}?action=complete"),
        Value::Null,
    )
    .await;
    item.as_str().unwrap().to_owned()
}

fn package(lab: &Lab) -> String {
    lab.file("tiny-disk1.vmdk", DISK);
    lab.file("tiny.ovf", DESCRIPTOR.as_bytes())
}

#[test]
fn a_library_is_filled_listed_exported_and_deployed_from() {
    let Some(lab) = Lab::open(quick()) else { return };
    let id = lab.says(&["library.create", "images"]).trim().to_owned();
    assert!(lab.says(&["library.info", "images"]).contains(&id));
    lab.does(&["library.import", "images", &package(&lab)]);
    assert_eq!(lab.lines(&["library.ls", "images/*"]), ["/images/tiny"]);
    assert_eq!(
        lab.sorted(&["library.ls", "images/tiny/*"]),
        ["/images/tiny/tiny-disk1.vmdk", "/images/tiny/tiny.ovf"]
    );
    assert!(lab.refused(&["library.import", "images", &package(&lab)]).contains("already_exists"));
    let out = lab.path("out.ovf");
    lab.does(&["library.export", "images/tiny/*.ovf", &out]);
    assert_eq!(std::fs::read_to_string(out).unwrap(), DESCRIPTOR);
    lab.does(&["library.deploy", "-pool", "DC0_C0/Resources", "images/tiny", "web-0"]);
    let info = lab.says(&["vm.info", "web-0"]);
    assert_eq!((field(&info, "CPU"), field(&info, "Memory")), ("2 vCPU(s)".into(), "512MB".into()));
    assert!(lab.says(&["device.ls", "-vm", "web-0"]).contains("disk-1000-1"));
    lab.does(&["library.clone", "-vm", "web-0", "-ovf", "images", "copy"]);
    lab.does(&["library.deploy", "-pool", "DC0_C0/Resources", "images/copy", "web-1"]);
    lab.does(&["library.clone", "-pool", "DC0_C0/Resources", "-vm", "web-0", "images", "template"]);
    lab.does(&["library.deploy", "-pool", "DC0_C0/Resources", "images/template", "web-2"]);
    lab.does(&["library.checkout", "-pool", "DC0_C0/Resources", "images/template", "work"]);
    lab.does(&["library.checkin", "-vm", "work", "images/template"]);
    assert_eq!(lab.property("vm/template", "config.template"), "true");
    lab.does(&["library.update", "-n", "other", "images"]);
    lab.does(&["library.rm", "other/tiny"]);
    lab.does(&["library.rm", "other"]);
    assert_eq!(lab.lines(&["library.ls"]), Vec::<String>::new());
}

#[test]
fn a_package_is_imported_and_exported() {
    let Some(lab) = Lab::open(quick()) else { return };
    lab.does(&["import.ovf", "-pool", "DC0_C0/Resources", "-name", "tiny", &package(&lab)]);
    assert_eq!(field(&lab.says(&["vm.info", "tiny"]), "Memory"), "512MB");
    let spec = lab.says(&["import.spec", &package(&lab)]);
    assert!(spec.contains("\"Network\""), "{spec}");
    let folder = lab.path("out");
    std::fs::create_dir_all(&folder).unwrap();
    lab.does(&["export.ovf", "-vm", "tiny", &folder]);
    let disk = std::fs::read(format!("{folder}/tiny/tiny-disk-0.vmdk")).unwrap();
    assert_eq!(disk, DISK);
    let descriptor = std::fs::read_to_string(format!("{folder}/tiny/tiny.ovf")).unwrap();
    assert!(descriptor.contains("tiny-disk-0.vmdk"), "{descriptor}");
}

#[test]
fn tags_are_changed_listed_and_attached_in_numbers() {
    let Some(lab) = Lab::open(instant()) else { return };
    let category =
        lab.says(&["tags.category.create", "-d", "first", "-m", "team"]).trim().to_owned();
    lab.does(&[
        "tags.category.update",
        "-n",
        "crew",
        "-d",
        "second",
        "-t",
        "VirtualMachine",
        &category,
    ]);
    let info = lab.says(&["tags.category.info", "crew"]);
    assert_eq!(field(&info, "Description"), "second");
    lab.does(&["tags.create", "-c", "crew", "red"]);
    lab.does(&["tags.create", "-c", "crew", "blue"]);
    lab.does(&["tags.update", "-n", "green", "red"]);
    lab.does(&["tags.attach", "green", "/DC0/vm/DC0_H0_VM0"]);
    lab.does(&["tags.attach", "blue", "/DC0/vm/DC0_H0_VM0"]);
    assert_eq!(lab.sorted(&["tags.attached.ls", "-r", "/DC0/vm/DC0_H0_VM0"]), ["blue", "green"]);
    assert!(lab.lines(&["tags.attached.ls", "green"])[0].starts_with("VirtualMachine:"));
    let refused = lab.refused(&["tags.attach", "green", "/DC0/host/DC0_H0"]);
    assert!(refused.contains("not for objects of this type"), "{refused}");
}

#[test]
fn policies_disks_and_datastore_clusters() {
    let Some(lab) = Lab::open(Options { datastores: 2, ..instant() }) else { return };
    assert!(lab.says(&["storage.policy.ls"]).contains("vSAN Default Storage Policy"));
    lab.does(&["tags.category.create", "tier"]);
    lab.does(&["tags.create", "-c", "tier", "gold"]);
    lab.does(&["tags.attach", "gold", "/DC0/datastore/LocalDS_1"]);
    lab.does(&["storage.policy.create", "-category", "tier", "-tag", "gold", "Gold"]);
    let info = lab.says(&["storage.policy.info", "-s", "Gold"]);
    assert!(info.contains("LocalDS_1") && !info.contains("LocalDS_0"), "{info}");
    lab.does(&["storage.policy.rm", "Gold"]);

    lab.does(&["datastore.disk.create", "-ds", "LocalDS_0", "-size", "10M", "a.vmdk"]);
    lab.does(&["datastore.cp", "-ds", "LocalDS_0", "a.vmdk", "b.vmdk"]);
    lab.does(&["datastore.rm", "-ds", "LocalDS_0", "a.vmdk"]);
    assert_eq!(lab.lines(&["datastore.ls", "-ds", "LocalDS_0", "b.vmdk"]), ["b.vmdk"]);

    lab.does(&["folder.create", "-pod", "/DC0/datastore/pod"]);
    lab.does(&[
        "object.mv",
        "/DC0/datastore/LocalDS_0",
        "/DC0/datastore/LocalDS_1",
        "/DC0/datastore/pod",
    ]);
    assert!(lab.says(&["datastore.cluster.info"]).contains("pod"));
}

#[test]
fn a_drive_gets_an_image_and_loses_it() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&[
        "datastore.upload",
        "-ds",
        "LocalDS_0",
        &lab.file("boot.iso", b"CD001"),
        "boot.iso",
    ]);
    lab.does(&["vm.power", "-off", "-force", "DC0_H0_VM0"]);
    let drive = lab.says(&["device.cdrom.add", "-vm", "DC0_H0_VM0"]).trim().to_owned();
    lab.does(&[
        "device.cdrom.insert",
        "-ds",
        "LocalDS_0",
        "-vm",
        "DC0_H0_VM0",
        "-device",
        &drive,
        "boot.iso",
    ]);
    let image = || {
        let vm = lab.vcenter.vm("DC0_H0_VM0").unwrap();
        let mut drives =
            vm.devices.into_iter().filter(|device| format!("cdrom-{}", device.key) == drive);
        drives.find_map(|drive| drive.backing?.file_name)
    };
    assert_eq!(image().as_deref(), Some("[LocalDS_0] boot.iso"));
    lab.does(&["device.cdrom.eject", "-vm", "DC0_H0_VM0", "-device", &drive]);
    assert_eq!(image(), None);
}
