//! `RelocateVM_Task`: to another host, pool, folder or datastore.

use std::sync::Arc;

use roost_vim_wire::MoRef;
use roost_vim_wire::types::VirtualMachineRelocateSpec;

use crate::call::{CallContext, Failure};
use crate::event::{self, Scene};
use crate::guest;
use crate::store;
use crate::task::{Job, submit};
use crate::vm::fault::{need_connected, vm};
use crate::vm::{DiskFile, Draft, FilePath, Own, device_change, placement};
use crate::world::World;

pub(crate) fn relocate(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    spec: VirtualMachineRelocateSpec,
) -> Result<MoRef, Failure> {
    let row = vm(world, this)?;
    let (datastore, directory) = (row.home.datastore.clone(), row.directory().to_owned());
    let timings = &cx.handle.options.timings;
    let moves_files = spec.datastore.as_ref().is_some_and(|target| *target != datastore);
    let bytes = if moves_files { world.store.directory_bytes(&datastore, &directory) } else { 0 };
    let takes =
        timings.relocate.draw(&mut world.random) + timings.copying(bytes, &mut world.random);
    let (spec, checked, done) = (Arc::new(spec), this.clone(), this.clone());
    let asked = Arc::clone(&spec);
    let job = Job::on("RelocateVM_Task", this)
        .cancelable()
        .first(move |world, _| {
            need_connected(world, &checked)?;
            check(world, &checked, &asked, bytes).map(|_| ())
        })
        .then(takes, move |world, run| {
            let host = check(world, &done, &spec, bytes)?;
            carry_out(world, &run.into(), &done, &spec, &host).map(|()| None)
        });
    Ok(submit(world, cx, job))
}

/// Whether it could be done now.
pub(super) fn could(
    world: &World,
    this: &MoRef,
    spec: &VirtualMachineRelocateSpec,
) -> Result<(), Failure> {
    need_connected(world, this)?;
    check(world, this, spec, 0).map(|_| ())
}

/// The host that it goes to.
fn check(
    world: &World,
    this: &MoRef,
    spec: &VirtualMachineRelocateSpec,
    bytes: i64,
) -> Result<MoRef, Failure> {
    let row = vm(world, this)?;
    if let Some(datastore) = &spec.datastore {
        placement::check_datastore(world, datastore, spec.pool.as_ref().or(row.pool.as_ref()))?;
        if *datastore != row.home.datastore {
            store::need_space(world, &FilePath::new(datastore, row.directory()), bytes)?;
        }
    }
    if let Some(folder) = &spec.folder {
        world.inventory.folders.get(folder).ok_or_else(|| Failure::not_found(folder))?;
        if *folder != row.folder {
            world.inventory.refuse_duplicate(folder, &row.name)?;
        }
    }
    // A host of another cluster brings that cluster's root pool with it.
    let by_host = spec.host.as_ref().and_then(|host| world.inventory.compute_of_host(host));
    let root_pool = by_host
        .and_then(|compute| world.inventory.computes.get(compute))
        .map(|compute| &compute.pool);
    match spec.pool.as_ref().or(row.pool.as_ref().filter(|_| spec.host.is_none())).or(root_pool) {
        Some(pool) if spec.pool.is_some() || spec.host.is_some() => {
            let demand = row.current_demand();
            if row.pool.as_ref() != Some(pool) && demand.memory > 0 {
                world.inventory.admit(pool, demand)?;
            }
            placement::choose_host(&world.inventory, pool, spec.host.as_ref(), demand)
        }
        _ => Ok(row.host.clone()),
    }
}

fn carry_out(
    world: &mut World,
    scene: &Scene,
    this: &MoRef,
    spec: &VirtualMachineRelocateSpec,
    host: &MoRef,
) -> Result<(), Failure> {
    let row = vm(world, this)?;
    let (old_host, old_datastore, folder) =
        (row.host.clone(), row.home.datastore.clone(), row.folder.clone());
    let compute = world
        .inventory
        .compute_of_host(host)
        .and_then(|compute| world.inventory.computes.get(compute));
    let in_same = row
        .pool
        .as_ref()
        .and_then(|pool| world.inventory.pools.get(pool))
        .map(|pool| pool.owner.clone());
    let pool = spec.pool.clone().or_else(|| {
        if world.inventory.compute_of_host(host) == in_same.as_ref() {
            row.pool.clone()
        } else {
            compute.map(|compute| compute.pool.clone())
        }
    });
    let mut draft = Draft::of(row);
    device_change::apply(world, &mut draft, &spec.device_change)?;
    let cards = guest::cards(&vm(world, this)?.config);
    world.inventory.change_vm(this, |row| {
        row.host = host.clone();
        row.pool = pool.filter(|_| !row.template);
        row.config = draft.config;
    });
    draft.effects.apply_files(world, scene.now);
    guest::cards_changed(world, this, &cards);
    world.inventory.changes.modified(this, draft.effects.paths);
    if let Some(datastore) = spec.datastore.as_ref().filter(|target| **target != old_datastore) {
        move_files(world, scene, this, datastore);
    }
    if let Some(target) = spec.folder.as_ref().filter(|target| **target != folder) {
        world.inventory.move_to_folder(this, target);
    }
    post(world, scene, this, &old_host, &old_datastore);
    Ok(())
}

/// Everything that is in the VM's directory goes to the new datastore; disks become whole there.
fn move_files(world: &mut World, scene: &Scene, this: &MoRef, datastore: &MoRef) {
    let Some(row) = world.inventory.vms.get(this).cloned() else { return };
    store::remove_vm_files(world, &row);
    let directory = store::free_directory(world, datastore, row.directory());
    let at = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        FilePath::new(datastore, format!("{directory}/{name}"))
    };
    world.inventory.change_vm(this, |row| {
        row.home = at(&row.home.path);
        for device in &mut row.config.devices {
            if let Own::Disk(disk) = &mut device.own {
                let base = disk.file.chain().last().map_or(disk.file.as_ref(), |base| base);
                let (uuid, thin) = (disk.file.uuid, base.thin);
                disk.file =
                    Arc::new(DiskFile { path: at(&base.path.path), uuid, thin, parent: None });
            }
        }
        row.touch(scene.now);
    });
    store::add_vm_files(world, this, scene.now);
    let paths = [
        "config.files",
        "summary.config.vmPathName",
        "config.changeVersion",
        "config.modified",
        "config.hardware.device",
    ];
    world.inventory.changes.modified(this, paths);
}

fn post(world: &mut World, scene: &Scene, this: &MoRef, old_host: &MoRef, old_datastore: &MoRef) {
    let name = |obj: &MoRef| world.inventory.name(obj).unwrap_or_default().to_owned();
    let (from_host, from_store) = (name(old_host), name(old_datastore));
    let is_storage =
        world.inventory.vms.get(this).is_some_and(|row| row.home.datastore != *old_datastore);
    let (class, words) = if is_storage {
        (
            "VmRelocatedEvent",
            format!(
                "Completed the relocation of {{vm}} from {from_host}, {from_store} to {{host}} in {{dc}}"
            ),
        )
    } else {
        (
            "VmMigratedEvent",
            format!(
                "Migration of virtual machine {{vm}} from {from_host}, {from_store} to {{host}} completed"
            ),
        )
    };
    let message = event::fill(world, this, &words);
    let draft =
        event::vm_draft(world, class, this, message).with_object(world, "sourceHost", old_host);
    let draft = match world.inventory.datacenter_of(this) {
        Some(datacenter) => draft.with_object(world, "sourceDatacenter", &datacenter),
        None => draft,
    };
    event::post(world, scene, draft.with_object(world, "sourceDatastore", old_datastore));
}
