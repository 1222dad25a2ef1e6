//! What clients do to files: make directories, delete, move, copy.

use bytes::Bytes;
use jiff::Timestamp;
use roost_vim_wire::{Fault, MoRef};

use super::path::parent;
use crate::call::Failure;
use crate::store::{Content, FileError, announce_space, parse_datastore_path};
use crate::vm::{FilePath, Power, Vm};
use crate::world::World;

/// The file that `[datastore] path` names in a datacenter.
pub(crate) fn locate(
    world: &World,
    text: &str,
    datacenter: Option<&MoRef>,
) -> Result<FilePath, Failure> {
    let Some((name, path)) = parse_datastore_path(text) else {
        let fault = Fault::of("InvalidDatastorePath").with("datastorePath", &text.to_owned());
        return Err(Failure::new(fault, format!("Invalid datastore path '{text}'.")));
    };
    let Some(datastore) = world.inventory.datastore_named(name, datacenter) else {
        let fault = Fault::of("InvalidDatastore").with("name", &name.to_owned());
        return Err(Failure::new(fault, format!("The datastore '{name}' does not exist.")));
    };
    if world.inventory.datastores.get(&datastore).is_some_and(|row| !row.accessible) {
        let fault = Fault::of("InaccessibleDatastore")
            .with("datastore", &datastore)
            .with("name", &name.to_owned());
        return Err(Failure::new(fault, format!("The datastore '{name}' is not accessible.")));
    }
    Ok(FilePath::new(&datastore, path))
}

/// Whether there is a file at a path such as `[LocalDS_0] iso/boot.iso`.
pub(crate) fn is_there(world: &World, text: &str) -> bool {
    let shelf = |file: &FilePath| world.store.shelf(&file.datastore)?.get(&file.path);
    let is_file = |file: FilePath| shelf(&file).is_some_and(|entry| !entry.content.is_folder());
    locate(world, text, None).is_ok_and(is_file)
}

/// A `FileFault` of this class about a file.
pub(crate) fn file_fault(world: &World, class: &str, file: &FilePath, message: &str) -> Failure {
    let path = world.inventory.datastore_path(file);
    Failure::new(Fault::of(class).with("file", &path), format!("{message} {path}"))
}

pub(crate) fn failure(world: &World, file: &FilePath, error: &FileError) -> Failure {
    match error {
        FileError::NotFound => file_fault(world, "FileNotFound", file, "File not found:"),
        FileError::Exists => {
            file_fault(world, "FileAlreadyExists", file, "The file already exists:")
        }
        FileError::Io(source) => {
            file_fault(world, "CannotAccessFile", file, &format!("{error}: {source}:"))
        }
    }
}

/// Refuses when a datastore has not this much space left.
pub(crate) fn need_space(world: &World, file: &FilePath, bytes: i64) -> Result<(), Failure> {
    let Some(row) = world.inventory.datastores.get(&file.datastore) else {
        return Err(Failure::not_found(&file.datastore));
    };
    if bytes <= world.store.free(&file.datastore, row.capacity) {
        return Ok(());
    }
    let fault = Fault::of("NoDiskSpace")
        .with("file", &world.inventory.datastore_path(file))
        .with("datastore", &row.name.to_string());
    Err(Failure::new(fault, format!("Insufficient disk space on datastore '{}'.", row.name)))
}

/// Refuses when a running VM has the file, or something below it, open.
pub(crate) fn need_unlocked(world: &World, file: &FilePath) -> Result<(), Failure> {
    let below = format!("{}/", file.path);
    let is_it = |path: &str| *path == *file.path || path.starts_with(&below);
    let text = world.inventory.datastore_path(file);
    let text_below = format!("{text}/");
    let has_open = |vm: &Vm| {
        let disks = vm.config.disks().flat_map(|disk| disk.file.chain());
        let mut disk_files = disks.filter(|link| link.path.datastore == file.datastore);
        let mut media = vm
            .config
            .devices
            .iter()
            .filter(|device| device.base.is_cdrom() && device.is_connected());
        vm.home.datastore == file.datastore && is_it(&vm.home.path)
            || disk_files.any(|link| is_it(&link.path.path))
            || media.any(|device| {
                let name =
                    device.base.backing.as_ref().and_then(|backing| backing.file_name.as_deref());
                name.is_some_and(|name| name == text || name.starts_with(&text_below))
            })
    };
    let mut running = world.inventory.vms.iter().filter(|(_, vm)| vm.power != Power::Off);
    if running.any(|(_, vm)| has_open(vm)) {
        Err(file_fault(world, "FileLocked", file, "Unable to access file since it is locked:"))
    } else {
        Ok(())
    }
}

pub(crate) fn make_directory(
    world: &mut World,
    file: &FilePath,
    with_parents: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    refresh(world, file, now);
    let Some(shelf) = world.store.shelf_mut(&file.datastore) else {
        return Err(Failure::not_found(&file.datastore));
    };
    let made = shelf.make_folder(&file.path, with_parents, now);
    made.map_err(|error| failure(world, file, &error))
}

pub(crate) fn delete(world: &mut World, file: &FilePath, now: Timestamp) -> Result<(), Failure> {
    refresh(world, file, now);
    need_unlocked(world, file)?;
    let Some(shelf) = world.store.shelf_mut(&file.datastore) else {
        return Err(Failure::not_found(&file.datastore));
    };
    let removed = shelf.remove(&file.path);
    removed.map_err(|error| failure(world, file, &error))?;
    announce_space(world, &file.datastore);
    Ok(())
}

/// Moves a file or a directory, also to another datastore.
pub(crate) fn move_file(
    world: &mut World,
    from: &FilePath,
    to: &FilePath,
    force: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    refresh(world, from, now);
    refresh(world, to, now);
    need_unlocked(world, from)?;
    let exists = |file: &FilePath| {
        world.store.shelf(&file.datastore).is_some_and(|shelf| shelf.get(&file.path).is_some())
    };
    if !exists(from) {
        return Err(failure(world, from, &FileError::NotFound));
    }
    if from == to {
        return Ok(());
    }
    check_target(world, to, force)?;
    let paths = [from, to].map(|file| {
        world.store.shelf(&file.datastore).and_then(|shelf| shelf.real_path(&file.path))
    });
    if let [Some(source), Some(target)] = paths
        && source.exists()
    {
        std::fs::rename(source, target).map_err(|error| failure(world, from, &error.into()))?;
    }
    let taken = world
        .store
        .shelf_mut(&from.datastore)
        .map(|shelf| shelf.take_out(&from.path))
        .unwrap_or_default();
    if let Some(shelf) = world.store.shelf_mut(&to.datastore) {
        shelf.put_back(&to.path, taken);
    }
    for datastore in [&from.datastore, &to.datastore] {
        announce_space(world, datastore);
    }
    Ok(())
}

/// Copies a file. Disk files of VMs are copied as what they are: a size.
pub(crate) fn copy_file(
    world: &mut World,
    from: &FilePath,
    to: &FilePath,
    force: bool,
    now: Timestamp,
) -> Result<(), Failure> {
    refresh(world, from, now);
    refresh(world, to, now);
    let source =
        world.store.shelf(&from.datastore).and_then(|shelf| shelf.get(&from.path)).cloned();
    let Some(entry) = source.filter(|entry| !entry.content.is_folder()) else {
        return Err(failure(world, from, &FileError::NotFound));
    };
    need_space(world, to, entry.content.size())?;
    check_target(world, to, force)?;
    let paths = [from, to].map(|file| {
        world.store.shelf(&file.datastore).and_then(|shelf| shelf.real_path(&file.path))
    });
    if let (Content::Disk(_), [Some(source), Some(target)]) = (&entry.content, paths) {
        std::fs::copy(source, target).map_err(|error| failure(world, to, &error.into()))?;
    }
    if let Some(shelf) = world.store.shelf_mut(&to.datastore) {
        shelf.put(&to.path, entry.content, now);
    }
    announce_space(world, &to.datastore);
    Ok(())
}

/// Puts a whole file on its datastore, with the directories above it.
pub(crate) fn put_file(
    world: &mut World,
    file: &FilePath,
    content: Bytes,
    now: Timestamp,
) -> Result<(), FileError> {
    let Some(shelf) = world.store.shelf_mut(&file.datastore) else {
        return Err(FileError::NotFound);
    };
    let above = parent(&file.path);
    if !above.is_empty() {
        shelf.make_folder(above, true, now)?;
    }
    let content = match shelf.real_path(&file.path) {
        Some(real) => {
            std::fs::write(real, &content)?;
            Content::Disk(i64::try_from(content.len()).unwrap_or(i64::MAX))
        }
        None => Content::Memory(vec![content]),
    };
    shelf.put(&file.path, content, now);
    announce_space(world, &file.datastore);
    Ok(())
}

/// The target's directory must be there, and the target itself must not unless it may be replaced.
fn check_target(world: &mut World, to: &FilePath, force: bool) -> Result<(), Failure> {
    let Some(shelf) = world.store.shelf(&to.datastore) else {
        return Err(Failure::not_found(&to.datastore));
    };
    if !shelf.is_folder(parent(&to.path)) {
        return Err(failure(world, to, &FileError::NotFound));
    }
    if shelf.get(&to.path).is_none() {
        return Ok(());
    }
    if !force {
        return Err(failure(world, to, &FileError::Exists));
    }
    need_unlocked(world, to)?;
    let removed =
        world.store.shelf_mut(&to.datastore).map_or(Ok(()), |shelf| shelf.remove(&to.path));
    removed.map_err(|error| failure(world, to, &error))
}

/// Looks at the directory behind a datastore, where there is one: at the file's own and at the one it is in.
pub(crate) fn refresh(world: &mut World, file: &FilePath, now: Timestamp) {
    if let Some(shelf) = world.store.shelf_mut(&file.datastore) {
        let mut folder = String::new();
        shelf.refresh(&folder, now);
        for step in file.path.split('/').filter(|step| !step.is_empty()) {
            if !folder.is_empty() {
                folder.push('/');
            }
            folder.push_str(step);
            if shelf.is_folder(&folder) {
                shelf.refresh(&folder, now);
            }
        }
    }
}
