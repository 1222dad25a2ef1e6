//! `PromoteDisks_Task`: a linked clone gets disks of its own.

use std::sync::Arc;

use roost_vim_wire::MoRef;
use roost_vim_wire::types::VirtualDevice;

use crate::call::{CallContext, Failure};
use crate::store;
use crate::task::{Job, submit};
use crate::vm::fault::{need_connected, vm};
use crate::vm::{DiskFile, Own};
use crate::world::World;

/// Takes as long as copying what the parents hold. Cancelled, the disks stay as they were.
pub(super) fn promote(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (unlink, disks): (bool, Vec<VirtualDevice>),
) -> Result<MoRef, Failure> {
    let row = vm(world, this)?;
    let keys: Vec<i32> = disks.iter().map(|disk| disk.key).collect();
    if keys.iter().any(|key| row.config.device(*key).is_none_or(|device| !device.base.is_disk())) {
        return Err(Failure::invalid_argument("disks"));
    }
    let bytes: i64 = row
        .config
        .devices
        .iter()
        .filter(|device| keys.is_empty() || keys.contains(&device.key()))
        .filter_map(|device| match &device.own {
            Own::Disk(disk) => disk.file.parent.as_deref(),
            _ => None,
        })
        .flat_map(DiskFile::chain)
        .map(|file| {
            let shelf = world.store.shelf(&file.path.datastore);
            shelf
                .and_then(|shelf| shelf.get(&file.path.path))
                .map_or(0, |entry| entry.content.size())
        })
        .sum();
    let timings = &cx.handle.options.timings;
    let takes =
        timings.reconfigure.draw(&mut world.random) + timings.copying(bytes, &mut world.random);
    let (checked, done) = (this.clone(), this.clone());
    let job = Job::on("PromoteDisks_Task", this)
        .cancelable()
        .first(move |world, _| need_connected(world, &checked))
        .then(takes, move |world, run| {
            if unlink {
                carry_out(world, &done, &keys, run.now);
            }
            Ok(None)
        });
    Ok(submit(world, cx, job))
}

fn carry_out(world: &mut World, this: &MoRef, keys: &[i32], now: jiff::Timestamp) {
    let Some(row) = world.inventory.vms.get(this) else { return };
    let mut config = row.config.clone();
    let mut promoted = Vec::new();
    for device in &mut config.devices {
        let key = device.key();
        let Own::Disk(disk) = &mut device.own else { continue };
        if disk.file.parent.is_none() || !(keys.is_empty() || keys.contains(&key)) {
            continue;
        }
        let base = disk.file.chain().last();
        let file = Arc::new(DiskFile {
            path: disk.file.path.clone(),
            uuid: disk.file.uuid,
            thin: base.is_none_or(|base| base.thin),
            parent: None,
        });
        promoted.push((key, Arc::clone(&file), disk.capacity_kb));
        disk.file = file;
    }
    if promoted.is_empty() {
        return;
    }
    for (_, file, capacity_kb) in &promoted {
        store::grow_disk_file(world, file, *capacity_kb, now);
    }
    world.inventory.change_vm(this, |row| {
        row.config = config;
        row.touch(now);
    });
    let paths = promoted.iter().map(|(key, ..)| format!("config.hardware.device[{key}]"));
    world.inventory.changes.modified(this, paths);
    world.inventory.changes.modified(this, ["config.changeVersion", "config.modified"]);
}
