//! `/vslm/sdk`: first-class disks by their id alone, wherever they are. Its tasks are the server's under another name.

use roost_vim_wire::{Element, MoRef, MoType, Request, Value};

use crate::call::{CallContext, CallResult, Failure};
use crate::disk_object as disks;
use crate::model::calls;
use crate::service::{about_product, manager};
use crate::world::World;

fn task(task: MoRef) -> MoRef {
    MoRef::new(MoType::from("VslmTask"), task.id)
}

/// The task behind a reference of this service.
pub(crate) fn original(obj: &MoRef) -> MoRef {
    MoRef::new(MoType::Task, obj.id.clone())
}

fn content(world: &World) -> Element {
    let about = about_product(world.product, &world.service.about.api_version);
    let about_info = Element::new("aboutInfo")
        .with_field("name", &"VMware Virtual Storage Lifecycle Manager".to_owned())
        .with_field("fullName", &about.full_name)
        .with_field("vendor", &about.vendor)
        .with_field("apiVersion", &about.api_version)
        .with_field("instanceUuid", &world.service.about.instance_uuid);
    let at = |kind: &str| manager(world.product, kind);
    Element::new("returnval")
        .with(about_info)
        .with_field("sessionManager", &at("VslmSessionManager"))
        .with_field("vStorageObjectManager", &at("VslmVStorageObjectManager"))
        .with_field("storageLifecycleManager", &at("VslmStorageLifecycleManager"))
}

pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        RetrieveContent => |_| Ok(content(world)),
        VslmCreateDiskTask => |asked| disks::create(world, cx, &asked.spec).map(task),
        VslmRegisterDisk => |asked| disks::register(world, cx, &asked.path, asked.name.as_deref()),
        VslmListVStorageObjectForSpec => |asked| Ok(disks::query(world, &asked.query)),
        VslmRetrieveVStorageObject => |asked| disks::retrieve(world, &asked.id, None),
        VslmRenameVStorageObject => |asked| disks::rename(world, &asked.id, None, asked.name),
        VslmExtendDiskTask => |asked| {
            disks::extend(world, cx, (&asked.id, None), asked.new_capacity_in_mb).map(task)
        },
        VslmDeleteVStorageObjectTask => |asked| disks::delete(world, cx, &asked.id, None).map(task),
        VslmCreateSnapshotTask => |asked| {
            disks::create_snapshot(world, cx, (&asked.id, None), asked.description).map(task)
        },
        VslmDeleteSnapshotTask => |asked| {
            disks::delete_snapshot(world, cx, (&asked.id, None), &asked.snapshot_id).map(task)
        },
        VslmRetrieveSnapshotInfo => |asked| disks::snapshots(world, &asked.id, None),
        VslmAttachTagToVStorageObject => |asked| {
            disks::attach_tag(world, &asked.id, asked.category, asked.tag)
        },
        VslmDetachTagFromVStorageObject => |asked| {
            disks::detach_tag(world, &asked.id, asked.category, asked.tag)
        },
        VslmListTagsAttachedToVStorageObject => |asked| disks::tags(world, &asked.id),
        VslmListVStorageObjectsAttachedToTag => |asked| {
            Ok(disks::tagged(world, asked.category, asked.tag))
        },
        VslmReconcileDatastoreInventoryTask => |asked| {
            Ok(task(disks::reconcile(world, cx, &asked.datastore)))
        },
        VslmAttachDiskTask => |asked| {
            let place = (asked.controller_key, asked.unit_number);
            disks::attach(world, cx, (&asked.id, None), &asked.vm, place).map(task)
        },
        VslmQueryInfo => |_| task_info(world, this),
        VslmQueryTaskResult => |_| result(world, this),
        VslmCancelTask => |_| {
            crate::task::run::cancel(world, cx.handle, &original(this))
        },
    }
}

fn task_info(world: &World, this: &MoRef) -> Result<Element, Failure> {
    let info = world.tasks.info(&original(this)).ok_or_else(|| Failure::not_found(this))?;
    let reason = Element::new("reason").typed("VslmTaskReasonUser");
    let mut shown = Element::new("returnval")
        .with_field("key", &info.key)
        .with_field("task", this)
        .with_field("descriptionId", &info.description_id)
        .with_field("state", &info.state)
        .with_field("cancelled", &info.cancelled)
        .with_field("cancelable", &info.cancelable);
    shown = shown.with_field("error", &info.error).with_field("progress", &info.progress);
    let reason = reason.with_field("userName", &String::new());
    Ok(shown
        .with(reason)
        .with_field("queueTime", &info.queue_time)
        .with_field("startTime", &info.start_time)
        .with_field("completeTime", &info.complete_time)
        .with_field("eventChainId", &info.event_chain_id))
}

fn result(world: &World, this: &MoRef) -> Result<Option<Value>, Failure> {
    let info = world.tasks.info(&original(this)).ok_or_else(|| Failure::not_found(this))?;
    Ok(info.result)
}
