use roost_vim_wire::Value;
use roost_vim_wire::types::DynamicProperty;

use super::*;

/// The inventory of one vCenter: two datacenters, of which one in a folder; as `vcsim` names things.
fn inventory() -> Vec<ObjectContent> {
    let rows: &[(&str, &str, &str, &str)] = &[
        ("Folder", "root", "Datacenters", ""),
        ("Folder", "f0", "F0", "Folder:root"),
        ("Datacenter", "dc0", "DC0", "Folder:root"),
        ("Datacenter", "dc1", "DC1", "Folder:f0"),
        ("Folder", "dc0-vm", "vm", "Datacenter:dc0"),
        ("Folder", "dc0-host", "host", "Datacenter:dc0"),
        ("Folder", "dc0-ds", "datastore", "Datacenter:dc0"),
        ("Folder", "dc0-net", "network", "Datacenter:dc0"),
        ("Folder", "dc1-vm", "vm", "Datacenter:dc1"),
        ("Folder", "templates", "templates", "Folder:dc0-vm"),
        ("Folder", "old", "old", "Folder:templates"),
        ("VirtualMachine", "vm-1", "debian12", "Folder:templates"),
        ("VirtualMachine", "vm-2", "debian12", "Folder:old"),
        ("VirtualMachine", "vm-3", "a%2fb", "Folder:dc0-vm"),
        ("VirtualMachine", "vm-4", "worker-1", "Folder:dc0-vm"),
        ("VirtualMachine", "vm-5", "worker-1", "Folder:dc1-vm"),
        ("ClusterComputeResource", "c0", "DC0_C0", "Folder:dc0-host"),
        ("ComputeResource", "h0", "DC0_H0", "Folder:dc0-host"),
        ("HostSystem", "host-1", "DC0_C0_H0", "ClusterComputeResource:c0"),
        ("HostSystem", "host-2", "DC0_H0", "ComputeResource:h0"),
        ("ResourcePool", "c0-pool", "Resources", "ClusterComputeResource:c0"),
        ("ResourcePool", "h0-pool", "Resources", "ComputeResource:h0"),
        ("ResourcePool", "ci", "ci", "ResourcePool:c0-pool"),
        ("StoragePod", "pod", "DC0_POD0", "Folder:dc0-ds"),
        ("Datastore", "ds-1", "LocalDS_0", "Folder:dc0-ds"),
        ("Datastore", "ds-2", "LocalDS_1", "StoragePod:pod"),
        ("Network", "net-1", "VM Network", "Folder:dc0-net"),
        ("VmwareDistributedVirtualSwitch", "dvs", "DVS0", "Folder:dc0-net"),
        ("DistributedVirtualPortgroup", "pg-1", "DC0_DVPG0", "Folder:dc0-net"),
        ("DistributedVirtualPortgroup", "pg-up", "DVS0-DVUplinks-9", "Folder:dc0-net"),
    ];
    let property = |name: &str, val: Value| DynamicProperty { name: name.into(), val };
    rows.iter()
        .map(|(kind, id, name, parent)| {
            let mut prop_set = vec![property("name", Value::string(*name))];
            if let Some((kind, id)) = parent.split_once(':') {
                prop_set.push(property("parent", Value::Ref(MoRef::new(kind.into(), id))));
            }
            if *id == "pg-up" {
                prop_set.push(property("config.uplink", Value::Bool(true)));
            }
            if matches!(*id, "vm-1" | "vm-2") {
                prop_set.push(property("config.template", Value::Bool(true)));
            }
            ObjectContent {
                obj: MoRef::new((*kind).into(), *id),
                prop_set,
                missing_set: Vec::new(),
            }
        })
        .collect()
}

fn whole() -> Tree {
    Tree::new(&MoRef::new(MoType::Folder, "root"), "", inventory())
}

/// As it is read for a finder of DC0: that datacenter and what is below.
fn dc0() -> Tree {
    let objects = inventory()
        .into_iter()
        .filter(|object| !matches!(&*object.obj.id, "root" | "f0" | "dc1" | "dc1-vm" | "vm-5"));
    Tree::new(&MoRef::new(MoType::Datacenter, "dc0"), "/DC0", objects.collect())
}

fn paths(tree: &Tree, kind: Kind, wanted: &str) -> Vec<String> {
    tree.search(kind, &Wanted::parse(wanted).unwrap()).into_iter().map(|found| found.path).collect()
}

#[test]
fn paths_run_from_the_root_or_from_the_datacenter_alike() {
    for tree in [whole(), dc0()] {
        assert_eq!(tree.found(&MoRef::vm("vm-2")).unwrap().path, "/DC0/vm/templates/old/debian12");
        let pool = tree.found(&MoRef::new(MoType::ResourcePool, "ci")).unwrap();
        assert_eq!(pool.path, "/DC0/host/DC0_C0/Resources/ci");
    }
    assert_eq!(whole().found(&MoRef::new(MoType::Datacenter, "dc1")).unwrap().path, "/F0/DC1");
}

#[test]
fn searches_follow_govmomis_rules() {
    use Kind::{
        ComputeResource, Datacenter, Datastore, DatastoreCluster, Host, Network, ResourcePool,
        Template, VirtualMachine, VmFolder,
    };
    let tree = dc0();
    for (kind, wanted, found) in [
        // By name, however deep; by pattern; by path from the kind's folder and from the root.
        (VirtualMachine, "worker-1", &["/DC0/vm/worker-1"] as &[&str]),
        (
            VirtualMachine,
            "debian12",
            &["/DC0/vm/templates/debian12", "/DC0/vm/templates/old/debian12"],
        ),
        (VirtualMachine, "worker-[0-9]", &["/DC0/vm/worker-1"]),
        (VirtualMachine, "templates/debian12", &["/DC0/vm/templates/debian12"]),
        (VirtualMachine, "./templates/*/debian*", &["/DC0/vm/templates/old/debian12"]),
        (VirtualMachine, "/DC0/vm/templates/debian12", &["/DC0/vm/templates/debian12"]),
        (VirtualMachine, "/*/vm/worker-?", &["/DC0/vm/worker-1"]),
        (
            VirtualMachine,
            "/DC0/vm/templates/...",
            &["/DC0/vm/templates/debian12", "/DC0/vm/templates/old/debian12"],
        ),
        (VirtualMachine, "a%2Fb", &["/DC0/vm/a%2fb"]),
        (VirtualMachine, "/DC0/vm/a%2fb", &["/DC0/vm/a%2fb"]),
        (VirtualMachine, "templates", &[]),
        (VirtualMachine, "/DC1/vm/worker-1", &[]),
        (Template, "/DC0/vm/templates/debian12", &["/DC0/vm/templates/debian12"]),
        // Folders of VMs only, and the default is the datacenter's own.
        (VmFolder, "", &["/DC0/vm"]),
        (VmFolder, "templates", &["/DC0/vm/templates"]),
        (VmFolder, "/DC0/vm", &["/DC0/vm"]),
        (VmFolder, "templates/old", &["/DC0/vm/templates/old"]),
        // Pools: the default is a root pool, a cluster stands for its own.
        (ResourcePool, "", &["/DC0/host/DC0_C0/Resources", "/DC0/host/DC0_H0/Resources"]),
        (ResourcePool, "ci", &["/DC0/host/DC0_C0/Resources/ci"]),
        (ResourcePool, "*/Resources/ci", &["/DC0/host/DC0_C0/Resources/ci"]),
        (ResourcePool, "DC0_C0/Resources", &["/DC0/host/DC0_C0/Resources"]),
        (ResourcePool, "/DC0/host/DC0_C0", &["/DC0/host/DC0_C0/Resources"]),
        (ResourcePool, "DC0_C0", &["/DC0/host/DC0_C0/Resources"]),
        (Host, "DC0_C0_H0", &["/DC0/host/DC0_C0/DC0_C0_H0"]),
        (Host, "/DC0/host/DC0_H0", &["/DC0/host/DC0_H0/DC0_H0"]),
        (Host, "*/*", &["/DC0/host/DC0_C0/DC0_C0_H0", "/DC0/host/DC0_H0/DC0_H0"]),
        (ComputeResource, "DC0_H0", &["/DC0/host/DC0_H0"]),
        (ComputeResource, "*", &["/DC0/host/DC0_C0", "/DC0/host/DC0_H0"]),
        // A datastore may sit in a cluster of them.
        (Datastore, "LocalDS_1", &["/DC0/datastore/DC0_POD0/LocalDS_1"]),
        (Datastore, "DC0_POD0/*", &["/DC0/datastore/DC0_POD0/LocalDS_1"]),
        (Datastore, "", &["/DC0/datastore/DC0_POD0/LocalDS_1", "/DC0/datastore/LocalDS_0"]),
        (DatastoreCluster, "", &["/DC0/datastore/DC0_POD0"]),
        (Network, "VM Network", &["/DC0/network/VM Network"]),
        (Network, "", &["/DC0/network/DC0_DVPG0", "/DC0/network/VM Network"]),
        (Network, "DVS0", &["/DC0/network/DVS0"]),
        (Datacenter, "", &["/DC0"]),
    ] {
        assert_eq!(paths(&tree, kind, wanted), found, "{kind} {wanted:?}");
    }
}

#[test]
fn datacenters_are_found_in_folders_too() {
    let tree = whole();
    assert_eq!(paths(&tree, Kind::Datacenter, "DC1"), ["/F0/DC1"]);
    assert_eq!(paths(&tree, Kind::Datacenter, "F0/DC1"), ["/F0/DC1"]);
    assert_eq!(paths(&tree, Kind::Datacenter, "/F0/DC1"), ["/F0/DC1"]);
    assert_eq!(paths(&tree, Kind::Datacenter, ""), ["/DC0", "/F0/DC1"]);
    assert_eq!(paths(&tree, Kind::VirtualMachine, "/F0/DC1/vm/worker-1"), ["/F0/DC1/vm/worker-1"]);
    assert_eq!(
        paths(&tree, Kind::VirtualMachine, "worker-1"),
        ["/DC0/vm/worker-1", "/F0/DC1/vm/worker-1"]
    );
}

#[test]
fn what_bears_the_name_but_cannot_serve_says_why() {
    let tree = dc0();
    let why = |kind, id: &MoRef| tree.unusable_because(kind, id);
    assert!(why(Kind::Template, &MoRef::vm("vm-4")).unwrap().contains("not a template"));
    assert_eq!(why(Kind::Template, &MoRef::vm("vm-1")), None);
    let uplink = MoRef::new(MoType::DistributedVirtualPortgroup, "pg-up");
    assert!(why(Kind::Network, &uplink).unwrap().contains("uplink"));
    let switch = MoRef::new(MoType::VmwareDistributedVirtualSwitch, "dvs");
    assert!(why(Kind::Network, &switch).unwrap().contains("port groups"));
}

#[test]
fn a_name_in_full_goes_before_a_pattern() {
    let mut objects = inventory();
    for object in &mut objects {
        if &*object.obj.id == "vm-4" {
            object.prop_set[0].val = Value::string("debian[1]2");
        }
    }
    let tree = Tree::new(&MoRef::new(MoType::Folder, "root"), "", objects);
    assert_eq!(paths(&tree, Kind::VirtualMachine, "debian[1]2"), ["/DC0/vm/debian[1]2"]);
    assert_eq!(paths(&tree, Kind::VirtualMachine, "debian[1-3]2").len(), 2);
}
