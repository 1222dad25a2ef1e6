//! pyVmomi looks around.

use crate::pyvmomi::run;
use crate::wire_door::{USER, WireDoor, instant};
use roost_vcenter_sim::{Options, Product};

#[test]
fn a_view_is_listed_in_pages_of_a_hundred() {
    let options = Options { standalone_hosts: 0, vms: 250, templates: Vec::new(), ..instant() };
    let Some(seen) = run(&WireDoor::open(options), "listing", &[]) else { return };
    let want = "\
pages 100 100 50
vms 250 in the view 250
names 250
power poweredOn
addresses 250
asked 7 got 7 more
asked 1000 got 100 more
gone True
";
    assert_eq!(seen, want);
}

#[test]
fn attributes_are_read_one_by_one_over_tls() {
    let Some(seen) = run(&WireDoor::open_tls(instant()), "attributes", &[]) else { return };
    let want = "\
about VirtualCenter vpx 8.0.3
session roost@vsphere.local
time True
vm 1 32 [LocalDS_0] DC0_C0_RP0_VM0/DC0_C0_RP0_VM0.vmx
runtime poweredOn connected True
guest guestToolsRunning True running
address True
pool Resources DC0_C0
places vm ['LocalDS_0'] ['DC0_DVPG0']
unset None None None
device 3000 VirtualCdrom CD/DVD drive 1
device 2000 VirtualDisk Hard disk 1
device 4000 VirtualE1000 Network adapter 1
disk 10485760 True LocalDS_0
cluster 3 3 True
pool True 67108864
limits True normal
host 32 connected embeddedEsx
store VMFS True True
network DVS0 True
template True None base
by path True
by uuid True
by address True
";
    assert_eq!(seen, want);
}

/// pyVmomi has the whole schema and is strict about it.
#[test]
fn every_property_of_every_object_is_what_the_schema_says() {
    let vcenter = Options { pools: 1, apps: 1, pods: 1, folders: 1, ..instant() };
    let Some(seen) = run(&WireDoor::open(vcenter), "everything", &[]) else { return };
    let kinds = "ClusterComputeResource:1 ComputeResource:1 Datacenter:1 Datastore:1 \
                 DistributedVirtualPortgroup:2 Folder:9 HostSystem:4 Network:1 ResourcePool:3 StoragePod:1 \
                 VirtualApp:1 VirtualMachine:7 VmwareDistributedVirtualSwitch:1";
    let rest = "managers True\nothers True\nattributes True\nnot modelled True True True\n";
    assert_eq!(seen, format!("entities {kinds}\n{rest}"));

    let host = Options { product: Product::HostAgent, templates: Vec::new(), ..instant() };
    let Some(seen) = run(&WireDoor::open(host), "everything", &[]) else { return };
    let kinds = "ComputeResource:1 Datacenter:1 Datastore:1 Folder:4 HostSystem:1 Network:1 ResourcePool:1 \
                 VirtualMachine:2";
    assert_eq!(seen, format!("entities {kinds}\n{rest}"));
}

#[test]
fn a_session_ends_with_a_typed_fault() {
    let door = WireDoor::open(instant());
    let wrong = door.url_for("roost%40vsphere.local", "guess");
    let Some(seen) = run(&door, "session", &[&wrong]) else { return };
    let want = "\
user roost@vsphere.local
listed 1
two True 2
thrown out System.View True
not oneself sessionId
active True
left 1
wrong password True
logged out
";
    assert_eq!(seen, want);
    let left = door.vcenter.counters();
    assert_eq!((left.open_sessions, left.open_views, left.failed_logins), (0, 0, 1));
}

#[test]
fn events_are_asked_for_and_followed() {
    let door = WireDoor::open(instant());
    let Some(seen) = run(&door, "events", &[USER]) else { return };
    let want = "\
story VmStoppingEvent VmPoweredOffEvent VmRenamedEvent VmReconfiguredEvent
keys rise True
renamed DC0_H0_VM0 renamed Renamed DC0_H0_VM0 from DC0_H0_VM0 to renamed in DC0
about True DC0 DC0_H0 True
chain True
changed noted 2
by class VmPoweredOffEvent VmRenamedEvent
by time 1
before that 0
of one 1
of children 1
of the folder 0
without text None
page 3 True
forth True True
back 2
latest True
told of power
categories warning
";
    assert_eq!(seen, want);
    assert_eq!(door.vcenter.counters().open_event_collectors, 0);
}
