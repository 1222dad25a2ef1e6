//! Datacenters, clusters, and the hosts that join them.

use std::sync::Arc;

use roost_vim_wire::{Element, MoRef, MoType, Value};

use crate::call::{CallContext, Failure};
use crate::event::{self, Draft, Scene};
use crate::inventory::build::{Builder, Places};
use crate::inventory::cluster_config::ClusterConfig;
use crate::inventory::{FolderKind, checked_name, duplicate_name};
use crate::task::{Job, Run, submit};
use crate::world::World;

pub(super) fn create_datacenter(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    name: &str,
) -> Result<MoRef, Failure> {
    if world.product == crate::options::Product::HostAgent {
        return Err(Failure::of("NotSupported", "A host has one datacenter only."));
    }
    let name: Arc<str> = checked_name(name)?.into();
    need_folder(world, this, FolderKind::Datacenter)?;
    world.inventory.refuse_duplicate(this, &name)?;
    let datacenter = world.inventory.ids.next(MoType::Datacenter, "datacenter-");
    let places = builder(world, cx).datacenter_folders(&name, &datacenter, this);
    for entered in [&datacenter, &places.vm, &places.host, &places.datastore, &places.network] {
        world.inventory.changes.entered(entered);
    }
    world.inventory.changes.modified(this, ["childEntity"]);
    let message = format!("Created datacenter {name}");
    let draft = Draft::new("DatacenterCreatedEvent", message).about_entity(world, &datacenter);
    event::post(world, &Scene::from(cx), draft);
    Ok(datacenter)
}

pub(super) fn create_cluster(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (name, spec): (&str, &Element),
) -> Result<MoRef, Failure> {
    let name: Arc<str> = checked_name(name)?.into();
    need_folder(world, this, FolderKind::Host)?;
    world.inventory.refuse_duplicate(this, &name)?;
    let mut config = ClusterConfig::default();
    // Without being asked for, a new cluster places nothing.
    config.apply(
        &Element::new("spec")
            .with(Element::new("drsConfig").with(Element::leaf("enabled", "false"))),
    )?;
    config.apply(spec)?;
    let cluster = world.inventory.ids.next(MoType::ClusterComputeResource, "domain-c");
    let places = all_in(this);
    builder(world, cx).compute(&name, &cluster, &places, &[]);
    let Some(row) = world.inventory.computes.get_mut(&cluster) else {
        return Err(Failure::not_found(&cluster));
    };
    row.config = config;
    let pool = row.pool.clone();
    world.inventory.changes.entered(&cluster);
    world.inventory.changes.entered(&pool);
    world.inventory.changes.modified(this, ["childEntity"]);
    world.inventory.announce_pools(&cluster);
    let message = format!("Created cluster {name}");
    let draft = Draft::new("ClusterCreatedEvent", message).about_entity(world, &cluster);
    event::post(world, &Scene::from(cx), draft);
    Ok(cluster)
}

pub(super) fn reconfigure(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    spec: Element,
) -> MoRef {
    let takes = cx.handle.options.timings.reconfigure.draw(&mut world.random);
    let done = this.clone();
    let job = Job::on("ReconfigureComputeResource_Task", this).then(takes, move |world, run| {
        let row = world.inventory.computes.get_mut(&done);
        let row = row.ok_or_else(|| Failure::not_found(&done))?;
        row.config.apply(&spec)?;
        let name = row.name.to_string();
        world.inventory.changes.modified(&done, ["configuration", "configurationEx"]);
        let message = format!("Reconfigured cluster {name}");
        let draft = Draft::new("ClusterReconfiguredEvent", message).about_entity(world, &done);
        event::post(world, &run.into(), draft);
        Ok(None)
    });
    submit(world, cx, job)
}

/// `this` is a cluster, or the folder for a standalone host.
pub(super) fn add_host(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (method, spec): (&'static str, &Element),
) -> Result<MoRef, Failure> {
    let field = |name: &str| {
        let found = spec.children.iter().find(|child| child.name == name);
        found.map(|child| child.text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let name = field("hostName").ok_or_else(|| Failure::invalid_argument("spec.hostName"))?;
    if field("userName").is_none() {
        return Err(Failure::of(
            "InvalidLogin",
            "Cannot complete login due to an incorrect user name or password.",
        ));
    }
    if this.kind == MoType::Folder {
        need_folder(world, this, FolderKind::Host)?;
    }
    let takes = cx.handle.options.timings.create.draw(&mut world.random);
    let (checked, wanted, done) = (this.clone(), name.clone(), this.clone());
    let options = cx.handle.options.clone();
    let job = Job::on(method, this)
        .first(move |world, _| refuse_known(world, &checked, &wanted))
        .then(takes, move |world, run| {
            refuse_known(world, &done, &name)?;
            let name: Arc<str> = name.as_str().into();
            let made = enter_host(world, run, &options, &done, &name);
            Ok(Some(Value::Ref(made)))
        });
    Ok(submit(world, cx, job))
}

fn refuse_known(world: &World, at: &MoRef, name: &str) -> Result<(), Failure> {
    if let Some((known, _)) = world.inventory.hosts.iter().find(|(_, row)| *row.name == *name) {
        return Err(Failure::of("AlreadyConnected", "The host is already connected.")
            .with("name", &known.id.to_string()));
    }
    match world.inventory.child_named(at, name) {
        Some(object) => Err(duplicate_name(name, &object)),
        None => Ok(()),
    }
}

/// Returns what the task gives: the host, or the compute resource around a standalone one.
fn enter_host(
    world: &mut World,
    run: &Run<'_>,
    options: &crate::options::Options,
    at: &MoRef,
    name: &Arc<str>,
) -> MoRef {
    let is_lone = at.kind == MoType::Folder;
    let datacenter = world.inventory.datacenter_of(at);
    let mut builder = Builder {
        inventory: &mut world.inventory,
        options,
        random: &mut world.random,
        now: run.now,
    };
    let (compute, host) = if is_lone {
        let compute = builder.inventory.ids.next(MoType::ComputeResource, "domain-s");
        builder.compute(name, &compute, &all_in(at), &[name.to_string()]);
        let host = builder.inventory.computes.get(&compute).and_then(|row| row.hosts.first());
        (compute.clone(), host.cloned().unwrap_or_default())
    } else {
        let host = builder.host(name, at, false);
        if let Some(row) = builder.inventory.computes.get_mut(at) {
            row.hosts.push(host.clone());
        }
        (at.clone(), host)
    };
    let mut network = None;
    if let Some(row) = datacenter.as_ref().and_then(|at| builder.inventory.datacenters.get(at)) {
        let row = row.clone();
        if row.networks.is_empty() {
            // Every host comes with it.
            let standard = builder.inventory.ids.next(MoType::Network, "network-");
            let places = Places {
                datacenter: datacenter.clone().unwrap_or_default(),
                network: row.network_folder.clone(),
                ..all_in(&row.network_folder)
            };
            builder.network("VM Network", &standard, None, &places);
            network = Some((standard, row.network_folder.clone()));
        }
        for datastore in &row.datastores {
            if let Some(row) = builder.inventory.datastores.get_mut(datastore) {
                row.hosts.push(host.clone());
            }
        }
        for network in row.networks.iter().chain(network.iter().map(|(network, _)| network)) {
            if let Some(row) = builder.inventory.networks.get_mut(network)
                && row.port_group.is_none()
            {
                row.hosts.push(host.clone());
            }
        }
    }
    let changes = &mut world.inventory.changes;
    if let Some((network, folder)) = network {
        changes.entered(&network);
        changes.modified(&folder, ["childEntity"]);
    }
    if is_lone {
        changes.entered(&compute);
        changes.modified(at, ["childEntity"]);
    } else {
        changes.modified(at, ["host", "summary"]);
    }
    changes.entered(&host);
    let pool = world.inventory.computes.get(&compute).map(|row| row.pool.clone());
    if let Some(pool) = pool.filter(|_| is_lone) {
        world.inventory.changes.entered(&pool);
    }
    world.inventory.announce_capacity(&compute);
    world.inventory.announce_pools(&compute);
    let draft = Draft::new("HostAddedEvent", format!("Added host {name}"));
    let draft = draft.about_entity(world, &host).about(world, &compute);
    event::post(world, &run.into(), draft);
    if is_lone { compute } else { host }
}

/// Hosts of another cluster must be in maintenance; a standalone host leaves its compute resource behind.
pub(super) fn move_into(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    hosts: Vec<MoRef>,
) -> MoRef {
    let takes = cx.handle.options.timings.relocate.draw(&mut world.random);
    let (target, done, moved) = (this.clone(), this.clone(), hosts.clone());
    let job = Job::on("MoveInto_Task", this)
        .first(move |world, _| hosts.iter().try_for_each(|host| check_move(world, &target, host)))
        .then(takes, move |world, _| {
            for host in &moved {
                check_move(world, &done, host)?;
                move_host(world, host, &done);
            }
            Ok(None)
        });
    submit(world, cx, job)
}

fn check_move(world: &World, target: &MoRef, host: &MoRef) -> Result<(), Failure> {
    let row = world.inventory.hosts.get(host).ok_or_else(|| Failure::not_found(host))?;
    if row.parent == *target {
        let name = row.name.to_string();
        return Err(duplicate_name(&name, host));
    }
    if row.parent.kind == MoType::ClusterComputeResource && !row.maintenance {
        let message = "The host must be in maintenance mode.";
        return Err(Failure::of("InvalidState", message));
    }
    Ok(())
}

fn move_host(world: &mut World, host: &MoRef, cluster: &MoRef) {
    let Some(pool) = world.inventory.computes.get(cluster).map(|row| row.pool.clone()) else {
        return;
    };
    let Some(row) = world.inventory.hosts.get_mut(host) else { return };
    let old = std::mem::replace(&mut row.parent, cluster.clone());
    if let Some(row) = world.inventory.computes.get_mut(&old) {
        row.hosts.retain(|other| other != host);
    }
    if let Some(row) = world.inventory.computes.get_mut(cluster) {
        row.hosts.push(host.clone());
    }
    let vms: Vec<MoRef> = world.inventory.vms_of(host).cloned().collect();
    for vm in vms {
        world.inventory.change_vm(&vm, |row| {
            if row.pool.is_some() {
                row.pool = Some(pool.clone());
            }
        });
    }
    world.inventory.changes.modified(host, ["parent"]);
    world.inventory.changes.modified(cluster, ["host", "summary"]);
    if old.kind == MoType::ComputeResource {
        world.inventory.remove_compute(&old);
    } else {
        world.inventory.changes.modified(&old, ["host", "summary"]);
        world.inventory.announce_pools(&old);
    }
    world.inventory.announce_capacity(cluster);
    world.inventory.announce_pools(cluster);
}

impl crate::inventory::Inventory {
    /// Takes a compute resource out of the tables, with its pools and hosts. Its VMs have gone before.
    pub(crate) fn remove_compute(&mut self, compute: &MoRef) {
        let (parent, name) = (self.parent(compute), self.shared_name(compute).cloned());
        let Some(row) = self.computes.remove(compute) else { return };
        let mut pools = vec![row.pool];
        while let Some(pool) = pools.pop() {
            if let Some(row) = self.pools.remove(&pool) {
                pools.extend(row.pools);
            }
            self.changes.left(&pool);
        }
        for host in row.hosts {
            self.remove_host(&host);
        }
        if let (Some(parent), Some(name)) = (parent, name) {
            if let Some(folder) = self.folders.get_mut(&parent) {
                folder.children.remove(&name);
            }
            self.changes.modified(&parent, ["childEntity"]);
        }
        self.custom_fields.forget(compute);
        self.changes.left(compute);
    }

    /// Takes a host out of the tables and off its datastores and networks.
    pub(crate) fn remove_host(&mut self, host: &MoRef) {
        let Some(row) = self.hosts.remove(host) else { return };
        if let Some(compute) = self.computes.get_mut(&row.parent) {
            compute.hosts.retain(|other| other != host);
            self.changes.modified(&row.parent, ["host", "summary"]);
        }
        let datastores: Vec<MoRef> = self.datastores.refs().cloned().collect();
        for datastore in datastores {
            if let Some(row) = self.datastores.get_mut(&datastore) {
                row.hosts.retain(|other| other != host);
            }
        }
        let networks: Vec<MoRef> = self.networks.refs().cloned().collect();
        for network in networks {
            if let Some(row) = self.networks.get_mut(&network) {
                row.hosts.retain(|other| other != host);
            }
        }
        let switches: Vec<MoRef> = self.switches.refs().cloned().collect();
        for switch in switches {
            if let Some(row) = self.switches.get_mut(&switch) {
                row.hosts.retain(|other| other != host);
            }
        }
        self.custom_fields.forget(host);
        self.changes.left(host);
    }
}

fn builder<'a>(world: &'a mut World, cx: &'a CallContext<'_>) -> Builder<'a> {
    Builder {
        inventory: &mut world.inventory,
        options: &cx.handle.options,
        random: &mut world.random,
        now: cx.now,
    }
}

/// Everything in one folder: the builder takes the one that it needs.
fn all_in(folder: &MoRef) -> Places {
    let at = || folder.clone();
    Places { datacenter: at(), vm: at(), host: at(), datastore: at(), network: at() }
}

pub(super) fn need_folder(world: &World, this: &MoRef, kind: FolderKind) -> Result<(), Failure> {
    match world.inventory.folders.get(this) {
        Some(folder) if folder.kind == kind => Ok(()),
        Some(_) => Err(Failure::of("NotSupported", "The folder does not hold such objects.")),
        None => Err(Failure::not_found(this)),
    }
}
