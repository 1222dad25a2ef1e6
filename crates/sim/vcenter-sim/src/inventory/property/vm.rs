//! Virtual machines and their snapshots. The narrow paths stand first: fleets are watched with them.

use roost_vim_wire::{Array, Field, MoRef, Value};

use super::entity::{entity_properties, status, values};
use super::{
    Answer, enumeration, known, ref_array, reference, refs, text, vm_config, vm_device, vm_guest,
    vm_storage, vm_summary,
};
use crate::inventory::uuid_text;
use crate::vm::{Vm, guest_full_name};
use crate::world::World;

pub(super) const ALL: &[&str] = entity_properties! {
    "capability" "config" "datastore" "environmentBrowser" "guest" "guestHeartbeatStatus" "layout" "layoutEx" "network"
    "resourceConfig" "resourcePool" "rootSnapshot" "runtime" "snapshot" "storage" "summary"
};

pub(super) fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let vm = world.inventory.vms.get(obj)?;
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    match head {
        "name" if rest.is_empty() => text(&vm.name),
        "config" => config(world, vm, rest),
        "runtime" => runtime(vm, rest),
        "guest" => vm_guest::answer(world, vm, rest),
        "summary" => summary(world, obj, vm, rest),
        _ => whole(world, obj, vm, path),
    }
}

fn config(world: &World, vm: &Vm, path: &str) -> Answer {
    let config = &vm.config;
    match path {
        "" => known(&vm_config::config_of(world, vm)),
        "name" => text(&vm.name),
        "annotation" => Some(config.annotation.as_deref().map(Value::string)),
        "template" => known(&vm.template),
        "uuid" => text(&uuid_text(vm.uuid)),
        "instanceUuid" => text(&uuid_text(vm.instance_uuid)),
        "changeVersion" => known(&vm.change_version()),
        "modified" => known(&vm.modified),
        "createDate" => known(&vm.created),
        "guestId" => text(&config.settings.guest_id),
        "guestFullName" => text(guest_full_name(&config.settings.guest_id)),
        "version" => text(&config.settings.version),
        "firmware" => text(&config.settings.firmware),
        // There even when it is empty: clients take what is above it for granted.
        "extraConfig" => {
            let options = config.extra.iter().cloned().map(Value::data).collect();
            Some(Some(Value::Array(Array::new("OptionValue", options))))
        }
        "hardware" => known(&vm_config::hardware(world, vm)),
        "hardware.numCPU" => known(&config.cpus),
        "hardware.numCoresPerSocket" => known(&config.cores_per_socket),
        "hardware.memoryMB" => known(&config.memory_mb),
        "hardware.device" => {
            let devices = vm_device::wire_devices(world, vm);
            Some(Some(Value::Array(Array::new(
                "VirtualDevice",
                devices.into_iter().map(Value::data).collect(),
            ))))
        }
        "tools" => known(&vm_config::tools(vm)),
        "files" => known(&vm_config::files(world, vm)),
        "managedBy" => Some(config.settings.managed_by.as_ref().and_then(Field::to_value)),
        "latencySensitivity" => known(&vm_config::latency_of(vm)),
        "vAppConfig" => Some(config.settings.v_app_config.as_ref().and_then(Field::to_value)),
        _ => None,
    }
}

fn runtime(vm: &Vm, path: &str) -> Answer {
    match path {
        "" => known(&vm_summary::runtime(vm)),
        "powerState" => known(&vm.power.wire()),
        "host" => reference(&vm.host),
        "connectionState" => known(&vm_summary::connection(vm)),
        "bootTime" => known(&vm.boot_time),
        "question" => Some(None),
        _ => None,
    }
}

fn summary(world: &World, obj: &MoRef, vm: &Vm, path: &str) -> Answer {
    match path {
        "" => known(&vm_summary::summary(world, obj, vm)),
        "vm" => reference(obj),
        "config" => known(&vm_summary::config_summary(world, vm)),
        "config.name" => text(&vm.name),
        "config.template" => known(&vm.template),
        "config.numCpu" => known(&vm.config.cpus),
        "config.memorySizeMB" => known(&vm.config.memory_mb),
        "config.annotation" => Some(vm.config.annotation.as_deref().map(Value::string)),
        "config.uuid" => text(&uuid_text(vm.uuid)),
        "config.instanceUuid" => text(&uuid_text(vm.instance_uuid)),
        "guest" => known(&vm_guest::guest_summary(world, vm)),
        "guest.ipAddress" => vm_guest::answer(world, vm, "ipAddress"),
        "guest.hostName" => vm_guest::answer(world, vm, "hostName"),
        "guest.toolsRunningStatus" => vm_guest::answer(world, vm, "toolsRunningStatus"),
        "storage" => known(&vm_summary::storage(world, vm)),
        "quickStats" => known(&vm_summary::quick_stats(vm)),
        "overallStatus" => Some(Some(status(vm.is_connected))),
        "customValue" => values(world, obj),
        _ => path.strip_prefix("runtime").and_then(|rest| match rest.strip_prefix('.') {
            Some(rest) => runtime(vm, rest),
            None if rest.is_empty() => runtime(vm, ""),
            None => None,
        }),
    }
}

fn whole(world: &World, obj: &MoRef, vm: &Vm, path: &str) -> Answer {
    match path {
        "resourcePool" => known(&vm.pool),
        "datastore" => refs(&vm.datastores()),
        "network" => refs(&vm.networks()),
        "snapshot" => known(
            &vm.snapshots.as_deref().filter(|all| !all.list.is_empty()).map(|all| all.wire(obj)),
        ),
        "rootSnapshot" => {
            let roots = vm
                .snapshots
                .iter()
                .flat_map(|all| all.children(None))
                .map(|snapshot| &snapshot.moref);
            Some(Some(ref_array(roots)))
        }
        "environmentBrowser" => {
            let compute = world.inventory.compute_of_host(&vm.host);
            known(
                &compute
                    .and_then(|compute| world.inventory.computes.get(compute))
                    .map(|row| row.environment.clone()),
            )
        }
        "resourceConfig" => known(&vm_config::resource_config(obj, vm)),
        "guestHeartbeatStatus" => {
            Some(Some(enumeration("ManagedEntityStatus", vm_guest::heartbeat(vm))))
        }
        "overallStatus" => Some(Some(status(vm.is_connected))),
        "capability" => Some(Some(vm_storage::capability(world, vm).value())),
        "layout" => Some(Some(vm_storage::layout(world, vm).value())),
        "layoutEx" => Some(Some(vm_storage::layout_ex(world, vm).value())),
        "storage" => Some(Some(vm_storage::storage(world, vm).value())),
        "parentVApp" => {
            known(&vm.pool.clone().filter(|pool| pool.kind == roost_vim_wire::MoType::VirtualApp))
        }
        _ => None,
    }
}

pub(super) fn snapshot(world: &World, obj: &MoRef, path: &str) -> Answer {
    let vm_ref = world.inventory.snapshots.get(obj)?;
    let vm = world.inventory.vms.get(vm_ref)?;
    let snapshots = vm.snapshots.as_deref()?;
    let snapshot = snapshots.get(obj)?;
    match path {
        "config" => {
            let then = Vm { config: snapshot.config.clone(), ..vm.clone() };
            known(&vm_config::config_of(world, &then))
        }
        "vm" => reference(vm_ref),
        "childSnapshot" => refs(snapshots.children(Some(obj)).map(|child| &child.moref)),
        _ => None,
    }
}
