//! Disks: new ones, existing files, and growing.

use std::sync::Arc;

use roost_vim_wire::types::{
    VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpecFileOperation as FileOperation,
};

use crate::call::Failure;
use crate::inventory::draw_uuid;
use crate::store;
use crate::vm::fault::device_fault;
use crate::vm::{Disk, DiskFile, Draft, FilePath};
use crate::world::World;

/// The file of a disk that is added: a new one, or one that is there.
pub(super) fn new_disk(
    world: &mut World,
    draft: &mut Draft,
    device: &mut VirtualDevice,
    operation: Option<&FileOperation>,
    index: usize,
) -> Result<Disk, Failure> {
    let backing = device
        .backing
        .get_or_insert_with(|| VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo"));
    backing.disk_mode.get_or_insert_with(|| "persistent".into());
    let (name, datastore) =
        (backing.file_name.take().unwrap_or_default(), backing.datastore.take());
    let thin = backing.thin_provisioned.take().unwrap_or(false);
    let uuid = backing.uuid.take().and_then(|uuid| crate::inventory::parse_uuid(&uuid));
    let uuid = uuid.unwrap_or_else(|| draw_uuid(&mut world.random));
    let parent = backing.parent.take();
    let capacity_kb = capacity(device, index)?;
    device.capacity_in_kb = None;
    device.capacity_in_bytes = None;
    if operation == Some(&FileOperation::Create) {
        // A disk on top of another is as large as that.
        let below = parent.and_then(|parent| existing(world, parent.file_name.as_deref()?));
        let capacity_kb = capacity_kb.filter(|kb| *kb > 0);
        let capacity_kb = capacity_kb
            .or_else(|| below.as_ref().map(|file| store::disk_capacity(world, &file.path)));
        let Some(capacity_kb) = capacity_kb.filter(|kb| *kb > 0) else {
            return Err(device_fault(
                "InvalidDeviceSpec",
                index,
                "capacityInKB",
                "a new disk needs a size",
            ));
        };
        let path = new_path(world, draft, &name, datastore.as_ref())?;
        let file = Arc::new(DiskFile { path, uuid, thin, parent: below });
        draft.effects.made.push((Arc::clone(&file), capacity_kb));
        let is_blank = file.parent.is_none();
        return Ok(Disk { capacity_kb, file, is_blank });
    }
    if let Some(file) = existing(world, &name) {
        let capacity_kb = capacity_kb.unwrap_or_else(|| size_kb(world, &file));
        Ok(Disk { capacity_kb, file, is_blank: false })
    } else {
        let path = store::locate(world, &name, None)?;
        Err(store::file_fault(world, "FileNotFound", &path, "File not found:"))
    }
}

/// The size that a request gives; both fields must agree when both are there.
fn capacity(device: &VirtualDevice, index: usize) -> Result<Option<i64>, Failure> {
    let from_bytes = device.capacity_in_bytes.filter(|bytes| *bytes > 0).map(|bytes| bytes / 1024);
    match (device.capacity_in_kb.filter(|kb| *kb > 0), from_bytes) {
        (Some(kb), Some(other)) if kb != other => Err(device_fault(
            "InvalidDeviceSpec",
            index,
            "capacityInBytes",
            "it contradicts capacityInKB",
        )),
        (kb, bytes) => Ok(kb.or(bytes)),
    }
}

/// The path of a new file: the one asked for, or a name of the VM's directory that is free.
fn new_path(
    world: &World,
    draft: &Draft,
    name: &str,
    datastore: Option<&roost_vim_wire::MoRef>,
) -> Result<FilePath, Failure> {
    let named = store::parse_datastore_path(name).filter(|(_, path)| !path.is_empty());
    if named.is_some() {
        let path = store::locate(world, name, None)?;
        let is_there =
            world.store.shelf(&path.datastore).is_some_and(|shelf| shelf.get(&path.path).is_some());
        return if is_there {
            Err(store::file_fault(world, "FileAlreadyExists", &path, "The file already exists:"))
        } else {
            Ok(path)
        };
    }
    let datastore = match store::parse_datastore_path(name) {
        Some(_) => store::locate(world, name, None)?.datastore,
        None => datastore.unwrap_or(&draft.datastore).clone(),
    };
    if let Some(known) = world.inventory.datastores.get(&datastore).filter(|row| !row.accessible) {
        return Err(Failure::of(
            "InaccessibleDatastore",
            format!("The datastore '{}' is not accessible.", known.name),
        ));
    }
    let stem = draft.directory.rsplit('/').next().unwrap_or_default();
    let numbered = (1..).map(|number| format!("{}/{stem}_{number}.vmdk", draft.directory));
    let mut candidates =
        std::iter::once(format!("{}/{stem}.vmdk", draft.directory)).chain(numbered);
    let is_free = |path: &String| {
        let is_made = draft.effects.made.iter().any(|(file, _)| *file.path.path == **path);
        let is_there = world.store.shelf(&datastore).is_some_and(|shelf| shelf.get(path).is_some());
        !is_made && !is_there && !draft.config.disks().any(|disk| *disk.file.path.path == **path)
    };
    let path = candidates.find(is_free).unwrap_or_default();
    Ok(FilePath::new(&datastore, path))
}

/// A disk file by its name: one of a VM, with its chain, or a plain file.
fn existing(world: &World, name: &str) -> Option<Arc<DiskFile>> {
    let path = store::locate(world, name, None).ok()?;
    let known = world.inventory.vms.iter().find_map(|(_, vm)| {
        let snapshots = vm
            .snapshots
            .iter()
            .flat_map(|all| &all.list)
            .flat_map(|snapshot| snapshot.config.disks());
        let mut files = vm.config.disks().chain(snapshots).map(|disk| &disk.file);
        files.find(|file| file.path == path).cloned()
    });
    known.or_else(|| {
        world.store.shelf(&path.datastore)?.get(&path.path)?;
        Some(Arc::new(DiskFile { path, uuid: 0, thin: false, parent: None }))
    })
}

fn size_kb(world: &World, file: &DiskFile) -> i64 {
    let entry =
        world.store.shelf(&file.path.datastore).and_then(|shelf| shelf.get(&file.path.path));
    entry.map_or(0, |entry| entry.content.size() / 1024)
}

/// A disk with the size that a request wants: as large or larger.
pub(super) fn edit_disk(
    draft: &mut Draft,
    disk: &Disk,
    asked: &VirtualDevice,
    index: usize,
) -> Result<Disk, Failure> {
    // A request that repeats the device it read carries the old size in one field beside the new one in the other.
    let repeats_bytes = asked.capacity_in_bytes == Some(disk.capacity_kb.saturating_mul(1024));
    let repeats_kb = asked.capacity_in_kb == Some(disk.capacity_kb);
    let wanted = match asked.capacity_in_bytes {
        Some(bytes) if repeats_kb => Some(bytes / 1024),
        _ if repeats_bytes => asked.capacity_in_kb,
        _ => capacity(asked, index)?,
    };
    let wanted = wanted.filter(|kb| *kb > 0).unwrap_or(disk.capacity_kb);
    if wanted < disk.capacity_kb {
        return Err(device_fault(
            "InvalidDeviceOperation",
            index,
            "capacityInKB",
            "a disk cannot shrink",
        ));
    }
    if wanted > disk.capacity_kb && draft.has_snapshots {
        let message = "a disk with snapshots cannot grow";
        return Err(device_fault("InvalidDeviceOperation", index, "capacityInKB", message));
    }
    if wanted > disk.capacity_kb {
        draft.effects.resized.push((Arc::clone(&disk.file), wanted));
    }
    Ok(Disk { capacity_kb: wanted, file: Arc::clone(&disk.file), is_blank: disk.is_blank })
}
