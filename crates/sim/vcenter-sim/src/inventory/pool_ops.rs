use roost_vim_wire::types::{ResourceAllocationInfo, ResourceConfigSpec};
use roost_vim_wire::{MoRef, MoType};

use crate::call::{CallContext, Failure};
use crate::event::{self, Draft, Scene};
use crate::inventory::build::pool_config;
use crate::inventory::{checked_name, duplicate_name};
use crate::pool::Pool;
use crate::vm::merge_allocation;
use crate::world::World;

pub(super) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    name: &str,
    spec: &ResourceConfigSpec,
) -> Result<MoRef, Failure> {
    let name = checked_name(name)?;
    let Some(parent) = world.inventory.pools.get(this) else {
        return Err(Failure::not_found(this));
    };
    let owner = parent.owner.clone();
    refuse_duplicate(world, this, &name)?;
    let mut config = pool_config();
    merge(&mut config, spec)?;
    let pool = world.inventory.ids.next(MoType::ResourcePool, "resgroup-");
    world.inventory.pools.insert(&pool, Pool::new(&name, this, &owner, config, &pool));
    if let Some(parent) = world.inventory.pools.get_mut(this) {
        parent.pools.push(pool.clone());
    }
    world.inventory.changes.entered(&pool);
    world.inventory.changes.modified(this, ["resourcePool"]);
    world.inventory.announce_pools(&owner);
    let message = format!("Created resource pool {name}");
    let draft = Draft::new("ResourcePoolCreatedEvent", message)
        .about_entity(world, &pool)
        .about(world, &owner);
    let draft = draft.with_object(world, "resourcePool", &pool).with_object(world, "parent", this);
    event::post(world, &Scene::from(cx), draft);
    Ok(pool)
}

pub(super) fn refuse_duplicate(world: &World, parent: &MoRef, name: &str) -> Result<(), Failure> {
    let siblings = world.inventory.pools.get(parent).into_iter().flat_map(|pool| &pool.pools);
    let mut named = siblings.filter(|pool| world.inventory.name(pool) == Some(name));
    match named.next() {
        Some(object) => Err(duplicate_name(name, object)),
        None => Ok(()),
    }
}

/// Takes over what a request gives, if it makes sense.
pub(super) fn merge(
    config: &mut ResourceConfigSpec,
    spec: &ResourceConfigSpec,
) -> Result<(), Failure> {
    let check = |given: &ResourceAllocationInfo, property: &str| {
        let (reservation, limit) = (given.reservation.unwrap_or(0), given.limit.unwrap_or(-1));
        if reservation < 0 || limit < -1 || limit >= 0 && reservation > limit {
            Err(Failure::invalid_argument(property))
        } else {
            Ok(())
        }
    };
    check(&spec.cpu_allocation, "spec.cpuAllocation")?;
    check(&spec.memory_allocation, "spec.memoryAllocation")?;
    merge_allocation(&mut config.cpu_allocation, &spec.cpu_allocation);
    merge_allocation(&mut config.memory_allocation, &spec.memory_allocation);
    Ok(())
}

pub(super) fn update(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    name: Option<&str>,
    spec: Option<&ResourceConfigSpec>,
) -> Result<(), Failure> {
    let Some(pool) = world.inventory.pools.get(this) else { return Err(Failure::not_found(this)) };
    let (parent, owner, mut config) =
        (pool.parent.clone(), pool.owner.clone(), pool.config.clone());
    let is_root = parent == owner;
    let name = name.filter(|name| !name.is_empty()).map(checked_name).transpose()?;
    if let Some(name) = name.as_deref().filter(|name| world.inventory.name(this) != Some(*name)) {
        if is_root {
            return Err(Failure::of("NotSupported", "The root resource pool cannot be renamed."));
        }
        refuse_duplicate(world, &parent, name)?;
    }
    if let Some(spec) = spec {
        if spec.change_version.is_some() && spec.change_version != config.change_version {
            return Err(Failure::of(
                "ConcurrentAccess",
                "The resource pool has been changed since it was read.",
            ));
        }
        merge(&mut config, spec)?;
        config.change_version = Some(cx.now.to_string());
        config.last_modified = Some(cx.now);
    }
    if let Some(name) = name.filter(|name| world.inventory.name(this) != Some(name.as_str())) {
        world.inventory.rename(this, &name);
    }
    if spec.is_some() {
        if let Some(pool) = world.inventory.pools.get_mut(this) {
            pool.config = config;
        }
        world.inventory.changes.modified(this, ["config", "summary.config"]);
        world.inventory.changes.modified(&parent, ["childConfiguration"]);
        world.inventory.announce_pools(&owner);
        let message =
            format!("Updated configuration for {}", world.inventory.name(this).unwrap_or_default());
        let draft = Draft::new("ResourcePoolReconfiguredEvent", message)
            .about_entity(world, this)
            .about(world, &owner);
        let draft = draft.with_object(world, "resourcePool", this);
        event::post(world, &Scene::from(cx), draft);
    }
    Ok(())
}

/// Child pools go, and what is in them comes to this one.
pub(super) fn destroy_children(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<(), Failure> {
    loop {
        let pool = world.inventory.pools.get(this).ok_or_else(|| Failure::not_found(this))?;
        let Some(child) = pool.pools.first().cloned() else { return Ok(()) };
        crate::vm::remove_pool(world, &Scene::from(cx), &child);
    }
}
