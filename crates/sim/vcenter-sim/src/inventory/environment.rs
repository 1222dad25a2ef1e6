//! What a cluster can run, in the few words that clients look at.

use roost_vim_wire::{Element, MoRef, Value};

use crate::inventory::Record;
use crate::vm::guest_full_name;
use crate::world::World;

const GUESTS: [&str; 9] = [
    "otherGuest",
    "otherGuest64",
    "otherLinux64Guest",
    "other5xLinux64Guest",
    "debian12_64Guest",
    "ubuntu64Guest",
    "rhel8_64Guest",
    "rhel9_64Guest",
    "centos9_64Guest",
];

pub(super) fn config_option() -> Option<Element> {
    let guest = |id: &&str| {
        Record::of("GuestOsDescriptor")
            .text("id", id)
            .text("family", "linuxGuest")
            .text("fullName", guest_full_name(id))
            .set("supportedMaxCPUs", &128)
            .set("supportedMinMemMB", &32)
            .set("supportedMaxMemMB", &(16 << 20))
            .set("recommendedMemMB", &2048)
    };
    Record::of("VirtualMachineConfigOption")
        .text("version", "vmx-21")
        .text("description", "ESXi 8.0 U2 virtual machine")
        .records("guestOSDescriptor", "GuestOsDescriptor", GUESTS.iter().map(guest).collect())
        .set("guestOSDefaultIndex", &0)
        .element("returnval")
}

pub(super) fn config_target(world: &World, environment: &MoRef) -> Option<Element> {
    let compute = world.inventory.compute_of_environment(environment)?;
    let host = world
        .inventory
        .computes
        .get(&compute)?
        .hosts
        .iter()
        .find_map(|host| world.inventory.hosts.get(host))?;
    let datacenter = world.inventory.datacenter_of(&compute)?;
    let row = world.inventory.datacenters.get(&datacenter)?;
    let datastores = row.datastores.iter().filter_map(|datastore| {
        let name = world.inventory.name(datastore)?;
        let row = world.inventory.datastores.get(datastore)?;
        let capacity = row.capacity;
        let summary = Record::of("DatastoreSummary")
            .set("datastore", datastore)
            .text("name", name)
            .text("url", "")
            .set("capacity", &capacity)
            .set("freeSpace", &world.store.free(datastore, capacity))
            .set("accessible", &true)
            .text("type", row.kind.name());
        let info = Record::of("VirtualMachineDatastoreInfo").text("name", name);
        Some(info.record("datastore", summary).text("mode", "readWrite"))
    });
    let networks = row.networks.iter().filter_map(|network| {
        let name = world.inventory.name(network)?;
        let summary = Record::of("NetworkSummary")
            .set("network", network)
            .text("name", name)
            .set("accessible", &true);
        Some(
            Record::of("VirtualMachineNetworkInfo")
                .text("name", name)
                .record("network", summary.text("ipPoolName", "")),
        )
    });
    Record::of("ConfigTarget")
        .set("numCpus", &i32::from(host.cores))
        .set("numCpuCores", &i32::from(host.cores))
        .set("numNumaNodes", &2)
        .records("datastore", "VirtualMachineDatastoreInfo", datastores.collect())
        .records("network", "VirtualMachineNetworkInfo", networks.collect())
        .put(
            "maxMemMBOptimalPerf",
            Value::Int(i32::try_from(host.memory >> 20).unwrap_or(i32::MAX)),
        )
        .element("returnval")
}
