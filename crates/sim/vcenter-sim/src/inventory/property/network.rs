//! Networks, distributed port groups and their switches.

use roost_vim_wire::types::NetworkSummary;
use roost_vim_wire::{Array, MoRef, Value};

use super::entity::entity_properties;
use super::{Answer, known, ref_array, reference, refs, text};
use crate::inventory::Record;
use crate::inventory::{Network, PortGroup, Switch};
use crate::world::World;

pub(super) const ALL_NETWORK: &[&str] = entity_properties! { "host" "summary" "vm" };

pub(super) const ALL_PORT_GROUP: &[&str] =
    entity_properties! { "config" "host" "key" "portKeys" "summary" "vm" };

pub(super) const ALL_SWITCH: &[&str] = entity_properties! { "capability" "config" "networkResourcePool" "portgroup" "runtime" "summary" "uuid" };

const PORTS: i32 = 128;

pub(super) fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let row = world.inventory.networks.get(obj)?;
    match path {
        "name" | "summary.name" => text(&row.name),
        "summary" => known(&summary(obj, row)),
        "summary.accessible" => known(&true),
        "host" => refs(&row.hosts),
        "vm" => refs(world.inventory.vms_of(obj)),
        _ => port_group(obj, row, row.port_group.as_ref()?, path),
    }
}

fn port_group(obj: &MoRef, row: &Network, group: &PortGroup, path: &str) -> Answer {
    match path {
        "key" => text(&obj.id),
        "config" => Some(Some(port_group_config(obj, row, group).value())),
        "portKeys" => {
            let keys =
                (0..group.config.ports).map(|port| Value::String(port.to_string())).collect();
            Some(Some(Value::Array(Array::new("xsd:string", keys))))
        }
        _ => None,
    }
}

fn summary(obj: &MoRef, row: &Network) -> NetworkSummary {
    NetworkSummary {
        network: Some(obj.clone()),
        name: row.name.as_ref().into(),
        accessible: true,
        ip_pool_name: String::new(),
        ..NetworkSummary::of("NetworkSummary")
    }
}

fn port_group_config(obj: &MoRef, row: &Network, group: &PortGroup) -> Record {
    let vlan = Record::of("VmwareDistributedVirtualSwitchVlanIdSpec")
        .set("inherited", &false)
        .set("vlanId", &group.config.vlan);
    Record::of("DVPortgroupConfigInfo")
        .text("key", &obj.id)
        .text("name", &row.name)
        .set("numPorts", &group.config.ports)
        .set("distributedVirtualSwitch", &group.switch)
        .record("defaultPortConfig", Record::of("VMwareDVSPortSetting").record("vlan", vlan))
        .text("type", &group.config.binding)
        .text("backingType", "standard")
        .record(
            "policy",
            Record::of("VMwareDVSPortgroupPolicy")
                .set("blockOverrideAllowed", &true)
                .set("shapingOverrideAllowed", &false)
                .set("vendorConfigOverrideAllowed", &false)
                .set("livePortMovingAllowed", &false)
                .set("portConfigResetAtDisconnect", &true),
        )
        .text("configVersion", "1")
        .set("autoExpand", &true)
        .set("uplink", &group.is_uplink)
}

pub(super) fn switch(world: &World, obj: &MoRef, path: &str) -> Answer {
    let row = world.inventory.switches.get(obj)?;
    match path {
        "name" => text(&row.name),
        "uuid" | "config.uuid" | "summary.uuid" => text(&row.uuid),
        "portgroup" => refs(&row.port_groups),
        "summary" => Some(Some(switch_summary(world, row).value())),
        "config" => Some(Some(switch_config(world, row).value())),
        "capability" => {
            Some(Some(Record::of("DVSCapability").set("dvsOperationSupported", &true).value()))
        }
        "runtime" | "networkResourcePool" => Some(None),
        "config.distributedVirtualSwitch" => reference(obj),
        _ => None,
    }
}

fn ports(row: &Switch) -> i32 {
    i32::try_from(row.port_groups.len()).unwrap_or(i32::MAX).saturating_mul(PORTS)
}

fn switch_summary(world: &World, row: &Switch) -> Record {
    let names: Vec<String> = row
        .port_groups
        .iter()
        .filter_map(|group| world.inventory.name(group))
        .map(Into::into)
        .collect();
    Record::of("DVSSummary")
        .text("name", &row.name)
        .text("uuid", &row.uuid)
        .set("numPorts", &ports(row))
        .record(
            "productInfo",
            Record::of("DistributedVirtualSwitchProductSpec")
                .text("name", "DVS")
                .text("vendor", "VMware, Inc.")
                .text("version", &row.config.version),
        )
        .put("hostMember", ref_array(&row.hosts))
        .set("portgroupName", &names)
        .set("numHosts", &i32::try_from(row.hosts.len()).unwrap_or(i32::MAX))
}

fn switch_config(world: &World, row: &Switch) -> Record {
    let is_uplink = |group: &&MoRef| {
        let found = world.inventory.networks.get(group).and_then(|row| row.port_group.as_ref());
        found.is_some_and(|group| group.is_uplink)
    };
    let members = row.hosts.iter().map(|host| {
        Record::of("DistributedVirtualSwitchHostMember").record(
            "config",
            Record::of("DistributedVirtualSwitchHostMemberConfigInfo")
                .set("host", host)
                .set("maxProxySwitchPorts", &1792),
        )
    });
    let config = Record::of("VMwareDVSConfigInfo")
        .text("uuid", &row.uuid)
        .text("name", &row.name)
        .set("numStandalonePorts", &0)
        .set("numPorts", &ports(row))
        .set("maxPorts", &i32::MAX)
        .record(
            "uplinkPortPolicy",
            Record::of("DVSNameArrayUplinkPortPolicy")
                .set("uplinkPortName", &vec!["Uplink 1".to_owned()]),
        )
        .put("uplinkPortgroup", ref_array(row.port_groups.iter().filter(is_uplink)))
        .records("host", "DistributedVirtualSwitchHostMember", members.collect())
        .text("configVersion", "1")
        .set("maxMtu", &row.config.max_mtu)
        .text("networkResourceControlVersion", "version3");
    match &row.config.discovery {
        Some((protocol, operation)) => config.record(
            "linkDiscoveryProtocolConfig",
            Record::of("LinkDiscoveryProtocolConfig")
                .text("protocol", protocol)
                .text("operation", operation),
        ),
        None => config,
    }
}
