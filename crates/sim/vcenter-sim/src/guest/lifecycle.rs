//! From power on to an address, and back to nothing at power off.
//!
//! ```text
//! boot -> tools run -> (customization: scripts, then host name and addresses) -> ready -> address
//! ```
//!
//! Each phase takes its time from the seed. Every timer remembers the boot it belongs to, so what was set up before a power
//! off or a reset does nothing.

use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::MoRef;
use roost_vim_wire::types::GuestInfoCustomizationInfo;

use crate::event::{self, Scene};
use crate::guest::{AddressBehaviour, Guest, GuestAddress, ToolsState, process};
use crate::guest::{boots, customization, guestinfo};
use crate::store;
use crate::timings::{Span, Timings};
use crate::vm::{Config, Device, Power, Vm};
use crate::world::{Handle, World};

/// The VM has been powered on or reset.
pub(crate) fn boot(world: &mut World, handle: &Handle, vm: &MoRef) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    let images: Vec<String> = row.images().map(ToOwned::to_owned).collect();
    for image in images {
        // Its file may have been put on this machine's disk past the datastore.
        if let Ok(file) = store::locate(world, &image, None) {
            store::refresh(world, &file, handle.now());
        }
    }
    let has_system = world.inventory.vms.get(vm).is_some_and(|row| row.has_system(world));
    let Some(behaviour) = change(world, vm, |row| {
        row.guest = Guest { boot: row.guest.boot + 1, ..Guest::default() };
        Arc::clone(&row.behaviour)
    }) else {
        return;
    };
    if behaviour.boots && has_system {
        boots::record(world, vm, handle.now());
        next(world, handle, vm, |timings| timings.boot, up);
    }
}

/// The VM goes on where it was suspended or where a snapshot caught it: the system runs, the tools come back.
pub(crate) fn resume(world: &mut World, handle: &Handle, vm: &MoRef) {
    change(world, vm, |row| row.guest = Guest { boot: row.guest.boot + 1, ..Guest::default() });
    next(world, handle, vm, |timings| timings.ready, up);
}

/// The VM is off or suspended: its programs are gone, and so is all that the tools had told.
pub(crate) fn stop(world: &mut World, vm: &MoRef) {
    process::stop_all(world, vm);
    change(world, vm, |row| {
        let customization = row.guest.customization.take();
        row.guest = Guest { boot: row.guest.boot + 1, customization, ..Guest::default() };
    });
}

/// Changes a VM's guest and announces what of the tools' report is new.
fn change<R>(world: &mut World, vm: &MoRef, change: impl FnOnce(&mut Vm) -> R) -> Option<R> {
    let mut paths: Vec<&'static str> = Vec::new();
    let result = world.inventory.change_vm(vm, |row| {
        let (before, was_pending) = (row.guest.clone(), row.customization.is_some());
        let result = change(row);
        let after = &row.guest;
        for (is_new, touched) in [
            (before.tools != after.tools, TOOLS_PATHS.as_slice()),
            (
                before.is_ready != after.is_ready || before.tools != after.tools,
                &["guest.guestOperationsReady"],
            ),
            (before.host_name != after.host_name, &["guest.hostName", "summary.guest.hostName"]),
            (before.primary() != after.primary(), &["guest.ipAddress", "summary.guest.ipAddress"]),
            (before.addresses != after.addresses || before.tools != after.tools, &["guest.net"]),
            (before.customization != after.customization, &["guest.customizationInfo"]),
            (was_pending != row.customization.is_some(), &["config.tools.pendingCustomization"]),
        ] {
            if is_new {
                paths.extend(touched);
            }
        }
        result
    })?;
    if !paths.is_empty() {
        world.inventory.changes.modified(vm, paths);
    }
    Some(result)
}

const TOOLS_PATHS: [&str; 8] = [
    "guest.toolsStatus",
    "guest.toolsRunningStatus",
    "guest.guestState",
    "guest.guestStateChangeSupported",
    "guestHeartbeatStatus",
    "summary.quickStats.guestHeartbeatStatus",
    "summary.guest.toolsStatus",
    "summary.guest.toolsRunningStatus",
];

/// What a guest sees of its cards: which there are, on which network, plugged in or not.
pub(crate) fn cards(config: &Config) -> Vec<(i32, Option<MoRef>, bool)> {
    config.nics().map(|nic| (nic.key(), nic.network(), nic.is_connected())).collect()
}

/// A running guest loses the addresses of cards that were taken away, and its tools tell of all that is new.
pub(crate) fn cards_changed(world: &mut World, vm: &MoRef, before: &[(i32, Option<MoRef>, bool)]) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    if row.guest.tools == ToolsState::NotRunning || cards(&row.config) == before {
        return;
    }
    change(world, vm, |row| {
        let there: Vec<i32> = row.config.nics().map(Device::key).collect();
        row.guest.addresses.retain(|address| there.contains(&address.device));
    });
    world.inventory.changes.modified(vm, ["guest.net"]);
}

type Phase = fn(&mut World, &Handle, &MoRef);

/// Enters a phase after its time, if the boot is still the same then.
fn next(world: &mut World, handle: &Handle, vm: &MoRef, takes: fn(&Timings) -> Span, phase: Phase) {
    let Some(boot) = world.inventory.vms.get(vm).map(|row| row.guest.boot) else { return };
    let takes = takes(&handle.options.timings).draw(&mut world.random);
    let vm = vm.clone();
    handle.after(takes, move |world, handle| {
        let is_same = |row: &&Vm| row.guest.boot == boot && row.power == Power::On;
        if world.inventory.vms.get(&vm).as_ref().is_some_and(is_same) {
            phase(world, handle, &vm);
        }
    });
}

/// The operating system runs.
fn up(world: &mut World, handle: &Handle, vm: &MoRef) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    if row.has_tools(world) && row.behaviour.starts_tools {
        next(world, handle, vm, |timings| timings.tools, tools_up);
    }
}

fn tools_up(world: &mut World, handle: &Handle, vm: &MoRef) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    if row.customization.is_none() {
        // Cloud-init looks at each boot, so what the metadata says now is what holds.
        let given = guestinfo::identity_of(row).map(Arc::new);
        let name =
            given.as_ref().map_or_else(|| own_host_name(row), |given| given.host_name.clone());
        change(world, vm, |row| {
            row.guest.tools = ToolsState::Running;
            row.guest.host_name = Some(name);
            row.identity = given.or_else(|| row.identity.take());
        });
        return next(world, handle, vm, |timings| timings.ready, ready);
    }
    let now = handle.now();
    change(world, vm, |row| {
        row.guest.tools = ToolsState::ExecutingScripts;
        row.guest.customization = Some(status("TOOLSDEPLOYPKG_RUNNING", now, None, None));
    });
    let scene = Scene::system(now);
    let words = "Started customization of VM {vm}. Customization log located at /var/log/vmware-imc in the guest OS.";
    let draft =
        event::vm_draft(world, "CustomizationStartedEvent", vm, event::fill(world, vm, words));
    event::post(world, &scene, draft.with("logLocation", &LOG.to_owned()));
    next(world, handle, vm, |timings| timings.customization, customized);
}

const LOG: &str = "/var/log/vmware-imc/toolsDeployPkg.log";

fn status(
    status: &str,
    start: Timestamp,
    end: Option<Timestamp>,
    error: Option<&str>,
) -> Arc<GuestInfoCustomizationInfo> {
    Arc::new(GuestInfoCustomizationInfo {
        customization_status: status.into(),
        start_time: Some(start),
        end_time: end,
        error_msg: error.map(Into::into),
    })
}

/// What customization once called the system, or the VM's name as the best guess of what it was installed as.
fn own_host_name(row: &Vm) -> Arc<str> {
    row.identity
        .as_ref()
        .map_or_else(|| Arc::clone(&row.name), |identity| Arc::clone(&identity.host_name))
}

fn customized(world: &mut World, handle: &Handle, vm: &MoRef) {
    let now = handle.now();
    let scene = Scene::system(now);
    let Some(row) = world.inventory.vms.get(vm) else { return };
    let started = row.guest.customization.as_ref().and_then(|info| info.start_time).unwrap_or(now);
    if let Some(reason) = row.behaviour.customization_fails.clone() {
        let name = own_host_name(row);
        change(world, vm, |row| {
            row.customization = None;
            row.guest.tools = ToolsState::Running;
            row.guest.host_name = Some(name);
            let failed = status("TOOLSDEPLOYPKG_FAILED", started, Some(now), Some(&reason));
            row.guest.customization = Some(failed);
        });
        let words = format!(
            "An error occurred while customizing VM {{vm}}: {reason}. For details reference the log file {LOG} in the guest OS."
        );
        let draft =
            event::vm_draft(world, "CustomizationFailed", vm, event::fill(world, vm, &words));
        event::post(
            world,
            &scene,
            draft
                .with("logLocation", &LOG.to_owned())
                .with("reason", &"customizationFailed".to_owned()),
        );
        return next(world, handle, vm, |timings| timings.ready, ready);
    }
    let identity = Arc::new(customization::identity_of(row));
    change(world, vm, |row| {
        row.customization = None;
        row.guest.tools = ToolsState::Running;
        row.guest.host_name = Some(Arc::clone(&identity.host_name));
        row.identity = Some(identity);
        let succeeded = status("TOOLSDEPLOYPKG_SUCCEEDED", started, Some(now), None);
        row.guest.customization = Some(succeeded);
    });
    let words = "Customization of VM {vm} succeeded. Customization log located at /var/log/vmware-imc in the guest OS.";
    let draft = event::vm_draft(world, "CustomizationSucceeded", vm, event::fill(world, vm, words));
    event::post(world, &scene, draft.with("logLocation", &LOG.to_owned()));
    next(world, handle, vm, |timings| timings.ready, ready);
}

fn ready(world: &mut World, handle: &Handle, vm: &MoRef) {
    change(world, vm, |row| row.guest.is_ready = row.behaviour.becomes_ready);
    next(world, handle, vm, |timings| timings.address, addressed);
}

/// Every card gets its address: the static one, or one of the simulated network.
fn addressed(world: &mut World, _: &Handle, vm: &MoRef) {
    let Some(row) = world.inventory.vms.get(vm) else { return };
    let nics: Vec<_> = row
        .config
        .nics()
        .filter(|nic| nic.is_connected())
        .filter_map(|nic| Some((nic.key(), nic.mac()?)))
        .collect();
    let (identity, behaviour) = (row.identity.clone(), Arc::clone(&row.behaviour));
    let fixed =
        identity.as_deref().map(|identity| identity.addresses.as_slice()).unwrap_or_default();
    let mut addresses = Vec::new();
    for (device, mac) in nics {
        let own: Vec<_> =
            fixed.iter().filter(|address| address.device == device).copied().collect();
        match (behaviour.address, own.is_empty()) {
            (AddressBehaviour::Never, _) => {}
            (AddressBehaviour::Wrong(ip), _) => {
                addresses.push(GuestAddress { device, ip, prefix: 24, is_static: false });
            }
            (AddressBehaviour::Assigned, false) => addresses.extend(own),
            (AddressBehaviour::Assigned, true) => {
                let prefix = world.inventory.dhcp.prefix;
                let leased = world.inventory.dhcp.lease(mac);
                addresses.extend(leased.map(|ip| GuestAddress {
                    device,
                    ip: IpAddr::V4(ip),
                    prefix,
                    is_static: false,
                }));
            }
        }
    }
    change(world, vm, |row| row.guest.addresses = addresses);
}
