//! Virtual disks as files: made, grown, removed and known by their identity.

use roost_vim_wire::{Array, Element, MoRef, Value};

use super::Content;
use super::file_ops::{delete, file_fault, locate, need_space, need_unlocked};
use crate::call::{CallContext, Failure};
use crate::inventory::Record;
use crate::store::announce_space;
use crate::task::{Job, submit};
use crate::vm::{FilePath, initial_bytes};
use crate::world::World;

type Named<'a> = (&'a str, Option<&'a MoRef>);

fn exists(world: &World, file: &FilePath) -> bool {
    world.store.shelf(&file.datastore).is_some_and(|shelf| shelf.get(&file.path).is_some())
}

fn need_file(world: &World, file: &FilePath) -> Result<(), Failure> {
    if exists(world, file) {
        return Ok(());
    }
    Err(file_fault(world, "FileNotFound", file, "File not found:"))
}

pub(super) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    (name, datacenter): Named<'_>,
    spec: &Element,
) -> Result<MoRef, Failure> {
    let field = |name: &str| spec.children.iter().find(|child| child.name == name);
    let capacity: i64 = field("capacityKb")
        .and_then(|capacity| capacity.text.trim().parse().ok())
        .filter(|capacity| *capacity > 0)
        .ok_or_else(|| Failure::invalid_argument("spec.capacityKb"))?;
    let is_thin = field("diskType").is_some_and(|kind| kind.text.trim() == "thin");
    let file = locate(world, name, datacenter)?;
    let takes = cx.handle.options.timings.file.draw(&mut world.random);
    let job = Job::on("CreateVirtualDisk_Task", &file.datastore).without_hold();
    Ok(submit(
        world,
        cx,
        job.then(takes, move |world, run| {
            if exists(world, &file) {
                return Err(file_fault(
                    world,
                    "FileAlreadyExists",
                    &file,
                    "The file already exists:",
                ));
            }
            let above = file.path.rsplit_once('/').map_or("", |(above, _)| above);
            let has_folder = above.is_empty()
                || world.store.shelf(&file.datastore).is_some_and(|shelf| shelf.is_folder(above));
            if !has_folder {
                let above = FilePath::new(&file.datastore, above);
                return Err(file_fault(world, "FileNotFound", &above, "File not found:"));
            }
            let bytes = initial_bytes(capacity, is_thin);
            need_space(world, &file, bytes)?;
            if let Some(shelf) = world.store.shelf_mut(&file.datastore) {
                shelf.put(&file.path, Content::Hollow(bytes), run.now);
            }
            announce_space(world, &file.datastore);
            let kind = if is_thin { "thin" } else { "preallocated" };
            world.store.disks.insert(file.clone(), DiskFormat { capacity_kb: capacity, kind });
            Ok(None)
        }),
    ))
}

pub(super) fn remove(
    world: &mut World,
    cx: &CallContext<'_>,
    (name, datacenter): Named<'_>,
) -> Result<MoRef, Failure> {
    let file = locate(world, name, datacenter)?;
    let takes = cx.handle.options.timings.file.draw(&mut world.random);
    let job = Job::on("DeleteVirtualDisk_Task", &file.datastore).without_hold();
    Ok(submit(
        world,
        cx,
        job.then(takes, move |world, run| {
            need_file(world, &file)?;
            world.store.disks.remove(&file);
            delete(world, &file, run.now).map(|()| None)
        }),
    ))
}

pub(super) fn extend(
    world: &mut World,
    cx: &CallContext<'_>,
    (name, datacenter): Named<'_>,
    capacity_kb: i64,
) -> Result<MoRef, Failure> {
    let file = locate(world, name, datacenter)?;
    let takes = cx.handle.options.timings.file.draw(&mut world.random);
    let job = Job::on("ExtendVirtualDisk_Task", &file.datastore).without_hold();
    Ok(submit(
        world,
        cx,
        job.then(takes, move |world, run| {
            need_file(world, &file)?;
            need_unlocked(world, &file)?;
            let bytes = capacity_kb.saturating_mul(1024);
            let shelf = world.store.shelf(&file.datastore);
            let now = shelf
                .and_then(|shelf| shelf.get(&file.path))
                .map_or(0, |entry| entry.content.size());
            if bytes < now {
                return Err(Failure::invalid_argument("newCapacityKb"));
            }
            need_space(world, &file, bytes - now)?;
            if let Some(shelf) = world.store.shelf_mut(&file.datastore) {
                shelf.put(&file.path, Content::Hollow(bytes), run.now);
            }
            announce_space(world, &file.datastore);
            Ok(None)
        }),
    ))
}

#[derive(Debug, Clone, Copy)]
pub(super) struct DiskFormat {
    capacity_kb: i64,
    /// `thin`, `preallocated` or `eagerZeroedThick`.
    kind: &'static str,
}

/// The format of a disk: as it was made, or as the VM has it that uses it.
fn format_of(world: &World, file: &FilePath) -> DiskFormat {
    if let Some(known) = world.store.disks.get(file) {
        return *known;
    }
    let disks = world.inventory.vms.iter().flat_map(|(_, row)| row.config.disks());
    let used = disks.into_iter().find(|disk| disk.file.path == *file);
    let size = super::size(world, file).unwrap_or(0) >> 10;
    used.map_or(DiskFormat { capacity_kb: size, kind: "thin" }, |disk| DiskFormat {
        capacity_kb: disk.capacity_kb,
        kind: if disk.file.thin { "thin" } else { "preallocated" },
    })
}

/// How large a disk is that is or was made as a file.
pub(crate) fn disk_capacity(world: &World, file: &FilePath) -> i64 {
    format_of(world, file).capacity_kb
}

/// What a disk is, and what it stands on if that is asked for.
pub(super) fn info(
    world: &mut World,
    cx: &CallContext<'_>,
    (name, datacenter): Named<'_>,
    with_parents: bool,
) -> Result<MoRef, Failure> {
    let file = locate(world, name, datacenter)?;
    let takes = cx.handle.options.timings.file.draw(&mut world.random);
    let job = Job::on("QueryVirtualDiskInfo_Task", &file.datastore).without_hold();
    let work = move |world: &mut World, _: &crate::task::Run<'_>| {
        need_file(world, &file)?;
        let disks = world.inventory.vms.iter().flat_map(|(_, row)| row.config.disks());
        let chain = disks.into_iter().find(|disk| disk.file.path == file);
        let chain: Vec<FilePath> = match chain {
            Some(disk) => disk.file.chain().map(|link| link.path.clone()).collect(),
            None => vec![file.clone()],
        };
        let shown = if with_parents { chain.len() } else { 1 };
        let path = |at: usize| chain.get(at).map(|file| world.inventory.datastore_path(file));
        let rows = (0..shown).filter_map(|at| {
            let kind = format_of(world, chain.get(at)?).kind;
            let info =
                Record::of("VirtualDiskInfo").text("name", &path(at)?).text("diskType", kind);
            Some(match path(at + 1) {
                Some(parent) => info.text("parent", &parent).value(),
                None => info.value(),
            })
        });
        Ok(Some(Value::Array(Array::new("VirtualDiskInfo", rows.collect()))))
    };
    Ok(submit(world, cx, job.then(takes, work)))
}

/// Gives a thin disk all of its blocks, which takes time by its size.
pub(super) fn inflate(
    world: &mut World,
    cx: &CallContext<'_>,
    (name, datacenter): Named<'_>,
) -> Result<MoRef, Failure> {
    let file = locate(world, name, datacenter)?;
    need_file(world, &file)?;
    let bytes = format_of(world, &file).capacity_kb.saturating_mul(1024);
    let takes = cx.handle.options.timings.copying(bytes, &mut world.random);
    let job = Job::on("InflateVirtualDisk_Task", &file.datastore).without_hold();
    let work = move |world: &mut World, run: &crate::task::Run<'_>| {
        need_file(world, &file)?;
        need_unlocked(world, &file)?;
        let now = super::size(world, &file).unwrap_or(0);
        need_space(world, &file, (bytes - now).max(0))?;
        if let Some(shelf) = world.store.shelf_mut(&file.datastore) {
            shelf.put(&file.path, Content::Hollow(bytes), run.now);
        }
        let format = DiskFormat { capacity_kb: bytes >> 10, kind: "eagerZeroedThick" };
        world.store.disks.insert(file.clone(), format);
        announce_space(world, &file.datastore);
        Ok(None)
    };
    Ok(submit(world, cx, job.then(takes, work)))
}

/// Gives back the blocks that nothing is written to; what is written to a simulated disk is little.
pub(super) fn shrink(
    world: &mut World,
    cx: &CallContext<'_>,
    (name, datacenter): Named<'_>,
) -> Result<MoRef, Failure> {
    let file = locate(world, name, datacenter)?;
    need_file(world, &file)?;
    let capacity_kb = format_of(world, &file).capacity_kb;
    let takes = cx.handle.options.timings.file.draw(&mut world.random);
    let job = Job::on("ShrinkVirtualDisk_Task", &file.datastore).without_hold();
    let work = move |world: &mut World, run: &crate::task::Run<'_>| {
        need_file(world, &file)?;
        need_unlocked(world, &file)?;
        if let Some(shelf) = world.store.shelf_mut(&file.datastore) {
            shelf.put(&file.path, Content::Hollow(initial_bytes(capacity_kb, true)), run.now);
        }
        world.store.disks.insert(file.clone(), DiskFormat { capacity_kb, kind: "thin" });
        announce_space(world, &file.datastore);
        Ok(None)
    };
    Ok(submit(world, cx, job.then(takes, work)))
}

/// The identity of the VM's disk that uses the file, or one that the path decides.
pub(super) fn uuid(world: &World, (name, datacenter): Named<'_>) -> Result<String, Failure> {
    use std::hash::{DefaultHasher, Hash as _, Hasher as _};
    let file = locate(world, name, datacenter)?;
    need_file(world, &file)?;
    let disks = world.inventory.vms.iter().flat_map(|(_, row)| row.config.disks());
    let known = disks.flat_map(|disk| disk.file.chain()).find(|link| link.path == file);
    let number = known.map_or_else(
        || {
            let mut hasher = DefaultHasher::new();
            (&file.datastore, &file.path).hash(&mut hasher);
            u128::from(hasher.finish()) | 0x0600_0c29 << 96
        },
        |link| link.uuid,
    );
    let digits = format!("{number:032x}");
    let pairs: Vec<&str> = (0..16).filter_map(|at| digits.get(at * 2..at * 2 + 2)).collect();
    Ok(format!("{}-{}", pairs[..8].join(" "), pairs[8..].join(" ")))
}
