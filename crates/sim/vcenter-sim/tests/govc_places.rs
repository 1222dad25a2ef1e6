//! `govc` and where things are: folders, pools, hosts, datastores and their clusters.

mod govc;
mod wire_door;

use govc::{Lab, field};
use roost_vcenter_sim::{Options, TemplateOptions};
use wire_door::instant;

#[test]
fn a_datastore_cluster_recommends_its_member_with_the_most_room() {
    let Some(lab) = Lab::open(Options { pods: 1, datastores: 3, vms: 0, ..instant() }) else {
        return;
    };
    for member in ["LocalDS_1", "LocalDS_2"] {
        lab.does(&["object.mv", &format!("datastore/{member}"), "datastore/DC0_POD0"]);
    }
    let members = ["/DC0/datastore/DC0_POD0/LocalDS_1", "/DC0/datastore/DC0_POD0/LocalDS_2"];
    assert_eq!(lab.sorted(&["ls", "datastore/DC0_POD0"]), members);
    let cluster = lab.says(&["datastore.cluster.info", "DC0_POD0"]);
    assert_eq!(field(&cluster, "Name"), "DC0_POD0");
    lab.vcenter.fill_datastore("LocalDS_1", 100 << 30).unwrap();
    let place = ["-datastore-cluster", "DC0_POD0", "-pool", "DC0_C0/Resources", "-on=false"];
    let create = ["vm.create", "-disk", "1GB", "-net", "VM Network"];
    lab.does(&[&create[..], &place, &["made"]].concat());
    assert_eq!(field(&lab.says(&["vm.info", "-r", "made"]), "Storage"), "LocalDS_2");
    lab.does(&[&["vm.clone", "-vm", "debian12"], &place[..], &["cloned"]].concat());
    assert_eq!(field(&lab.says(&["vm.info", "-r", "cloned"]), "Storage"), "LocalDS_2");
}

#[test]
fn names_change_and_folders_hold_what_is_moved() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["object.rename", "vm/DC0_H0_VM0", "provision-1"]);
    assert_eq!(field(&lab.says(&["vm.info", "provision-1"]), "Path"), "/DC0/vm/provision-1");
    assert_eq!(lab.says(&["ls", "vm/DC0_H0_VM0"]), "");
    assert_eq!(lab.property("vm/provision-1", "config.name"), "provision-1");

    lab.does(&["folder.create", "vm/a", "vm/a/b"]);
    lab.does(&["object.mv", "vm/provision-1", "vm/a/b"]);
    assert_eq!(lab.sorted(&["find", "vm/a"]), ["vm/a", "vm/a/b", "vm/a/b/provision-1"]);
    lab.does(&["object.rename", "vm/a", "c d"]);
    assert_eq!(lab.lines(&["ls", "vm/c d/b"]), ["/DC0/vm/c d/b/provision-1"]);
    let folder = lab.says(&["folder.info", "vm/c d"]);
    assert_eq!((field(&folder, "Name"), field(&folder, "Children")), ("c d".into(), "1".into()));
    lab.does(&["vm.power", "-off", "provision-1"]);
    lab.does(&["object.destroy", "vm/c d"]);
    assert_eq!(lab.lines(&["find", "vm", "-type", "m"]).len(), 4, "with all that was in it");
}

#[test]
fn pools_are_made_changed_and_counted() {
    let options = Options {
        templates: vec![TemplateOptions { memory_mb: 2048, ..TemplateOptions::new("debian12") }],
        ..instant()
    };
    let Some(lab) = Lab::open(options) else { return };
    let pool = "DC0_C0/Resources/workers";
    lab.does(&[
        "pool.create",
        "-cpu.limit",
        "8000",
        "-mem.limit",
        "16384",
        "-mem.reservation",
        "1024",
        pool,
    ]);
    let info = lab.says(&["pool.info", pool]);
    assert_eq!(field(&info, "Path"), "/DC0/host/DC0_C0/Resources/workers");
    assert_eq!(
        (field(&info, "CPU Limit"), field(&info, "Mem Limit")),
        ("8000MHz".into(), "16384MB".into())
    );
    assert_eq!(field(&info, "Mem Reservation"), "1024MB (expandable=true)");
    assert_eq!(field(&info, "Mem Usage"), "0MB (0.0%)");

    lab.does(&["vm.clone", "-vm", "debian12", "-pool", pool, "worker-1"]);
    assert_eq!(field(&lab.says(&["pool.info", pool]), "Mem Usage"), "2048MB (12.5%)");
    lab.does(&["vm.power", "-off", "worker-1"]);
    assert_eq!(field(&lab.says(&["pool.info", pool]), "Mem Usage"), "0MB (0.0%)");

    lab.does(&["pool.change", "-cpu.limit", "-1", "-mem.shares", "high", "-name", "idle", pool]);
    let info = lab.says(&["pool.info", "DC0_C0/Resources/idle"]);
    assert_eq!(
        (field(&info, "CPU Limit"), field(&info, "Mem Shares")),
        ("-1MHz".into(), "high".into())
    );
    assert_eq!(
        lab.lines(&["find", "/", "-type", "p", "-name", "idle"]),
        ["/DC0/host/DC0_C0/Resources/idle"]
    );
    lab.does(&["pool.destroy", "DC0_C0/Resources/idle"]);
    assert_eq!(lab.lines(&["find", "/", "-type", "p"]).len(), 2);
    assert_eq!(
        field(&lab.says(&["vm.info", "worker-1"]), "Name"),
        "worker-1",
        "what was in it moves up"
    );
}

#[test]
fn a_vm_moves_to_another_host_pool_and_datastore() {
    let Some(lab) = Lab::open(Options { datastores: 2, ..instant() }) else { return };
    let vm = "DC0_C0_RP0_VM0";
    let other = |host: &str| if host == "DC0_C0_H0" { "DC0_C0_H1" } else { "DC0_C0_H0" };
    let target = other(&field(&lab.says(&["vm.info", vm]), "Host"));
    lab.does(&["vm.migrate", "-host", target, vm]);
    assert_eq!(field(&lab.says(&["vm.info", vm]), "Host"), target);
    lab.does(&["pool.create", "DC0_C0/Resources/second"]);
    lab.does(&["vm.migrate", "-pool", "DC0_C0/Resources/second", "-ds", "LocalDS_1", vm]);
    let info = lab.says(&["vm.info", "-r", vm]);
    assert_eq!(
        (field(&info, "Power state"), field(&info, "Storage")),
        ("poweredOn".into(), "LocalDS_1".into())
    );
    let pool = lab.property("vm/DC0_C0_RP0_VM0", "resourcePool");
    assert_eq!(lab.lines(&["ls", "-L", &pool]), ["/DC0/host/DC0_C0/Resources/second"]);
    assert_eq!(lab.sorted(&["datastore.ls", "-ds", "LocalDS_1", vm]).len(), 2);
}

#[test]
fn custom_attributes_are_defined_once_and_set_per_vm() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["fields.add", "owner"]);
    lab.does(&["fields.set", "owner", "team-a", "vm/DC0_H0_VM0"]);
    let listed = lab.says(&["fields.ls"]);
    assert!(listed.contains("owner"), "{listed}");
    let info = lab.says(&["fields.info", "vm/DC0_H0_VM0"]);
    assert!(info.contains("owner") && info.contains("team-a"), "{info}");
    let taken = lab.refused(&["fields.add", "owner"]);
    assert!(taken.contains("The name 'owner' already exists."), "{taken}");
}
