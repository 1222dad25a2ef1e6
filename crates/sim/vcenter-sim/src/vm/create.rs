//! `CreateVM_Task`.

use std::sync::Arc;
use std::time::Duration;

use roost_vim_wire::types::VirtualMachineConfigSpec;
use roost_vim_wire::{Element, Fault, MoRef, Value};

use crate::call::{CallContext, Failure};
use crate::event::{self, Scene};
use crate::inventory::{FolderKind, checked_name};
use crate::policy;
use crate::store;
use crate::task::{self, Job, Parcel, Run, submit};
use crate::vm::{
    Config, Draft, Effects, FilePath, Own, Place, Power, Settings, StandardDevices, Vm,
    config_change, identity, placement,
};
use crate::world::World;

pub(crate) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    folder: &MoRef,
    (spec, pool, host): (VirtualMachineConfigSpec, MoRef, Option<MoRef>),
) -> Result<MoRef, Failure> {
    if world.inventory.folders.get(folder).is_none_or(|row| row.kind != FolderKind::Vm) {
        return Err(Failure::of(
            "NotSupported",
            "Virtual machines can only be created in a virtual machine folder.",
        ));
    }
    if !world.inventory.pools.contains(&pool) {
        return Err(Failure::not_found(&pool));
    }
    let takes = cx.handle.options.timings.create.draw(&mut world.random);
    let new = NewVm {
        method: "CreateVM_Task",
        entity: folder.clone(),
        takes,
        folder: folder.clone(),
        pool,
        host,
        spec,
        has_tools: false,
    };
    Ok(create_as(world, cx, new).0)
}

/// A VM that is to be made, by whichever call.
#[derive(Debug)]
pub(crate) struct NewVm {
    /// What the task is called.
    pub method: &'static str,
    /// What the task is about.
    pub entity: MoRef,
    pub takes: Duration,
    pub folder: MoRef,
    pub pool: MoRef,
    pub host: Option<MoRef>,
    pub spec: VirtualMachineConfigSpec,
    /// Whether its disks come with a system that has guest tools.
    pub has_tools: bool,
}

/// Starts the task that makes a VM. Returns the task, and the VM that it will be.
pub(crate) fn create_as(world: &mut World, cx: &CallContext<'_>, new: NewVm) -> (MoRef, MoRef) {
    let NewVm { method, entity, takes, folder, pool, host, spec, has_tools } = new;
    let this = world.inventory.ids.vm();
    let at = (folder, pool, host);
    let policies = policy::asked(&spec);
    let plan = Parcel::<(Vm, Effects)>::default();
    let (worked_out, kept, given_back) = (plan.clone(), plan.clone(), plan);
    let (reserved, made) = (this.clone(), this.clone());
    let mut job = Job::on(method, &entity)
        .cancelable()
        .first(move |world, run| {
            for id in policy::asked(&spec).iter().flatten() {
                policy::compatible(world, id)?;
            }
            let mut drawn = work_out(world, run, &spec, at)?;
            if has_tools {
                install(&mut drawn.0);
            }
            post_begin(world, &run.into(), &drawn.0, &reserved, &spec);
            let name = (drawn.0.folder.clone(), Arc::clone(&drawn.0.name));
            world.inventory.reserved_names.insert(name, reserved);
            worked_out.leave(drawn);
            Ok(())
        })
        .then(takes, move |world, run| {
            let Some((vm, effects)) = kept.take() else { return Ok(None) };
            enter(world, run, &made, vm, &effects);
            policy::associate_new(world, &made, &policies);
            Ok(Some(result(method, made)))
        })
        .undo(move |world| {
            if let Some((vm, _)) = given_back.take() {
                world.inventory.reserved_names.remove(&(vm.folder, vm.name));
            }
        });
    // Many VMs are created in one folder at a time.
    job.holds.clear();
    (submit(world, cx, job), this)
}

/// The disks come with a system and its tools.
fn install(vm: &mut Vm) {
    vm.config.has_tools = true;
    for device in &mut vm.config.devices {
        if let Own::Disk(disk) = &mut device.own {
            disk.is_blank = false;
        }
    }
}

/// What the task answers with: the VM, or what storage DRS wraps it in.
fn result(method: &str, vm: MoRef) -> Value {
    if method == "ApplyStorageDrsRecommendation_Task" {
        let result = Element::new("result").typed("ApplyStorageRecommendationResult");
        return Value::Other(Box::new(result.with_field("vm", &vm)));
    }
    Value::Ref(vm)
}

fn work_out(
    world: &mut World,
    run: &Run<'_>,
    spec: &VirtualMachineConfigSpec,
    (folder, pool, host): (MoRef, MoRef, Option<MoRef>),
) -> Result<(Vm, Effects), Failure> {
    let name: Arc<str> = checked_name(spec.name.as_deref().unwrap_or_default())?.into();
    world.inventory.refuse_duplicate(&folder, &name)?;
    let home = home(world, spec, &folder, &name)?;
    placement::check_datastore(world, &home.datastore, Some(&pool))?;
    let directory = home.path.rsplit_once('/').map_or("", |(directory, _)| directory).to_owned();
    let mut draft = Draft {
        config: empty_config(),
        datastore: home.datastore.clone(),
        directory,
        power: Power::Off,
        has_snapshots: false,
        is_clone: false,
        effects: Effects::default(),
    };
    config_change::apply(world, &mut draft, spec)?;
    // It is off and needs no room there yet.
    let demand = crate::pool::Demand::default();
    let host = placement::choose_host(&world.inventory, &pool, host.as_ref(), demand)?;
    config_change::check_cpu_limit(world, &draft, &host)?;
    draft.check_space(world)?;
    let place = Place { folder, pool: Some(pool), host, home };
    let mut vm = Vm::new(name, place, draft.config, &mut world.random, run.now);
    vm.identify(spec.uuid.as_deref(), spec.instance_uuid.as_deref());
    vm.created = spec.create_date.unwrap_or(run.now);
    Ok((vm, draft.effects))
}

/// A VM as it is before a request adds to it. What boots from an image brings its tools along.
pub(crate) fn empty_config() -> Config {
    Config {
        annotation: None,
        cpus: 1,
        cores_per_socket: 1,
        memory_mb: 32,
        has_tools: true,
        settings: Arc::new(Settings::default()),
        extra: Arc::default(),
        devices: StandardDevices::new().fixed(),
    }
}

/// Where the VM's files go: the datastore that the request names, in a directory that it names or a free one.
fn home(
    world: &World,
    spec: &VirtualMachineConfigSpec,
    folder: &MoRef,
    name: &str,
) -> Result<FilePath, Failure> {
    let asked =
        spec.files.as_ref().and_then(|files| files.vm_path_name.as_deref()).unwrap_or_default();
    if asked.is_empty() {
        let fault = Fault::of("InvalidDatastorePath").with("datastorePath", &asked.to_owned());
        return Err(Failure::new(fault, "The request names no datastore for the virtual machine."));
    }
    let datacenter = world.inventory.datacenter_of(folder);
    let file = store::locate(world, asked, datacenter.as_ref())?;
    if file.path.is_empty() {
        let directory = store::free_directory(world, &file.datastore, name);
        return Ok(FilePath::new(&file.datastore, format!("{directory}/{name}.vmx")));
    }
    let path = if file.path.ends_with(".vmx") {
        file.path.to_string()
    } else {
        format!("{}/{name}.vmx", file.path)
    };
    let file = FilePath::new(&file.datastore, path);
    let is_there =
        world.store.shelf(&file.datastore).is_some_and(|shelf| shelf.get(&file.path).is_some());
    if is_there {
        Err(store::file_fault(world, "FileAlreadyExists", &file, "The file already exists:"))
    } else {
        Ok(file)
    }
}

fn enter(world: &mut World, run: &Run<'_>, this: &MoRef, vm: Vm, effects: &Effects) {
    world.inventory.reserved_names.remove(&(vm.folder.clone(), Arc::clone(&vm.name)));
    world.inventory.enter_vm(this, vm);
    effects.apply_files(world, run.now);
    store::add_vm_files(world, this, run.now);
    task::commit(world, &run.task);
    let scene = Scene::from(run);
    identity::post_identity(world, &scene, this);
    event::post_vm(
        world,
        &scene,
        "VmCreatedEvent",
        this,
        "New virtual machine {vm} created on {host} in {dc}",
    );
}

fn post_begin(
    world: &mut World,
    scene: &Scene,
    planned: &Vm,
    this: &MoRef,
    spec: &VirtualMachineConfigSpec,
) {
    let host = world.inventory.name(&planned.host).unwrap_or_default();
    let draft = event::Draft::new(
        "VmBeingCreatedEvent",
        format!("Creating {} on host {host}", planned.name),
    );
    let draft = draft.about_new_vm(world, this, planned).of_template(false);
    event::post(world, scene, draft.with("configSpec", spec));
}
