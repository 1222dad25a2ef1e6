//! Distributed switches and port groups: made, changed, joined by hosts.

use std::sync::Arc;

use roost_vim_wire::{Element, MoRef, MoType, Value};

use crate::call::{CallContext, Failure};
use crate::event::{self, Draft, Scene};
use crate::inventory::cluster_ops::need_folder;
use crate::inventory::{
    FolderKind, Network, PortGroup, PortGroupConfig, Switch, SwitchConfig, checked_name, draw_uuid,
    uuid_text,
};
use crate::task::{Job, submit};
use crate::world::World;

fn child<'a>(element: &'a Element, name: &str) -> Option<&'a Element> {
    element.children.iter().find(|child| child.name == name)
}

fn text(element: &Element, name: &str) -> Option<String> {
    child(element, name).map(|child| child.text.trim().to_owned()).filter(|text| !text.is_empty())
}

pub(super) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    spec: Element,
) -> Result<MoRef, Failure> {
    need_folder(world, this, FolderKind::Network)?;
    let takes = cx.handle.options.timings.create.draw(&mut world.random);
    let done = this.clone();
    let mut job = Job::on("CreateDVS_Task", this).then(takes, move |world, run| {
        let scene = run.into();
        let empty = Element::default();
        let config = child(&spec, "configSpec").unwrap_or(&empty);
        let name: Arc<str> = checked_name(&text(config, "name").unwrap_or_default())?.into();
        world.inventory.refuse_duplicate(&done, &name)?;
        let mut own = SwitchConfig::default();
        if let Some(product) = child(&spec, "productInfo")
            && let Some(version) = text(product, "version")
        {
            own.version = version;
        }
        let number = world.inventory.ids.number();
        let switch = MoRef::new(MoType::VmwareDistributedVirtualSwitch, format!("dvs-{number}"));
        let row = Switch {
            name: Arc::clone(&name),
            parent: done.clone(),
            uuid: uuid_text(draw_uuid(&mut world.random)),
            port_groups: Vec::new(),
            hosts: Vec::new(),
            config: own,
        };
        world.inventory.switches.insert(&switch, row);
        world.inventory.hang(&done, &name, &switch);
        world.inventory.changes.entered(&switch);
        world.inventory.changes.modified(&done, ["childEntity"]);
        let message = format!("A vSphere Distributed Switch {name} was created");
        let draft = Draft::new("DvsCreatedEvent", message).about_entity(world, &switch);
        event::post(world, &scene, draft);
        apply(world, &scene, &switch, config)?;
        let uplink = Element::new("spec")
            .with(Element::leaf("name", format!("{name}-DVUplinks-{number}")))
            .with(Element::leaf("numPorts", "1"));
        add_group(world, &scene, &switch, &uplink, true)?;
        Ok(Some(Value::Ref(switch)))
    });
    job.holds.clear();
    Ok(submit(world, cx, job))
}

pub(super) fn reconfigure(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    spec: Element,
) -> MoRef {
    let takes = cx.handle.options.timings.reconfigure.draw(&mut world.random);
    let done = this.clone();
    let job = Job::on("ReconfigureDvs_Task", this).then(takes, move |world, run| {
        let scene = run.into();
        apply(world, &scene, &done, &spec)?;
        let name = world.inventory.name(&done).unwrap_or_default().to_owned();
        let message = format!("The vSphere Distributed Switch {name} was reconfigured.");
        let draft = Draft::new("DvsReconfiguredEvent", message).about_entity(world, &done);
        event::post(world, &scene, draft);
        Ok(None)
    });
    submit(world, cx, job)
}

/// What a `DVSConfigSpec` asks for: limits, discovery, and the hosts that come and go.
fn apply(
    world: &mut World,
    scene: &Scene,
    switch: &MoRef,
    config: &Element,
) -> Result<(), Failure> {
    let Some(row) = world.inventory.switches.get_mut(switch) else {
        return Err(Failure::not_found(switch));
    };
    if let Some(mtu) = text(config, "maxMtu").and_then(|mtu| mtu.parse().ok()) {
        row.config.max_mtu = Some(mtu);
    }
    if let Some(discovery) = child(config, "linkDiscoveryProtocolConfig") {
        let part = |name| text(discovery, name).unwrap_or_default();
        row.config.discovery = Some((part("protocol"), part("operation")));
    }
    world.inventory.changes.modified(switch, ["config", "summary"]);
    for member in config.children.iter().filter(|child| child.name == "host") {
        let id = text(member, "host").unwrap_or_default();
        let host = MoRef::new(MoType::HostSystem, id);
        if !world.inventory.hosts.contains(&host) {
            return Err(Failure::invalid_argument("spec.host"));
        }
        let joins = match text(member, "operation").as_deref() {
            Some("add") => true,
            Some("remove") => false,
            _ => continue,
        };
        set_member(world, scene, switch, &host, joins)?;
    }
    Ok(())
}

fn set_member(
    world: &mut World,
    scene: &Scene,
    switch: &MoRef,
    host: &MoRef,
    joins: bool,
) -> Result<(), Failure> {
    let Some(row) = world.inventory.switches.get_mut(switch) else {
        return Err(Failure::not_found(switch));
    };
    if row.hosts.contains(host) == joins {
        return Err(Failure::of("AlreadyExists", "The host is a member of the switch already.")
            .with("name", &host.id.to_string()));
    }
    row.hosts.retain(|other| other != host);
    if joins {
        row.hosts.push(host.clone());
    }
    let (groups, switch_name) = (row.port_groups.clone(), row.name.to_string());
    for group in groups {
        if let Some(row) = world.inventory.networks.get_mut(&group) {
            row.hosts.retain(|other| other != host);
            if joins {
                row.hosts.push(host.clone());
            }
        }
        world.inventory.changes.modified(&group, ["host"]);
    }
    world.inventory.changes.modified(host, ["network"]);
    world.inventory.changes.modified(switch, ["config", "summary", "summary.hostMember"]);
    let name = world.inventory.name(host).unwrap_or_default().to_owned();
    let (class, message) = if joins {
        (
            "DvsHostJoinedEvent",
            format!("The host {name} joined the vSphere Distributed Switch {switch_name}"),
        )
    } else {
        (
            "DvsHostLeftEvent",
            format!("The host {name} left the vSphere Distributed Switch {switch_name}"),
        )
    };
    let draft = Draft::new(class, message).about_entity(world, switch);
    event::post(world, scene, draft);
    Ok(())
}

pub(super) fn add_groups(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (method, specs): (&'static str, Vec<Element>),
) -> MoRef {
    let takes = cx.handle.options.timings.create.draw(&mut world.random);
    let done = this.clone();
    let job = Job::on(method, this).then(takes, move |world, run| {
        let mut made = None;
        for spec in &specs {
            made = Some(add_group(world, &run.into(), &done, spec, false)?);
        }
        Ok(made.filter(|_| method == "CreateDVPortgroup_Task").map(Value::Ref))
    });
    submit(world, cx, job)
}

fn add_group(
    world: &mut World,
    scene: &Scene,
    switch: &MoRef,
    spec: &Element,
    is_uplink: bool,
) -> Result<MoRef, Failure> {
    let name: Arc<str> = checked_name(&text(spec, "name").unwrap_or_default())?.into();
    let Some(row) = world.inventory.switches.get(switch) else {
        return Err(Failure::not_found(switch));
    };
    let (parent, hosts, switch_name) =
        (row.parent.clone(), row.hosts.clone(), row.name.to_string());
    world.inventory.refuse_duplicate(&parent, &name)?;
    let moref = world.inventory.ids.next(MoType::DistributedVirtualPortgroup, "dvportgroup-");
    let mut config = PortGroupConfig::default();
    config.apply(spec);
    let group = PortGroup { switch: switch.clone(), is_uplink, config };
    let row =
        Network { name: Arc::clone(&name), parent: parent.clone(), hosts, port_group: Some(group) };
    world.inventory.networks.insert(&moref, row);
    world.inventory.hang(&parent, &name, &moref);
    if let Some(row) = world.inventory.switches.get_mut(switch) {
        row.port_groups.push(moref.clone());
    }
    if let Some(datacenter) = world.inventory.datacenter_of(&parent) {
        if let Some(row) = world.inventory.datacenters.get_mut(&datacenter) {
            row.networks.push(moref.clone());
        }
        world.inventory.changes.modified(&datacenter, ["network"]);
    }
    world.inventory.changes.entered(&moref);
    world.inventory.changes.modified(&parent, ["childEntity"]);
    world.inventory.changes.modified(switch, ["portgroup", "summary"]);
    let message = format!("dvPort group {name} was added to switch {switch_name}.");
    let draft = Draft::new("DVPortgroupCreatedEvent", message).about_entity(world, &moref);
    event::post(world, scene, draft);
    Ok(moref)
}

pub(super) fn reconfigure_group(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    spec: Element,
) -> MoRef {
    let takes = cx.handle.options.timings.reconfigure.draw(&mut world.random);
    let done = this.clone();
    let job = Job::on("ReconfigureDVPortgroup_Task", this).then(takes, move |world, run| {
        let row = world.inventory.networks.get_mut(&done);
        let Some(group) = row.and_then(|row| row.port_group.as_mut()) else {
            return Err(Failure::not_found(&done));
        };
        group.config.apply(&spec);
        world.inventory.changes.modified(&done, ["config"]);
        let name = world.inventory.name(&done).unwrap_or_default().to_owned();
        let message = format!("dvPort group {name} was reconfigured.");
        let draft = Draft::new("DVPortgroupReconfiguredEvent", message).about_entity(world, &done);
        event::post(world, &run.into(), draft);
        Ok(None)
    });
    submit(world, cx, job)
}

/// The ports of the groups that the criteria name, or of all.
pub(super) fn ports(world: &World, this: &MoRef, criteria: Option<&Element>) -> Vec<Element> {
    let Some(row) = world.inventory.switches.get(this) else { return Vec::new() };
    let asked: Vec<&str> = criteria
        .into_iter()
        .flat_map(|criteria| &criteria.children)
        .filter(|child| child.name == "portgroupKey")
        .map(|child| child.text.trim())
        .collect();
    let groups = row
        .port_groups
        .iter()
        .filter(|group| asked.is_empty() || asked.iter().any(|key| *key == &*group.id));
    let mut ports = Vec::new();
    for group in groups {
        let Some(found) =
            world.inventory.networks.get(group).and_then(|row| row.port_group.as_ref())
        else {
            continue;
        };
        for port in 0..found.config.ports {
            let vlan = Element::new("vlan")
                .typed("VmwareDistributedVirtualSwitchVlanIdSpec")
                .with_field("inherited", &false)
                .with_field("vlanId", &found.config.vlan);
            let setting = Element::new("setting").typed("VMwareDVSPortSetting").with(vlan);
            let config = Element::new("config")
                .with_field("name", &String::new())
                .with_field("configVersion", &"0".to_owned())
                .with(setting);
            ports.push(
                Element::new("returnval")
                    .typed("DistributedVirtualPort")
                    .with_field("key", &port.to_string())
                    .with(config)
                    .with_field("dvsUuid", &row.uuid)
                    .with_field("portgroupKey", &group.id.to_string())
                    .with_field("conflict", &false)
                    .with_field("connectionCookie", &0)
                    .with_field("lastStatusChange", &jiff::Timestamp::UNIX_EPOCH),
            );
        }
    }
    ports
}
