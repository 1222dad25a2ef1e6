//! Standard switches, their port groups, and the interfaces of the host itself.

use roost_vim_wire::{Element, MoRef, Value};

use super::{change, read};
use crate::call::Failure;
use crate::inventory::Record;
use crate::world::World;

#[derive(Debug, Clone)]
pub(super) struct Network {
    switches: Vec<Switch>,
    port_groups: Vec<PortGroup>,
}

#[derive(Debug, Clone)]
struct Switch {
    name: String,
    ports: i32,
    mtu: i32,
    nics: Vec<String>,
}

#[derive(Debug, Clone)]
struct PortGroup {
    name: String,
    switch: String,
    vlan: i32,
}

impl Default for Network {
    fn default() -> Self {
        let group =
            |name: &str| PortGroup { name: name.into(), switch: "vSwitch0".into(), vlan: 0 };
        Self {
            switches: vec![Switch {
                name: "vSwitch0".into(),
                ports: 1536,
                mtu: 1500,
                nics: vec!["vmnic0".into()],
            }],
            port_groups: vec![group("VM Network"), group("Management Network")],
        }
    }
}

fn policy() -> Record {
    let security = Record::of("HostNetworkSecurityPolicy")
        .set("allowPromiscuous", &false)
        .set("macChanges", &true)
        .set("forgedTransmits", &true);
    Record::of("HostNetworkPolicy").record("security", security)
}

fn switch_key(name: &str) -> String {
    format!("key-vim.host.VirtualSwitch-{name}")
}

fn group_key(name: &str) -> String {
    format!("key-vim.host.PortGroup-{name}")
}

fn nic_key(name: &str) -> String {
    format!("key-vim.host.PhysicalNic-{name}")
}

pub(super) fn info(world: &World, host: &MoRef) -> Value {
    let network = read(world, host).network;
    let switches = network.switches.iter().map(|switch| {
        let groups = network.port_groups.iter().filter(|group| group.switch == switch.name);
        let groups: Vec<String> = groups.map(|group| group_key(&group.name)).collect();
        let nics: Vec<String> = switch.nics.iter().map(|nic| nic_key(nic)).collect();
        let spec = Record::of("HostVirtualSwitchSpec")
            .set("numPorts", &switch.ports)
            .record("policy", policy())
            .set("mtu", &switch.mtu);
        Record::of("HostVirtualSwitch")
            .text("name", &switch.name)
            .text("key", &switch_key(&switch.name))
            .set("numPorts", &switch.ports)
            .set("numPortsAvailable", &(switch.ports - 6))
            .set("mtu", &switch.mtu)
            .set("portgroup", &groups)
            .set("pnic", &nics)
            .record("spec", spec)
    });
    let groups = network.port_groups.iter().map(|group| {
        let spec = Record::of("HostPortGroupSpec")
            .text("name", &group.name)
            .set("vlanId", &group.vlan)
            .text("vswitchName", &group.switch)
            .record("policy", Record::of("HostNetworkPolicy"));
        Record::of("HostPortGroup")
            .text("key", &group_key(&group.name))
            .text("vswitch", &switch_key(&group.switch))
            .record("computedPolicy", policy())
            .record("spec", spec)
    });
    let nics = network.switches.iter().flat_map(|switch| &switch.nics).map(|nic| {
        Record::of("PhysicalNic")
            .text("key", &nic_key(nic))
            .text("device", nic)
            .text("pci", "0000:0b:00.0")
            .text("driver", "vmxnet3")
            .record(
                "linkSpeed",
                Record::of("PhysicalNicLinkInfo").set("speedMb", &10_000_i32).set("duplex", &true),
            )
            .record("spec", Record::of("PhysicalNicSpec"))
            .set("wakeOnLanSupported", &false)
            .text("mac", "00:50:56:60:00:01")
    });
    Record::of("HostNetworkInfo")
        .records("vswitch", "HostVirtualSwitch", switches.collect())
        .records("portgroup", "HostPortGroup", groups.collect())
        .records("pnic", "PhysicalNic", nics.collect())
        .put("vnic", configured(world, host, "config.network.vnic"))
        .value()
}

/// A part of what the host itself shows of its configuration.
fn configured(world: &World, host: &MoRef, path: &str) -> Value {
    let found = crate::model::property(world, host, path).ok().flatten();
    found.unwrap_or_else(|| Value::Array(roost_vim_wire::Array::new("anyType", Vec::new())))
}

pub(super) fn nic_manager_info(world: &World, host: &MoRef) -> Value {
    configured(world, host, "config.virtualNicManagerInfo")
}

/// What a card has heard of its network.
pub(super) fn hints(devices: &[String]) -> Vec<Element> {
    let all = ["vmnic0".to_owned()];
    let asked = if devices.is_empty() { &all } else { devices };
    let hint = |device: &String| {
        let subnet = Record::of("PhysicalNicIpHint")
            .set("vlanId", &0_i32)
            .text("ipSubnet", "127.0.0.1-127.255.255.254");
        Record::of("PhysicalNicHintInfo")
            .text("device", device)
            .records("subnet", "PhysicalNicIpHint", vec![subnet])
            .element("returnval")
    };
    asked.iter().filter_map(hint).collect()
}

fn exists(name: &str) -> Failure {
    Failure::of("AlreadyExists", "The specified key, name, or identifier already exists.")
        .with("name", &name.to_owned())
}

fn missing() -> Failure {
    Failure::of("NotFound", "The object or item referred to could not be found.")
}

pub(super) fn add_switch(
    world: &mut World,
    host: &MoRef,
    name: &str,
    spec: Option<&Element>,
) -> Result<(), Failure> {
    let number = |field: &str, usual: i32| {
        let given = spec.and_then(|spec| spec.text_of(field)?.parse().ok());
        given.filter(|number| *number > 0).unwrap_or(usual)
    };
    let bridge = spec.and_then(|spec| spec.child("bridge"));
    let devices = bridge.into_iter().flat_map(|bridge| &bridge.children);
    let nics = devices.filter(|child| child.name == "nicDevice").map(|child| child.text.clone());
    let new = Switch {
        name: name.to_owned(),
        ports: number("numPorts", 128),
        mtu: number("mtu", 1500),
        nics: nics.collect(),
    };
    let network = &mut change(world, host).network;
    if network.switches.iter().any(|switch| switch.name == name) {
        return Err(exists(name));
    }
    network.switches.push(new);
    Ok(())
}

pub(super) fn remove_switch(world: &mut World, host: &MoRef, name: &str) -> Result<(), Failure> {
    let network = &mut change(world, host).network;
    if network.port_groups.iter().any(|group| group.switch == name) {
        return Err(Failure::of("ResourceInUse", "The virtual switch is in use."));
    }
    let before = network.switches.len();
    network.switches.retain(|switch| switch.name != name);
    if network.switches.len() == before { Err(missing()) } else { Ok(()) }
}

pub(super) fn add_port_group(
    world: &mut World,
    host: &MoRef,
    spec: &Element,
) -> Result<(), Failure> {
    let text = |field: &str| spec.text_of(field).unwrap_or_default().to_owned();
    let (name, switch) = (text("name"), text("vswitchName"));
    let network = &mut change(world, host).network;
    if network.port_groups.iter().any(|group| group.name == name) {
        return Err(exists(&name));
    }
    if !network.switches.iter().any(|one| one.name == switch) {
        return Err(missing());
    }
    let vlan = text("vlanId").parse().unwrap_or(0);
    network.port_groups.push(PortGroup { name, switch, vlan });
    Ok(())
}

pub(super) fn remove_port_group(
    world: &mut World,
    host: &MoRef,
    name: &str,
) -> Result<(), Failure> {
    let network = &mut change(world, host).network;
    let before = network.port_groups.len();
    network.port_groups.retain(|group| group.name != name);
    if network.port_groups.len() == before { Err(missing()) } else { Ok(()) }
}
