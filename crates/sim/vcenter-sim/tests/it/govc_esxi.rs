//! `govc` in front of a standalone ESXi host.

use crate::govc::{Lab, field, row};
use crate::wire_door::instant;
use roost_vcenter_sim::{Options, Product};

fn host() -> Options {
    Options { product: Product::HostAgent, templates: Vec::new(), ..instant() }
}

#[test]
fn a_host_says_that_it_is_one() {
    let Some(lab) = Lab::open_tls(host()) else { return };
    let about = lab.says(&["about"]);
    assert_eq!(
        (field(&about, "API type"), field(&about, "Product ID")),
        ("HostAgent".into(), "embeddedEsx".into())
    );
    assert_eq!(field(&about, "Name"), "VMware ESXi");
    assert_eq!(
        lab.lines(&["ls"]),
        [
            "/ha-datacenter/vm",
            "/ha-datacenter/host",
            "/ha-datacenter/datastore",
            "/ha-datacenter/network"
        ]
    );
    assert_eq!(
        lab.sorted(&["ls", "vm"]),
        ["/ha-datacenter/vm/ha-host_VM0", "/ha-datacenter/vm/ha-host_VM1"]
    );
    assert_eq!(lab.lines(&["find", "/", "-type", "h"]).len(), 1);
    assert_eq!(lab.lines(&["find", "/", "-type", "p"]).len(), 1);
    let host = lab.says(&["host.info"]);
    assert_eq!(field(&host, "State"), "connected");
    let info = lab.says(&["vm.info", "ha-host_VM0"]);
    assert_eq!(
        (field(&info, "Power state"), field(&info, "Memory")),
        ("poweredOn".into(), "32MB".into())
    );
    assert_eq!(field(&info, "Path"), "/ha-datacenter/vm/ha-host_VM0");
}

#[test]
fn a_host_makes_runs_and_destroys_vms() {
    let Some(lab) = Lab::open(host()) else { return };
    let devices = ["-disk", "5GB", "-net", "VM Network", "-net.adapter", "vmxnet3", "-on=false"];
    lab.does(&[&["vm.create", "-c", "2", "-m", "2048"], &devices[..], &["made"]].concat());
    let info = lab.says(&["vm.info", "-r", "made"]);
    assert_eq!(
        (field(&info, "CPU"), field(&info, "Memory")),
        ("2 vCPU(s)".into(), "2048MB".into())
    );
    assert_eq!(field(&info, "Network"), "VM Network");
    assert_eq!(row(&lab.says(&["device.ls", "-vm", "made"]), "disk-1000-0")[2], "5,242,880");
    lab.does(&["vm.power", "-on", "made"]);
    assert_eq!(lab.property("vm/made", "runtime.powerState"), "poweredOn");
    let said = lab.refused(&["vm.power", "-on", "made"]);
    assert!(said.contains("current state (Powered on)"), "{said}");
    lab.does(&["vm.change", "-vm", "made", "-annotation", "mine"]);
    assert_eq!(lab.property("vm/made", "config.annotation"), "mine");
    lab.does(&["object.rename", "vm/made", "kept"]);
    lab.does(&["snapshot.create", "-vm", "kept", "-m=false", "base"]);
    assert_eq!(lab.lines(&["snapshot.tree", "-vm", "kept"]), ["base", "."]);
    lab.does(&["vm.power", "-off", "kept"]);
    lab.does(&["vm.destroy", "kept"]);
    assert_eq!(lab.lines(&["find", "vm", "-type", "m"]).len(), 2);
}

#[test]
fn a_host_cannot_clone() {
    let Some(lab) = Lab::open(host()) else { return };
    lab.does(&["vm.power", "-off", "ha-host_VM0"]);
    let said = lab.refused(&["vm.clone", "-vm", "ha-host_VM0", "copy"]);
    assert!(said.contains("Cloning needs a vCenter"), "{said}");
    assert_eq!(lab.says(&["ls", "vm/copy"]), "");
}

#[test]
fn a_host_keeps_files_runs_programs_and_remembers_events() {
    let Some(lab) = Lab::open(host()) else { return };
    let file = lab.file("f", b"content");
    lab.does(&["datastore.mkdir", "iso"]);
    lab.does(&["datastore.upload", "-json", &file, "iso/f"]);
    assert_eq!(lab.says(&["datastore.download", "iso/f", "-"]), "content");
    assert_eq!(lab.lines(&["datastore.ls", "iso"]), ["f"]);
    let echo = ["guest.run", "-vm", "ha-host_VM0", "-l", "root:pw", "/bin/echo", "from the host"];
    assert_eq!(lab.says(&echo), "from the host\n");
    lab.does(&["vm.power", "-off", "ha-host_VM0"]);
    assert!(lab.says(&["events", "-l", "vm/ha-host_VM0"]).contains("[VmPoweredOffEvent]"));
    assert!(lab.says(&["tasks"]).contains("PowerOffVM"));
}
