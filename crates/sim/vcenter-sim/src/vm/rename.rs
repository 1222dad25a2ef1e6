//! `Rename_Task`, of any object that has a name.

use std::sync::Arc;

use roost_vim_wire::{MoRef, MoType};

use crate::call::{CallContext, Failure};
use crate::event::{self, Draft, Scene};
use crate::inventory::{checked_name, duplicate_name};
use crate::task::{Job, submit};
use crate::vm::fault::{need_connected, not_supported};
use crate::world::World;

pub(crate) fn rename(world: &mut World, cx: &CallContext<'_>, this: &MoRef, name: String) -> MoRef {
    let takes = cx.handle.options.timings.rename.draw(&mut world.random);
    let (checked, done, new) = (this.clone(), this.clone(), name.clone());
    let job = Job::on("Rename_Task", this)
        .first(move |world, _| {
            if checked.kind == MoType::VirtualMachine {
                need_connected(world, &checked)?;
            }
            check(world, &checked, &name)
        })
        .then(takes, move |world, run| {
            check(world, &done, &new)?;
            carry_out(world, &run.into(), &done, &checked_name(&new)?);
            Ok(None)
        });
    submit(world, cx, job)
}

pub(super) fn check_vm(world: &World, this: &MoRef, name: &str) -> Result<(), Failure> {
    check(world, this, name)
}

fn check(world: &World, this: &MoRef, name: &str) -> Result<(), Failure> {
    let name: Arc<str> = checked_name(name)?.into();
    let inventory = &world.inventory;
    let Some(parent) = inventory.parent(this) else {
        return if inventory.contains(this) {
            Err(not_supported("The root folder cannot be renamed."))
        } else {
            Err(Failure::not_found(this))
        };
    };
    if inventory.shared_name(this) == Some(&name) {
        return Ok(());
    }
    // The four folders of a datacenter and a root pool have the names that they have.
    let is_root_pool = inventory.pools.get(this).is_some_and(|pool| pool.parent == pool.owner);
    if parent.kind == MoType::Datacenter || is_root_pool {
        return Err(not_supported("The object cannot be renamed."));
    }
    if inventory.folders.contains(&parent) {
        inventory.refuse_duplicate(&parent, &name)
    } else {
        match inventory.child_named(&parent, &name) {
            Some(object) if object.kind == this.kind => Err(duplicate_name(&name, &object)),
            _ => Ok(()),
        }
    }
}

/// Gives the name, which has been checked, and tells of it.
pub(super) fn carry_out(world: &mut World, scene: &Scene, this: &MoRef, name: &str) {
    let Some(old) = world.inventory.shared_name(this).cloned() else { return };
    if *old == *name {
        return;
    }
    world.inventory.rename(this, name);
    if this.kind == MoType::VirtualMachine {
        world.inventory.change_vm(this, |row| row.touch(scene.now));
        world.inventory.changes.modified(this, ["config.changeVersion", "config.modified"]);
        let message =
            event::fill(world, this, &format!("Renamed {old} from {old} to {name} in {{dc}}"));
        let draft = event::vm_draft(world, "VmRenamedEvent", this, message);
        event::post(
            world,
            scene,
            draft.with("oldName", &old.to_string()).with("newName", &name.to_owned()),
        );
    } else if this.kind == MoType::Datastore {
        let message = format!("Renamed datastore from {old} to {name}");
        let draft = Draft::new("DatastoreRenamedEvent", message).about_entity(world, this);
        event::post(
            world,
            scene,
            draft.with("oldName", &old.to_string()).with("newName", &name.to_owned()),
        );
    }
}
