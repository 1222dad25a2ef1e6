//! Hosts: maintenance, connection, and what becomes of the VMs on them.

use roost_vim_wire::MoRef;

use crate::call::{CallContext, Failure};
use crate::event::{self, Draft, Scene};
use crate::inventory::HostConnection;
use crate::task::{Job, submit};
use crate::vm::{Power, placement};
use crate::world::World;

/// The cluster moves the VMs that run to its other hosts. Those that find no place stay, and cannot be reached until the host is back.
pub(super) fn enter_maintenance(
    world: &mut World,
    cx: &CallContext<'_>,
    this: &MoRef,
    with_powered_off: bool,
) -> MoRef {
    let takes = cx.handle.options.timings.relocate.draw(&mut world.random);
    let (checked, done) = (this.clone(), this.clone());
    let job = Job::on("EnterMaintenanceMode_Task", this)
        .cancelable()
        .first(move |world, _| {
            if host(world, &checked)?.maintenance {
                let message = "The operation is not allowed in the current state.";
                return Err(Failure::of("InvalidState", message));
            }
            need_connected(world, &checked)
        })
        .then(takes, move |world, run| {
            set_maintenance(world, &run.into(), &done, true);
            evacuate(world, &run.into(), &done, with_powered_off);
            Ok(None)
        });
    submit(world, cx, job)
}

pub(super) fn exit_maintenance(world: &mut World, cx: &CallContext<'_>, this: &MoRef) -> MoRef {
    let takes = cx.handle.options.timings.reconfigure.draw(&mut world.random);
    let (checked, done) = (this.clone(), this.clone());
    let job = Job::on("ExitMaintenanceMode_Task", this)
        .first(move |world, _| {
            if !host(world, &checked)?.maintenance {
                let message = "The operation is not allowed in the current state.";
                return Err(Failure::of("InvalidState", message));
            }
            need_connected(world, &checked)
        })
        .then(takes, move |world, run| {
            set_maintenance(world, &run.into(), &done, false);
            Ok(None)
        });
    submit(world, cx, job)
}

pub(super) fn disconnect(world: &mut World, cx: &CallContext<'_>, this: &MoRef) -> MoRef {
    let takes = cx.handle.options.timings.reconfigure.draw(&mut world.random);
    let (checked, done) = (this.clone(), this.clone());
    let job = Job::on("DisconnectHost_Task", this)
        .first(move |world, _| need_connected(world, &checked))
        .then(takes, move |world, run| {
            connect_host(world, &run.into(), &done, HostConnection::Disconnected);
            Ok(None)
        });
    submit(world, cx, job)
}

pub(super) fn reconnect(world: &mut World, cx: &CallContext<'_>, this: &MoRef) -> MoRef {
    let takes = cx.handle.options.timings.reconfigure.draw(&mut world.random);
    let (checked, done) = (this.clone(), this.clone());
    let job = Job::on("ReconnectHost_Task", this)
        .first(move |world, _| match host(world, &checked)?.connection {
            HostConnection::Connected => {
                let message = "The host is already connected.";
                Err(Failure::of("InvalidState", message))
            }
            _ => Ok(()),
        })
        .then(takes, move |world, run| {
            connect_host(world, &run.into(), &done, HostConnection::Connected);
            Ok(None)
        });
    submit(world, cx, job)
}

fn host<'a>(world: &'a World, this: &MoRef) -> Result<&'a crate::inventory::Host, Failure> {
    world.inventory.hosts.get(this).ok_or_else(|| Failure::not_found(this))
}

pub(crate) fn need_connected(world: &World, this: &MoRef) -> Result<(), Failure> {
    if host(world, this)?.connection == HostConnection::Connected {
        return Ok(());
    }
    Err(Failure::of(
        "HostNotConnected",
        "Unable to communicate with the remote host, since it is disconnected.",
    ))
}

fn set_maintenance(world: &mut World, scene: &Scene, this: &MoRef, is_on: bool) {
    let Some(row) = world.inventory.hosts.get_mut(this) else { return };
    row.maintenance = is_on;
    let (name, owner) = (row.name.to_string(), row.parent.clone());
    let paths = ["runtime.inMaintenanceMode", "summary.runtime.inMaintenanceMode"];
    world.inventory.changes.modified(this, paths);
    let (class, words) = if is_on {
        ("EnteredMaintenanceModeEvent", format!("Host {name} has entered maintenance mode"))
    } else {
        ("ExitMaintenanceModeEvent", format!("Host {name} has exited maintenance mode"))
    };
    let draft = Draft::new(class, words).about_entity(world, this).about(world, &owner);
    event::post(world, scene, draft);
    if !is_on {
        follow_host(world, scene, this);
    }
    world.inventory.announce_capacity(&owner);
    world.inventory.announce_pools(&owner);
}

fn evacuate(world: &mut World, scene: &Scene, this: &MoRef, with_powered_off: bool) {
    let vms: Vec<MoRef> = world.inventory.vms_of(this).cloned().collect();
    for vm in vms {
        let Some(row) = world.inventory.vms.get(&vm) else { continue };
        let (pool, demand, is_on) =
            (row.pool.clone(), row.current_demand(), row.power == Power::On);
        if !is_on && !with_powered_off {
            continue;
        }
        let other = pool
            .and_then(|pool| placement::choose_host(&world.inventory, &pool, None, demand).ok())
            .filter(|other| other != this);
        if let Some(other) = other {
            world.inventory.change_vm(&vm, |row| row.host = other);
            event::post_vm(world, scene, "VmMigratedEvent", &vm, "{vm} migrated to {host} in {dc}");
        }
    }
    follow_host(world, scene, this);
}

/// The VMs of a host are as reachable as it is: those that run on one in maintenance are not.
fn follow_host(world: &mut World, scene: &Scene, host: &MoRef) {
    let Some(row) = world.inventory.hosts.get(host) else { return };
    let (is_connected, is_usable) = (row.connection == HostConnection::Connected, row.is_usable());
    let vms: Vec<MoRef> = world.inventory.vms_of(host).cloned().collect();
    for vm in vms {
        let Some(row) = world.inventory.vms.get(&vm) else { continue };
        let reachable = if row.power == Power::On { is_usable } else { is_connected };
        if row.is_connected == reachable {
            continue;
        }
        world.inventory.change_vm(&vm, |row| row.is_connected = reachable);
        let paths = [
            "runtime.connectionState",
            "summary.runtime.connectionState",
            "overallStatus",
            "summary.overallStatus",
        ];
        world.inventory.changes.modified(&vm, paths);
        let (class, words) = if reachable {
            ("VmConnectedEvent", "{vm} on host {host} is connected")
        } else {
            ("VmDisconnectedEvent", "{vm} on host {host} is disconnected")
        };
        event::post_vm(world, scene, class, &vm, words);
    }
}

/// Cuts a host off from the server, or brings it back; its VMs with it.
pub(crate) fn connect_host(
    world: &mut World,
    scene: &Scene,
    host: &MoRef,
    connection: HostConnection,
) {
    let Some(row) = world.inventory.hosts.get_mut(host) else { return };
    let (was, owner) = (row.connection, row.parent.clone());
    row.connection = connection;
    if was == connection {
        return;
    }
    let paths = [
        "runtime.connectionState",
        "summary.runtime.connectionState",
        "overallStatus",
        "summary.overallStatus",
    ];
    world.inventory.changes.modified(host, paths);
    let name = world.inventory.name(host).unwrap_or_default().to_owned();
    let (class, message) = match connection {
        HostConnection::Connected => ("HostConnectedEvent", format!("Connected to {name}")),
        HostConnection::Disconnected => {
            ("HostDisconnectedEvent", format!("Disconnected from {name}"))
        }
        HostConnection::NotResponding => {
            ("HostConnectionLostEvent", format!("Host {name} is not responding"))
        }
    };
    let draft = Draft::new(class, message).about_entity(world, host).about(world, &owner);
    event::post(world, scene, draft);
    follow_host(world, scene, host);
    world.inventory.announce_capacity(&owner);
}
