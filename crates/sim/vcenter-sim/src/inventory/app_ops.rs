//! vApps: pools whose VMs are started and stopped together.

use std::time::Duration;

use roost_vim_wire::methods::CreateVApp;
use roost_vim_wire::types::{ResourceConfigSpec, VirtualMachineConfigSpec};
use roost_vim_wire::{Element, MoRef, MoType};

use crate::call::{CallContext, Failure};
use crate::event::{self, Draft, Scene};
use crate::inventory::build::pool_config;
use crate::inventory::{FolderKind, Inventory, checked_name, draw_uuid, pool_ops, uuid_text};
use crate::options::Product;
use crate::pool::{App, Pool};
use crate::task::{Hold, Job, Run, submit};
use crate::vm::fault::{invalid_power_state, need_connected};
use crate::vm::{NewVm, Power, apply_v_app, create_as, power};
use crate::world::World;

impl Inventory {
    /// Puts a vApp into the tables, below a pool, without telling anyone. Its folder does not list it, as with vcsim: its VMs
    /// are there themselves, and who looks for one by name would find it twice.
    pub(super) fn enter_app(
        &mut self,
        parent: &MoRef,
        name: &str,
        config: ResourceConfigSpec,
        app: App,
    ) -> Option<MoRef> {
        let owner = self.pools.get(parent)?.owner.clone();
        let this = self.ids.next(MoType::VirtualApp, "resgroup-v");
        let mut row = Pool::new(name, parent, &owner, config, &this);
        row.app = Some(Box::new(app));
        self.pools.insert(&this, row);
        self.pools.get_mut(parent)?.pools.push(this.clone());
        Some(this)
    }
}

pub(super) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    call: CreateVApp,
) -> Result<MoRef, Failure> {
    if world.product == Product::HostAgent {
        return Err(Failure::of("NotSupported", "A host alone has no vApps."));
    }
    let name = checked_name(&call.name)?;
    let Some(parent) = world.inventory.pools.get(this) else {
        return Err(Failure::not_found(this));
    };
    let (owner, above) = (parent.owner.clone(), parent.app.as_ref().map(|app| app.folder.clone()));
    let usual = || {
        let datacenter = world.inventory.datacenter_of(this)?;
        Some(world.inventory.datacenters.get(&datacenter)?.vm_folder.clone())
    };
    let folder = call.vm_folder.or(above).or_else(usual);
    let folder = folder.ok_or_else(|| Failure::invalid_argument("vmFolder"))?;
    if world.inventory.folders.get(&folder).is_none_or(|row| row.kind != FolderKind::Vm) {
        return Err(Failure::invalid_argument("vmFolder"));
    }
    pool_ops::refuse_duplicate(world, this, &name)?;
    let mut config = pool_config();
    pool_ops::merge(&mut config, &call.res_spec)?;
    let app = App {
        folder,
        config: apply_v_app(None, &call.config_spec),
        annotation: call.config_spec.text_of("annotation").unwrap_or_default().to_owned(),
        uuid: uuid_text(draw_uuid(&mut world.random)),
    };
    let Some(made) = world.inventory.enter_app(this, &name, config, app) else {
        return Err(Failure::not_found(this));
    };
    world.inventory.changes.entered(&made);
    world.inventory.changes.modified(this, ["resourcePool"]);
    world.inventory.announce_pools(&owner);
    let draft = Draft::new("ResourcePoolCreatedEvent", format!("Created vApp {name}"))
        .about_entity(world, &made)
        .about(world, &owner);
    let draft = draft.with_object(world, "resourcePool", &made).with_object(world, "parent", this);
    event::post(world, &Scene::from(cx), draft);
    Ok(made)
}

pub(super) fn update(world: &mut World, this: &MoRef, spec: &Element) -> Result<(), Failure> {
    let row = world.inventory.pools.get_mut(this).and_then(|row| row.app.as_deref_mut());
    let Some(app) = row else { return Err(Failure::not_found(this)) };
    app.config = apply_v_app(Some(&app.config), spec);
    if let Some(annotation) = spec.text_of("annotation") {
        annotation.clone_into(&mut app.annotation);
    }
    world.inventory.changes.modified(this, ["vAppConfig", "summary.product"]);
    Ok(())
}

/// A VM in a vApp, in the vApp's folder. A pool that is none has no folder to put it in.
pub(super) fn create_vm(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (spec, host): (VirtualMachineConfigSpec, Option<MoRef>),
) -> Result<MoRef, Failure> {
    let row = world.inventory.pools.get(this).ok_or_else(|| Failure::not_found(this))?;
    let Some(app) = &row.app else {
        return Err(Failure::of("NotSupported", "The resource pool is no vApp."));
    };
    let folder = app.folder.clone();
    let new = NewVm {
        method: "CreateChildVM_Task",
        entity: this.clone(),
        takes: cx.handle.options.timings.create.draw(&mut world.random),
        folder,
        pool: this.clone(),
        host,
        spec,
        has_tools: false,
    };
    Ok(create_as(world, cx, new).0)
}

pub(super) fn power_on(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<MoRef, Failure> {
    let takes = cx.handle.options.timings.power_on.draw(&mut world.random);
    together(world, cx, this, ("PowerOnVApp_Task", takes, Power::On))
}

pub(super) fn power_off(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<MoRef, Failure> {
    let takes = cx.handle.options.timings.power_off.draw(&mut world.random);
    together(world, cx, this, ("PowerOffVApp_Task", takes, Power::Off))
}

pub(super) fn suspend(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<MoRef, Failure> {
    let takes = cx.handle.options.timings.suspend.draw(&mut world.random);
    together(world, cx, this, ("SuspendVApp_Task", takes, Power::Suspended))
}

/// Brings the VMs of a vApp, also of those inside it, into one power state, in one task that holds them all.
fn together(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    (method, takes, wanted): (&'static str, Duration, Power),
) -> Result<MoRef, Failure> {
    if !world.inventory.pools.contains(this) {
        return Err(Failure::not_found(this));
    }
    let vms = vms_below(&world.inventory, this);
    let (begun, done, at) = (vms.clone(), vms.clone(), this.clone());
    let mut job = Job::on(method, this)
        .first(move |world, run| begin(world, run, (&at, &begun), wanted))
        .then(takes, move |world, run| {
            for vm in moving(world, &done, wanted) {
                match wanted {
                    Power::On => {
                        power::finish_power_on(world, run.handle, &run.into(), &vm, None)?;
                    }
                    Power::Off => power::finish_power_off(world, &run.into(), &vm),
                    Power::Suspended => power::finish_suspend(world, &run.into(), &vm),
                }
            }
            Ok(None)
        });
    job.holds.extend(vms.into_iter().map(|vm| (vm, Hold::Exclusive)));
    Ok(submit(world, cx, job))
}

fn begin(
    world: &mut World,
    run: &Run<'_>,
    (this, vms): (&MoRef, &[MoRef]),
    wanted: Power,
) -> Result<(), Failure> {
    let moving = moving(world, vms, wanted);
    if moving.is_empty() && (wanted != Power::On || state(&world.inventory, this) == Power::On) {
        return Err(invalid_power_state(wanted, state(&world.inventory, this)));
    }
    for vm in moving {
        if wanted == Power::On {
            power::begin_power_on(world, &run.into(), &vm, None)?;
        } else {
            need_connected(world, &vm)?;
        }
    }
    Ok(())
}

/// The VMs that are not yet in the state that is wanted; only what runs can be suspended.
fn moving(world: &World, vms: &[MoRef], wanted: Power) -> Vec<MoRef> {
    let moves = |vm: &&MoRef| {
        world.inventory.vms.get(vm).is_some_and(|row| match wanted {
            Power::Suspended => row.power == Power::On,
            other => row.power != other,
        })
    };
    vms.iter().filter(moves).cloned().collect()
}

fn vms_below(inventory: &Inventory, this: &MoRef) -> Vec<MoRef> {
    let mut vms: Vec<MoRef> = inventory.vms_of(this).cloned().collect();
    for child in inventory.pools.get(this).iter().flat_map(|row| &row.pools) {
        vms.extend(vms_below(inventory, child));
    }
    vms
}

/// On if any of its VMs is, else suspended if any is.
pub(super) fn state(inventory: &Inventory, this: &MoRef) -> Power {
    let vms = vms_below(inventory, this);
    let has =
        |power| vms.iter().any(|vm| inventory.vms.get(vm).is_some_and(|row| row.power == power));
    if has(Power::On) {
        Power::On
    } else if has(Power::Suspended) {
        Power::Suspended
    } else {
        Power::Off
    }
}
