//! `Destroy_Task`, of VMs, folders and pools, and `UnregisterVM`.

use roost_vim_wire::{MoRef, MoType};

use crate::call::{CallContext, Failure};
use crate::event::{self, Scene};
use crate::guest;
use crate::store;
use crate::task::{Hold, Job, submit};
use crate::vm::fault::{need_connected, not_supported, vm};
use crate::vm::{FilePath, Power, fault, register};
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
        MoType::VirtualApp => {
            let pool = world.inventory.pools.get(this).ok_or_else(|| Failure::not_found(this))?;
            let vms = world.inventory.vms_of(this).cloned();
            let mut below = vms.chain(pool.pools.iter().cloned());
            below.try_for_each(|child| check(world, &child))
        }
        MoType::Datacenter if world.product == crate::options::Product::HostAgent => {
            Err(not_supported("The datacenter of a host cannot be destroyed."))
        }
        MoType::Datacenter | MoType::ClusterComputeResource | MoType::ComputeResource => {
            if !world.inventory.contains(this) {
                return Err(Failure::not_found(this));
            }
            let vms = vms_below(world, this);
            vms.iter().try_for_each(|vm| check_vm(world, vm))
        }
        MoType::HostSystem => {
            let row = world.inventory.hosts.get(this).ok_or_else(|| Failure::not_found(this))?;
            let is_lone = row.parent.kind == MoType::ComputeResource;
            if row.is_usable() && !is_lone {
                let message = "The host must be in maintenance mode or disconnected.";
                return Err(Failure::of("InvalidState", message));
            }
            let vms: Vec<MoRef> = world.inventory.vms_of(this).cloned().collect();
            vms.iter().try_for_each(|vm| fault::need_power(world, vm, Power::Off))
        }
        MoType::DistributedVirtualPortgroup => {
            let is_used = world.inventory.vms_of(this).next().is_some();
            if is_used { Err(in_use(world, this)) } else { Ok(()) }
        }
        MoType::VmwareDistributedVirtualSwitch => {
            let row = world.inventory.switches.get(this).ok_or_else(|| Failure::not_found(this))?;
            let is_used =
                row.port_groups.iter().any(|group| world.inventory.vms_of(group).next().is_some());
            if is_used { Err(in_use(world, this)) } else { Ok(()) }
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
        // Unlike a pool it takes along what is in it.
        MoType::VirtualApp => {
            for child in world.inventory.children(this) {
                carry_out(world, scene, &child);
            }
            remove_pool(world, scene, this);
        }
        MoType::Datacenter | MoType::ClusterComputeResource | MoType::ComputeResource => {
            for vm in vms_below(world, this) {
                remove_vm(world, scene, &vm, true);
            }
            remove_below(world, scene, this);
        }
        MoType::HostSystem => {
            let vms: Vec<MoRef> = world.inventory.vms_of(this).cloned().collect();
            for vm in vms {
                remove_vm(world, scene, &vm, false);
            }
            let owner = world.inventory.parent(this);
            match owner.filter(|owner| owner.kind == MoType::ComputeResource) {
                Some(lone) => world.inventory.remove_compute(&lone),
                None => world.inventory.remove_host(this),
            }
        }
        MoType::DistributedVirtualPortgroup => remove_group(world, scene, this),
        MoType::VmwareDistributedVirtualSwitch => remove_switch(world, scene, this),
        _ => {}
    }
}

fn in_use(world: &World, this: &MoRef) -> Failure {
    let name = world.inventory.name(this).unwrap_or_default().to_owned();
    Failure::of("ResourceInUse", format!("The resource '{name}' is in use."))
        .with("type", &this.kind.to_string())
        .with("name", &name)
}

/// The VMs whose host, or whose folder, is somewhere below.
fn vms_below(world: &World, top: &MoRef) -> Vec<MoRef> {
    let inventory = &world.inventory;
    let is_below = |vm: &MoRef, row: &crate::vm::Vm| {
        inventory.lineage(vm).any(|at| at == *top)
            || inventory.lineage(&row.host).any(|at| at == *top)
    };
    let all = inventory.vms.iter().filter(|(vm, row)| is_below(vm, row));
    all.map(|(vm, _)| vm.clone()).collect()
}

/// Takes a compute resource or a datacenter with all that is in it out of the inventory. Its VMs have gone before.
fn remove_below(world: &mut World, scene: &Scene, this: &MoRef) {
    match this.kind {
        MoType::ClusterComputeResource | MoType::ComputeResource => {
            let name = world.inventory.name(this).unwrap_or_default().to_owned();
            let draft =
                event::Draft::new("ClusterDestroyedEvent", format!("Removed cluster {name}"));
            let draft = draft.about_entity(world, this);
            world.inventory.remove_compute(this);
            event::post(world, scene, draft);
        }
        MoType::Folder | MoType::StoragePod => {
            for child in world.inventory.tree_children(this) {
                remove_below(world, scene, &child);
            }
            remove_folder(world, this);
        }
        MoType::Datacenter => {
            let (parent, name) =
                (world.inventory.parent(this), world.inventory.shared_name(this).cloned());
            for child in world.inventory.tree_children(this) {
                remove_below(world, scene, &child);
            }
            world.inventory.datacenters.remove(this);
            if let (Some(parent), Some(name)) = (parent, name) {
                if let Some(row) = world.inventory.folders.get_mut(&parent) {
                    row.children.remove(&name);
                }
                world.inventory.changes.modified(&parent, ["childEntity"]);
            }
            world.inventory.changes.left(this);
        }
        MoType::Datastore => {
            world.inventory.datastores.remove(this);
            world.inventory.changes.left(this);
        }
        MoType::Network => {
            world.inventory.networks.remove(this);
            world.inventory.changes.left(this);
        }
        MoType::DistributedVirtualPortgroup => remove_group(world, scene, this),
        MoType::VmwareDistributedVirtualSwitch => remove_switch(world, scene, this),
        _ => {}
    }
}

fn remove_group(world: &mut World, scene: &Scene, this: &MoRef) {
    let Some(row) = world.inventory.networks.remove(this) else { return };
    let datacenter = world.inventory.datacenter_of(&row.parent);
    if let Some(row) = datacenter.and_then(|at| world.inventory.datacenters.get_mut(&at)) {
        row.networks.retain(|other| other != this);
    }
    if let Some(folder) = world.inventory.folders.get_mut(&row.parent) {
        folder.children.remove(&row.name);
    }
    if let Some(group) = &row.port_group {
        if let Some(switch) = world.inventory.switches.get_mut(&group.switch) {
            switch.port_groups.retain(|other| other != this);
        }
        world.inventory.changes.modified(&group.switch, ["portgroup", "summary"]);
    }
    world.inventory.changes.modified(&row.parent, ["childEntity"]);
    world.inventory.changes.left(this);
    let message = format!("dvPort group {} was deleted.", row.name);
    event::post(world, scene, event::Draft::new("DVPortgroupDestroyedEvent", message));
}

fn remove_switch(world: &mut World, scene: &Scene, this: &MoRef) {
    let Some(row) = world.inventory.switches.get(this).cloned() else { return };
    let datacenter = world.inventory.datacenter_of(this);
    let place = datacenter.as_ref().and_then(|at| world.inventory.name(at)).unwrap_or_default();
    let message = format!("The vSphere Distributed Switch {} in {place} was deleted.", row.name);
    for group in &row.port_groups {
        // The uplinks of a switch go with it, without a word of their own.
        let is_uplink = world
            .inventory
            .networks
            .get(group)
            .and_then(|row| row.port_group.as_ref())
            .is_some_and(|group| group.is_uplink);
        if is_uplink {
            remove_uplink(world, group);
        } else {
            remove_group(world, scene, group);
        }
    }
    world.inventory.switches.remove(this);
    if let Some(folder) = world.inventory.folders.get_mut(&row.parent) {
        folder.children.remove(&row.name);
    }
    world.inventory.changes.modified(&row.parent, ["childEntity"]);
    world.inventory.changes.left(this);
    event::post(world, scene, event::Draft::new("DvsDestroyedEvent", message));
}

fn remove_uplink(world: &mut World, this: &MoRef) {
    let Some(row) = world.inventory.networks.remove(this) else { return };
    if let Some(folder) = world.inventory.folders.get_mut(&row.parent) {
        folder.children.remove(&row.name);
    }
    let datacenter = world.inventory.datacenter_of(&row.parent);
    if let Some(row) = datacenter.and_then(|at| world.inventory.datacenters.get_mut(&at)) {
        row.networks.retain(|other| other != this);
    }
    world.inventory.changes.left(this);
}

/// Takes a VM out of the inventory, with its files or without.
pub(crate) fn remove_vm(world: &mut World, scene: &Scene, this: &MoRef, with_files: bool) {
    let message = event::fill(world, this, "Removed {vm} on {host} from {dc}");
    let draft = event::vm_draft(world, "VmRemovedEvent", this, message);
    guest::forget(world, this);
    world.policies.forget(this);
    world.libraries.template_gone(this, scene.now);
    let Some(vm) = world.inventory.leave_vm(this) else { return };
    if with_files {
        store::remove_vm_files(world, &vm);
    } else {
        // Its files describe it to whoever registers it again.
        world.inventory.unregistered.insert(register::home_key(&vm.home), Box::new(vm));
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
pub(crate) fn remove_pool(world: &mut World, scene: &Scene, this: &MoRef) {
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
