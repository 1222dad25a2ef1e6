//! Garbage collection of the image cache. Files that no VM waits for and no disk stands on go after a while, never earlier:
//!
//! 1. nobody needs a location: since when is written down on the object;
//! 2. after the time that files are kept, the location leaves the object, so that no new VM is made of it; creates that are under way have time to end;
//! 3. then vCenter itself is asked whether any VM, of anybody, has a disk on these files. If one has, the location comes back; if none has, the files are deleted.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::DeleteParams;
use kube::{Api, ResourceExt as _};
use roost_controller::Draft;
use roost_supervise::Chain;
use roost_vim::DatastorePath;
use roost_vim::wire::{MoRef, MoType};
use serde::{Deserialize, Serialize};

use super::cache_files::CopyError;
use crate::api::names::label;
use crate::api::{CacheLocation, VirtualMachine, VirtualMachineImageCache};
use crate::flow::{Context, PassError};
use crate::images::cache_directory;
use crate::provider::{CopyEnded, stands_on};

/// Ours, on cache objects: what is on its way out, and since when.
const UNUSED: &str = "roost.dev/unused-locations";

/// How long files are kept: without anybody who needs them, and then until all that has begun is over.
#[derive(Debug, Clone, Copy)]
struct Kept {
    unused: Duration,
    grace: Duration,
}

/// A location that nobody needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Unused {
    #[serde(flatten)]
    at: CacheLocation,
    since: Timestamp,
    /// It has left the object; its files are in this directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<Left>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Left {
    at: Timestamp,
    directory: String,
}

/// What comes next for one location.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It is needed, or was again.
    Keep,
    Note,
    Leave,
    Wait,
    Remove,
}

fn plan(
    is_used: bool,
    is_wanted: bool,
    known: Option<&Unused>,
    now: Timestamp,
    kept: Kept,
) -> Step {
    match known {
        // Asked for again after it had left: it is a new one.
        Some(Unused { left: Some(_), .. }) if is_wanted => Step::Keep,
        Some(Unused { left: Some(left), .. }) if now >= left.at + kept.grace => Step::Remove,
        Some(Unused { left: Some(_), .. }) => Step::Wait,
        _ if is_used => Step::Keep,
        None => Step::Note,
        Some(unused) if now >= unused.since + kept.unused => Step::Leave,
        Some(_) => Step::Wait,
    }
}

/// Looks at every location. True if nothing is left and nobody asks for the image: then the object itself can go.
pub(super) fn unneeded(cx: &Arc<Context>, cache: &mut Draft<VirtualMachineImageCache>) -> bool {
    let settings = &cx.provider.settings;
    let Some(unused_for) = settings.image_cache_ttl else { return false };
    let kept = Kept { unused: unused_for, grace: settings.image_cache_grace };
    let now = cx.now();
    let waits = is_waited_for(cx, cache);
    let mut rows = read(cache);
    for at in cache.spec.locations.clone() {
        let directory = directory_of(cache, &at);
        let known = rows.iter().position(|row| row.at == at && row.left.is_none());
        // Files that are being copied are wanted by somebody.
        let is_used = waits || directory.as_ref().is_none_or(|of| stands_any(cx, of));
        match (plan(is_used, true, known.map(|index| &rows[index]), now, kept), known, directory) {
            (Step::Keep, Some(index), _) => {
                rows.remove(index);
            }
            (Step::Note, ..) => rows.push(Unused { at, since: now, left: None }),
            (Step::Leave, Some(index), Some(directory)) => {
                rows[index].left = Some(Left { at: now, directory });
                cache.spec.locations.retain(|known| *known != at);
                cache.status_mut().locations.retain(|known| known.location != at);
            }
            _ => {}
        }
    }
    rows.retain(|row| row.left.is_some() || cache.spec.locations.contains(&row.at));
    let mut staying = Vec::new();
    for mut row in rows {
        let Some(left) = row.left.clone() else {
            staying.push(row);
            continue;
        };
        match plan(false, is_wanted(cache, &row.at, &left), Some(&row), now, kept) {
            Step::Keep => {}
            Step::Remove => {
                if !is_over(cx, cache, &mut row, &left) {
                    staying.push(row);
                }
            }
            Step::Note | Step::Leave | Step::Wait => staying.push(row),
        }
    }
    write(cache, &staying);
    let is_empty = cache.spec.locations.is_empty() && staying.is_empty();
    // A cache without files is one that a VM has just asked for, unless it is old.
    let made = cache.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let is_old = made.is_some_and(|made| now >= made + kept.unused);
    is_empty && !waits && is_old
}

/// The removal of one directory: begun if it is not, and true when it has ended.
fn is_over(
    cx: &Arc<Context>,
    cache: &mut Draft<VirtualMachineImageCache>,
    row: &mut Unused,
    left: &Left,
) -> bool {
    let (key, copies) = (cache.key(), &cx.provider.copies);
    match copies.take_ended(&key, &left.directory) {
        Some(Ok(CopyEnded::StillUsed(by))) => {
            tracing::info!("{} is kept: {} stand on it", left.directory, by.join(", "));
            // The current version is back. Whether an old one is still needed is asked after another grace period.
            if is_of_version(cache, &row.at, left) {
                cache.spec.locations.push(row.at.clone());
                return true;
            }
            row.left = Some(Left { at: cx.now(), directory: left.directory.clone() });
        }
        Some(Ok(_)) => return true,
        Some(Err(why)) => tracing::warn!("{} cannot be removed: {why}", left.directory),
        None if copies.is_running(&key, &left.directory) => {}
        None => begin_removal(cx, cache, row, left),
    }
    false
}

/// All that is cached is of another version now, and leaves.
pub(super) fn leave_all(cx: &Context, cache: &mut Draft<VirtualMachineImageCache>) {
    if cx.provider.settings.image_cache_ttl.is_none() {
        return;
    }
    let now = cx.now();
    let mut rows = read(cache);
    let known = cache.status.as_ref().map(|status| status.locations.clone()).unwrap_or_default();
    for at in known.into_iter().map(|known| known.location) {
        if let Some(directory) = directory_of(cache, &at) {
            rows.push(Unused { at, since: now, left: Some(Left { at: now, directory }) });
        }
    }
    write(cache, &rows);
}

/// Locations whose files are being removed at this moment.
pub(super) fn being_removed(
    cx: &Context,
    cache: &Draft<VirtualMachineImageCache>,
) -> Vec<CacheLocation> {
    let key = cache.key();
    let is_running = |row: &Unused| {
        let left = row.left.as_ref();
        left.is_some_and(|left| cx.provider.copies.is_running(&key, &left.directory))
    };
    read(cache).into_iter().filter(is_running).map(|row| row.at).collect()
}

/// Whether the directory is the one of the image as it is now.
fn is_of_version(cache: &VirtualMachineImageCache, at: &CacheLocation, left: &Left) -> bool {
    let own = cache_directory(&cache.name_any(), &at.profile_id, &cache.spec.provider_version);
    left.directory.rsplit(' ').next() == Some(own.as_str())
}

fn is_wanted(cache: &VirtualMachineImageCache, at: &CacheLocation, left: &Left) -> bool {
    cache.spec.locations.contains(at) && is_of_version(cache, at, left)
}

/// The object, whose files are gone.
pub(super) async fn delete(
    cx: &Context,
    cache: &VirtualMachineImageCache,
) -> Result<(), PassError> {
    let name = cache.name_any();
    let api: Api<VirtualMachineImageCache> =
        Api::namespaced(cx.writer.client().clone(), &cx.settings.pod_namespace);
    // Only as it was seen: who asks for a location at this moment keeps it.
    let as_seen = kube::api::Preconditions {
        resource_version: cache.metadata.resource_version.clone(),
        uid: cache.metadata.uid.clone(),
    };
    let params = DeleteParams { preconditions: Some(as_seen), ..DeleteParams::default() };
    match api.delete(&name, &params).await {
        Err(kube::Error::Api(said)) if said.is_not_found() || said.is_conflict() => Ok(()),
        other => other.map(drop).map_err(PassError::api(format!("delete image cache {name}"))),
    }
}

/// Whether a VM is to be made of this image.
fn is_waited_for(cx: &Context, cache: &VirtualMachineImageCache) -> bool {
    let (name, item) = (cache.name_any(), &cache.spec.provider_id);
    let waits = |vm: &Arc<VirtualMachine>| {
        let is_marked = vm.labels().get(label::IMAGE_CACHE_NAME) == Some(&name);
        let image = vm.spec.image.as_ref().filter(|_| !vm.is_created());
        let namespace = vm.namespace().unwrap_or_default();
        let image = image.and_then(|of| cx.stores.image(&namespace, &of.kind, &of.name));
        is_marked || image.is_some_and(|of| of.provider_item_id == *item)
    };
    cx.stores.vms.objects().iter().any(waits)
}

fn directory_of(cache: &VirtualMachineImageCache, at: &CacheLocation) -> Option<String> {
    let file = cache.location(at)?.files.first()?;
    let path: DatastorePath = file.id.parse().ok()?;
    Some(path.parent().to_string())
}

/// Whether a disk of one of our VMs stands on a file of the directory. The close-up knows; no call is made.
fn stands_any(cx: &Context, directory: &str) -> bool {
    let below = format!("{directory}/");
    let (mirror, close_up) = (cx.provider.fleet.mirror().snapshot(), cx.provider.fleet.close_up());
    let mut details = mirror.vms().filter_map(|row| close_up.of(&row.id));
    details.any(|detail| detail.devices().iter().any(|device| stands_on(device, &below)))
}

fn begin_removal(
    cx: &Arc<Context>,
    cache: &Draft<VirtualMachineImageCache>,
    row: &Unused,
    left: &Left,
) {
    let told = cx.provider.copies.begin(&cache.key(), &left.directory);
    let (cx, at, directory) = (Arc::clone(cx), row.at.clone(), left.directory.clone());
    tokio::spawn(async move {
        let removed = remove(&cx, &at, &directory).await;
        told(removed.map_err(|error| Chain(&error).to_string()));
    });
}

async fn remove(cx: &Context, at: &CacheLocation, directory: &str) -> Result<CopyEnded, CopyError> {
    let datastore = MoRef::new(MoType::Datastore, at.datastore_id.as_str());
    let place = cx.provider.places.disk_place(&datastore).await?;
    // Such a datastore knows a directory by two names, so nobody can say for sure who stands on it.
    if place.names_directories {
        return Ok(CopyEnded::Removed);
    }
    let users = cx.provider.places.users_of(&datastore, directory).await?;
    if !users.is_empty() {
        return Ok(CopyEnded::StillUsed(users));
    }
    let files = cx.provider.fleet.machines().files(&place.datacenter, &place.datastore).await?;
    let Ok(path) = directory.parse::<DatastorePath>() else { return Ok(CopyEnded::Removed) };
    // A directory of ours is at the top of its datastore, and never the top itself.
    if path.path().is_empty() || path.path().contains('/') {
        return Ok(CopyEnded::Removed);
    }
    files.delete(&path).await?;
    tracing::info!("{directory} was removed: no VM has needed it for a while");
    Ok(CopyEnded::Removed)
}

fn read(cache: &VirtualMachineImageCache) -> Vec<Unused> {
    let text = cache.annotations().get(UNUSED);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn write(cache: &mut VirtualMachineImageCache, rows: &[Unused]) {
    if rows.is_empty() {
        if cache.annotations().contains_key(UNUSED) {
            cache.annotations_mut().remove(UNUSED);
        }
        return;
    }
    let text = serde_json::to_string(rows).unwrap_or_default();
    cache.annotations_mut().insert(UNUSED.to_owned(), text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_go_only_after_their_time_and_a_grace_and_not_while_anybody_needs_them() {
        let at = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
        let kept = Kept { unused: Duration::from_mins(100), grace: Duration::from_mins(90) };
        let unused = |left: Option<i64>| Unused {
            at: CacheLocation::default(),
            since: at(0),
            left: left.map(|minutes| Left { at: at(minutes), directory: "[ds] x".to_owned() }),
        };
        for (case, is_used, is_wanted, known, now, want) in [
            ("used", true, true, None, 0, Step::Keep),
            ("used again", true, true, Some(unused(None)), 200, Step::Keep),
            ("not used", false, true, None, 0, Step::Note),
            ("not for long", false, true, Some(unused(None)), 99, Step::Wait),
            ("for long", false, true, Some(unused(None)), 100, Step::Leave),
            ("in its grace", false, false, Some(unused(Some(100))), 189, Step::Wait),
            ("after its grace", false, false, Some(unused(Some(100))), 190, Step::Remove),
            ("asked for in its grace", true, true, Some(unused(Some(100))), 150, Step::Keep),
        ] {
            assert_eq!(plan(is_used, is_wanted, known.as_ref(), at(now), kept), want, "{case}");
        }
    }
}
