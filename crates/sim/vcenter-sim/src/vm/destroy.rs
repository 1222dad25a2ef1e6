//! `Destroy_Task`, of VMs, folders and pools, and `UnregisterVM`.

use roost_vim_wire::{MoRef, MoType};

use crate::call::{CallContext, Failure};
use crate::event::{self, Scene};
use crate::guest;
use crate::store;
use crate::task::{Hold, Job, submit};
use crate::vm::fault::{need_connected, not_supported, vm};
use crate::vm::{FilePath, Power, fault};
use crate::world::World;

pub(crate) fn destroy(world: &mut World, cx: &CallContext<'_>, this: &MoRef) -> MoRef {
    let takes = cx.handle.options.timings.destroy.draw(&mut world.random);
    let (checked, done) = (this.clone(), this.clone());
    let job = Job::on("Destroy_Task", this).first(move |world, _| check(world, &checked)).then(
        takes,
        move |world, run| {
            check(world, &done)?;
            carry_out(world, &run.into(), &done);
            Ok(None)
        },
    );
    submit(world, cx, job)
}

fn check(world: &World, this: &MoRef) -> Result<(), Failure> {
    match this.kind {
        MoType::VirtualMachine => check_vm(world, this),
        MoType::Folder => {
            let folder =
                world.inventory.folders.get(this).ok_or_else(|| Failure::not_found(this))?;
            let is_fixed =
                folder.parent.as_ref().is_none_or(|parent| parent.kind == MoType::Datacenter);
            if is_fixed {
                return Err(not_supported("The folder cannot be destroyed."));
            }
            let children: Vec<MoRef> = folder.children.iter().cloned().collect();
            children.iter().try_for_each(|child| check(world, child))
        }
        MoType::ResourcePool => {
            let pool = world.inventory.pools.get(this).ok_or_else(|| Failure::not_found(this))?;
            if pool.parent == pool.owner {
                Err(not_supported("The root resource pool cannot be destroyed."))
            } else {
                Ok(())
            }
        }
        _ => Err(not_supported("Objects of this kind cannot be destroyed here.")),
    }
}

fn check_vm(world: &World, this: &MoRef) -> Result<(), Failure> {
    need_connected(world, this)?;
    let row = vm(world, this)?;
    if row.power != Power::Off {
        return Err(fault::invalid_power_state(Power::Off, row.power));
    }
    // Linked clones that run have the files below them open.
    let directory = FilePath::new(&row.home.datastore, row.directory());
    if directory.path.is_empty() { Ok(()) } else { store::need_unlocked(world, &directory) }
}

fn carry_out(world: &mut World, scene: &Scene, this: &MoRef) {
    match this.kind {
        MoType::VirtualMachine => remove_vm(world, scene, this, true),
        MoType::Folder => {
            for child in world.inventory.tree_children(this) {
                carry_out(world, scene, &child);
            }
            remove_folder(world, this);
        }
        MoType::ResourcePool => remove_pool(world, scene, this),
        _ => {}
    }
}

/// Takes a VM out of the inventory, with its files or without.
pub(crate) fn remove_vm(world: &mut World, scene: &Scene, this: &MoRef, with_files: bool) {
    let message = event::fill(world, this, "Removed {vm} on {host} from {dc}");
    let draft = event::vm_draft(world, "VmRemovedEvent", this, message);
    guest::forget(world, this);
    let Some(vm) = world.inventory.leave_vm(this) else { return };
    if with_files {
        store::remove_vm_files(world, &vm);
    }
    event::post(world, scene, draft);
}

fn remove_folder(world: &mut World, this: &MoRef) {
    let Some(folder) = world.inventory.folders.remove(this) else { return };
    if let Some(parent) = &folder.parent {
        if let Some(row) = world.inventory.folders.get_mut(parent) {
            row.children.remove(&folder.name);
        }
        world.inventory.changes.modified(parent, ["childEntity"]);
    }
    world.inventory.custom_fields.forget(this);
    world.inventory.changes.left(this);
}

/// What was in a pool goes to its parent.
fn remove_pool(world: &mut World, scene: &Scene, this: &MoRef) {
    let Some(pool) = world.inventory.pools.get(this).cloned() else { return };
    let draft = event::Draft::new(
        "ResourcePoolDestroyedEvent",
        format!("Removed resource pool {}", pool.name),
    );
    let draft = draft.about_entity(world, this).about(world, &pool.owner).with_object(
        world,
        "resourcePool",
        this,
    );
    let vms: Vec<MoRef> = world.inventory.vms_of(this).cloned().collect();
    for vm in vms {
        world.inventory.change_vm(&vm, |row| row.pool = Some(pool.parent.clone()));
    }
    for child in &pool.pools {
        if let Some(row) = world.inventory.pools.get_mut(child) {
            row.parent = pool.parent.clone();
        }
        world.inventory.changes.modified(child, ["parent"]);
    }
    world.inventory.pools.remove(this);
    if let Some(parent) = world.inventory.pools.get_mut(&pool.parent) {
        parent.pools.retain(|other| other != this);
        parent.pools.extend(pool.pools.iter().cloned());
    }
    world.inventory.changes.modified(&pool.parent, ["resourcePool"]);
    world.inventory.changes.left(this);
    world.inventory.announce_pools(&pool.owner);
    event::post(world, scene, draft);
}

/// Takes a VM out of the inventory and leaves its files.
pub(super) fn unregister(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<(), Failure> {
    if let Some(task) = world.tasks.locks.in_the_way(this, Hold::Exclusive) {
        let message = "The operation is not allowed in the current state: another task is already in progress.";
        return Err(Failure::of("TaskInProgress", message).with("task", task));
    }
    fault::need_power(world, this, Power::Off)?;
    remove_vm(world, &Scene::from(cx), this, false);
    Ok(())
}
