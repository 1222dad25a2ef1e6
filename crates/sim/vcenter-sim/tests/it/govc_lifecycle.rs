//! `govc` makes VMs, changes them, runs them and takes them away.

use crate::govc::{Lab, field, row};
use crate::wire_door::{instant, quick};
use roost_vcenter_sim::Options;

const POOL: &str = "DC0_C0/Resources";

fn power(lab: &Lab, vm: &str) -> String {
    lab.property(&format!("vm/{vm}"), "runtime.powerState")
}

#[test]
fn a_clone_of_a_template_has_what_was_asked_for_and_comes_up() {
    let Some(lab) = Lab::open_tls(quick()) else { return };
    let annotation = r#"{"hatchery_name":"h1","note":"<&>"}"#;
    let clone = [
        "vm.clone",
        "-vm",
        "debian12",
        "-pool",
        POOL,
        "-annotation",
        annotation,
        "-c",
        "2",
        "-m",
        "4096",
    ];
    let said = lab.says(&[&clone[..], &["-waitip", "worker-1"]].concat());
    assert!(
        said.contains("Cloning /DC0/vm/debian12 to worker-1...") && said.trim_end().ends_with("OK"),
        "{said}"
    );

    let info = lab.says(&["vm.info", "-r", "worker-1"]);
    for (label, value) in [
        ("Path", "/DC0/vm/worker-1"),
        ("Guest name", "Debian GNU/Linux 12 (64-bit)"),
        ("Memory", "4096MB"),
        ("CPU", "2 vCPU(s)"),
        ("Power state", "poweredOn"),
        ("Storage", "LocalDS_0"),
    ] {
        assert_eq!(field(&info, label), value, "{label}");
    }
    assert!(field(&info, "Host").starts_with("DC0_C0_H"), "{info}");
    assert_eq!(lab.property("vm/worker-1", "config.annotation"), annotation);
    assert_eq!(lab.property("vm/worker-1", "config.template"), "false");
    assert_eq!(lab.says(&["vm.ip", "worker-1"]).trim(), field(&info, "IP address"));
    assert_ne!(
        lab.property("vm/worker-1", "config.uuid"),
        lab.property("vm/debian12", "config.uuid")
    );
    let mac = |vm: &str| lab.property(vm, "config.hardware.device[4000].macAddress");
    assert_ne!(mac("vm/worker-1"), mac("vm/debian12"));
}

#[test]
fn a_clone_may_stay_off_and_go_to_a_folder_a_host_and_a_network() {
    let options = Options { portgroups: 2, ..instant() };
    let Some(lab) = Lab::open(options) else { return };
    lab.does(&["folder.create", "vm/workers"]);
    let place = ["-folder", "vm/workers", "-host", "DC0_H0", "-net", "DC0_DVPG1"];
    lab.does(&[&["vm.clone", "-vm", "debian12", "-on=false"], &place[..], &["worker-1"]].concat());
    let info = lab.says(&["vm.info", "-r", "worker-1"]);
    assert_eq!(field(&info, "Path"), "/DC0/vm/workers/worker-1");
    assert_eq!(
        (field(&info, "Host"), field(&info, "Network")),
        ("DC0_H0".into(), "DC0_DVPG1".into())
    );
    assert_eq!(
        (field(&info, "Power state"), field(&info, "Memory")),
        ("poweredOff".into(), "1024MB".into())
    );
    assert_eq!(field(&info, "IP address"), "");
    assert_eq!(lab.lines(&["ls", "vm/workers"]), ["/DC0/vm/workers/worker-1"]);
}

#[test]
fn a_linked_clone_shares_the_disk_of_its_template() {
    let Some(lab) = Lab::open(instant()) else { return };
    let snapshot = lab.says(&["snapshot.tree", "-vm", "debian12", "-C"]);
    let link = ["-link", "-snapshot", snapshot.trim(), "-on=false", "linked"];
    lab.does(&[&["vm.clone", "-vm", "debian12", "-pool", POOL], &link[..]].concat());
    lab.does(&["vm.clone", "-vm", "debian12", "-pool", POOL, "-on=false", "full"]);
    let parent = |vm: &str| {
        let disk = &lab.json(&["device.info", "-vm", vm, "disk-*"])["devices"][0];
        disk["backing"]["parent"]["fileName"].as_str().map(str::to_owned)
    };
    assert!(parent("linked").unwrap().starts_with("[LocalDS_0] debian12/"));
    assert_eq!(parent("full"), None);
}

#[test]
fn a_vm_is_created_with_disk_iso_and_card() {
    let Some(lab) = Lab::open(instant()) else { return };
    let iso = lab.file("boot.iso", b"not much of an image");
    lab.does(&["datastore.mkdir", "iso"]);
    lab.does(&["datastore.upload", "-json", &iso, "iso/boot.iso"]);
    let hardware = [
        "-c",
        "4",
        "-m",
        "8192",
        "-g",
        "rhel8_64Guest",
        "-firmware",
        "efi",
        "-annotation",
        "made here",
    ];
    let devices = ["-disk", "20GB", "-disk.controller", "pvscsi", "-iso", "iso/boot.iso"];
    let card = ["-net", "DC0_DVPG0", "-net.adapter", "vmxnet3"];
    let place = ["-pool", POOL, "-on=false", "node-1"];
    lab.does(&[&["vm.create"][..], &hardware, &devices, &card, &place].concat());

    let config = &lab.json(&["vm.info", "node-1"])["virtualMachines"][0]["config"];
    assert_eq!(
        (config["annotation"].as_str(), config["firmware"].as_str()),
        (Some("made here"), Some("efi"))
    );
    assert_eq!(
        (&config["hardware"]["numCPU"], &config["hardware"]["memoryMB"]),
        (&4.into(), &8192.into())
    );
    assert_eq!(config["guestId"], "rhel8_64Guest");
    assert_eq!(config["files"]["vmPathName"], "[LocalDS_0] node-1/node-1.vmx");
    let listed = lab.says(&["device.ls", "-vm", "node-1"]);
    assert_eq!(row(&listed, "disk-1000-0")[1..], ["VirtualDisk", "20,971,520", "KB"]);
    assert_eq!(row(&listed, "ethernet-0")[1..3], ["VirtualVmxnet3", "DVSwitch:"]);
    assert_eq!(row(&listed, "pvscsi-1000")[1], "ParaVirtualSCSIController");
    let drive = &lab.json(&["device.info", "-vm", "node-1", "cdrom-*"])["devices"][0];
    assert_eq!(drive["backing"]["fileName"], "[LocalDS_0] iso/boot.iso");
    assert_eq!(drive["connectable"]["startConnected"], true);
    assert_eq!(lab.sorted(&["datastore.ls", "node-1"]), ["node-1.vmdk", "node-1.vmx"]);

    lab.does(&["vm.create", "-cluster", "DC0_C0", "-net", "VM Network", "-on=true", "placed"]);
    assert_eq!(power(&lab, "placed"), "poweredOn");
    assert!(field(&lab.says(&["vm.info", "placed"]), "Host").starts_with("DC0_C0_H"));
}

#[test]
fn vm_change_changes_only_what_it_names() {
    let Some(lab) = Lab::open(Options { autostart: false, ..instant() }) else { return };
    let vm = "DC0_H0_VM0";
    lab.does(&["vm.change", "-vm", vm, "-c", "3", "-m", "2048", "-annotation", "first\nsecond"]);
    let change = ["-e", "guestinfo.hatchery=h1", "-e", "disk.enableUUID=TRUE"];
    lab.does(&[&["vm.change", "-vm", vm], &change[..]].concat());
    let info = lab.says(&["vm.info", "-e", vm]);
    assert_eq!(
        (field(&info, "CPU"), field(&info, "Memory")),
        ("3 vCPU(s)".into(), "2048MB".into())
    );
    assert_eq!(field(&info, "guestinfo.hatchery"), "h1");
    assert_eq!(field(&info, "disk.enableUUID"), "TRUE");
    assert_eq!(lab.property("vm/DC0_H0_VM0", "config.annotation"), "first\nsecond");
    assert_eq!(lab.property("vm/DC0_H0_VM0", "summary.config.numCpu"), "3");

    // An empty value takes a key away.
    lab.does(&["vm.change", "-vm", vm, "-e", "guestinfo.hatchery="]);
    assert!(!lab.says(&["vm.info", "-e", vm]).contains("guestinfo.hatchery"));

    lab.does(&["vm.change", "-vm", vm, "-cpu-hot-add-enabled=true", "-name", "renamed"]);
    lab.does(&["vm.power", "-on", "renamed"]);
    lab.does(&["vm.change", "-vm", "renamed", "-c", "4"]);
    assert_eq!(field(&lab.says(&["vm.info", "renamed"]), "CPU"), "4 vCPU(s)", "hot added");
}

#[test]
fn power_goes_through_all_of_its_states() {
    let Some(lab) = Lab::open(quick()) else { return };
    let vm = "DC0_H0_VM0";
    let said = lab.says(&["vm.power", "-off", vm]);
    assert!(
        said.starts_with("Powering off VirtualMachine:vm-") && said.ends_with("... OK\n"),
        "{said}"
    );
    assert_eq!(power(&lab, vm), "poweredOff");
    let info = lab.says(&["vm.info", vm]);
    assert_eq!(field(&info, "IP address"), "", "an address ends with the power");

    assert!(lab.says(&["vm.power", "-on", vm]).ends_with("... OK\n"));
    let address = lab.says(&["vm.ip", vm]);
    assert_eq!(
        lab.property("vm/DC0_H0_VM0", "guest.ipAddress"),
        address.trim(),
        "it waits for the address"
    );
    assert!(lab.says(&["vm.power", "-suspend", vm]).ends_with("... OK\n"));
    assert_eq!(power(&lab, vm), "suspended");
    lab.does(&["vm.power", "-on", vm]);
    assert_eq!(power(&lab, vm), "poweredOn");

    let tools =
        ["object.collect", "-s", "vm/DC0_H0_VM0", "-guest.toolsRunningStatus", "guestToolsRunning"];
    lab.does(&tools);
    let said = lab.says(&["vm.power", "-reset", vm]);
    assert!(said.starts_with("Reset VirtualMachine:vm-") && said.ends_with("... OK\n"), "{said}");
    assert_eq!(power(&lab, vm), "poweredOn");
    lab.does(&tools);
    let booted = ["object.collect", "-s", "-n", "1", "vm/DC0_H0_VM0", "runtime.bootTime"];
    let times = lab.watched(&booted, &["vm.power", "-r", vm]);
    assert!(times.len() == 2 && times[0] != times[1], "{times:?}");
    lab.does(&tools);
    let said = lab.says(&["vm.power", "-s", vm]);
    assert!(said.starts_with("Shutdown guest VirtualMachine:vm-"), "{said}");
    let off = ["object.collect", "-s", "vm/DC0_H0_VM0", "-runtime.powerState", "poweredOff"];
    assert_eq!(lab.says(&off), "poweredOff\n");
}

#[test]
fn many_are_powered_at_once_and_force_goes_past_the_ones_that_are() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["vm.power", "-off", "DC0_H0_VM0"]);
    let said =
        lab.says(&["vm.power", "-off", "-force", "DC0_H0_VM0", "DC0_H0_VM1", "DC0_C0_RP0_VM0"]);
    assert_eq!(said.matches("OK").count(), 2, "{said}");
    assert!(
        said.contains("Error: The attempted operation cannot be performed in the current state"),
        "{said}"
    );
    let off = lab.sorted(&["find", "vm", "-type", "m", "-runtime.powerState", "poweredOff"]);
    assert_eq!(off, ["vm/DC0_C0_RP0_VM0", "vm/DC0_H0_VM0", "vm/DC0_H0_VM1", "vm/debian12"]);
}

#[test]
fn destroy_takes_the_vm_its_files_and_its_room() {
    let Some(lab) = Lab::open(instant()) else { return };
    lab.does(&["vm.clone", "-vm", "debian12", "-pool", POOL, "worker-1"]);
    let usage = |label: &str| field(&lab.says(&["pool.info", POOL]), label);
    assert_eq!(usage("Mem Usage"), "1088MB (0.1%)", "two VMs of the start and the clone");
    assert_eq!(lab.lines(&["ls", "vm/worker-1"]), ["/DC0/vm/worker-1"]);
    // govc turns it off first.
    lab.does(&["vm.destroy", "worker-1"]);
    assert_eq!(lab.says(&["ls", "vm/worker-1"]), "");
    assert!(!lab.lines(&["datastore.ls"]).contains(&"worker-1".to_owned()));
    assert_eq!(usage("Mem Usage"), "64MB (0.0%)");
    assert!(lab.refused(&["vm.power", "-on", "worker-1"]).contains("vm 'worker-1' not found"));
    lab.does(&["object.destroy", "vm/debian12"]);
    assert_eq!(lab.lines(&["find", "vm", "-type", "m"]).len(), 4);
}

#[test]
fn a_vm_becomes_a_template_and_a_vm_again() {
    let Some(lab) = Lab::open(Options { autostart: false, ..instant() }) else { return };
    let vm = "vm/DC0_C0_RP0_VM0";
    lab.does(&["vm.markastemplate", "DC0_C0_RP0_VM0"]);
    assert_eq!(lab.property(vm, "config.template"), "true");
    assert_eq!(lab.property(vm, "resourcePool"), "");
    lab.does(&[
        "vm.clone",
        "-vm",
        "DC0_C0_RP0_VM0",
        "-pool",
        POOL,
        "-on=false",
        "-template",
        "second",
    ]);
    assert_eq!(
        lab.sorted(&["find", "vm", "-type", "m", "-config.template", "true"]),
        ["vm/DC0_C0_RP0_VM0", "vm/debian12", "vm/second"]
    );
    let refused = lab.refused(&["vm.power", "-on", "DC0_C0_RP0_VM0"]);
    assert!(refused.contains("The operation is not supported on the object"), "{refused}");

    lab.does(&["vm.markasvm", "-pool", POOL, "DC0_C0_RP0_VM0"]);
    assert_eq!(lab.property(vm, "config.template"), "false");
    assert!(lab.property(vm, "resourcePool").starts_with("ResourcePool:"));
    lab.does(&["vm.power", "-on", "DC0_C0_RP0_VM0"]);
    assert_eq!(power(&lab, "DC0_C0_RP0_VM0"), "poweredOn");
}
