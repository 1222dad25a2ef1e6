//! From VM to template and back.

use roost_vim_wire::MoRef;

use crate::call::{CallContext, Failure};
use crate::task::Hold;
use crate::vm::fault::{need_connected, need_power, not_supported, vm};
use crate::vm::{Power, placement};
use crate::world::World;

const PATHS: [&str; 5] = [
    "config.template",
    "summary.config.template",
    "config.changeVersion",
    "config.modified",
    "config.files.vmPathName",
];

fn need_idle(world: &World, this: &MoRef) -> Result<(), Failure> {
    match world.tasks.locks.in_the_way(this, Hold::Exclusive) {
        Some(task) => {
            let message = "The operation is not allowed in the current state: another task is already in progress.";
            Err(Failure::of("TaskInProgress", message).with("task", task))
        }
        None => Ok(()),
    }
}

pub(super) fn mark_as_template(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<(), Failure> {
    need_idle(world, this)?;
    need_connected(world, this)?;
    need_power(world, this, Power::Off)?;
    if vm(world, this)?.template {
        return Err(not_supported("It is a template already."));
    }
    world.inventory.change_vm(this, |row| {
        row.template = true;
        row.pool = None;
        row.touch(cx.now);
    });
    world.inventory.changes.modified(this, PATHS);
    Ok(())
}

pub(super) fn mark_as_vm(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (pool, host): (&MoRef, Option<&MoRef>),
) -> Result<(), Failure> {
    need_idle(world, this)?;
    let row = vm(world, this)?;
    if !row.template {
        return Err(not_supported("It is not a template."));
    }
    placement::check_datastore(world, &row.home.datastore, Some(pool))?;
    let stays = host.is_none()
        && world.inventory.pools.get(pool).is_some_and(|at| {
            let compute = world.inventory.computes.get(&at.owner);
            compute.is_some_and(|compute| compute.hosts.contains(&row.host))
        });
    let host = if stays {
        row.host.clone()
    } else {
        placement::choose_host(&world.inventory, pool, host, row.demand())?
    };
    world.inventory.change_vm(this, |row| {
        row.template = false;
        row.pool = Some(pool.clone());
        row.host = host;
        row.touch(cx.now);
    });
    world.inventory.changes.modified(this, PATHS);
    Ok(())
}
