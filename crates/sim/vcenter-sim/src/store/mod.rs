//! Files on datastores: an index in memory, and contents there or in a directory of this machine.
//!
//! Every datastore has one flat map from path to entry. The files of VMs are entries with a size and no content, so ten
//! thousand VMs cost little; what clients upload has content. With a directory behind it, uploads are streamed to real files,
//! and files that somebody puts there are found.

mod body;
mod browse;
mod call;
mod disk_ops;
mod file_ops;
mod http_folder;
mod namespace;
mod path;
mod shelf;
mod vm_files;

use std::collections::HashMap;
use std::path::PathBuf;

use jiff::Timestamp;
use roost_vim_wire::MoRef;

pub(crate) use crate::guest::guest_file;
pub(crate) use call::call;
pub(crate) use disk_ops::disk_capacity;
pub(crate) use file_ops::{
    copy_file as copy, delete, failure, file_fault, is_there, locate, make_directory, need_space,
    need_unlocked, put_file, refresh,
};
pub(crate) use http_folder::{folder, parameter, read as read_file, status, write as write_file};
pub(crate) use path::{clean_path, matches, parse_datastore_path};
pub(crate) use shelf::{Content, Entry, FileError, Shelf};
pub(crate) use vm_files::{
    add_disk_file, add_vm_files, disk_bytes, free_directory, grow_disk_file, remove_disk_file,
    remove_vm_files, resize_disk_file,
};

use crate::options::Options;
use crate::vm::FilePath;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Store {
    shelves: HashMap<MoRef, Shelf>,
    /// Capacity and format of disks that were made as files.
    disks: HashMap<FilePath, disk_ops::DiskFormat>,
    dir: Option<PathBuf>,
    /// See [`Options::keeps_disks`].
    keeps_disks: bool,
}

impl Store {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            shelves: HashMap::new(),
            disks: HashMap::new(),
            dir: options.datastore_dir.clone(),
            keeps_disks: options.keeps_disks,
        }
    }

    /// A datastore that has come later gets its shelf.
    pub(crate) fn add_shelf(&mut self, datastore: &MoRef, name: &str) {
        let dir = self.dir.as_ref().map(|dir| dir.join(name));
        if let Some(dir) = &dir
            && let Err(error) = std::fs::create_dir_all(dir)
        {
            tracing::error!(%error, dir = %dir.display(), "cannot make the directory of a datastore");
        }
        self.shelves.insert(datastore.clone(), Shelf::new(dir));
    }

    /// Gives every datastore its shelf and puts the files of all VMs there.
    pub(crate) fn furnish(world: &mut World, now: Timestamp) {
        let datastores: Vec<(MoRef, String, MoRef)> = world
            .inventory
            .datastores
            .iter()
            .map(|(moref, row)| (moref.clone(), row.name.to_string(), row.datacenter.clone()))
            .collect();
        let mut seen: Vec<String> = Vec::new();
        for (moref, name, datacenter) in datastores {
            // Datastores of two datacenters may have one name.
            let folder = if seen.contains(&name) {
                format!("{}-{name}", world.inventory.name(&datacenter).unwrap_or_default())
            } else {
                name.clone()
            };
            seen.push(name);
            world.store.add_shelf(&moref, &folder);
        }
        let vms: Vec<MoRef> = world.inventory.vms.refs().cloned().collect();
        for vm in vms {
            add_vm_files(world, &vm, now);
        }
        world.inventory.changes.take();
    }

    pub(crate) fn shelf(&self, datastore: &MoRef) -> Option<&Shelf> {
        self.shelves.get(datastore)
    }

    pub(crate) fn shelf_mut(&mut self, datastore: &MoRef) -> Option<&mut Shelf> {
        self.shelves.get_mut(datastore)
    }

    /// What can still be written to a datastore of this capacity.
    pub(crate) fn free(&self, datastore: &MoRef, capacity: i64) -> i64 {
        (capacity - self.shelf(datastore).map_or(0, Shelf::taken)).max(0)
    }

    /// What the files of a directory take.
    pub(crate) fn directory_bytes(&self, datastore: &MoRef, directory: &str) -> i64 {
        self.shelf(datastore).map_or(0, |shelf| shelf.directory_bytes(directory))
    }
}

/// Tells watchers that a datastore has more or less space than before.
pub(crate) fn announce_space(world: &mut World, datastore: &MoRef) {
    world.inventory.changes.modified(datastore, ["summary.freeSpace", "info.freeSpace"]);
}

/// The size of a file.
pub(crate) fn size(world: &World, file: &FilePath) -> Option<i64> {
    let entry = world.store.shelf(&file.datastore)?.get(&file.path)?;
    (!entry.content.is_folder()).then(|| entry.content.size())
}

/// No descriptor is as large.
const MAX_CONTENT: i64 = 16 << 20;

/// What stands in a small file that somebody wrote.
pub(crate) fn content(world: &World, file: &FilePath) -> Option<Vec<u8>> {
    let shelf = world.store.shelf(&file.datastore)?;
    let entry = shelf.get(&file.path).filter(|entry| entry.content.size() <= MAX_CONTENT)?;
    match &entry.content {
        Content::Memory(chunks) => Some(chunks.concat()),
        Content::Disk(_) => std::fs::read(shelf.real_path(&file.path)?).ok(),
        Content::Folder | Content::Hollow(_) => None,
    }
}
