//! `CloneVM_Task`.
//!
//! The request is worked out when the task starts: whatever is wrong with it fails the task before any time passes, and
//! name and space are reserved until the copy is done or given up. The VM appears when the copy is done; powering it on is
//! part of the task, but a VM that could not be powered on stays.

use std::sync::Arc;
use std::time::Duration;

use roost_vim_wire::types::{VirtualMachineCloneSpec, VirtualMachineConfigSpec};
use roost_vim_wire::{MoRef, Value};

use crate::call::{CallContext, Failure};
use crate::event::{self, Scene};
use crate::inventory::{FolderKind, checked_name};
use crate::options::Product;
use crate::store;
use crate::task::{self, Hold, Job, Parcel, Run, submit};
use crate::vm::clone_disk::{CopyPlan, copy_disks};
use crate::vm::fault::{need_connected, not_supported, vm};
use crate::vm::{
    Config, Draft, FilePath, Own, Place, Power, Vm, config_change, customize, device_change,
    identity, placement, power,
};
use crate::world::World;

/// A clone that has been worked out.
struct Plan {
    vm: Vm,
    made: Vec<(Arc<crate::vm::DiskFile>, i64)>,
    /// By datastore; held while the copy runs.
    space: Vec<(MoRef, i64)>,
}

pub(crate) fn clone_vm(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (folder, name, spec): (MoRef, String, VirtualMachineCloneSpec),
) -> Result<MoRef, Failure> {
    if world.product == Product::HostAgent {
        return Err(not_supported("Cloning needs a vCenter."));
    }
    let source = vm(world, this)?;
    match world.inventory.folders.get(&folder) {
        None => return Err(Failure::not_found(&folder)),
        Some(row) if row.kind != FolderKind::Vm => return Err(Failure::invalid_argument("folder")),
        Some(_) => {}
    }
    if source.template && spec.location.pool.is_none() && !spec.template {
        return Err(Failure::invalid_argument("spec.location.pool"));
    }
    let copy = copying_time(world, cx, this, &spec);
    Ok(start(world, cx, this, (folder, name, spec), ("CloneVM_Task", copy)))
}

/// A copy that shares everything with its source, made at once.
pub(super) fn fork(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (folder, name, spec): (MoRef, String, VirtualMachineCloneSpec),
) -> Result<MoRef, Failure> {
    if world.product == Product::HostAgent {
        return Err(not_supported("Cloning needs a vCenter."));
    }
    if world.inventory.folders.get(&folder).is_none_or(|row| row.kind != FolderKind::Vm) {
        return Err(Failure::invalid_argument("spec.location.folder"));
    }
    let takes = cx.handle.options.timings.clone_linked.draw(&mut world.random);
    Ok(start(world, cx, this, (folder, name, spec), ("InstantClone_Task", takes)))
}

fn start(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (folder, name, spec): (MoRef, String, VirtualMachineCloneSpec),
    (method, copy): (&'static str, Duration),
) -> MoRef {
    let takes_power = if spec.power_on && !spec.template {
        cx.handle.options.timings.power_on.draw(&mut world.random)
    } else {
        Duration::ZERO
    };
    let clone = world.inventory.ids.vm();
    let mut job = job(this, (folder, name, spec), &clone, copy, takes_power);
    job.method = method;
    submit(world, cx, job)
}

fn job(
    this: &MoRef,
    (folder, name, spec): (MoRef, String, VirtualMachineCloneSpec),
    clone: &MoRef,
    copy: Duration,
    takes_power: Duration,
) -> Job {
    let will_start = spec.power_on && !spec.template;
    let plan = Parcel::<Plan>::default();
    let (worked_out, kept, given_back) = (plan.clone(), plan.clone(), plan);
    let (source, made, started, on) = (this.clone(), clone.clone(), clone.clone(), clone.clone());
    let (from, target) = (this.clone(), clone.clone());
    let mut job = Job::on("CloneVM_Task", this)
        .cancelable()
        .first(move |world, run| {
            let drawn = work_out(world, run, &source, (folder, &name, &spec))?;
            reserve(world, &drawn, &target);
            post_begin(world, &run.into(), &source, &drawn.vm, &target);
            worked_out.leave(drawn);
            Ok(())
        })
        .then(copy, move |world, run| {
            let Some(drawn) = kept.take() else { return Ok(None) };
            enter(world, run, &from, &made, drawn);
            Ok(Some(Value::Ref(made)))
        })
        .undo(move |world| {
            if let Some(drawn) = given_back.take() {
                release(world, &drawn);
            }
        });
    job.is_clone = true;
    job.holds = vec![(this.clone(), Hold::Shared)];
    if will_start {
        job = job
            .first(move |world, run| power::begin_power_on(world, &run.into(), &started, None))
            .then(takes_power, move |world, run| {
                power::finish_power_on(world, run.handle, &run.into(), &on, None)?;
                Ok(Some(Value::Ref(on)))
            });
    }
    job
}

/// By how its disks come about: a linked clone copies next to nothing.
fn copying_time(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    spec: &VirtualMachineCloneSpec,
) -> Duration {
    let timings = &cx.handle.options.timings;
    let Ok(config) = source_config(world, this, spec) else { return Duration::ZERO };
    let mut bytes = 0;
    for disk in config.disks() {
        bytes += match CopyPlan::of(
            spec.location.disk_move_type.as_deref(),
            disk,
            spec.snapshot.is_some(),
        ) {
            Ok(CopyPlan::Full) => {
                disk.file.chain().map(|file| stored_bytes(world, &file.path)).sum()
            }
            _ => 0,
        };
    }
    let base = if bytes == 0 { timings.clone_linked } else { timings.clone_full };
    base.draw(&mut world.random) + timings.copying(bytes, &mut world.random)
}

fn stored_bytes(world: &World, path: &FilePath) -> i64 {
    let entry = world.store.shelf(&path.datastore).and_then(|shelf| shelf.get(&path.path));
    entry.map_or(0, |entry| entry.content.size())
}

/// The configuration that is cloned: the VM's, or that of one of its snapshots.
fn source_config(
    world: &World,
    this: &MoRef,
    spec: &VirtualMachineCloneSpec,
) -> Result<Config, Failure> {
    let row = vm(world, this)?;
    match &spec.snapshot {
        None => Ok(row.config.clone()),
        Some(snapshot) => {
            let found = row.snapshots.as_ref().and_then(|all| all.get(snapshot));
            found
                .map(|snapshot| snapshot.config.clone())
                .ok_or_else(|| Failure::invalid_argument("spec.snapshot"))
        }
    }
}

fn work_out(
    world: &mut World,
    run: &Run<'_>,
    this: &MoRef,
    (folder, name, spec): (MoRef, &str, &VirtualMachineCloneSpec),
) -> Result<Plan, Failure> {
    need_connected(world, this)?;
    let name: Arc<str> = checked_name(name)?.into();
    world.inventory.refuse_duplicate(&folder, &name)?;
    let mut config = source_config(world, this, spec)?;
    let source = vm(world, this)?.clone();
    let location = &spec.location;
    let pool = location.pool.clone().or_else(|| source.pool.clone()).filter(|_| !spec.template);
    let datastore = match &location.datastore {
        Some(asked) => placement::roomiest(world, asked).unwrap_or_else(|| asked.clone()),
        None => source.home.datastore.clone(),
    };
    placement::check_datastore(world, &datastore, pool.as_ref())?;
    let directory = store::free_directory(world, &datastore, &name);
    let made = copy_disks(world, &mut config, (&datastore, &directory), spec)?;
    for device in &mut config.devices {
        if let Own::Nic(mac) = &mut device.own {
            *mac = world.inventory.next_mac();
        }
    }
    let mut draft = Draft {
        config,
        datastore: datastore.clone(),
        directory: directory.clone(),
        power: Power::Off,
        has_snapshots: false,
        is_clone: true,
        effects: crate::vm::Effects { made, ..Default::default() },
    };
    device_change::apply(world, &mut draft, &location.device_change)?;
    if let Some(asked) = &spec.config {
        config_change::apply(
            world,
            &mut draft,
            &VirtualMachineConfigSpec { name: None, ..asked.clone() },
        )?;
    }
    grow(&mut draft);
    if let Some(asked) = spec.customization.as_ref().filter(|_| !spec.template) {
        customize::check(&draft.config, asked)?;
    }
    // It is made off, which needs no room on its host; whether it can be powered on is seen when it is.
    let demand = crate::pool::Demand::default();
    let host = match &pool {
        Some(pool) => {
            placement::choose_host(&world.inventory, pool, location.host.as_ref(), demand)?
        }
        None => location.host.clone().unwrap_or_else(|| source.host.clone()),
    };
    config_change::check_cpu_limit(world, &draft, &host)?;
    draft.check_space(world)?;
    let space =
        draft.needed_bytes().into_iter().map(|(path, bytes)| (path.datastore, bytes)).collect();
    let extension = if spec.template { "vmtx" } else { "vmx" };
    let home = FilePath::new(&datastore, format!("{directory}/{name}.{extension}"));
    let place = Place { folder, pool, host, home };
    let mut vm = Vm::new(name, place, draft.config, &mut world.random, run.now);
    if let Some(asked) = &spec.config {
        vm.identify(asked.uuid.as_deref(), asked.instance_uuid.as_deref());
    }
    vm.template = spec.template;
    vm.behaviour = source.behaviour;
    vm.identity = source.identity;
    vm.customization = spec.customization.clone().filter(|_| !spec.template).map(Arc::new);
    Ok(Plan { vm, made: draft.effects.made, space })
}

/// A disk that the request made larger is made in its final size.
fn grow(draft: &mut Draft) {
    let resized = std::mem::take(&mut draft.effects.resized);
    for (file, capacity_kb) in resized {
        if let Some((_, made)) =
            draft.effects.made.iter_mut().find(|(made, _)| made.path == file.path)
        {
            *made = capacity_kb;
        }
    }
}

fn reserve(world: &mut World, plan: &Plan, clone: &MoRef) {
    let name = (plan.vm.folder.clone(), Arc::clone(&plan.vm.name));
    world.inventory.reserved_names.insert(name, clone.clone());
    for (datastore, bytes) in &plan.space {
        if let Some(shelf) = world.store.shelf_mut(datastore) {
            shelf.reserve(*bytes);
        }
        store::announce_space(world, datastore);
    }
}

fn release(world: &mut World, plan: &Plan) {
    world.inventory.reserved_names.remove(&(plan.vm.folder.clone(), Arc::clone(&plan.vm.name)));
    for (datastore, bytes) in &plan.space {
        if let Some(shelf) = world.store.shelf_mut(datastore) {
            shelf.release(*bytes);
        }
        store::announce_space(world, datastore);
    }
}

/// The copy is done: the clone is there.
fn enter(world: &mut World, run: &Run<'_>, source: &MoRef, clone: &MoRef, plan: Plan) {
    release(world, &plan);
    let template = plan.vm.template;
    world.inventory.enter_vm(clone, plan.vm);
    for (file, capacity_kb) in &plan.made {
        store::add_disk_file(world, file, *capacity_kb, run.now);
    }
    store::add_vm_files(world, clone, run.now);
    world.rest.data_sets.copy(source, clone);
    task::commit(world, &run.task);
    let scene = Scene::from(run);
    identity::post_identity(world, &scene, clone);
    let from_template = world.inventory.vms.get(source).is_some_and(|row| row.template);
    let source_name = world.inventory.name(source).unwrap_or_default().to_owned();
    let draft = if from_template && !template {
        let message =
            event::fill(world, clone, &format!("Template {source_name} deployed on host {{host}}"));
        let draft = event::vm_draft(world, "VmDeployedEvent", clone, message);
        draft.with_object(world, "srcTemplate", source)
    } else {
        let message = event::fill(
            world,
            clone,
            &format!("{source_name} cloned to {{vm}} on {{host}} in {{dc}}"),
        );
        event::vm_draft(world, "VmClonedEvent", clone, message)
            .with_object(world, "sourceVm", source)
    };
    event::post(world, &scene, draft);
}

fn post_begin(world: &mut World, scene: &Scene, source: &MoRef, planned: &Vm, clone: &MoRef) {
    let Some(row) = world.inventory.vms.get(source) else { return };
    let (is_template, source_name) = (row.template, row.name.to_string());
    let host = world.inventory.name(&planned.host).unwrap_or_default().to_owned();
    let draft = if is_template && !planned.template {
        let datacenter = world.inventory.datacenter_of(&planned.folder);
        let place = datacenter.as_ref().and_then(|at| world.inventory.name(at)).unwrap_or_default();
        let message = format!(
            "Deploying {} on host {host} in {place} from template {source_name}",
            planned.name
        );
        let draft = event::Draft::new("VmBeingDeployedEvent", message);
        let draft =
            draft.about_new_vm(world, clone, planned).with_object(world, "srcTemplate", source);
        draft.of_template(false)
    } else {
        let message =
            format!("Cloning {{vm}} on host {{host}} in {{dc}} to {} on host {host}", planned.name);
        let message = event::fill(world, source, &message);
        event::vm_draft(world, "VmBeingClonedEvent", source, message)
            .with_object(world, "destFolder", &planned.folder)
            .with("destName", &planned.name.to_string())
            .with_object(world, "destHost", &planned.host)
    };
    event::post(world, scene, draft);
}
