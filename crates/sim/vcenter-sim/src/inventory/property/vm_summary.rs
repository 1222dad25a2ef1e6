use roost_vim_wire::MoRef;
use roost_vim_wire::types::{
    VirtualMachineConfigSummary, VirtualMachineConnectionState, VirtualMachineQuickStats,
    VirtualMachineRuntimeInfo, VirtualMachineStorageSummary, VirtualMachineSummary,
};

use super::vm_guest;
use crate::inventory::uuid_text;
use crate::vm::{Power, Vm, guest_full_name};
use crate::world::World;

pub(super) fn summary(world: &World, obj: &MoRef, vm: &Vm) -> VirtualMachineSummary {
    VirtualMachineSummary {
        vm: Some(obj.clone()),
        runtime: runtime(vm),
        guest: Some(vm_guest::guest_summary(world, vm)),
        config: config_summary(world, vm),
        storage: Some(storage(world, vm)),
        quick_stats: quick_stats(vm),
        overall_status: if vm.is_connected { "green" } else { "red" }.into(),
        custom_value: world.inventory.custom_fields.values(obj),
    }
}

pub(super) fn config_summary(world: &World, vm: &Vm) -> VirtualMachineConfigSummary {
    let (config, settings) = (&vm.config, &vm.config.settings);
    let count = |count: usize| i32::try_from(count).ok();
    let small = |reservation: Option<i64>| {
        reservation.and_then(|reservation| i32::try_from(reservation).ok())
    };
    VirtualMachineConfigSummary {
        name: vm.name.as_ref().into(),
        template: vm.template,
        vm_path_name: world.inventory.datastore_path(&vm.home),
        memory_size_mb: Some(config.memory_mb),
        cpu_reservation: small(settings.cpu_allocation.reservation),
        memory_reservation: small(settings.memory_allocation.reservation),
        num_cpu: Some(config.cpus),
        num_ethernet_cards: count(config.nics().count()),
        num_virtual_disks: count(config.disks().count()),
        uuid: Some(uuid_text(vm.uuid)),
        instance_uuid: Some(uuid_text(vm.instance_uuid)),
        guest_id: Some(settings.guest_id.clone()),
        guest_full_name: Some(guest_full_name(&settings.guest_id).into()),
        annotation: config.annotation.as_deref().map(Into::into),
        hw_version: Some(settings.version.clone()),
    }
}

pub(super) fn runtime(vm: &Vm) -> VirtualMachineRuntimeInfo {
    let is_on = vm.power == Power::On;
    let demand = vm.demand();
    VirtualMachineRuntimeInfo {
        host: Some(vm.host.clone()),
        connection_state: connection(vm),
        power_state: vm.power.wire(),
        fault_tolerance_state: Some("notConfigured".into()),
        tools_installer_mounted: Some(false),
        suspend_time: vm.suspend_time,
        boot_time: vm.boot_time,
        question: None,
        max_cpu_usage: is_on.then(|| i32::try_from(demand.mhz).unwrap_or(i32::MAX)),
        max_memory_usage: is_on.then_some(vm.config.memory_mb),
        num_mks_connections: Some(0),
        record_replay_state: Some("inactive".into()),
        clean_power_off: None,
        online_standby: Some(false),
        consolidation_needed: Some(false),
    }
}

pub(super) fn connection(vm: &Vm) -> VirtualMachineConnectionState {
    if vm.is_connected {
        VirtualMachineConnectionState::Connected
    } else {
        VirtualMachineConnectionState::Disconnected
    }
}

/// What its files take, and what its disks could still grow to.
pub(super) fn storage(world: &World, vm: &Vm) -> VirtualMachineStorageSummary {
    let committed = world.store.directory_bytes(&vm.home.datastore, vm.directory());
    let provisioned: i64 =
        vm.config.disks().map(|disk| disk.capacity_kb.saturating_mul(1024)).sum();
    VirtualMachineStorageSummary {
        committed,
        uncommitted: (provisioned - committed).max(0),
        unshared: committed,
        timestamp: vm.created,
    }
}

pub(super) fn quick_stats(vm: &Vm) -> VirtualMachineQuickStats {
    let is_on = vm.power == Power::On;
    VirtualMachineQuickStats {
        overall_cpu_usage: Some(if is_on {
            i32::try_from(vm.demand().mhz).unwrap_or(i32::MAX)
        } else {
            0
        }),
        guest_memory_usage: Some(if is_on { vm.config.memory_mb } else { 0 }),
        host_memory_usage: Some(if is_on { vm.config.memory_mb } else { 0 }),
        guest_heartbeat_status: vm_guest::heartbeat(vm).into(),
        uptime_seconds: None,
    }
}
