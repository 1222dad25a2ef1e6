//! First-class disks: disks that are objects of their own, with a name, snapshots and tags, and no VM around them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use roost_clock::Random;
use roost_vim_wire::{Element, Fault, MoRef, Request, Value};

use crate::call::{CallContext, CallResult, Failure};
use crate::model::calls;
use crate::options::Options;
use crate::store::{self, Content};
use crate::task::{Job, submit};
use crate::vm::{FilePath, initial_bytes};
use crate::world::World;

/// The directory that a datastore keeps them in.
const DIRECTORY: &str = "fcd";

#[derive(Debug)]
pub(crate) struct DiskObjects {
    all: BTreeMap<String, DiskObject>,
    random: Random,
}

#[derive(Debug, Clone)]
struct DiskObject {
    name: String,
    path: FilePath,
    capacity_mb: i64,
    is_thin: bool,
    created: Timestamp,
    keeps: bool,
    snapshots: Vec<(String, String, Timestamp)>,
    /// Category and tag.
    tags: BTreeSet<(String, String)>,
}

impl DiskObjects {
    pub(crate) fn new(options: &Options) -> Self {
        Self { all: BTreeMap::new(), random: Random::from_seed(options.seed).fork("disk objects") }
    }

    fn get(&self, id: &str, datastore: &MoRef) -> Result<&DiskObject, Failure> {
        let found = self.all.get(id).filter(|disk| disk.path.datastore == *datastore);
        found.ok_or_else(not_found)
    }

    fn get_mut(&mut self, id: &str, datastore: &MoRef) -> Result<&mut DiskObject, Failure> {
        let found = self.all.get_mut(id).filter(|disk| disk.path.datastore == *datastore);
        found.ok_or_else(not_found)
    }
}

fn not_found() -> Failure {
    Failure::of("NotFound", "The object or item referred to could not be found.")
}

fn id_of(element: &Element) -> String {
    element.text_of("id").unwrap_or_default().to_owned()
}

fn id_element(name: &str, id: &str) -> Element {
    Element::new(name).typed("ID").with_field("id", &id.to_owned())
}

/// The methods of the manager of first-class disks.
pub(crate) fn call(
    request: &Request<'_>,
    _: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        CreateDiskTask => |call| create(world, cx, &call.spec),
        RegisterDisk => |call| register(world, cx, &call.path, call.name.as_deref()),
        ListVStorageObject => |call| {
            if !world.inventory.datastores.contains(&call.datastore) {
                return Err(Failure::not_found(&call.datastore));
            }
            let all = world.disk_objects.all.iter();
            let here = all.filter(|(_, disk)| disk.path.datastore == call.datastore);
            Ok(here.map(|(id, _)| id_element("returnval", id)).collect())
        },
        RetrieveVStorageObject => |call| {
            let id = id_of(&call.id);
            let disk = world.disk_objects.get(&id, &call.datastore)?;
            Ok(shown(world, "returnval", &id, disk))
        },
        RenameVStorageObject => |call| {
            world.disk_objects.get_mut(&id_of(&call.id), &call.datastore)?.name = call.name;
            Ok(())
        },
        DeleteVStorageObjectTask => |call| {
            let id = id_of(&call.id);
            world.disk_objects.get(&id, &call.datastore)?;
            let at = call.datastore.clone();
            Ok(run(world, cx, "DeleteVStorageObject_Task", &call.datastore, move |world, now| {
                let path = world.disk_objects.get(&id, &at)?.path.clone();
                store::delete(world, &path, now)?;
                world.disk_objects.all.remove(&id);
                Ok(None)
            }))
        },
        ExtendDiskTask => |call| {
            let (id, at, size) = (id_of(&call.id), call.datastore.clone(), call.new_capacity_in_mb);
            if size < world.disk_objects.get(&id, &at)?.capacity_mb {
                return Err(Failure::invalid_argument("newCapacityInMB"));
            }
            Ok(run(world, cx, "ExtendDisk_Task", &call.datastore, move |world, _| {
                world.disk_objects.get_mut(&id, &at)?.capacity_mb = size;
                Ok(None)
            }))
        },
        VStorageObjectCreateSnapshotTask => |call| {
            let (id, at, words) = (id_of(&call.id), call.datastore.clone(), call.description);
            world.disk_objects.get(&id, &at)?;
            Ok(run(world, cx, "VStorageObjectCreateSnapshot_Task", &call.datastore, move |world, now| {
                let snapshot = world.disk_objects.random.uuid();
                let disk = world.disk_objects.get_mut(&id, &at)?;
                disk.snapshots.push((snapshot.clone(), words, now));
                Ok(Some(Value::Other(Box::new(id_element("result", &snapshot)))))
            }))
        },
        RetrieveSnapshotInfo => |call| {
            let disk = world.disk_objects.get(&id_of(&call.id), &call.datastore)?;
            let mut info = Element::new("returnval");
            for (id, words, at) in &disk.snapshots {
                let row = Element::new("snapshots")
                    .with(id_element("id", id))
                    .with_field("createTime", at)
                    .with_field("description", words);
                info = info.with(row);
            }
            Ok(info)
        },
        DeleteSnapshotTask => |call| {
            let (id, at, gone) = (id_of(&call.id), call.datastore.clone(), id_of(&call.snapshot_id));
            let disk = world.disk_objects.get(&id, &at)?;
            if !disk.snapshots.iter().any(|(id, ..)| *id == gone) {
                return Err(not_found());
            }
            Ok(run(world, cx, "DeleteSnapshot_Task", &call.datastore, move |world, _| {
                world.disk_objects.get_mut(&id, &at)?.snapshots.retain(|(id, ..)| *id != gone);
                Ok(None)
            }))
        },
        AttachTagToVStorageObject => |call| {
            let disk = world.disk_objects.all.get_mut(&id_of(&call.id)).ok_or_else(not_found)?;
            disk.tags.insert((call.category, call.tag));
            Ok(())
        },
        DetachTagFromVStorageObject => |call| {
            let disk = world.disk_objects.all.get_mut(&id_of(&call.id)).ok_or_else(not_found)?;
            disk.tags.remove(&(call.category, call.tag));
            Ok(())
        },
        ListTagsAttachedToVStorageObject => |call| {
            let disk = world.disk_objects.all.get(&id_of(&call.id)).ok_or_else(not_found)?;
            let row = |(category, tag): &(String, String)| {
                Element::new("returnval")
                    .with_field("tagName", tag)
                    .with_field("parentCategoryName", category)
            };
            Ok(disk.tags.iter().map(row).collect())
        },
        ListVStorageObjectsAttachedToTag => |call| {
            let wanted = (call.category, call.tag);
            let all = world.disk_objects.all.iter().filter(|(_, disk)| disk.tags.contains(&wanted));
            Ok(all.map(|(id, _)| id_element("returnval", id)).collect())
        },
        ReconcileDatastoreInventoryTask => |call| {
            let at = call.datastore.clone();
            Ok(run(world, cx, "ReconcileDatastoreInventory_Task", &call.datastore, move |world, _| {
                let shelf = world.store.shelf(&at);
                let lost = |disk: &DiskObject| {
                    disk.path.datastore == at
                        && shelf.is_none_or(|shelf| shelf.get(&disk.path.path).is_none())
                };
                world.disk_objects.all.retain(|_, disk| !lost(disk));
                Ok(None)
            }))
        },
    }
}

fn run(
    world: &mut World,
    cx: &CallContext<'_>,
    method: &'static str,
    datastore: &MoRef,
    work: impl FnOnce(&mut World, Timestamp) -> Result<Option<Value>, Failure> + Send + 'static,
) -> MoRef {
    let takes = cx.handle.options.timings.file.draw(&mut world.random);
    let job = Job::on(method, datastore).without_hold();
    submit(world, cx, job.then(takes, move |world, run| work(world, run.now)))
}

fn shown(world: &World, name: &str, id: &str, disk: &DiskObject) -> Element {
    let provisioning = if disk.is_thin { "thin" } else { "lazyZeroedThick" };
    let backing = Element::new("backing")
        .typed("BaseConfigInfoDiskFileBackingInfo")
        .with_field("datastore", &disk.path.datastore)
        .with_field("filePath", &world.inventory.datastore_path(&disk.path))
        .with_field("provisioningType", &provisioning.to_owned());
    let config = Element::new("config")
        .with(id_element("id", id))
        .with_field("name", &disk.name)
        .with_field("createTime", &disk.created)
        .with_field("keepAfterDeleteVm", &disk.keeps)
        .with_field("relocationDisabled", &false)
        .with_field("nativeSnapshotSupported", &false)
        .with_field("changedBlockTrackingEnabled", &false)
        .with(backing)
        .with_field("descriptorVersion", &1)
        .with_field("capacityInMB", &disk.capacity_mb)
        .with_field("consumptionType", &"disk".to_owned());
    Element::new(name).typed("VStorageObject").with(config)
}

fn create(world: &mut World, cx: &CallContext<'_>, spec: &Element) -> Result<MoRef, Failure> {
    let backing = spec.child("backingSpec").cloned().unwrap_or_default();
    let Some(datastore) = backing.child("datastore").and_then(Element::moref) else {
        return Err(Failure::invalid_argument("spec.backingSpec.datastore"));
    };
    if !world.inventory.datastores.contains(&datastore) {
        return Err(Failure::not_found(&datastore));
    }
    let capacity_mb = spec.number_of("capacityInMB").unwrap_or(0);
    if capacity_mb <= 0 {
        return Err(Failure::invalid_argument("spec.capacityInMB"));
    }
    let name = spec.text_of("name").unwrap_or_default().to_owned();
    let is_thin = backing.text_of("provisioningType").is_none_or(|kind| kind == "thin");
    let keeps = spec.text_of("keepAfterDeleteVm") != Some("false");
    let directory = backing.text_of("path").filter(|path| !path.is_empty()).unwrap_or(DIRECTORY);
    let directory = directory.to_owned();
    let at = datastore.clone();
    Ok(run(world, cx, "CreateDisk_Task", &datastore, move |world, now| {
        let (id, file) = (world.disk_objects.random.uuid(), world.disk_objects.random.uuid());
        let path = FilePath::new(&at, format!("{directory}/{}.vmdk", file.replace('-', "")));
        let bytes = initial_bytes(capacity_mb.saturating_mul(1024), is_thin);
        store::need_space(world, &path, bytes)?;
        if let Some(shelf) = world.store.shelf_mut(&at) {
            // It is there after the first disk.
            let _ = shelf.make_folder(&directory, true, now);
            shelf.put(&path.path, Content::Hollow(bytes), now);
        }
        store::announce_space(world, &at);
        let disk = DiskObject {
            name,
            path,
            capacity_mb,
            is_thin,
            created: now,
            keeps,
            snapshots: Vec::new(),
            tags: BTreeSet::new(),
        };
        let result = shown(world, "result", &id, &disk);
        world.disk_objects.all.insert(id, disk);
        Ok(Some(Value::Other(Box::new(result))))
    }))
}

/// Makes an object of a disk that is there. The path is a `/folder` address or a datastore path.
fn register(
    world: &mut World,
    cx: &CallContext<'_>,
    path: &str,
    name: Option<&str>,
) -> Result<Element, Failure> {
    let file = locate(world, path).ok_or_else(|| Failure::invalid_argument("path"))?;
    let shelf = world.store.shelf(&file.datastore);
    let entry = shelf.and_then(|shelf| shelf.get(&file.path));
    let Some(size) =
        entry.filter(|entry| !entry.content.is_folder()).map(|entry| entry.content.size())
    else {
        return Err(store::file_fault(world, "FileNotFound", &file, "File not found:"));
    };
    if let Some((id, _)) = world.disk_objects.all.iter().find(|(_, disk)| disk.path == file) {
        let fault = Fault::of("AlreadyExists").with("name", id);
        return Err(Failure::new(fault, "The disk is registered already."));
    }
    let id = world.disk_objects.random.uuid();
    let disk = DiskObject {
        name: name.unwrap_or(&id).to_owned(),
        path: file,
        capacity_mb: (size >> 20).max(1),
        is_thin: true,
        created: cx.now,
        keeps: true,
        snapshots: Vec::new(),
        tags: BTreeSet::new(),
    };
    let result = shown(world, "returnval", &id, &disk);
    world.disk_objects.all.insert(id, disk);
    Ok(result)
}

fn locate(world: &World, path: &str) -> Option<FilePath> {
    if path.starts_with('[') {
        return store::locate(world, path, None).ok();
    }
    let uri: http::Uri = path.parse().ok()?;
    let name = store::parameter(uri.query().unwrap_or_default(), "dsName")?;
    let datacenter = store::parameter(uri.query().unwrap_or_default(), "dcPath");
    let datacenter = datacenter.and_then(|path| world.inventory.by_path(&path));
    let datastore = world.inventory.datastore_named(&name, datacenter.as_ref())?;
    let inside = uri.path().strip_prefix("/folder/")?;
    let inside = percent_encoding::percent_decode_str(inside).decode_utf8().ok()?;
    Some(FilePath::new(&datastore, store::clean_path(&inside)?))
        .filter(|file| !file.path.is_empty())
}
