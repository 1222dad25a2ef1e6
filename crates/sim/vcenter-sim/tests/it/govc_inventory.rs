//! `govc` looks around: what there is, where it is and what it is like.

use crate::govc::{Lab, field, lines, row};
use crate::wire_door::{USER, instant};
use roost_oracle::Govc;
use roost_vcenter_sim::Options;

const VM: &str = "DC0_H0_VM0";

#[test]
fn about_names_the_product_over_tls_and_the_certificate_fits_its_thumbprint() {
    let Some(lab) = Lab::open_tls(instant()) else { return };
    let about = lab.says(&["about"]);
    assert_eq!(field(&about, "API type"), "VirtualCenter");
    assert_eq!(field(&about, "API version"), "8.0.3.0");
    assert_eq!(field(&about, "Product ID"), "vpx");
    assert_eq!(field(&about, "Vendor"), "VMware, Inc.");
    let about = &lab.json(&["about"])["about"];
    assert_eq!(
        (about["apiType"].as_str(), about["version"].as_str()),
        (Some("VirtualCenter"), Some("8.0.3"))
    );

    let thumbprint = lab.door.thumbprint.as_deref().unwrap();
    assert_eq!(
        lab.says(&["about.cert", "-thumbprint"]).trim(),
        format!("{} {thumbprint}", lab.door.authority())
    );
    assert_eq!(field(&lab.says(&["about.cert"]), "SHA-256 Thumbprint"), thumbprint);
    let known = lab.file("known_hosts", lab.says(&["about.cert", "-thumbprint"]).as_bytes());
    let verified = lab.says(&["about", "-k=false", "-tls-known-hosts", &known]);
    assert_eq!(field(&verified, "API type"), "VirtualCenter");
    let refused = lab.refused(&["about", "-k=false"]);
    assert!(refused.contains("certificate signed by unknown authority"), "{refused}");
}

#[test]
fn ls_goes_down_from_the_datacenter() {
    let Some(lab) = Lab::open(instant()) else { return };
    assert_eq!(lab.lines(&["ls"]), ["/DC0/vm", "/DC0/host", "/DC0/datastore", "/DC0/network"]);
    assert_eq!(lab.lines(&["ls", "/"]), ["/DC0"]);
    assert_eq!(
        lab.sorted(&["ls", "-l", "vm"]),
        [
            "/DC0/vm/DC0_C0_RP0_VM0 (VirtualMachine)",
            "/DC0/vm/DC0_C0_RP0_VM1 (VirtualMachine)",
            "/DC0/vm/DC0_H0_VM0 (VirtualMachine)",
            "/DC0/vm/DC0_H0_VM1 (VirtualMachine)",
            "/DC0/vm/debian12 (VirtualMachine)",
        ]
    );
    let cluster = lab.lines(&["ls", "-l", "host/DC0_C0"]);
    for member in [
        "/DC0/host/DC0_C0/DC0_C0_H2 (HostSystem)",
        "/DC0/host/DC0_C0/Resources (ResourcePool)",
        "/DC0/host/DC0_C0/DC0_DVPG0 (DistributedVirtualPortgroup)",
    ] {
        assert!(cluster.iter().any(|line| line == member), "{member} in {cluster:?}");
    }
    assert_eq!(lab.lines(&["ls", "-l", "datastore/*"]), ["/DC0/datastore/LocalDS_0 (Datastore)"]);
    assert_eq!(lab.lines(&["ls", "vm/*_H0_*"]), ["/DC0/vm/DC0_H0_VM0", "/DC0/vm/DC0_H0_VM1"]);

    let reference = lab.says(&["ls", "-i", "vm/debian12"]);
    assert_eq!(lab.lines(&["ls", "-L", reference.trim()]), ["/DC0/vm/debian12"]);
}

#[test]
fn find_filters_by_type_name_depth_and_property() {
    let Some(lab) = Lab::open(instant()) else { return };
    assert_eq!(lab.lines(&["find", "/", "-type", "m"]).len(), 5);
    assert_eq!(lab.lines(&["find", "/", "-type", "h", "-name", "DC0_C0_*"]).len(), 3);
    assert_eq!(lab.sorted(&["find", "/", "-type", "r"]), ["/DC0/host/DC0_C0", "/DC0/host/DC0_H0"]);
    assert_eq!(lab.lines(&["find", "/", "-type", "c"]), ["/DC0/host/DC0_C0"]);
    assert_eq!(lab.lines(&["find", "/", "-type", "s"]), ["/DC0/datastore/LocalDS_0"]);
    assert_eq!(lab.lines(&["find", "/", "-type", "p"]).len(), 2);
    assert!(lab.lines(&["find", "/", "-type", "g"]).contains(&"/DC0/network/DC0_DVPG0".into()));
    assert_eq!(lab.lines(&["find", "/", "-maxdepth", "1"]), ["/", "/DC0"]);
    assert_eq!(
        lab.lines(&["find", "/", "-type", "m", "-runtime.powerState", "poweredOff"]),
        ["/DC0/vm/debian12"]
    );
    assert_eq!(
        lab.lines(&["find", "-l", "/", "-name", "debian12"]),
        ["VirtualMachine /DC0/vm/debian12"]
    );
}

#[test]
fn tree_draws_the_folders() {
    let Some(lab) = Lab::open(instant()) else { return };
    let want = "\
/
└── DC0
    ├── datastore
    │   └── LocalDS_0
    ├── host
    │   ├── DC0_C0
    │   └── DC0_H0
    ├── network
    │   ├── DVS0
    │   └── VM Network
    └── vm
        ├── DC0_C0_RP0_VM0
        ├── DC0_C0_RP0_VM1
        ├── DC0_H0_VM0
        ├── DC0_H0_VM1
        └── debian12";
    let tree = lab.says(&["tree", "-L", "3"]);
    // It fills up with spaces that do not break.
    assert_eq!(tree.replace('\u{a0}', " ").trim_end(), want);
}

#[test]
fn an_inventory_of_many_pages_is_found_whole() {
    let options =
        Options { clusters: 1, standalone_hosts: 0, vms: 250, templates: Vec::new(), ..instant() };
    let Some(lab) = Lab::open(options) else { return };
    let mut found = lab.sorted(&["find", "/", "-type", "m"]);
    found.dedup();
    assert_eq!(found.len(), 250);
    assert_eq!(lab.lines(&["object.collect", "-s", "-type", "m", "/", "name"]).len(), 250);
}

#[test]
fn vm_info_tells_what_a_vm_is_and_does() {
    let Some(lab) = Lab::open(instant()) else { return };
    let info = lab.says(&["vm.info", "-r", VM]);
    for (label, value) in [
        ("Name", VM),
        ("Path", "/DC0/vm/DC0_H0_VM0"),
        ("Guest name", "Other (32-bit)"),
        ("Memory", "32MB"),
        ("CPU", "1 vCPU(s)"),
        ("Power state", "poweredOn"),
        ("Host", "DC0_H0"),
        ("Storage", "LocalDS_0"),
        ("Network", "DC0_DVPG0"),
    ] {
        assert_eq!(field(&info, label), value, "{label}");
    }
    let (address, uuid) = (field(&info, "IP address"), field(&info, "UUID"));
    assert_eq!(lab.says(&["vm.ip", VM]).trim(), address);
    for by in [["-vm.uuid", &uuid], ["-vm.ip", &address], ["-vm.ipath", "/DC0/vm/DC0_H0_VM0"]] {
        assert_eq!(field(&lab.says(&["vm.info", by[0], by[1]]), "Name"), VM, "{by:?}");
    }
    assert_eq!(field(&lab.says(&["vm.info", "-e", "debian12"]), "Power state"), "poweredOff");
    assert_eq!(lab.says(&["vm.info", "nothing-of-this-name"]), "");
}

#[test]
fn vm_info_as_json_has_the_whole_object() {
    let Some(lab) = Lab::open(instant()) else { return };
    let all = lab.json(&["vm.info", VM, "debian12"]);
    let all = all["virtualMachines"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    let vm = all.iter().find(|vm| vm["name"] == VM).unwrap();
    let template = all.iter().find(|vm| vm["name"] == "debian12").unwrap();
    assert_eq!(vm["config"]["hardware"]["numCPU"], 1);
    assert_eq!(vm["config"]["files"]["vmPathName"], "[LocalDS_0] DC0_H0_VM0/DC0_H0_VM0.vmx");
    assert_eq!(vm["config"]["template"], false);
    assert_eq!(vm["runtime"]["powerState"], "poweredOn");
    assert_eq!(vm["guest"]["toolsRunningStatus"], "guestToolsRunning");
    assert_eq!(vm["guest"]["guestOperationsReady"], true);
    assert_eq!(vm["guest"]["net"][0]["ipAddress"][0], vm["guest"]["ipAddress"]);
    assert_eq!(vm["summary"]["config"]["memorySizeMB"], 32);
    assert_eq!(vm["resourcePool"]["type"], "ResourcePool");
    assert_eq!(template["config"]["template"], true);
    assert_eq!(template["config"]["guestId"], "debian12_64Guest");
    assert_eq!(template["snapshot"]["rootSnapshotList"].as_array().unwrap().len(), 1);
    assert!(template["resourcePool"].is_null(), "a template is in no pool");
    assert!(template["guest"]["ipAddress"].is_null());
}

#[test]
fn object_collect_reads_any_path() {
    let Some(lab) = Lab::open(instant()) else { return };
    let vm = "vm/DC0_H0_VM0";
    assert_eq!(
        lab.lines(&["object.collect", vm, "name", "runtime.powerState"]),
        ["name string DC0_H0_VM0", "runtime.powerState types.VirtualMachinePowerState poweredOn"]
    );
    assert_eq!(lab.property(vm, "config.hardware.memoryMB"), "32");
    assert!(lab.property(vm, "config.hardware.device[4000].macAddress").starts_with("00:50:56:"));
    assert_eq!(lab.property("host/DC0_C0", "summary.numHosts"), "3");
    assert_eq!(lab.property("datastore/LocalDS_0", "summary.accessible"), "true");
    assert_eq!(lab.property("-", "content.about.apiType"), "VirtualCenter");
    let rows = lab.says(&["object.collect", "-type", "h", "/", "name", "runtime.connectionState"]);
    assert_eq!(lines(&rows).len(), 8);
    assert_eq!(rows.matches("connected").count(), 4);
    let refused = lab.refused(&["object.collect", vm, "runtime.nothing"]);
    assert!(refused.contains("The property 'runtime.nothing' is not known"), "{refused}");
}

#[test]
fn devices_are_listed_by_the_names_that_commands_take() {
    let Some(lab) = Lab::open(instant()) else { return };
    let devices = lab.says(&["device.ls", "-vm", VM]);
    for (name, class) in [
        ("pvscsi-1000", "ParaVirtualSCSIController"),
        ("disk-1000-0", "VirtualDisk"),
        ("cdrom-3000", "VirtualCdrom"),
        ("ethernet-0", "VirtualE1000"),
        ("ide-200", "VirtualIDEController"),
    ] {
        assert_eq!(row(&devices, name)[1], class);
    }
    let disk = lab.says(&["device.info", "-vm", VM, "disk-*"]);
    assert_eq!(field(&disk, "File"), "[LocalDS_0] DC0_H0_VM0/DC0_H0_VM0.vmdk");
    assert_eq!(
        (field(&disk, "Controller"), field(&disk, "Unit number")),
        ("pvscsi-1000".into(), "0".into())
    );
    let card = &lab.json(&["device.info", "-vm", VM, "ethernet-0"])["devices"][0];
    assert_eq!(
        (card["key"].as_i64(), card["connectable"]["connected"].as_bool()),
        (Some(4000), Some(true))
    );
    assert!(card["macAddress"].as_str().unwrap().starts_with("00:50:56:"), "{card}");
    let group = lab.property("network/DC0_DVPG0", "key");
    assert_eq!(card["backing"]["port"]["portgroupKey"], group);
}

#[test]
fn hosts_clusters_and_stores_show_their_capacity() {
    let options = Options {
        host_cores: Some(16),
        host_memory_gb: Some(64),
        datastore_gb: Some(500),
        ..instant()
    };
    let Some(lab) = Lab::open(options) else { return };
    let host = lab.says(&["host.info", "-host", "DC0_H0"]);
    assert_eq!(field(&host, "Path"), "/DC0/host/DC0_H0/DC0_H0");
    assert_eq!(field(&host, "Logical CPUs"), "16 CPUs @ 2400MHz");
    assert_eq!(
        (field(&host, "Memory"), field(&host, "State")),
        ("65536MB".into(), "connected".into())
    );

    let cluster = lab.says(&["cluster.usage", "DC0_C0"]);
    assert_eq!(field(&cluster, "CPU capacity"), "115.2GHz", "three hosts");
    assert_eq!(field(&cluster, "Memory capacity"), "192.0GB");
    assert_eq!(field(&cluster, "Memory used"), "64.0MB", "two VMs");

    let store = lab.says(&["datastore.info", "LocalDS_0"]);
    assert_eq!(
        (field(&store, "Type"), field(&store, "Capacity")),
        ("VMFS".into(), "500.0 GB".into())
    );
    let datacenter = lab.says(&["datacenter.info", "DC0"]);
    for (label, count) in [("Hosts", "4"), ("Clusters", "1"), ("Datastores", "1")] {
        assert_eq!(field(&datacenter, label), count, "{label}");
    }
}

#[test]
fn sessions_are_listed_and_can_be_ended_by_others() {
    let Some(lab) = Lab::open(instant()) else { return };
    let other = Govc::new(&lab.door.url()).unwrap();
    other.stdout(&["about"]);
    other.stdout(&["ls"]);
    let sessions = lab.json(&["session.ls"]);
    let (list, own) =
        (sessions["sessionList"].as_array().unwrap(), &sessions["currentSession"]["key"]);
    assert_eq!(list.len(), 2, "a session is kept from one command to the next");
    for session in list {
        assert_eq!(
            (session["userName"].as_str(), session["ipAddress"].as_str()),
            (Some(USER), Some("127.0.0.1"))
        );
        assert!(session["userAgent"].as_str().unwrap().starts_with("govc/"), "{session}");
    }
    let listed = lab.says(&["session.ls"]);
    assert_eq!(row(&listed, own.as_str().unwrap())[1], USER);

    let key = list.iter().map(|session| &session["key"]).find(|key| *key != own).unwrap();
    lab.does(&["session.rm", key.as_str().unwrap()]);
    assert_eq!(lab.json(&["session.ls"])["sessionList"].as_array().unwrap().len(), 1);
    other.stdout(&["ls"]);
    let sessions = lab.json(&["session.ls"]);
    assert_eq!(sessions["sessionList"].as_array().unwrap().len(), 2, "it has logged in anew");
    assert!(
        !sessions["sessionList"].as_array().unwrap().iter().any(|session| session["key"] == *key)
    );

    other.stdout(&["session.logout"]);
    assert_eq!(lab.json(&["session.ls"])["sessionList"].as_array().unwrap().len(), 1);
}
