//! Searching datastores.

use jiff::Timestamp;
use roost_vim_wire::types::{
    FileInfo, FileQueryFlags, HostDatastoreBrowserSearchResults, HostDatastoreBrowserSearchSpec,
};
use roost_vim_wire::{Array, Element, Value};

use super::file_ops::{failure, refresh};
use super::path::matches;
use crate::call::Failure;
use crate::store::{Entry, FileError, Shelf};
use crate::vm::FilePath;
use crate::world::World;

/// The result of `SearchDatastore_Task`.
pub(super) fn search(
    world: &mut World,
    folder: &FilePath,
    spec: &HostDatastoreBrowserSearchSpec,
    now: Timestamp,
) -> Result<Value, Failure> {
    Ok(Value::data(search_folder(world, folder, spec, now)?))
}

/// The result of `SearchDatastoreSubFolders_Task`: one per folder, also where nothing fits.
pub(super) fn search_below(
    world: &mut World,
    folder: &FilePath,
    spec: &HostDatastoreBrowserSearchSpec,
    now: Timestamp,
) -> Result<Value, Failure> {
    let first = search_folder(world, folder, spec, now)?;
    let folders = world
        .store
        .shelf(&folder.datastore)
        .map(|shelf| shelf.folders(&folder.path))
        .unwrap_or_default();
    let mut results = vec![Value::data(first)];
    for path in folders.into_iter().skip(1) {
        let folder = FilePath::new(&folder.datastore, path);
        results.push(Value::data(search_folder(world, &folder, spec, now)?));
    }
    Ok(Value::Array(Array::new("HostDatastoreBrowserSearchResults", results)))
}

fn search_folder(
    world: &mut World,
    folder: &FilePath,
    spec: &HostDatastoreBrowserSearchSpec,
    now: Timestamp,
) -> Result<HostDatastoreBrowserSearchResults, Failure> {
    refresh(world, folder, now);
    let Some(shelf) =
        world.store.shelf(&folder.datastore).filter(|shelf| shelf.is_folder(&folder.path))
    else {
        return Err(failure(world, folder, &FileError::NotFound));
    };
    let mut file = find(shelf, &folder.path, spec);
    if spec.sort_folders_first.unwrap_or(false) {
        file.sort_by_key(|file| file.class != "FolderFileInfo");
    }
    Ok(HostDatastoreBrowserSearchResults {
        datastore: Some(folder.datastore.clone()),
        folder_path: Some(world.inventory.datastore_path(folder)),
        file,
    })
}

fn find(shelf: &Shelf, folder: &str, spec: &HostDatastoreBrowserSearchSpec) -> Vec<FileInfo> {
    let details = spec.details.clone().unwrap_or_default();
    let is_caseless = spec.search_case_insensitive.unwrap_or(false);
    let fold = |text: &str| if is_caseless { text.to_lowercase() } else { text.to_owned() };
    let fits_name = |name: &str| {
        spec.match_pattern.is_empty()
            || spec.match_pattern.iter().any(|pattern| matches(&fold(pattern), &fold(name)))
    };
    let fits_kind = |class: &str| {
        spec.query.is_empty() || spec.query.iter().any(|query| asks_for(query, class))
    };
    let rows = shelf.list(folder).filter(|(name, _)| fits_name(name));
    let typed = rows.map(|(name, entry)| (class_of(name, entry), name, entry));
    typed
        .filter(|(class, ..)| fits_kind(class))
        .map(|(class, name, entry)| info(class, name, entry, &details))
        .collect()
}

fn info(class: &'static str, name: &str, entry: &Entry, details: &FileQueryFlags) -> FileInfo {
    // Folders are told apart even by those who did not ask for types.
    let class = if details.file_type || class == "FolderFileInfo" { class } else { "FileInfo" };
    FileInfo {
        path: name.into(),
        friendly_name: None,
        file_size: details.file_size.then(|| entry.content.size()),
        modification: details.modification.then_some(entry.modified),
        owner: details.file_owner.then(|| "root".into()),
        ..FileInfo::of(class)
    }
}

/// `VmDiskFileQuery` asks for `VmDiskFileInfo`; the plain `FileQuery` for all.
fn asks_for(query: &Element, class: &str) -> bool {
    match query.xsi_type.as_deref() {
        None | Some("FileQuery") => true,
        Some(asked) => asked.strip_suffix("Query") == class.strip_suffix("Info"),
    }
}

fn class_of(name: &str, entry: &Entry) -> &'static str {
    if entry.content.is_folder() {
        return "FolderFileInfo";
    }
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("iso") => "IsoImageFileInfo",
        Some("vmdk") => "VmDiskFileInfo",
        Some("vmx") => "VmConfigFileInfo",
        Some("vmtx") => "TemplateConfigFileInfo",
        Some("log") => "VmLogFileInfo",
        Some("nvram") => "VmNvramFileInfo",
        Some("vmsn") => "VmSnapshotFileInfo",
        Some("flp") => "FloppyImageFileInfo",
        _ => "FileInfo",
    }
}
