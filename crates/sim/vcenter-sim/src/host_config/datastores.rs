//! Datastores that a host brings along: a local directory, or one that a file server exports.

use roost_vim_wire::{MoRef, MoType};

use crate::call::Failure;
use crate::inventory::{Datastore, DatastoreKind};
use crate::world::World;

/// A datastore of that name and path that the host knows from now on. Another host's of the same name and place becomes shared.
pub(super) fn create(
    world: &mut World,
    host: &MoRef,
    (name, path): (&str, &str),
) -> Result<MoRef, Failure> {
    let Some(datacenter) = world.inventory.datacenter_of(host) else {
        return Err(Failure::not_found(host));
    };
    if name.is_empty() {
        return Err(Failure::invalid_argument("name"));
    }
    let url = format!("ds:///vmfs/volumes/{}/", path.trim_matches('/').replace([':', '/'], "-"));
    let mut all = world.inventory.datastores.iter();
    let same = all.find(|(_, row)| row.datacenter == datacenter && *row.name == *name);
    let same = same.map(|(at, row)| (at.clone(), row.clone()));
    drop(all);
    if let Some((at, row)) = same {
        if row.hosts.contains(host) || row.url != url {
            let message = format!("The name '{name}' already exists.");
            return Err(Failure::of("DuplicateName", message)
                .with("name", &name.to_owned())
                .with("object", &at));
        }
        link(world, &at, host);
        return Ok(at);
    }
    let Some(places) = world.inventory.datacenters.get(&datacenter) else {
        return Err(Failure::not_found(&datacenter));
    };
    let folder = places.datastore_folder.clone();
    let capacity =
        world.inventory.datastores.iter().next().map_or(1 << 40, |(_, row)| row.capacity);
    let at = world.inventory.ids.next(MoType::Datastore, "datastore-");
    let row = Datastore {
        name: name.into(),
        parent: folder.clone(),
        datacenter: datacenter.clone(),
        browser: MoRef::new(MoType::HostDatastoreBrowser, format!("datastoreBrowser-{}", at.id)),
        url,
        capacity,
        accessible: true,
        maintenance: false,
        kind: DatastoreKind::Vmfs,
        hosts: Vec::new(),
    };
    world.inventory.datastores.insert(&at, row);
    if let Some(row) = world.inventory.datacenters.get_mut(&datacenter) {
        row.datastores.push(at.clone());
    }
    world.inventory.hang(&folder, name, &at);
    world.inventory.changes.entered(&at);
    world.inventory.changes.modified(&folder, ["childEntity"]);
    world.inventory.changes.modified(&datacenter, ["datastore"]);
    world.store.add_shelf(&at, &format!("{}-{name}", at.id));
    link(world, &at, host);
    Ok(at)
}

fn link(world: &mut World, datastore: &MoRef, host: &MoRef) {
    if let Some(row) = world.inventory.datastores.get_mut(datastore) {
        row.hosts.push(host.clone());
    }
    world.inventory.changes.modified(datastore, ["host"]);
    world.inventory.changes.modified(host, ["datastore"]);
}

/// The host forgets the datastore; with its last host it is gone. One with VMs of the host stays.
pub(super) fn remove(world: &mut World, host: &MoRef, datastore: &MoRef) -> Result<(), Failure> {
    let known = world.inventory.datastores.get(datastore);
    if !known.is_some_and(|row| row.hosts.contains(host)) {
        return Err(Failure::not_found(datastore));
    }
    let on_host: Vec<MoRef> = world.inventory.vms_of(host).cloned().collect();
    if world.inventory.vms_of(datastore).any(|vm| on_host.contains(vm)) {
        return Err(Failure::of("ResourceInUse", "The resource is in use."));
    }
    let Some(row) = world.inventory.datastores.get_mut(datastore) else { return Ok(()) };
    row.hosts.retain(|other| other != host);
    world.inventory.changes.modified(host, ["datastore"]);
    if row.hosts.is_empty() {
        forget(world, datastore);
    } else {
        world.inventory.changes.modified(datastore, ["host"]);
    }
    Ok(())
}

fn forget(world: &mut World, datastore: &MoRef) {
    let Some(row) = world.inventory.datastores.remove(datastore) else { return };
    if let Some(folder) = world.inventory.folders.get_mut(&row.parent) {
        folder.children.remove(&row.name);
    }
    if let Some(datacenter) = world.inventory.datacenters.get_mut(&row.datacenter) {
        datacenter.datastores.retain(|other| other != datastore);
    }
    world.inventory.changes.modified(&row.parent, ["childEntity"]);
    world.inventory.changes.modified(&row.datacenter, ["datastore"]);
    world.inventory.changes.left(datastore);
}
