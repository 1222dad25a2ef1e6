use std::sync::Arc;

use roost_vim_wire::MoRef;

use crate::call::{CallContext, Failure};
use crate::inventory::{FolderKind, checked_name};
use crate::options::Product;
use crate::task::{Job, submit};
use crate::world::World;

pub(super) fn create(world: &mut World, this: &MoRef, name: &str) -> Result<MoRef, Failure> {
    if world.product == Product::HostAgent {
        return Err(Failure::of("NotSupported", "A host has no folders of its own."));
    }
    let name: Arc<str> = checked_name(name)?.into();
    let kind = match world.inventory.folders.get(this).map(|folder| folder.kind) {
        Some(FolderKind::Pod) | None => {
            return Err(Failure::of("NotSupported", "The object cannot hold folders."));
        }
        Some(kind) => kind,
    };
    world.inventory.refuse_duplicate(this, &name)?;
    let folder = world.inventory.new_folder(&name, this, kind);
    world.inventory.changes.entered(&folder);
    world.inventory.changes.modified(this, ["childEntity"]);
    Ok(folder)
}

pub(super) fn move_into(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    list: Vec<MoRef>,
) -> Result<MoRef, Failure> {
    if !world.inventory.folders.contains(this) {
        return Err(Failure::not_found(this));
    }
    let takes = cx.handle.options.timings.move_into_folder.draw(&mut world.random);
    let (target, done, moved) = (this.clone(), this.clone(), list.clone());
    let mut job = Job::on("MoveIntoFolder_Task", this)
        .first(move |world, _| list.iter().try_for_each(|obj| check(world, &target, obj)))
        .then(takes, move |world, _| {
            for obj in &moved {
                check(world, &done, obj)?;
                world.inventory.move_to_folder(obj, &done);
            }
            Ok(None)
        });
    job.holds.clear();
    Ok(submit(world, cx, job))
}

fn check(world: &World, target: &MoRef, obj: &MoRef) -> Result<(), Failure> {
    let inventory = &world.inventory;
    let Some(folder) = inventory.folders.get(target) else {
        return Err(Failure::not_found(target));
    };
    let Some(name) = inventory.shared_name(obj) else { return Err(Failure::not_found(obj)) };
    let is_own_kind = inventory
        .folders
        .get(obj)
        .is_none_or(|moved| moved.kind == folder.kind || moved.kind == FolderKind::Pod);
    let is_same_datacenter = inventory.datacenter_of(target) == inventory.datacenter_of(obj);
    if !folder.kind.accepts(&obj.kind) || !is_own_kind || !is_same_datacenter {
        return Err(Failure::of("NotSupported", "The object cannot be moved into this folder."));
    }
    if inventory.lineage(target).any(|at| at == *obj) {
        return Err(Failure::of("InvalidFolder", "A folder cannot be moved into itself.")
            .with("target", target));
    }
    if inventory.parent(obj).as_ref() == Some(target) {
        return Ok(());
    }
    inventory.refuse_duplicate(target, name)
}
