//! `RegisterVM_Task`: files that are on a datastore become a VM of the inventory again.

use std::sync::Arc;

use roost_vim_wire::methods::RegisterVmTask;
use roost_vim_wire::{MoRef, Value};

use crate::call::{CallContext, Failure};
use crate::event;
use crate::inventory::checked_name;
use crate::store;
use crate::task::{Job, submit};
use crate::vm::fault::not_supported;
use crate::vm::{FilePath, Place, Vm, create, placement};
use crate::world::World;

pub(crate) fn register(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    call: RegisterVmTask,
) -> Result<MoRef, Failure> {
    if call.path.is_empty() {
        return Err(Failure::invalid_argument("path"));
    }
    if !call.as_template && call.pool.is_none() {
        return Err(Failure::invalid_argument("pool"));
    }
    if call.as_template && (call.pool.is_some() || call.host.is_none()) {
        return Err(Failure::invalid_argument(if call.pool.is_some() { "pool" } else { "host" }));
    }
    let takes = cx.handle.options.timings.create.draw(&mut world.random);
    let folder = this.clone();
    let mut job = Job::on("RegisterVM_Task", this).then(takes, move |world, run| {
        let datacenter = world.inventory.datacenter_of(&folder);
        let home = store::locate(world, &call.path, datacenter.as_ref())?;
        check_file(world, &home)?;
        let stem = home.path.rsplit('/').next().unwrap_or_default();
        let stem = stem.trim_end_matches(".vmx").trim_end_matches(".vmtx").to_owned();
        let asked = call.name.clone().filter(|name| !name.is_empty()).unwrap_or(stem);
        let name: Arc<str> = checked_name(&asked)?.into();
        world.inventory.refuse_duplicate(&folder, &name)?;
        let host = match (&call.pool, &call.host) {
            (Some(pool), host) => {
                let demand = crate::pool::Demand::default();
                placement::choose_host(&world.inventory, pool, host.as_ref(), demand)?
            }
            (None, Some(host)) => host.clone(),
            (None, None) => return Err(Failure::invalid_argument("host")),
        };
        let place =
            Place { folder: folder.clone(), pool: call.pool.clone(), host, home: home.clone() };
        let remembered = world.inventory.unregistered.remove(&home_key(&home));
        let mut vm = match remembered {
            Some(vm) => {
                let mut vm = *vm;
                vm.folder = place.folder;
                vm.pool = place.pool;
                vm.host = place.host;
                vm.name = name;
                vm
            }
            None => Vm::new(name, place, create::empty_config(), &mut world.random, run.now),
        };
        vm.template = call.as_template;
        let moref = world.inventory.ids.vm();
        world.inventory.enter_vm(&moref, vm);
        event::post_vm(
            world,
            &run.into(),
            "VmRegisteredEvent",
            &moref,
            "Registered {vm} on {host} in {dc}",
        );
        Ok(Some(Value::Ref(moref)))
    });
    job.holds.clear();
    Ok(submit(world, cx, job))
}

fn check_file(world: &World, home: &FilePath) -> Result<(), Failure> {
    let is_there =
        world.store.shelf(&home.datastore).is_some_and(|shelf| shelf.get(&home.path).is_some());
    if !is_there {
        return Err(store::file_fault(world, "FileNotFound", home, "File not found:"));
    }
    let is_registered = world.inventory.vms.iter().find(|(_, row)| row.home == *home);
    match is_registered {
        Some((known, _)) => {
            Err(Failure::of("AlreadyExists", "The virtual machine is already registered.")
                .with("name", &known.id.to_string()))
        }
        None if home.path.ends_with(".vmx") || home.path.ends_with(".vmtx") => Ok(()),
        None => Err(not_supported("The file is no virtual machine configuration.")),
    }
}

/// What a file of a VM that left the inventory is remembered by.
pub(crate) fn home_key(home: &FilePath) -> (MoRef, Arc<str>) {
    (home.datastore.clone(), Arc::clone(&home.path))
}
