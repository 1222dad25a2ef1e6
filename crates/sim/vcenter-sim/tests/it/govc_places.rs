//! `govc` and where things are: folders, pools, hosts, datastores and their clusters.

use crate::govc::{Lab, field};
use crate::wire_door::instant;
use roost_vcenter_sim::{Options, TemplateOptions};

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

#[test]
fn a_host_in_maintenance_gives_its_vms_away_and_one_cut_off_takes_them_along() {
    let Some(lab) = Lab::open(instant()) else { return };
    let host = |vm: &str| lab.property(&format!("vm/{vm}"), "runtime.host");
    let state = |vm: &str| lab.property(&format!("vm/{vm}"), "runtime.connectionState");
    let before = host("DC0_C0_RP0_VM0");
    lab.does(&["host.maintenance.enter", "DC0_C0_H0"]);
    assert_eq!(lab.property("host/DC0_C0/DC0_C0_H0", "runtime.inMaintenanceMode"), "true");
    assert_ne!(host("DC0_C0_RP0_VM0"), before, "it runs on another host of the cluster");
    assert_eq!(state("DC0_C0_RP0_VM0"), "connected");
    lab.refused(&["host.maintenance.enter", "DC0_C0_H0"]);
    lab.does(&["host.maintenance.exit", "DC0_C0_H0"]);
    assert_eq!(lab.property("host/DC0_C0/DC0_C0_H0", "runtime.inMaintenanceMode"), "false");
    // The VMs of a lone host have nowhere to go.
    lab.does(&["host.maintenance.enter", "DC0_H0"]);
    assert_eq!(state("DC0_H0_VM0"), "disconnected");
    lab.does(&["host.maintenance.exit", "DC0_H0"]);
    assert_eq!(state("DC0_H0_VM0"), "connected");
    lab.does(&["host.disconnect", "DC0_H0"]);
    assert_eq!(
        (state("DC0_H0_VM0").as_str(), state("DC0_H0_VM1").as_str()),
        ("disconnected", "disconnected")
    );
    let said = lab.says(&["vm.power", "-off", "-force", "DC0_H0_VM0"]);
    assert!(said.contains("Unable to communicate with the remote host"), "{said}");
    lab.does(&["host.reconnect", "DC0_H0"]);
    assert_eq!(state("DC0_H0_VM0"), "connected");
}

#[test]
fn clusters_are_made_and_changed_and_hosts_join_and_move() {
    let Some(lab) = Lab::open(Options { clusters: 2, ..instant() }) else { return };
    lab.does(&[
        "cluster.add",
        "-cluster",
        "DC0_C0",
        "-hostname",
        "10.0.0.42",
        "-username",
        "root",
        "-password",
        "x",
    ]);
    let added = "host/DC0_C0/10.0.0.42";
    assert_eq!(lab.property(added, "runtime.connectionState"), "connected");
    lab.refused(&[
        "cluster.add",
        "-cluster",
        "DC0_C1",
        "-hostname",
        "10.0.0.42",
        "-username",
        "root",
        "-password",
        "x",
    ]);
    lab.refused(&["cluster.mv", "-cluster", "DC0_C1", "10.0.0.42"]);
    lab.does(&["host.maintenance.enter", "10.0.0.42"]);
    lab.does(&["cluster.mv", "-cluster", "DC0_C1", "10.0.0.42"]);
    assert_eq!(lab.lines(&["find", "host/DC0_C1", "-type", "h"]).len(), 4);
    lab.does(&["cluster.change", "-drs-enabled=false", "-ha-enabled", "DC0_C0"]);
    assert_eq!(lab.property("host/DC0_C0", "configurationEx.dasConfig.enabled"), "true");
    let group = ["cluster.group.create", "-cluster", "DC0_C0", "-name", "web", "-vm"];
    lab.does(&[&group[..], &["DC0_C0_RP0_VM0"]].concat());
    lab.refused(&[&group[..], &["DC0_C0_RP0_VM1"]].concat());
    assert_eq!(
        lab.lines(&["cluster.group.ls", "-cluster", "DC0_C0", "-name", "web"]),
        ["DC0_C0_RP0_VM0"]
    );
    let rule = [
        "cluster.rule.create",
        "-cluster",
        "DC0_C0",
        "-name",
        "apart",
        "-enable",
        "-anti-affinity",
    ];
    lab.does(&[&rule[..], &["DC0_C0_RP0_VM0", "DC0_C0_RP0_VM1"]].concat());
    assert_eq!(lab.lines(&["cluster.rule.ls", "-cluster", "DC0_C0"]), ["apart"]);
    lab.does(&["cluster.rule.remove", "-cluster", "DC0_C0", "-name", "apart"]);
    assert_eq!(lab.says(&["cluster.rule.ls", "-cluster", "DC0_C0"]), "");
    lab.does(&["datacenter.create", "DC1"]);
    lab.does(&["cluster.create", "-dc", "DC1", "edge"]);
    assert_eq!(lab.lines(&["find", "/DC1/host", "-type", "c"]), ["/DC1/host/edge"]);
    lab.does(&["object.destroy", "/DC1"]);
    assert_eq!(lab.lines(&["find", "/", "-type", "d"]), ["/DC0"]);
}

#[test]
fn switches_and_port_groups_are_made_joined_and_destroyed() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["dvs.create", "-mtu", "9000", "-discovery-protocol", "cdp", "DVS1"]);
    assert_eq!(lab.property("network/DVS1", "config.maxMtu"), "9000");
    lab.does(&["dvs.add", "-dvs", "DVS1", "DC0_H0"]);
    lab.does(&["dvs.portgroup.add", "-dvs", "DVS1", "-vlan", "7", "-nports", "16", "blue"]);
    lab.does(&["vm.network.add", "-vm", "DC0_H0_VM0", "-net", "blue"]);
    let card = lab.says(&["device.info", "-vm", "DC0_H0_VM0", "ethernet-1"]);
    assert!(field(&card, "Summary").starts_with("DVSwitch: "), "{card}");
    lab.refused(&["object.destroy", "network/blue"]);
    lab.does(&["device.remove", "-vm", "DC0_H0_VM0", "ethernet-1"]);
    lab.does(&["dvs.portgroup.change", "-vlan", "8", "blue"]);
    lab.does(&["object.destroy", "network/blue", "network/DVS1"]);
    assert_eq!(lab.says(&["ls", "network/DVS1"]), "");
}

#[test]
fn a_role_denies_what_it_does_not_grant_and_only_where_it_is_set() {
    let Some(lab) = Lab::open(instant()) else { return };
    // Who has it on the VM alone may still hand the VM back.
    let (power, hand_back) =
        ("VirtualMachine.Interact.PowerOff", "Authorization.ModifyPermissions");
    lab.does(&["role.create", "watcher", "System.Read", power, hand_back]);
    lab.does(&["permissions.set", "-principal", "roost", "-role", "Admin", "/"]);
    lab.does(&["permissions.set", "-principal", "roost", "-role", "watcher", "/DC0/vm/DC0_H0_VM0"]);
    lab.does(&["vm.power", "-off", "DC0_H0_VM0"]);
    let refused = lab.refused(&["vm.power", "-on", "DC0_H0_VM0"]);
    assert!(refused.contains("Permission to perform this operation was denied"), "{refused}");
    lab.does(&["vm.power", "-off", "DC0_H0_VM1"]);
    lab.does(&["vm.power", "-on", "DC0_H0_VM1"]);
    lab.does(&["permissions.remove", "-principal", "roost", "/DC0/vm/DC0_H0_VM0"]);
    lab.does(&["vm.power", "-on", "DC0_H0_VM0"]);
    lab.refused(&["role.remove", "Admin"]);
    lab.does(&["role.remove", "watcher"]);
}

#[test]
fn what_was_unregistered_is_registered_again_as_it_was() {
    let Some(lab) = Lab::open(Options { autostart: false, ..instant() }) else { return };
    let uuid = lab.property("vm/DC0_H0_VM0", "config.uuid");
    lab.does(&["vm.unregister", "DC0_H0_VM0"]);
    let file = "DC0_H0_VM0/DC0_H0_VM0.vmx";
    lab.refused(&["vm.register", "-pool", "DC0_H0/Resources", "nothing/here.vmx"]);
    lab.does(&["vm.register", "-pool", "DC0_H0/Resources", file]);
    assert_eq!(lab.property("vm/DC0_H0_VM0", "config.uuid"), uuid);
    lab.refused(&["vm.register", "-pool", "DC0_H0/Resources", file]);
}

#[test]
fn an_empty_vm_boots_nothing_and_a_disk_is_a_file() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&[
        "vm.create",
        "-pool",
        "DC0_C0/Resources",
        "-net",
        "VM Network",
        "-disk",
        "1GB",
        "empty",
    ]);
    assert_eq!(lab.property("vm/empty", "guest.toolsStatus"), "toolsNotInstalled");
    assert_eq!(lab.property("vm/empty", "guest.ipAddress"), "");
    let layout = lab.json(&["object.collect", "vm/empty", "layoutEx.file"]).to_string();
    assert!(layout.contains("empty.vmx") && layout.contains("diskExtent"), "{layout}");
    lab.does(&["datastore.disk.create", "-size", "2G", "blank.vmdk"]);
    lab.refused(&["datastore.disk.create", "-size", "2G", "blank.vmdk"]);
    lab.does(&["datastore.cp", "blank.vmdk", "copy.vmdk"]);
    lab.does(&["datastore.rm", "blank.vmdk"]);
}
