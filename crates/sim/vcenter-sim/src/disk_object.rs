//! First-class disks: disks that are objects of their own, with a name, snapshots and tags, and no VM around them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use roost_clock::Random;
use roost_vim_wire::types::{
    VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecOperation as Operation, VirtualMachineConfigSpec,
};
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

    /// The disk of this id, on this datastore if one is named.
    fn get(&self, id: &str, datastore: Option<&MoRef>) -> Result<&DiskObject, Failure> {
        let fits = |disk: &&DiskObject| datastore.is_none_or(|at| disk.path.datastore == *at);
        self.all.get(id).filter(fits).ok_or_else(not_found)
    }

    pub(crate) fn datastore_of(&self, id: &Element) -> Option<MoRef> {
        self.all.get(&id_of(id)).map(|disk| disk.path.datastore.clone())
    }

    fn get_mut(&mut self, id: &str) -> Result<&mut DiskObject, Failure> {
        self.all.get_mut(id).ok_or_else(not_found)
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
        RetrieveVStorageObject => |call| retrieve(world, &call.id, Some(&call.datastore)),
        RenameVStorageObject => |call| rename(world, &call.id, Some(&call.datastore), call.name),
        DeleteVStorageObjectTask => |call| delete(world, cx, &call.id, Some(&call.datastore)),
        ExtendDiskTask => |call| {
            extend(world, cx, (&call.id, Some(&call.datastore)), call.new_capacity_in_mb)
        },
        VStorageObjectCreateSnapshotTask => |call| {
            create_snapshot(world, cx, (&call.id, Some(&call.datastore)), call.description)
        },
        RetrieveSnapshotInfo => |call| snapshots(world, &call.id, Some(&call.datastore)),
        DeleteSnapshotTask => |call| {
            delete_snapshot(world, cx, (&call.id, Some(&call.datastore)), &call.snapshot_id)
        },
        AttachTagToVStorageObject => |call| attach_tag(world, &call.id, call.category, call.tag),
        DetachTagFromVStorageObject => |call| detach_tag(world, &call.id, call.category, call.tag),
        ListTagsAttachedToVStorageObject => |call| tags(world, &call.id),
        ListVStorageObjectsAttachedToTag => |call| Ok(tagged(world, call.category, call.tag)),
        ReconcileDatastoreInventoryTask => |call| Ok(reconcile(world, cx, &call.datastore)),
    }
}

/// A disk that is asked for, and the datastore that it should be on.
type Asked<'a> = (&'a Element, Option<&'a MoRef>);

/// What is known of a disk. One whose file is gone is not found.
pub(crate) fn retrieve(
    world: &World,
    id: &Element,
    datastore: Option<&MoRef>,
) -> Result<Element, Failure> {
    let id = id_of(id);
    let disk = world.disk_objects.get(&id, datastore)?;
    let shelf = world.store.shelf(&disk.path.datastore);
    if shelf.is_none_or(|shelf| shelf.get(&disk.path.path).is_none()) {
        return Err(not_found());
    }
    Ok(shown(world, "returnval", &id, disk))
}

/// Those that fit all conditions; of these, id, name and datastore can be asked for.
pub(crate) fn query(world: &World, conditions: &[Element]) -> Element {
    let fits = |id: &str, disk: &DiskObject, condition: &Element| {
        let own = match condition.text_of("queryField").unwrap_or_default() {
            "id" => id,
            "name" => &disk.name,
            "datastoreMoId" => &disk.path.datastore.id,
            _ => return true,
        };
        let values = condition.children_named("queryValue");
        let mut values = values.map(|value| value.text.as_str());
        match condition.text_of("queryOperator").unwrap_or_default() {
            "notEquals" => values.all(|value| value != own),
            "startsWith" => values.any(|value| own.starts_with(value)),
            "contains" => values.any(|value| own.contains(value)),
            "endsWith" => values.any(|value| own.ends_with(value)),
            _ => values.any(|value| value == own),
        }
    };
    let found = world
        .disk_objects
        .all
        .iter()
        .filter(|(id, disk)| conditions.iter().all(|condition| fits(id, disk, condition)));
    let result = Element::new("returnval").with_field("allRecordsReturned", &true);
    found.fold(result, |result, (id, _)| result.with(id_element("id", id)))
}

pub(crate) fn rename(
    world: &mut World,
    id: &Element,
    datastore: Option<&MoRef>,
    name: String,
) -> Result<(), Failure> {
    let id = id_of(id);
    world.disk_objects.get(&id, datastore)?;
    world.disk_objects.get_mut(&id)?.name = name;
    Ok(())
}

pub(crate) fn delete(
    world: &mut World,
    cx: &CallContext<'_>,
    id: &Element,
    datastore: Option<&MoRef>,
) -> Result<MoRef, Failure> {
    let id = id_of(id);
    let at = world.disk_objects.get(&id, datastore)?.path.datastore.clone();
    Ok(run(world, cx, "DeleteVStorageObject_Task", &at, move |world, now| {
        let path = world.disk_objects.get(&id, None)?.path.clone();
        store::need_unlocked(world, &path)?;
        store::delete(world, &path, now)?;
        world.disk_objects.all.remove(&id);
        Ok(None)
    }))
}

pub(crate) fn extend(
    world: &mut World,
    cx: &CallContext<'_>,
    (id, datastore): Asked<'_>,
    size: i64,
) -> Result<MoRef, Failure> {
    let id = id_of(id);
    let disk = world.disk_objects.get(&id, datastore)?;
    if size < disk.capacity_mb {
        return Err(Failure::invalid_argument("newCapacityInMB"));
    }
    let at = disk.path.datastore.clone();
    Ok(run(world, cx, "ExtendDisk_Task", &at, move |world, _| {
        world.disk_objects.get_mut(&id)?.capacity_mb = size;
        Ok(None)
    }))
}

pub(crate) fn create_snapshot(
    world: &mut World,
    cx: &CallContext<'_>,
    (id, datastore): Asked<'_>,
    words: String,
) -> Result<MoRef, Failure> {
    let id = id_of(id);
    let at = world.disk_objects.get(&id, datastore)?.path.datastore.clone();
    Ok(run(world, cx, "VStorageObjectCreateSnapshot_Task", &at, move |world, now| {
        let snapshot = world.disk_objects.random.uuid();
        let disk = world.disk_objects.get_mut(&id)?;
        disk.snapshots.push((snapshot.clone(), words, now));
        Ok(Some(Value::Other(Box::new(id_element("result", &snapshot)))))
    }))
}

pub(crate) fn delete_snapshot(
    world: &mut World,
    cx: &CallContext<'_>,
    (id, datastore): Asked<'_>,
    snapshot: &Element,
) -> Result<MoRef, Failure> {
    let (id, gone) = (id_of(id), id_of(snapshot));
    let disk = world.disk_objects.get(&id, datastore)?;
    if !disk.snapshots.iter().any(|(id, ..)| *id == gone) {
        return Err(not_found());
    }
    let at = disk.path.datastore.clone();
    Ok(run(world, cx, "DeleteSnapshot_Task", &at, move |world, _| {
        world.disk_objects.get_mut(&id)?.snapshots.retain(|(id, ..)| *id != gone);
        Ok(None)
    }))
}

pub(crate) fn snapshots(
    world: &World,
    id: &Element,
    datastore: Option<&MoRef>,
) -> Result<Element, Failure> {
    let disk = world.disk_objects.get(&id_of(id), datastore)?;
    let row = |(id, words, at): &(String, String, Timestamp)| {
        Element::new("snapshots")
            .with(id_element("id", id))
            .with_field("createTime", at)
            .with_field("description", words)
    };
    Ok(disk.snapshots.iter().map(row).fold(Element::new("returnval"), Element::with))
}

/// Only a tag that there is can be attached.
pub(crate) fn attach_tag(
    world: &mut World,
    id: &Element,
    category: String,
    tag: String,
) -> Result<(), Failure> {
    if !crate::rest::has_tag(world, &category, &tag) {
        return Err(not_found());
    }
    world.disk_objects.get_mut(&id_of(id))?.tags.insert((category, tag));
    Ok(())
}

pub(crate) fn detach_tag(
    world: &mut World,
    id: &Element,
    category: String,
    tag: String,
) -> Result<(), Failure> {
    if !crate::rest::has_tag(world, &category, &tag) {
        return Err(not_found());
    }
    world.disk_objects.get_mut(&id_of(id))?.tags.remove(&(category, tag));
    Ok(())
}

pub(crate) fn tags(world: &World, id: &Element) -> Result<Vec<Element>, Failure> {
    let disk = world.disk_objects.get(&id_of(id), None)?;
    let row = |(category, tag): &(String, String)| {
        Element::new("returnval")
            .with_field("tagName", tag)
            .with_field("parentCategoryName", category)
    };
    Ok(disk.tags.iter().map(row).collect())
}

pub(crate) fn tagged(world: &World, category: String, tag: String) -> Vec<Element> {
    let wanted = (category, tag);
    let all = world.disk_objects.all.iter().filter(|(_, disk)| disk.tags.contains(&wanted));
    all.map(|(id, _)| id_element("returnval", id)).collect()
}

/// Forgets the disks of a datastore whose files are gone.
pub(crate) fn reconcile(world: &mut World, cx: &CallContext<'_>, datastore: &MoRef) -> MoRef {
    let at = datastore.clone();
    run(world, cx, "ReconcileDatastoreInventory_Task", datastore, move |world, _| {
        let shelf = world.store.shelf(&at);
        let lost = |disk: &DiskObject| {
            disk.path.datastore == at
                && shelf.is_none_or(|shelf| shelf.get(&disk.path.path).is_none())
        };
        world.disk_objects.all.retain(|_, disk| !lost(disk));
        Ok(None)
    })
}

/// Puts the disk into a VM: on the controller and unit that are named, or the first that fit.
pub(crate) fn attach(
    world: &mut World,
    cx: &CallContext<'_>,
    (id, datastore): Asked<'_>,
    vm: &MoRef,
    (controller, unit): (Option<i32>, Option<i32>),
) -> Result<MoRef, Failure> {
    let disk = world.disk_objects.get(&id_of(id), datastore)?;
    let row = world.inventory.vms.get(vm).ok_or_else(|| Failure::not_found(vm))?;
    let is_scsi = |device: &&crate::vm::Device| device.base.scsi_ctlr_unit_number.is_some();
    let usual = row.config.devices.iter().find(is_scsi).map(crate::vm::Device::key);
    let controller = controller.filter(|key| *key > 0).or(usual);
    let beside = row.config.devices.iter().filter(|other| other.base.controller_key == controller);
    let used: Vec<i32> = beside.filter_map(|other| other.base.unit_number).collect();
    // The seventh is the controller's own.
    let unit = unit.or_else(|| (0..16).find(|unit| *unit != 7 && !used.contains(unit)));
    let backing = VirtualDeviceBackingInfo {
        file_name: Some(world.inventory.datastore_path(&disk.path)),
        disk_mode: Some("persistent".into()),
        thin_provisioned: Some(disk.is_thin),
        ..VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo")
    };
    let device = VirtualDevice {
        key: -1,
        backing: Some(backing),
        controller_key: controller,
        unit_number: unit,
        capacity_in_kb: Some(disk.capacity_mb.saturating_mul(1024)),
        ..VirtualDevice::of("VirtualDisk")
    };
    Ok(change_vm(world, cx, "AttachDisk_Task", vm, Operation::Add, device))
}

/// Takes the disk out of a VM and leaves its file.
pub(crate) fn detach(
    world: &mut World,
    cx: &CallContext<'_>,
    vm: &MoRef,
    id: &Element,
) -> Result<MoRef, Failure> {
    let path = world.disk_objects.get(&id_of(id), None)?.path.clone();
    let row = world.inventory.vms.get(vm).ok_or_else(|| Failure::not_found(vm))?;
    let is_it = |device: &&crate::vm::Device| matches!(&device.own, crate::vm::Own::Disk(disk) if disk.file.path == path);
    let key = row.config.devices.iter().find(is_it).map(crate::vm::Device::key);
    let device =
        VirtualDevice { key: key.ok_or_else(not_found)?, ..VirtualDevice::of("VirtualDisk") };
    Ok(change_vm(world, cx, "DetachDisk_Task", vm, Operation::Remove, device))
}

fn change_vm(
    world: &mut World,
    cx: &CallContext<'_>,
    method: &'static str,
    vm: &MoRef,
    operation: Operation,
    device: VirtualDevice,
) -> MoRef {
    let change =
        VirtualDeviceConfigSpec { operation: Some(operation), device, ..Default::default() };
    let spec = VirtualMachineConfigSpec { device_change: vec![change], ..Default::default() };
    crate::vm::reconfigure_as(world, cx, method, vm, spec)
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

pub(crate) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    spec: &Element,
) -> Result<MoRef, Failure> {
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
pub(crate) fn register(
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
