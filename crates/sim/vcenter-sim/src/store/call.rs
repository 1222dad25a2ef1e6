use roost_vim_wire::types::HostDatastoreBrowserSearchSpec;
use roost_vim_wire::{MoRef, Request};

use super::file_ops::{copy_file, delete, locate, make_directory, move_file};
use super::{Content, browse, disk_ops, namespace};
use crate::call::{CallContext, CallResult, Failure};
use crate::model::calls;
use crate::task::{Job, submit};
use crate::vm::FilePath;
use crate::world::World;

/// The methods of file manager, datastore browsers and virtual disk manager.
pub(crate) fn call(
    request: &Request<'_>,
    this: &MoRef,
    world: &mut World,
    cx: &CallContext<'_>,
) -> Option<CallResult> {
    calls! { request;
        MakeDirectory => |call| {
            let file = locate(world, &call.name, call.datacenter.as_ref())?;
            make_directory(world, &file, call.create_parent_directories.unwrap_or(false), cx.now)
        },
        DeleteDatastoreFileTask => |call| {
            let file = locate(world, &call.name, call.datacenter.as_ref())?;
            let takes = cx.handle.options.timings.file.draw(&mut world.random);
            let job = Job::on("DeleteDatastoreFile_Task", &file.datastore).without_hold();
            Ok(submit(world, cx, job.then(takes, move |world, run| delete(world, &file, run.now).map(|()| None))))
        },
        MoveDatastoreFileTask => |call| {
            let from = locate(world, &call.source_name, call.source_datacenter.as_ref())?;
            let to_datacenter = call.destination_datacenter.or(call.source_datacenter);
            let to = locate(world, &call.destination_name, to_datacenter.as_ref())?;
            let force = call.force.unwrap_or(false);
            let takes = cx.handle.options.timings.file.draw(&mut world.random);
            let job = Job::on("MoveDatastoreFile_Task", &from.datastore).without_hold();
            let work = move |world: &mut World, run: &crate::task::Run<'_>| {
                move_file(world, &from, &to, force, run.now).map(|()| None)
            };
            Ok(submit(world, cx, job.then(takes, work)))
        },
        CopyDatastoreFileTask => |call| {
            let from = locate(world, &call.source_name, call.source_datacenter.as_ref())?;
            let to_datacenter = call.destination_datacenter.or(call.source_datacenter);
            let to = locate(world, &call.destination_name, to_datacenter.as_ref())?;
            let force = call.force.unwrap_or(false);
            let takes = cx.handle.options.timings.copying(size_of(world, &from), &mut world.random);
            let job = Job::on("CopyDatastoreFile_Task", &from.datastore).without_hold();
            let work = move |world: &mut World, run: &crate::task::Run<'_>| {
                copy_file(world, &from, &to, force, run.now).map(|()| None)
            };
            Ok(submit(world, cx, job.then(takes, work)))
        },
        CreateVirtualDiskTask => |call| disk_ops::create(world, cx, (&call.name, call.datacenter.as_ref()), &call.spec),
        DeleteVirtualDiskTask => |call| disk_ops::remove(world, cx, (&call.name, call.datacenter.as_ref())),
        MoveVirtualDiskTask => |call| {
            let from = locate(world, &call.source_name, call.source_datacenter.as_ref())?;
            let to_datacenter = call.dest_datacenter.or(call.source_datacenter);
            let to = locate(world, &call.dest_name, to_datacenter.as_ref())?;
            let force = call.force.unwrap_or(false);
            let takes = cx.handle.options.timings.file.draw(&mut world.random);
            let job = Job::on("MoveVirtualDisk_Task", &from.datastore).without_hold();
            let work = move |world: &mut World, run: &crate::task::Run<'_>| {
                move_file(world, &from, &to, force, run.now).map(|()| None)
            };
            Ok(submit(world, cx, job.then(takes, work)))
        },
        ExtendVirtualDiskTask => |call| disk_ops::extend(world, cx, (&call.name, call.datacenter.as_ref()), call.new_capacity_kb),
        QueryVirtualDiskInfoTask => |call| {
            disk_ops::info(world, cx, (&call.name, call.datacenter.as_ref()), call.include_parents)
        },
        InflateVirtualDiskTask => |call| disk_ops::inflate(world, cx, (&call.name, call.datacenter.as_ref())),
        ShrinkVirtualDiskTask => |call| disk_ops::shrink(world, cx, (&call.name, call.datacenter.as_ref())),
        QueryVirtualDiskUuid => |call| disk_ops::uuid(world, (&call.name, call.datacenter.as_ref())),
        CopyVirtualDiskTask => |call| {
            let from = locate(world, &call.source_name, call.source_datacenter.as_ref())?;
            let to_datacenter = call.dest_datacenter.or(call.source_datacenter);
            let to = locate(world, &call.dest_name, to_datacenter.as_ref())?;
            let force = call.force.unwrap_or(false);
            let size = size_of(world, &from);
            let takes = cx.handle.options.timings.copying(size, &mut world.random);
            let job = Job::on("CopyVirtualDisk_Task", &from.datastore).without_hold();
            let work = move |world: &mut World, run: &crate::task::Run<'_>| {
                copy_file(world, &from, &to, force, run.now).map(|()| None)
            };
            Ok(submit(world, cx, job.then(takes, work)))
        },
        CreateDirectory => |call| namespace::create_directory(world, cx, &call),
        DeleteDirectory => |call| {
            namespace::delete_directory(world, cx, &call.datastore_path, call.datacenter.as_ref())
        },
        SearchDatastoreTask => |call| {
            let asked = (call.datastore_path.as_str(), call.search_spec.unwrap_or_default());
            submit_search(world, cx, this, asked, "SearchDatastore_Task", browse::search)
        },
        SearchDatastoreSubFoldersTask => |call| {
            let asked = (call.datastore_path.as_str(), call.search_spec.unwrap_or_default());
            submit_search(world, cx, this, asked, "SearchDatastoreSubFolders_Task", browse::search_below)
        },
    }
}

type Search = fn(
    &mut World,
    &FilePath,
    &HostDatastoreBrowserSearchSpec,
    jiff::Timestamp,
) -> Result<roost_vim_wire::Value, Failure>;

fn submit_search(
    world: &mut World,
    cx: &CallContext<'_>,
    browser: &MoRef,
    (path, spec): (&str, HostDatastoreBrowserSearchSpec),
    method: &'static str,
    search: Search,
) -> Result<MoRef, Failure> {
    let datastore =
        world.inventory.datastore_of_browser(browser).ok_or_else(|| Failure::not_found(browser))?;
    let datacenter = world.inventory.datacenter_of(&datastore);
    let folder = locate(world, path, datacenter.as_ref())?;
    let takes = cx.handle.options.timings.file.draw(&mut world.random);
    let job = Job::on(method, &datastore).without_hold();
    Ok(submit(
        world,
        cx,
        job.then(takes, move |world, run| search(world, &folder, &spec, run.now).map(Some)),
    ))
}

fn size_of(world: &World, file: &FilePath) -> i64 {
    let entry = world.store.shelf(&file.datastore).and_then(|shelf| shelf.get(&file.path));
    entry.map_or(0, |entry| Content::size(&entry.content))
}
