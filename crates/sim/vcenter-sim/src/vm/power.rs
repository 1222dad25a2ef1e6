//! Power: on, off, reset, suspend, and what a guest is asked to do itself.

use roost_vim_wire::{Element, MoRef, MoType, Value};

use crate::call::{CallContext, Failure};
use crate::event::{self, Scene};
use crate::guest::{self, ToolsState};
use crate::inventory::Changed;
use crate::task::{Job, submit};
use crate::vm::fault::{invalid_power_state, need_connected, need_power, refuse_template, vm};
use crate::vm::{Power, placement};
use crate::world::{Handle, World};

pub(super) fn power_on(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    host: Option<MoRef>,
) -> Result<MoRef, Failure> {
    refuse_template(world, this)?;
    let takes = cx.handle.options.timings.power_on.draw(&mut world.random);
    let (begun, done, at) = (this.clone(), this.clone(), host.clone());
    let job = Job::on("PowerOnVM_Task", this)
        .first(move |world, run| begin_power_on(world, &run.into(), &begun, host.as_ref()))
        .then(takes, move |world, run| {
            finish_power_on(world, run.handle, &run.into(), &done, at.as_ref()).map(|()| None)
        });
    Ok(submit(world, cx, job))
}

/// Starts several VMs, each with a task of its own; the result says which was tried.
pub(crate) fn power_on_many(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    vms: Vec<MoRef>,
) -> Result<MoRef, Failure> {
    let mut result = Element::new("result").typed("ClusterPowerOnVmResult");
    let (mut tried, mut refused) = (Vec::new(), Vec::new());
    for one in vms {
        let started = match vm(world, &one)?.power {
            Power::On => Err(invalid_power_state(Power::On, Power::On)),
            _ => power_on(world, cx, &one, None),
        };
        match started {
            Ok(task) => tried
                .push(Element::new("attempted").with_field("vm", &one).with_field("task", &task)),
            Err(failure) => refused.push(
                Element::new("notAttempted")
                    .with_field("vm", &one)
                    .with_field("fault", &failure.localized()),
            ),
        }
    }
    for row in tried.into_iter().chain(refused) {
        result = result.with(row);
    }
    let job = Job::on("PowerOnMultiVM_Task", this).without_hold();
    let job =
        job.then(std::time::Duration::ZERO, move |_, _| Ok(Some(Value::Other(Box::new(result)))));
    Ok(submit(world, cx, job))
}

/// Checks that a VM may start, and says that it does.
pub(crate) fn begin_power_on(
    world: &mut World,
    scene: &Scene,
    this: &MoRef,
    host: Option<&MoRef>,
) -> Result<(), Failure> {
    need_connected(world, this)?;
    let existing = vm(world, this)?.power;
    if existing == Power::On {
        return Err(invalid_power_state(Power::On, existing));
    }
    if let Err(failure) = admit(world, this, host) {
        report_failure(world, scene, this, &failure);
        return Err(failure);
    }
    event::post_vm(
        world,
        scene,
        "VmStartingEvent",
        this,
        "{vm} on host {host} in {dc} is starting",
    );
    Ok(())
}

/// Whether pool and hosts have room, and which host it will be.
fn admit(world: &World, this: &MoRef, host: Option<&MoRef>) -> Result<MoRef, Failure> {
    let row = vm(world, this)?;
    let Some(pool) = &row.pool else {
        return Err(Failure::of("InvalidState", "The virtual machine has no resource pool."));
    };
    let demand = row.demand();
    let own = world.inventory.hosts.get(&row.host).filter(|own| own.is_usable() && host.is_none());
    let host = match own {
        // It stays where it is unless it does not fit there.
        Some(own) if own.demand.memory + demand.memory <= own.memory => row.host.clone(),
        _ => placement::choose_host(&world.inventory, pool, host, demand)?,
    };
    world.inventory.admit(pool, demand)?;
    Ok(host)
}

fn report_failure(world: &mut World, scene: &Scene, this: &MoRef, failure: &Failure) {
    let message = event::fill(world, this, "Cannot power on {vm} on {host} in {dc}.");
    let draft = event::vm_draft(
        world,
        "VmFailedToPowerOnEvent",
        this,
        format!("{message} {}", failure.message),
    );
    let draft = draft.with("reason", &failure.clone().localized());
    event::post(world, scene, draft);
}

pub(crate) fn finish_power_on(
    world: &mut World,
    handle: &Handle,
    scene: &Scene,
    this: &MoRef,
    host: Option<&MoRef>,
) -> Result<(), Failure> {
    // The last room may have gone to another VM meanwhile.
    let host = match admit(world, this, host) {
        Ok(host) => host,
        Err(failure) => {
            report_failure(world, scene, this, &failure);
            return Err(failure);
        }
    };
    let was_suspended = vm(world, this)?.power == Power::Suspended;
    set_power(world, this, Power::On, scene.now);
    world.inventory.change_vm(this, |row| row.host = host.clone());
    let in_cluster = world
        .inventory
        .compute_of_host(&host)
        .is_some_and(|at| at.kind == MoType::ClusterComputeResource);
    if in_cluster {
        event::post_vm(
            world,
            scene,
            "DrsVmPoweredOnEvent",
            this,
            "DRS powered on {vm} on {host} in {dc}",
        )
    } else {
        event::post_vm(
            world,
            scene,
            "VmPoweredOnEvent",
            this,
            "{vm} on {host} in {dc} is powered on",
        )
    };
    if was_suspended {
        guest::resume(world, handle, this);
    } else {
        guest::boot(world, handle, this);
    }
    Ok(())
}

pub(super) fn power_off(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<MoRef, Failure> {
    refuse_template(world, this)?;
    let takes = cx.handle.options.timings.power_off.draw(&mut world.random);
    let (begun, done) = (this.clone(), this.clone());
    let job = Job::on("PowerOffVM_Task", this)
        .first(move |world, run| {
            need_connected(world, &begun)?;
            let existing = vm(world, &begun)?.power;
            if existing == Power::Off {
                return Err(invalid_power_state(Power::Off, existing));
            }
            event::post_vm(
                world,
                &run.into(),
                "VmStoppingEvent",
                &begun,
                "{vm} on {host} in {dc} is stopping",
            );
            Ok(())
        })
        .then(takes, move |world, run| {
            // A guest may have shut itself down in the meantime.
            if vm(world, &done)?.power != Power::Off {
                finish_power_off(world, &run.into(), &done);
            }
            Ok(None)
        });
    Ok(submit(world, cx, job))
}

/// The VM is off: everything that its guest told is gone with it.
pub(crate) fn finish_power_off(world: &mut World, scene: &Scene, this: &MoRef) {
    set_power(world, this, Power::Off, scene.now);
    guest::stop(world, this);
    event::post_vm(
        world,
        scene,
        "VmPoweredOffEvent",
        this,
        "{vm} on {host} in {dc} is powered off",
    );
}

pub(super) fn reset(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<MoRef, Failure> {
    refuse_template(world, this)?;
    let takes = cx.handle.options.timings.reset.draw(&mut world.random);
    let (begun, done) = (this.clone(), this.clone());
    let job = Job::on("ResetVM_Task", this)
        .first(move |world, run| {
            begin_on_running(
                world,
                &run.into(),
                &begun,
                "VmResettingEvent",
                "{vm} on {host} in {dc} is reset",
            )
        })
        .then(takes, move |world, run| {
            need_power(world, &done, Power::On)?;
            restart_guest(world, run.handle, &done, run.now);
            Ok(None)
        });
    Ok(submit(world, cx, job))
}

/// A task that needs a VM that runs begins, and is told of.
fn begin_on_running(
    world: &mut World,
    scene: &Scene,
    vm: &MoRef,
    class: &'static str,
    message: &'static str,
) -> Result<(), Failure> {
    need_connected(world, vm)?;
    need_power(world, vm, Power::On)?;
    event::post_vm(world, scene, class, vm, message);
    Ok(())
}

/// The guest begins anew while the VM stays on.
pub(crate) fn restart_guest(
    world: &mut World,
    handle: &Handle,
    this: &MoRef,
    now: jiff::Timestamp,
) {
    guest::stop(world, this);
    world.inventory.change_vm(this, |row| row.boot_time = Some(now));
    world.inventory.changes.modified(this, ["runtime.bootTime", "summary.runtime.bootTime"]);
    guest::boot(world, handle, this);
}

pub(super) fn suspend(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
) -> Result<MoRef, Failure> {
    refuse_template(world, this)?;
    let takes = cx.handle.options.timings.suspend.draw(&mut world.random);
    let (begun, done) = (this.clone(), this.clone());
    let job = Job::on("SuspendVM_Task", this)
        .first(move |world, run| {
            begin_on_running(
                world,
                &run.into(),
                &begun,
                "VmSuspendingEvent",
                "{vm} on {host} in {dc} is being suspended",
            )
        })
        .then(takes, move |world, run| {
            need_power(world, &done, Power::On)?;
            finish_suspend(world, &run.into(), &done);
            Ok(None)
        });
    Ok(submit(world, cx, job))
}

pub(crate) fn finish_suspend(world: &mut World, scene: &Scene, this: &MoRef) {
    set_power(world, this, Power::Suspended, scene.now);
    guest::stop(world, this);
    event::post_vm(world, scene, "VmSuspendedEvent", this, "{vm} on {host} in {dc} is suspended");
}

/// What a guest can be asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    ShutDown,
    Reboot,
    StandBy,
}

/// Asks the guest; it answers at once and acts when it acts.
pub(super) fn ask_guest(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    request: Request,
) -> Result<(), Failure> {
    refuse_template(world, this)?;
    need_connected(world, this)?;
    need_power(world, this, Power::On)?;
    if vm(world, this)?.guest.tools != ToolsState::Running {
        let message = "Cannot complete operation because VMware Tools is not running in this virtual machine.";
        return Err(Failure::of("ToolsUnavailable", message));
    }
    let (class, message) = match request {
        Request::ShutDown => {
            ("VmGuestShutdownEvent", "Guest OS shut down for {vm} on {host} in {dc}")
        }
        Request::Reboot => ("VmGuestRebootEvent", "Guest OS reboot for {vm} on {host} in {dc}"),
        Request::StandBy => ("VmGuestStandbyEvent", "Guest OS standby for {vm} on {host} in {dc}"),
    };
    let scene = Scene::from(cx);
    event::post_vm(world, &scene, class, this, message);
    if vm(world, this)?.behaviour.obeys {
        guest_acts(world, cx.handle, scene, this, request);
    }
    Ok(())
}

/// The guest shuts down, reboots or stands by, which takes it a while.
pub(crate) fn guest_acts(
    world: &mut World,
    handle: &Handle,
    scene: Scene,
    this: &MoRef,
    request: Request,
) {
    let takes = handle.options.timings.shutdown.draw(&mut world.random);
    let Some(boot) = world.inventory.vms.get(this).map(|row| row.guest.boot) else { return };
    let this = this.clone();
    handle.after(takes, move |world, handle| {
        let is_same = |row: &&crate::vm::Vm| row.guest.boot == boot && row.power == Power::On;
        if world.inventory.vms.get(&this).as_ref().is_none_or(|x| !is_same(x)) {
            return;
        }
        let scene = Scene { now: handle.now(), ..scene };
        match request {
            Request::ShutDown => finish_power_off(world, &scene, &this),
            Request::Reboot => restart_guest(world, handle, &this, scene.now),
            Request::StandBy => finish_suspend(world, &scene, &this),
        }
    });
}

/// Changes the power state and all that follows from it at once.
pub(crate) fn set_power(world: &mut World, this: &MoRef, power: Power, now: jiff::Timestamp) {
    let plugged = world.inventory.change_vm(this, |row| {
        row.power = power;
        row.boot_time = (power == Power::On).then_some(now);
        row.suspend_time = (power == Power::Suspended).then_some(now);
        plug_in(row)
    });
    let mut paths: Vec<Changed> =
        POWER_PATHS.iter().chain(&USAGE_PATHS).map(|path| Changed::from(*path)).collect();
    paths.extend(
        plugged
            .unwrap_or_default()
            .iter()
            .map(|key| Changed::from(format!("config.hardware.device[{key}]"))),
    );
    world.inventory.changes.modified(this, paths);
    let pool = world.inventory.vms.get(this).and_then(|row| row.pool.clone());
    if let Some(app) = pool.filter(|pool| pool.kind == MoType::VirtualApp) {
        world.inventory.changes.modified(&app, ["summary.vAppState", "summary.suspended"]);
    }
}

/// Devices that start connected are connected when the VM starts. Returns the keys of those that can be at all.
fn plug_in(row: &mut crate::vm::Vm) -> Vec<i32> {
    let is_on = row.power == Power::On;
    let mut keys = Vec::new();
    for device in &mut row.config.devices {
        let Some(connectable) = &device.base.connectable else { continue };
        keys.push(device.base.key);
        if is_on && connectable.connected != connectable.start_connected {
            let base = std::sync::Arc::make_mut(&mut device.base);
            if let Some(connectable) = &mut base.connectable {
                connectable.connected = connectable.start_connected;
            }
        }
    }
    keys
}

const POWER_PATHS: [&str; 7] = [
    "runtime.powerState",
    "runtime.bootTime",
    "runtime.suspendTime",
    "summary.runtime.powerState",
    "summary.runtime.bootTime",
    "summary.runtime.suspendTime",
    "guest.guestState",
];

/// What a running VM shows of its size.
pub(super) const USAGE_PATHS: [&str; 7] = [
    "runtime.maxCpuUsage",
    "runtime.maxMemoryUsage",
    "summary.runtime.maxCpuUsage",
    "summary.runtime.maxMemoryUsage",
    "summary.quickStats.overallCpuUsage",
    "summary.quickStats.guestMemoryUsage",
    "summary.quickStats.hostMemoryUsage",
];
