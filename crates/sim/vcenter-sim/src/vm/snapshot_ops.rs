//! Taking, reverting to and removing snapshots.

use std::collections::HashMap;
use std::sync::Arc;

use roost_vim_wire::{MoRef, MoType, Value, methods};

use crate::call::{CallContext, Failure};
use crate::event::Scene;
use crate::guest;
use crate::store;
use crate::task::{Job, Run, submit};
use crate::vm::fault::{need_connected, refuse_template, vm};
use crate::vm::{Config, DiskFile, FilePath, Own, Power, Snapshot, Snapshots, power};
use crate::world::{Handle, World};

const PATHS: [&str; 4] = ["snapshot", "rootSnapshot", "config.changeVersion", "config.modified"];

pub(super) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (method, asked): (&'static str, methods::CreateSnapshotTask),
) -> Result<MoRef, Failure> {
    refuse_template(world, this)?;
    let takes = cx.handle.options.timings.snapshot.draw(&mut world.random);
    let (checked, done) = (this.clone(), this.clone());
    let job = Job::on(method, this)
        .first(move |world, _| need_connected(world, &checked))
        .then(takes, move |world, run| {
            take(world, run, &done, &asked).map(|moref| Some(Value::Ref(moref)))
        });
    Ok(submit(world, cx, job))
}

/// With the words in which the guest is brought to rest; how long that may take is in minutes.
pub(super) fn create_ex(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    asked: methods::CreateSnapshotExTask,
) -> Result<MoRef, Failure> {
    let timeout = asked.quiesce_spec.as_ref().and_then(|spec| spec.text_of("timeout"));
    if timeout.is_some_and(|text| !text.parse().is_ok_and(|of: i32| QUIESCES_WITHIN.contains(&of)))
    {
        return Err(Failure::invalid_argument("quiesceSpec.timeout"));
    }
    let methods::CreateSnapshotExTask { this: vm, name, description, memory, quiesce_spec } = asked;
    let quiesce = quiesce_spec.is_some();
    let asked = methods::CreateSnapshotTask { this: vm, name, description, memory, quiesce };
    create(world, cx, this, ("CreateSnapshotEx_Task", asked))
}

/// Minutes, as vSphere takes them.
const QUIESCES_WITHIN: std::ops::RangeInclusive<i32> = 5..=240;

fn take(
    world: &mut World,
    run: &Run<'_>,
    this: &MoRef,
    asked: &methods::CreateSnapshotTask,
) -> Result<MoRef, Failure> {
    let moref = world.inventory.ids.snapshot();
    let row = vm(world, this)?;
    let mut snapshots = row.snapshots.as_deref().cloned().unwrap_or_default();
    if snapshots.list.len() >= MAX_SNAPSHOTS {
        return Err(Failure::of("SnapshotFault", "The virtual machine has too many snapshots."));
    }
    snapshots.made += 1;
    let (mut config, number) = (row.config.clone(), snapshots.made);
    snapshots.list.push(Snapshot {
        moref: moref.clone(),
        parent: snapshots.current.clone(),
        name: asked.name.as_str().into(),
        description: asked.description.clone().unwrap_or_default(),
        number,
        time: run.now,
        quiesced: asked.quiesce,
        power: if asked.memory { row.power } else { Power::Off },
        config: config.clone(),
    });
    snapshots.current = Some(moref.clone());
    let home = row.home.clone();
    let directory = row.directory().to_owned();
    let made = branch_off(&mut config, &home, &directory, number);
    for (file, capacity_kb) in &made {
        store::add_disk_file(world, file, *capacity_kb, run.now);
    }
    store::announce_space(world, &home.datastore);
    world.inventory.change_vm(this, |row| {
        row.config = config;
        row.snapshots = Some(Box::new(snapshots));
        row.touch(run.now);
    });
    world.rest.data_sets.copy(this, &moref);
    world.inventory.snapshots.insert(&moref, this.clone());
    world.inventory.changes.entered(&moref);
    announce(world, this);
    Ok(moref)
}

/// The longest chain that vSphere supports.
const MAX_SNAPSHOTS: usize = 32;

/// Puts a new file on top of every disk, so that what is below it does not change any more.
fn branch_off(
    config: &mut Config,
    home: &FilePath,
    directory: &str,
    number: i32,
) -> Vec<(Arc<DiskFile>, i64)> {
    let mut made = Vec::new();
    for device in &mut config.devices {
        let Own::Disk(disk) = &mut device.own else { continue };
        let base = disk.file.path.path.rsplit('/').next().unwrap_or_default();
        let stem = base.trim_end_matches(".vmdk");
        let stem = stem
            .rsplit_once("-0")
            .filter(|(_, digits)| digits.len() == 5)
            .map_or(stem, |(stem, _)| stem);
        let file = Arc::new(DiskFile {
            path: FilePath::new(&home.datastore, format!("{directory}/{stem}-{number:06}.vmdk")),
            uuid: disk.file.uuid,
            thin: true,
            parent: Some(Arc::clone(&disk.file)),
        });
        made.push((Arc::clone(&file), disk.capacity_kb));
        disk.file = file;
    }
    made
}

fn announce(world: &mut World, this: &MoRef) {
    world.inventory.changes.modified(this, PATHS);
    let Some(row) = world.inventory.vms.get(this) else { return };
    let disks = row.config.devices.iter().filter(|device| matches!(device.own, Own::Disk(_)));
    let paths: Vec<String> =
        disks.map(|disk| format!("config.hardware.device[{}]", disk.key())).collect();
    world.inventory.changes.modified(this, paths);
}

/// The VM of a snapshot, which a task on the snapshot works on.
fn vm_of(world: &World, snapshot: &MoRef) -> Result<MoRef, Failure> {
    world.inventory.snapshots.get(snapshot).cloned().ok_or_else(|| Failure::not_found(snapshot))
}

/// Back to one snapshot, or to the current one of a VM.
pub(super) fn revert(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    stay_off: bool,
) -> Result<MoRef, Failure> {
    let is_snapshot = this.kind == MoType::VirtualMachineSnapshot;
    let vm_ref = if is_snapshot { vm_of(world, this)? } else { this.clone() };
    let method = if is_snapshot { "RevertToSnapshot_Task" } else { "RevertToCurrentSnapshot_Task" };
    let takes = cx.handle.options.timings.revert.draw(&mut world.random);
    let (checked, done, asked) =
        (vm_ref.clone(), vm_ref.clone(), is_snapshot.then(|| this.clone()));
    let job = Job::on(method, &vm_ref).first(move |world, _| need_connected(world, &checked)).then(
        takes,
        move |world, run| {
            go_back(world, run.handle, &run.into(), &done, asked.as_ref(), stay_off).map(|()| None)
        },
    );
    Ok(submit(world, cx, job))
}

fn go_back(
    world: &mut World,
    handle: &Handle,
    scene: &Scene,
    this: &MoRef,
    asked: Option<&MoRef>,
    stay_off: bool,
) -> Result<(), Failure> {
    let row = vm(world, this)?;
    let mut snapshots = row.snapshots.as_deref().cloned().unwrap_or_default();
    let wanted =
        asked.or(snapshots.current.as_ref()).and_then(|moref| snapshots.get(moref)).cloned();
    let Some(snapshot) = wanted else {
        return Err(Failure::of("NotFound", "The virtual machine has no current snapshot."));
    };
    let (home, directory, was_on) =
        (row.home.clone(), row.directory().to_owned(), row.power != Power::Off);
    let abandoned: Vec<FilePath> = tops(&row.config, &snapshots);
    let mut config = snapshot.config.clone();
    snapshots.made += 1;
    let made = branch_off(&mut config, &home, &directory, snapshots.made);
    snapshots.current = Some(snapshot.moref.clone());
    if was_on {
        guest::stop(world, this);
    }
    power::set_power(world, this, Power::Off, scene.now);
    world.inventory.change_vm(this, |row| {
        row.config = config;
        row.snapshots = Some(Box::new(snapshots));
        row.touch(scene.now);
    });
    world.rest.data_sets.revert(this, &snapshot.moref);
    for path in &abandoned {
        store::remove_disk_file(world, path);
    }
    for (file, capacity_kb) in &made {
        store::add_disk_file(world, file, *capacity_kb, scene.now);
    }
    store::announce_space(world, &home.datastore);
    announce(world, this);
    world.inventory.changes.modified(this, CONFIG_PATHS);
    if snapshot.power != Power::Off && !stay_off {
        power::set_power(world, this, snapshot.power, scene.now);
        if snapshot.power == Power::On {
            guest::resume(world, handle, this);
        }
    }
    Ok(())
}

/// What a revert may have changed beside disks and power.
const CONFIG_PATHS: [&str; 14] = [
    "config.annotation",
    "summary.config.annotation",
    "config.hardware",
    "config.extraConfig",
    "config.tools",
    "config.bootOptions",
    "config.cpuAllocation",
    "config.memoryAllocation",
    "config.firmware",
    "config.version",
    "summary.config.numCpu",
    "summary.config.memorySizeMB",
    "summary.config.numEthernetCards",
    "summary.config.numVirtualDisks",
];

/// The top files of a configuration that no snapshot stands on.
fn tops(config: &Config, snapshots: &Snapshots) -> Vec<FilePath> {
    let is_kept = |file: &DiskFile| {
        let mut frozen = snapshots.list.iter().flat_map(|snapshot| snapshot.config.disks());
        frozen.any(|disk| disk.file.uses(&file.path))
    };
    config.disks().filter(|disk| !is_kept(&disk.file)).map(|disk| disk.file.path.clone()).collect()
}

/// Removes one snapshot, with those that stand on it if asked.
pub(super) fn remove(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    with_children: bool,
) -> Result<MoRef, Failure> {
    let vm_ref = vm_of(world, this)?;
    let takes = cx.handle.options.timings.remove_snapshot.draw(&mut world.random);
    let (done, snapshot) = (vm_ref.clone(), this.clone());
    let job = Job::on("RemoveSnapshot_Task", &vm_ref).then(takes, move |world, run| {
        let row = vm(world, &done)?;
        let Some(snapshots) = row.snapshots.as_ref().filter(|all| all.get(&snapshot).is_some())
        else {
            return Err(Failure::not_found(&snapshot));
        };
        let gone =
            if with_children { snapshots.subtree(&snapshot) } else { vec![snapshot.clone()] };
        consolidate(world, &run.into(), &done, &gone);
        Ok(None)
    });
    Ok(submit(world, cx, job))
}

pub(super) fn remove_all(world: &mut World, cx: &CallContext<'_>, this: &MoRef) -> MoRef {
    let takes = cx.handle.options.timings.remove_snapshot.draw(&mut world.random);
    let done = this.clone();
    let job = Job::on("RemoveAllSnapshots_Task", this).then(takes, move |world, run| {
        let row = vm(world, &done)?;
        let gone: Vec<MoRef> = row
            .snapshots
            .iter()
            .flat_map(|all| &all.list)
            .map(|snapshot| snapshot.moref.clone())
            .collect();
        consolidate(world, &run.into(), &done, &gone);
        Ok(None)
    });
    submit(world, cx, job)
}

/// Takes snapshots away and merges the disk files that nothing stands on any more into those above them.
fn consolidate(world: &mut World, scene: &Scene, this: &MoRef, gone: &[MoRef]) {
    let Some(row) = world.inventory.vms.get(this) else { return };
    let Some(mut snapshots) = row.snapshots.as_deref().cloned() else { return };
    snapshots.remove(gone);
    let own = format!("{}/", row.directory());
    let before: Vec<FilePath> = own_files(&row.config, row.snapshots.as_deref(), &own);
    let mut config = row.config.clone();
    let mut merge = Merge::of(&snapshots, &own);
    for snapshot in &mut snapshots.list {
        merge.apply(&mut snapshot.config);
    }
    merge.apply(&mut config);
    let kept = own_files(&config, Some(&snapshots), &own);
    world.inventory.change_vm(this, |row| {
        row.config = config;
        row.snapshots = (!snapshots.list.is_empty()).then(|| Box::new(snapshots));
        row.touch(scene.now);
    });
    for path in before.iter().filter(|path| !kept.contains(path)) {
        store::remove_disk_file(world, path);
    }
    for snapshot in gone {
        world.inventory.snapshots.remove(snapshot);
        world.inventory.changes.left(snapshot);
    }
    announce(world, this);
}

fn own_files(config: &Config, snapshots: Option<&Snapshots>, own: &str) -> Vec<FilePath> {
    let frozen = snapshots
        .into_iter()
        .flat_map(|all| &all.list)
        .flat_map(|snapshot| snapshot.config.disks());
    let files = config.disks().chain(frozen).flat_map(|disk| disk.file.chain());
    let mut paths: Vec<FilePath> = files
        .filter(|file| file.path.path.starts_with(own))
        .map(|file| file.path.clone())
        .collect();
    paths.dedup();
    paths
}

/// Puts every file that is needed on the nearest needed file below it, and merges what lies between into it.
struct Merge {
    /// The files that the snapshots which are left stand on.
    frozen: Vec<FilePath>,
    own: String,
    done: HashMap<Arc<str>, Arc<DiskFile>>,
}

impl Merge {
    fn of(left: &Snapshots, own: &str) -> Self {
        let disks = left.list.iter().flat_map(|snapshot| snapshot.config.disks());
        let frozen = disks.map(|disk| disk.file.path.clone()).collect();
        Self { frozen, own: own.into(), done: HashMap::new() }
    }

    fn apply(&mut self, config: &mut Config) {
        for device in &mut config.devices {
            if let Own::Disk(disk) = &mut device.own {
                disk.file = self.merged(&disk.file);
            }
        }
    }

    fn is_needed(&self, file: &DiskFile) -> bool {
        !file.path.path.starts_with(&self.own) || self.frozen.contains(&file.path)
    }

    fn merged(&mut self, file: &Arc<DiskFile>) -> Arc<DiskFile> {
        if let Some(done) = self.done.get(&file.path.path) {
            return Arc::clone(done);
        }
        let (mut below, mut lowest) = (file.parent.clone(), None);
        while let Some(unneeded) = below.clone().filter(|file| !self.is_needed(file)) {
            below.clone_from(&unneeded.parent);
            lowest = Some(unneeded);
        }
        let parent = below.map(|below| self.merged(&below));
        // What is merged keeps the name of its lowest part, as after a real consolidation.
        let base = lowest.as_ref().unwrap_or(file);
        let merged = Arc::new(DiskFile {
            path: base.path.clone(),
            uuid: file.uuid,
            thin: base.thin,
            parent,
        });
        self.done.insert(Arc::clone(&file.path.path), Arc::clone(&merged));
        merged
    }
}
