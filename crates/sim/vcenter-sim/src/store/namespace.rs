//! Directories of datastores that name top-level directories themselves.

use roost_vim_wire::MoRef;
use roost_vim_wire::methods::CreateDirectory;

use super::file_ops::{delete, failure, file_fault, locate};
use crate::call::{CallContext, Failure};
use crate::inventory::{DatastoreKind, draw_uuid, uuid_text};
use crate::store::FileError;
use crate::vm::FilePath;
use crate::world::World;

/// Makes a directory whose real name is the datastore's choice, and answers with its path.
pub(super) fn create_directory(
    world: &mut World,
    cx: &CallContext<'_>,
    call: &CreateDirectory,
) -> Result<String, Failure> {
    let Some(row) = world.inventory.datastores.get(&call.datastore) else {
        return Err(Failure::not_found(&call.datastore));
    };
    let url = row.url.clone();
    if row.kind == DatastoreKind::Vmfs {
        let name = call.display_name.as_deref().unwrap_or_default();
        let file = FilePath::new(&call.datastore, name);
        return Err(file_fault(
            world,
            "CannotCreateFile",
            &file,
            "Cannot complete file creation operation.",
        ));
    }
    let name = call.display_name.clone().filter(|name| !name.is_empty());
    if let Some(name) = &name
        && world.store.shelf(&call.datastore).is_some_and(|shelf| shelf.get(name).is_some())
    {
        let file = FilePath::new(&call.datastore, name.as_str());
        return Err(failure(world, &file, &FileError::Exists));
    }
    let directory = name.unwrap_or_else(|| uuid_text(draw_uuid(&mut world.random)));
    let file = FilePath::new(&call.datastore, directory.as_str());
    super::make_directory(world, &file, false, cx.now)?;
    let volume = url.strip_prefix("ds://").unwrap_or(&url).trim_end_matches('/');
    Ok(format!("{volume}/{directory}"))
}

/// Takes such a directory away; the path is the one that was answered, or a datastore path.
pub(super) fn delete_directory(
    world: &mut World,
    cx: &CallContext<'_>,
    text: &str,
    datacenter: Option<&MoRef>,
) -> Result<(), Failure> {
    let by_volume = || {
        let all = world.inventory.datastores.iter();
        all.into_iter().find_map(|(moref, row)| {
            let volume = row.url.strip_prefix("ds://").unwrap_or(&row.url).trim_end_matches('/');
            let rest = text.strip_prefix(volume)?.trim_matches('/');
            Some(FilePath::new(moref, rest))
        })
    };
    let file = match by_volume() {
        Some(file) => file,
        None => locate(world, text, datacenter)?,
    };
    if file.path.is_empty() {
        return Err(Failure::invalid_argument("datastorePath"));
    }
    let row = world.inventory.datastores.get(&file.datastore);
    if row.is_some_and(|row| row.kind == DatastoreKind::Vmfs) {
        return Err(file_fault(world, "CannotDeleteFile", &file, "Cannot delete file"));
    }
    delete(world, &file, cx.now)
}
