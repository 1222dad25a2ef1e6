//! `govc` changes what a VM is made of, and goes back in time.

use crate::govc::{Lab, field, lines, row};
use crate::wire_door::instant;
use roost_vcenter_sim::Options;

const VM: &str = "DC0_H0_VM0";

fn off() -> Options {
    Options { autostart: false, portgroups: 2, ..instant() }
}

#[test]
fn a_disc_goes_into_the_drive_and_out() {
    let Some(lab) = Lab::open(off()) else { return };
    let file = lab.file("disc", b"disc");
    lab.does(&["datastore.upload", "-json", &file, "boot.iso"]);
    let drive = || lab.json(&["device.info", "-vm", VM, "cdrom-3000"])["devices"][0].clone();
    lab.does(&["device.cdrom.insert", "-vm", VM, "-device", "cdrom-3000", "boot.iso"]);
    assert_eq!(drive()["backing"]["fileName"], "[LocalDS_0] boot.iso");
    lab.does(&["device.connect", "-vm", VM, "cdrom-3000"]);
    assert_eq!(drive()["connectable"]["startConnected"], true);
    lab.does(&["device.cdrom.eject", "-vm", VM, "-device", "cdrom-3000"]);
    assert!(drive()["backing"]["fileName"].is_null(), "{}", drive());

    let second = lab.says(&["device.cdrom.add", "-vm", VM]);
    assert_eq!(second.trim(), "cdrom-3001");
    lab.does(&["device.remove", "-vm", VM, "cdrom-3001"]);
    assert!(!lab.says(&["device.ls", "-vm", VM]).contains("cdrom-3001"));
}

#[test]
fn a_disk_grows_and_never_shrinks() {
    let Some(lab) = Lab::open(off()) else { return };
    let disk = || row(&lab.says(&["device.ls", "-vm", VM]), "disk-1000-0")[2].clone();
    assert_eq!(disk(), "10,485,760");
    lab.does(&["vm.disk.change", "-vm", VM, "-disk.name", "disk-1000-0", "-size", "15G"]);
    assert_eq!(disk(), "15,728,640");
    let said =
        lab.refused(&["vm.disk.change", "-vm", VM, "-disk.name", "disk-1000-0", "-size", "5G"]);
    assert!(said.contains("a disk cannot shrink"), "{said}");
    assert_eq!(disk(), "15,728,640");
}

#[test]
fn disks_and_controllers_come_and_go() {
    let Some(lab) = Lab::open(off()) else { return };
    lab.does(&[
        "vm.disk.create",
        "-vm",
        VM,
        "-name",
        "DC0_H0_VM0/extra",
        "-size",
        "2G",
        "-controller",
        "pvscsi-1000",
    ]);
    let added = lab.says(&["device.info", "-vm", VM, "disk-1000-1"]);
    assert_eq!(
        (field(&added, "Summary"), field(&added, "Unit number")),
        ("2,097,152 KB".into(), "1".into())
    );
    assert_eq!(field(&added, "File"), "[LocalDS_0] DC0_H0_VM0/extra.vmdk");
    assert!(lab.lines(&["datastore.ls", VM]).contains(&"extra.vmdk".into()));
    lab.does(&["device.remove", "-vm", VM, "disk-1000-1"]);
    assert!(!lab.says(&["device.ls", "-vm", VM]).contains("disk-1000-1"));
    assert!(
        !lab.lines(&["datastore.ls", VM]).contains(&"extra.vmdk".into()),
        "its file goes with it"
    );
    assert_eq!(lab.says(&["device.scsi.add", "-vm", VM, "-type", "pvscsi"]).trim(), "pvscsi-1001");
}

#[test]
fn a_card_moves_to_another_network() {
    let Some(lab) = Lab::open(off()) else { return };
    let card = |name: &str| lab.json(&["device.info", "-vm", VM, name])["devices"][0].clone();
    let before = card("ethernet-0");
    lab.does(&["vm.network.change", "-vm", VM, "-net", "DC0_DVPG1", "ethernet-0"]);
    let after = card("ethernet-0");
    assert!(after["deviceInfo"]["summary"].as_str().unwrap().starts_with("DVSwitch: "));
    assert_eq!(after["backing"]["port"]["portgroupKey"], lab.property("network/DC0_DVPG1", "key"));
    assert_eq!((&after["macAddress"], &after["type"]), (&before["macAddress"], &before["type"]));

    lab.does(&[
        "vm.network.change",
        "-vm",
        VM,
        "-net",
        "VM Network",
        "-net.address",
        "00:50:56:11:22:33",
        "ethernet-0",
    ]);
    let after = card("ethernet-0");
    assert_eq!(
        (&after["macAddress"], &after["addressType"]),
        (&"00:50:56:11:22:33".into(), &"manual".into())
    );
    assert_eq!(after["backing"]["deviceName"], "VM Network");

    lab.does(&["vm.network.add", "-vm", VM, "-net", "DC0_DVPG0", "-net.adapter", "vmxnet3"]);
    assert_eq!(card("ethernet-1")["type"], "VirtualVmxnet3");
    assert_eq!(lab.lines(&["object.collect", "-s", "vm/DC0_H0_VM0", "network"]).len(), 1);
    lab.does(&["device.disconnect", "-vm", VM, "ethernet-1"]);
    assert_eq!(card("ethernet-1")["connectable"]["connected"], false);
    lab.does(&["device.remove", "-vm", VM, "ethernet-1"]);
    assert!(!lab.says(&["device.ls", "-vm", VM]).contains("ethernet-1"));
}

#[test]
fn snapshots_form_a_tree_that_is_gone_back_in() {
    let Some(lab) = Lab::open(off()) else { return };
    let tree = || lines(&lab.says(&["snapshot.tree", "-vm", VM]));
    assert!(tree().is_empty());
    lab.does(&["snapshot.create", "-vm", VM, "-d", "as installed", "-m=false", "base"]);
    lab.does(&["vm.change", "-vm", VM, "-c", "4", "-annotation", "changed"]);
    lab.does(&["snapshot.create", "-vm", VM, "-m=false", "tuned"]);
    assert_eq!(tree(), ["base", "tuned", "."], "the current one is marked");
    assert_eq!(lab.says(&["snapshot.tree", "-vm", VM, "-C"]).trim(), "tuned");
    assert!(lab.says(&["snapshot.tree", "-vm", VM, "-d"]).contains("as installed"));

    lab.does(&["snapshot.revert", "-vm", VM, "base"]);
    assert_eq!(field(&lab.says(&["vm.info", VM]), "CPU"), "1 vCPU(s)", "the configuration of then");
    assert_eq!(lab.property("vm/DC0_H0_VM0", "config.annotation"), "");
    assert_eq!(lab.says(&["snapshot.tree", "-vm", VM, "-C"]).trim(), "base");
    lab.does(&["snapshot.create", "-vm", VM, "-m=false", "other"]);
    assert_eq!(lab.says(&["snapshot.tree", "-vm", VM, "-f"]).matches("base/").count(), 2);

    lab.does(&["snapshot.revert", "-vm", VM, "base/tuned"]);
    assert_eq!(field(&lab.says(&["vm.info", VM]), "CPU"), "4 vCPU(s)");
    lab.does(&["snapshot.remove", "-vm", VM, "tuned"]);
    assert_eq!(tree(), ["base", ".", "other"]);
    let said = lab.refused(&["snapshot.revert", "-vm", VM, "tuned"]);
    assert!(said.contains("snapshot \"tuned\" not found"), "{said}");
    lab.does(&["snapshot.remove", "-vm", VM, "-r", "base"]);
    assert!(tree().is_empty());
}

#[test]
fn a_snapshot_with_memory_brings_the_power_back() {
    let Some(lab) = Lab::open(instant()) else { return };
    let power = || lab.property("vm/DC0_H0_VM0", "runtime.powerState");
    lab.does(&["snapshot.create", "-vm", VM, "-m=true", "running"]);
    lab.does(&["vm.power", "-off", VM]);
    lab.does(&["snapshot.create", "-vm", VM, "-m=false", "stopped"]);
    lab.does(&["snapshot.revert", "-vm", VM, "running"]);
    assert_eq!(power(), "poweredOn");
    lab.does(&["snapshot.revert", "-vm", VM, "stopped"]);
    assert_eq!(power(), "poweredOff");
    lab.does(&["snapshot.revert", "-vm", VM, "-s", "running"]);
    assert_eq!(power(), "poweredOff", "unless told not to");
    lab.does(&["snapshot.remove", "-vm", VM, "*"]);
    assert_eq!(lab.says(&["snapshot.tree", "-vm", VM]), "");
}
