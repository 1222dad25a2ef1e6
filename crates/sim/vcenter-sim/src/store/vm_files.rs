//! The files that VMs have: a directory, a `.vmx`, and one file per link of each disk's chain.

use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::MoRef;

use crate::options::Product;
use crate::store::{Content, announce_space};
use crate::vm::{CHILD_DISK_BYTES, DiskFile, FilePath, Vm, initial_bytes};
use crate::world::World;

const VMX_BYTES: i64 = 2_560;

/// Puts the directory, the `.vmx` and the disks of a VM on their datastores.
pub(crate) fn add_vm_files(world: &mut World, vm: &MoRef, now: Timestamp) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    let (home, directory) = (row.home.clone(), row.directory().to_owned());
    let disks: Vec<(i64, Arc<DiskFile>)> =
        row.config.disks().map(|disk| (disk.capacity_kb, Arc::clone(&disk.file))).collect();
    if let Some(shelf) = world.store.shelf_mut(&home.datastore) {
        if !shelf.is_folder(&directory) {
            shelf.put(&directory, Content::Folder, now);
        }
        shelf.put(&home.path, Content::Hollow(VMX_BYTES), now);
    }
    for (capacity_kb, file) in disks {
        for link in file.chain() {
            add_disk_file(world, link, capacity_kb, now);
        }
    }
    announce_space(world, &home.datastore);
}

/// Puts one disk file on its datastore, unless it is there: links are shared.
pub(crate) fn add_disk_file(world: &mut World, file: &DiskFile, capacity_kb: i64, now: Timestamp) {
    let Some(shelf) = world.store.shelf_mut(&file.path.datastore) else { return };
    if shelf.get(&file.path.path).is_none() {
        shelf.put(&file.path.path, Content::Hollow(disk_bytes(file, capacity_kb)), now);
    }
}

/// What a disk file takes when it is new.
pub(crate) fn disk_bytes(file: &DiskFile, capacity_kb: i64) -> i64 {
    if file.parent.is_some() { CHILD_DISK_BYTES } else { initial_bytes(capacity_kb, file.thin) }
}

/// A disk that has become whole takes what a new one of its size does.
pub(crate) fn grow_disk_file(world: &mut World, file: &DiskFile, capacity_kb: i64, now: Timestamp) {
    if let Some(shelf) = world.store.shelf_mut(&file.path.datastore) {
        shelf.put(&file.path.path, Content::Hollow(disk_bytes(file, capacity_kb)), now);
    }
    announce_space(world, &file.path.datastore);
}

/// A thick disk takes its new size at once; a thin one grows when it is written.
pub(crate) fn resize_disk_file(
    world: &mut World,
    file: &DiskFile,
    capacity_kb: i64,
    now: Timestamp,
) {
    if file.thin || file.parent.is_some() {
        return;
    }
    if let Some(shelf) = world.store.shelf_mut(&file.path.datastore) {
        shelf.put(&file.path.path, Content::Hollow(capacity_kb.saturating_mul(1024)), now);
    }
    announce_space(world, &file.path.datastore);
}

pub(crate) fn remove_disk_file(world: &mut World, path: &FilePath) {
    if let Some(shelf) = world.store.shelf_mut(&path.datastore) {
        // A file that is gone already is what was wanted.
        let _ = shelf.remove(&path.path);
    }
    announce_space(world, &path.datastore);
}

/// Takes a destroyed VM's files away, and its directory if nothing else is in it. Disks elsewhere that it alone used go, too.
pub(crate) fn remove_vm_files(world: &mut World, vm: &Vm) {
    let directory = vm.directory().to_owned();
    let mut touched = vec![vm.home.datastore.clone()];
    let own: Vec<FilePath> = vm
        .config
        .disks()
        .chain(
            vm.snapshots
                .iter()
                .flat_map(|all| &all.list)
                .flat_map(|snapshot| snapshot.config.disks()),
        )
        .flat_map(|disk| disk.file.chain().map(|file| file.path.clone()).collect::<Vec<_>>())
        .collect();
    let kept = kept_disks(world, vm);
    for path in own {
        if kept.iter().any(|name| path.path.rsplit('/').next() == Some(name)) {
            continue;
        }
        let is_shared =
            path.datastore != vm.home.datastore || !path.path.starts_with(&format!("{directory}/"));
        if is_shared && is_used(world, &path) {
            continue;
        }
        if let Some(shelf) = world.store.shelf_mut(&path.datastore) {
            let _ = shelf.remove(&path.path);
        }
        touched.push(path.datastore);
    }
    if let Some(shelf) = world.store.shelf_mut(&vm.home.datastore) {
        let hollow =
            shelf.list(&directory).filter(|(_, entry)| matches!(entry.content, Content::Hollow(_)));
        let doomed: Vec<String> = hollow.map(|(name, _)| format!("{directory}/{name}")).collect();
        for path in doomed {
            let _ = shelf.remove(&path);
        }
        if !directory.is_empty() && shelf.list(&directory).next().is_none() {
            let _ = shelf.remove(&directory);
        }
    }
    touched.sort();
    touched.dedup();
    for datastore in touched {
        announce_space(world, &datastore);
    }
}

/// Disks that the VM says to stay behind, by the names of their files. Older servers do not know the key.
fn kept_disks(world: &World, vm: &Vm) -> Vec<String> {
    let is_it = |option: &&roost_vim_wire::types::OptionValue| option.key == "vmprov.keepDisks";
    let said = vm.config.extra.iter().find(is_it).filter(|_| world.store.keeps_disks);
    let names = said.and_then(|option| option.value.as_ref()?.as_str()).unwrap_or_default();
    names.split(',').map(|name| name.trim().to_owned()).collect()
}

/// Whether a disk of any VM, or of a snapshot of one, stands on this file.
fn is_used(world: &World, path: &FilePath) -> bool {
    let uses = |vm: &Vm| {
        let snapshots = vm
            .snapshots
            .iter()
            .flat_map(|all| &all.list)
            .flat_map(|snapshot| snapshot.config.disks());
        vm.config.disks().chain(snapshots).any(|disk| disk.file.uses(path))
    };
    world.inventory.vms.iter().any(|(_, vm)| uses(vm))
}

/// A directory name for a new VM: its own, or with a number where that is taken.
pub(crate) fn free_directory(world: &World, datastore: &MoRef, name: &str) -> String {
    let Some(shelf) = world.store.shelf(datastore) else { return name.into() };
    // A host takes a directory that is there already, if no VM of the name is in it.
    let may_share = world.product == Product::HostAgent;
    let is_free = |candidate: &String| match shelf.get(candidate) {
        None => true,
        Some(entry) => {
            let home = format!("{candidate}/{name}.vmx");
            may_share && entry.content.is_folder() && shelf.get(&home).is_none()
        }
    };
    let numbered = (1..).map(|number| format!("{name}_{number}"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    candidates.find(is_free).unwrap_or_else(|| name.into())
}
