//! Copying the files of an image to a datastore. A file has its name only when it is whole: it is copied under another one and then renamed, so that neither a
//! crash nor a copy of somebody else that is still under way is taken for the file.

use roost_fleet::Phase;
use roost_vim::wire::{MoRef, MoType};
use roost_vim::{DatastorePath, FileError, RestError, TaskError, thin_disk};

use crate::api::{CacheFile, CacheFileType, CacheLocation, CachedDiskType};
use crate::flow::Context;
use crate::images::{cache_directory, cache_file_name, has_extension};
use crate::provider::PlaceError;

/// Why files are not where they are wanted.
#[derive(Debug, thiserror::Error)]
pub(super) enum CopyError {
    #[error("reading where library item {item} lies")]
    Library { item: String, source: RestError },
    #[error("library item {0} has no disk that can be copied")]
    NoDisks(String),
    #[error("the image cache")]
    Place(#[from] PlaceError),
    #[error("the image cache")]
    File(#[from] FileError),
    #[error("copying {file}")]
    Task { file: String, source: TaskError },
}

/// A file of an image, and where it lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageFile {
    name: String,
    path: DatastorePath,
    is_disk: bool,
}

/// The disks of a library item, and the settings of its firmware.
pub(super) async fn item_files(cx: &Context, item: &str) -> Result<Vec<ImageFile>, CopyError> {
    let observer = cx.provider.fleet.observer();
    let stored = observer.item_storage(item).await;
    let stored = stored.map_err(|source| CopyError::Library { item: item.to_owned(), source })?;
    let mut files = Vec::new();
    for file in stored {
        let is_disk = has_extension(&file.name, "vmdk");
        if !is_disk && !has_extension(&file.name, "nvram") {
            continue;
        }
        let below = file.uris.first().and_then(|uri| crate::provider::path_of_uri(uri));
        let (Some(below), Some(datastore)) = (below, &file.datastore) else { continue };
        let place = cx.provider.places.disk_place(datastore).await?;
        let path = DatastorePath::new(place.datastore.name.clone(), below);
        files.push(ImageFile { name: file.name, path, is_disk });
    }
    if files.iter().any(|file| file.is_disk) {
        Ok(files)
    } else {
        Err(CopyError::NoDisks(item.to_owned()))
    }
}

/// Where the files of an image are at a location, and what they are called there. Those that are there are not copied again.
pub(super) async fn copy_files(
    cx: &Context,
    (cache, version): (&str, &str),
    at: &CacheLocation,
    files: &[ImageFile],
) -> Result<Vec<CacheFile>, CopyError> {
    let datastore = MoRef::new(MoType::Datastore, at.datastore_id.as_str());
    let place = cx.provider.places.disk_place(&datastore).await?;
    let machines = cx.provider.fleet.machines();
    let directory = cache_directory(cache, &at.profile_id, version);
    let (store, directory) = machines.top_directory(&place, &directory).await?;
    let there = store.list(&directory, None).await?.unwrap_or_default();
    let is_there = |name: &str| there.iter().any(|file| file.path.file_name() == name);
    let policy = at.policy();
    let mut copied = Vec::new();
    for file in files {
        let name = cache_file_name(&file.name);
        let to = directory.join(&name);
        if !is_there(&name) {
            let partial = directory.join(&format!("partial-{name}"));
            if file.is_disk {
                let task =
                    store.copy_disk(&file.path, &partial, Some(thin_disk(policy, None))).await?;
                let waiting = task.with_deadline(machines.longest(Phase::COPYING)).wait().await;
                waiting.map_err(|source| CopyError::Task { file: file.name.clone(), source })?;
                store.move_disk(&partial, &to).await?;
            } else {
                store.copy_to(&file.path, &partial).await?;
                store.move_to(&partial, &to).await?;
            }
        }
        copied.push(CacheFile {
            id: to.to_string(),
            type_: if file.is_disk { CacheFileType::Disk } else { CacheFileType::Other },
            name: file.name.clone(),
            disk_type: file.is_disk.then_some(CachedDiskType::Classic),
        });
    }
    Ok(copied)
}
