//! VMs and templates that come into a running world past the API.

use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::MoRef;

use crate::inventory::build::Builder;
use crate::options::{Options, TemplateOptions};
use crate::steer::SteerError;
use crate::store;
use crate::vm::{Power, Vm};
use crate::world::World;

/// Folder, pool and host of a VM that nobody chose a place for: the first datacenter's last compute resource, a cluster
/// where there is one.
struct Spot {
    folder: MoRef,
    pool: MoRef,
    host: MoRef,
    networks: Vec<MoRef>,
}

fn spot(world: &World, name: &str) -> Result<Spot, SteerError> {
    let no_place = || SteerError::NoPlace(name.into());
    let (datacenter, row) = world.inventory.datacenters.iter().next().ok_or_else(no_place)?;
    if world.inventory.child_named(&row.vm_folder, name).is_some() {
        return Err(SteerError::NameTaken(name.into()));
    }
    let in_datacenter =
        |compute: &MoRef| world.inventory.datacenter_of(compute).as_ref() == Some(datacenter);
    let computes = world.inventory.computes.iter().filter(|(moref, _)| in_datacenter(moref));
    let (_, compute) = computes.last().ok_or_else(no_place)?;
    let is_usable = |network: &&MoRef| {
        let found = world.inventory.networks.get(network);
        found
            .is_some_and(|network| network.port_group.as_ref().is_none_or(|group| !group.is_uplink))
    };
    let mut networks: Vec<MoRef> = row.networks.iter().filter(is_usable).cloned().collect();
    // Port groups before the plain network, as at the start.
    networks.sort_by_key(|network| {
        world.inventory.networks.get(network).is_none_or(|row| row.port_group.is_none())
    });
    Ok(Spot {
        folder: row.vm_folder.clone(),
        pool: compute.pool.clone(),
        host: compute.hosts.first().ok_or_else(no_place)?.clone(),
        networks,
    })
}

pub(crate) fn add_vm(
    world: &mut World,
    options: &Options,
    now: Timestamp,
    name: &str,
) -> Result<MoRef, SteerError> {
    let spot = spot(world, name)?;
    let mut builder =
        Builder { inventory: &mut world.inventory, options, random: &mut world.random, now };
    let at = (spot.folder, spot.pool, spot.host);
    let made = builder.foreign_vm(&Arc::from(name), at, &spot.networks);
    let (moref, vm) = made.ok_or_else(|| SteerError::NoPlace(name.into()))?;
    enter(world, &moref, vm, now);
    Ok(moref)
}

pub(crate) fn add_template(
    world: &mut World,
    options: &Options,
    now: Timestamp,
    template: &TemplateOptions,
) -> Result<MoRef, SteerError> {
    let spot = spot(world, &template.name)?;
    let mut builder =
        Builder { inventory: &mut world.inventory, options, random: &mut world.random, now };
    let at = (spot.folder, spot.pool, spot.host);
    let made = builder.template(template, at, &spot.networks);
    let (moref, vm) = made.ok_or_else(|| SteerError::NoPlace(template.name.clone()))?;
    enter(world, &moref, vm, now);
    Ok(moref)
}

fn enter(world: &mut World, moref: &MoRef, vm: Vm, now: Timestamp) {
    debug_assert_eq!(vm.power, Power::Off, "whoever wants it on powers it on");
    let snapshots: Vec<MoRef> =
        vm.snapshots.iter().flat_map(|all| &all.list).map(|one| one.moref.clone()).collect();
    world.inventory.enter_vm(moref, vm);
    for snapshot in snapshots {
        world.inventory.changes.entered(&snapshot);
    }
    store::add_vm_files(world, moref, now);
}
