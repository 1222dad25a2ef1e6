//! How a clone comes to its disks.

use std::sync::Arc;

use roost_vim_wire::MoRef;
use roost_vim_wire::types::VirtualMachineCloneSpec;

use crate::call::Failure;
use crate::inventory::draw_uuid;
use crate::vm::{Config, Disk, DiskFile, FilePath, Own, placement};
use crate::world::World;

/// What is made of one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyPlan {
    /// One file with everything in it.
    Full,
    /// The top file is copied, its parents are shared: cheap only where there are parents.
    TopOnly,
    /// A new, empty file on top of a snapshot's.
    NewChild,
}

impl CopyPlan {
    pub(super) fn of(
        move_type: Option<&str>,
        disk: &Disk,
        from_snapshot: bool,
    ) -> Result<Self, Failure> {
        match move_type {
            Some("moveChildMostDiskBacking") if disk.file.parent.is_some() => Ok(Self::TopOnly),
            Some("createNewChildDiskBacking") if from_snapshot => Ok(Self::NewChild),
            Some("createNewChildDiskBacking") => Err(Failure::invalid_argument("spec.snapshot")),
            // Without a parent there is nothing to share for the first of them, and the server says nothing about it.
            None
            | Some(
                ""
                | "moveChildMostDiskBacking"
                | "moveAllDiskBackingsAndAllowSharing"
                | "moveAllDiskBackingsAndDisallowSharing"
                | "moveAllDiskBackingsAndConsolidate",
            ) => Ok(Self::Full),
            Some(_) => Err(Failure::invalid_argument("spec.location.diskMoveType")),
        }
    }
}

/// Gives a clone's configuration disks of its own in `directory`. Returns the files that are new.
pub(super) fn copy_disks(
    world: &mut World,
    config: &mut Config,
    (datastore, directory): (&MoRef, &str),
    spec: &VirtualMachineCloneSpec,
) -> Result<Vec<(Arc<DiskFile>, i64)>, Failure> {
    let mut made = Vec::new();
    let stem = directory.rsplit('/').next().unwrap_or_default();
    for device in &mut config.devices {
        let key = device.key();
        let Own::Disk(disk) = &mut device.own else { continue };
        let locator = spec.location.disk.iter().find(|locator| locator.disk_id == key);
        let move_type = locator.and_then(|locator| locator.disk_move_type.as_deref());
        let move_type = move_type.or(spec.location.disk_move_type.as_deref());
        let plan = CopyPlan::of(move_type, disk, spec.snapshot.is_some())?;
        let at = locator.map_or(datastore, |locator| &locator.datastore);
        placement::check_datastore(world, at, None)?;
        let suffix = if made.is_empty() { String::new() } else { format!("_{}", made.len()) };
        let file = Arc::new(DiskFile {
            path: FilePath::new(at, format!("{directory}/{stem}{suffix}.vmdk")),
            uuid: draw_uuid(&mut world.random),
            thin: disk.file.chain().last().is_none_or(|base| base.thin),
            parent: match plan {
                CopyPlan::Full => None,
                CopyPlan::TopOnly => disk.file.parent.clone(),
                CopyPlan::NewChild => Some(Arc::clone(&disk.file)),
            },
        });
        made.push((Arc::clone(&file), disk.capacity_kb));
        disk.file = file;
    }
    Ok(made)
}
