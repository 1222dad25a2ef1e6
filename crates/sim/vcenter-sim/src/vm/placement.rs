//! Where a VM goes: which host runs it, which datastore holds it.

use roost_vim_wire::{Fault, MoRef, MoType};

use crate::call::Failure;
use crate::inventory::Inventory;
use crate::pool::Demand;
use crate::world::World;

/// The host that a VM in `pool` goes to: the one asked for, or of the usable ones that have room the least loaded.
pub(crate) fn choose_host(
    inventory: &Inventory,
    pool: &MoRef,
    asked: Option<&MoRef>,
    demand: Demand,
) -> Result<MoRef, Failure> {
    let Some(row) = inventory.pools.get(pool) else { return Err(Failure::not_found(pool)) };
    let Some(compute) = inventory.computes.get(&row.owner) else {
        return Err(Failure::not_found(&row.owner));
    };
    if let Some(asked) = asked {
        return match inventory.hosts.get(asked) {
            None => Err(Failure::not_found(asked)),
            Some(_) if !compute.hosts.contains(asked) => {
                Err(Failure::invalid_argument("spec.host"))
            }
            Some(host) if !host.is_usable() => Err(unusable(&host.name)),
            Some(_) => Ok(asked.clone()),
        };
    }
    least_loaded(inventory, &compute.hosts, demand)
}

/// Of these hosts the usable one that has room and is the least loaded.
pub(crate) fn least_loaded(
    inventory: &Inventory,
    hosts: &[MoRef],
    demand: Demand,
) -> Result<MoRef, Failure> {
    let usable = hosts.iter().filter_map(|moref| Some((moref, inventory.hosts.get(moref)?)));
    let usable: Vec<_> = usable.filter(|(_, host)| host.is_usable()).collect();
    if usable.is_empty() {
        let fault = Fault::of("NoCompatibleHost").with("host", &hosts.to_vec());
        return Err(Failure::new(fault, "No host is compatible with the virtual machine."));
    }
    let has_room =
        |host: &crate::inventory::Host| host.demand.memory + demand.memory <= host.memory;
    let roomy = usable.iter().filter(|(_, host)| has_room(host));
    if let Some((moref, _)) = roomy.min_by_key(|(_, host)| host.demand.memory) {
        Ok((*moref).clone())
    } else {
        let unreserved =
            usable.iter().map(|(_, host)| host.memory - host.demand.memory).max().unwrap_or(0);
        let fault = Fault::of("InsufficientMemoryResourcesFault")
            .with("unreserved", &unreserved)
            .with("requested", &demand.memory);
        Err(Failure::new(
            fault,
            "The host does not have sufficient memory resources to satisfy the reservation.",
        ))
    }
}

fn unusable(name: &str) -> Failure {
    let message =
        format!("The operation is not allowed in the current connection state of the host {name}.");
    Failure::of("InvalidState", message)
}

/// A datastore that a VM can be put on, and that hosts of this pool see.
pub(crate) fn check_datastore(
    world: &World,
    datastore: &MoRef,
    pool: Option<&MoRef>,
) -> Result<(), Failure> {
    let inventory = &world.inventory;
    let Some(row) = inventory.datastores.get(datastore) else {
        let fault = Fault::of("InvalidDatastore").with("datastore", datastore);
        return Err(Failure::new(fault, "The datastore does not exist."));
    };
    let invalid = |class: &str, message: String| {
        let fault =
            Fault::of(class).with("datastore", datastore).with("name", &row.name.to_string());
        Err(Failure::new(fault, message))
    };
    if !row.accessible {
        return invalid(
            "InaccessibleDatastore",
            format!("The datastore '{}' is not accessible.", row.name),
        );
    }
    if row.maintenance {
        return invalid(
            "InvalidDatastore",
            format!("The datastore '{}' is in maintenance mode.", row.name),
        );
    }
    let compute = pool
        .and_then(|pool| inventory.pools.get(pool))
        .and_then(|pool| inventory.computes.get(&pool.owner));
    if compute.is_some_and(|compute| !compute.hosts.iter().any(|host| row.hosts.contains(host))) {
        invalid(
            "InvalidDatastore",
            format!("The datastore '{}' is not visible to the hosts of the pool.", row.name),
        )
    } else {
        Ok(())
    }
}

/// The member of a datastore cluster, or the datastore itself, with the most space.
pub(crate) fn roomiest(world: &World, pod: &MoRef) -> Option<MoRef> {
    if pod.kind == MoType::Datastore {
        return Some(pod.clone());
    }
    let members = world.inventory.folders.get(pod)?.children.iter();
    let usable = members.filter_map(|moref| {
        let row = world.inventory.datastores.get(moref)?;
        (row.accessible && !row.maintenance).then(|| (world.store.free(moref, row.capacity), moref))
    });
    usable.max_by_key(|(free, _)| *free).map(|(_, moref)| moref.clone())
}

/// The roomiest datastore that hosts of this pool see, among those that are allowed.
pub(crate) fn roomiest_for(
    world: &World,
    pool: &MoRef,
    allowed: Option<&[MoRef]>,
) -> Option<MoRef> {
    let may = |moref: &MoRef| allowed.is_none_or(|allowed| allowed.contains(moref));
    let usable = world
        .inventory
        .datastores
        .iter()
        .filter(|(moref, _)| may(moref) && check_datastore(world, moref, Some(pool)).is_ok());
    let with_space = usable.map(|(moref, row)| (world.store.free(moref, row.capacity), moref));
    // The first of equals, so that a run can be repeated.
    with_space.min_by_key(|(free, _)| std::cmp::Reverse(*free)).map(|(_, moref)| moref.clone())
}
