use roost_vim_wire::types::{
    ResourceConfigSpec, ToolsConfigInfo, VirtualHardware, VirtualMachineConfigInfo,
    VirtualMachineDefaultPowerOpInfo, VirtualMachineFileInfo,
};
use roost_vim_wire::{Element, MoRef};

use super::vm_device;
use crate::inventory::uuid_text;
use crate::vm::{FilePath, Vm, guest_full_name};
use crate::world::World;

/// The whole of `config`.
pub(super) fn config_of(world: &World, vm: &Vm) -> VirtualMachineConfigInfo {
    let (config, settings) = (&vm.config, &vm.config.settings);
    VirtualMachineConfigInfo {
        change_version: vm.change_version(),
        modified: vm.modified,
        name: vm.name.as_ref().into(),
        guest_full_name: guest_full_name(&settings.guest_id).into(),
        version: settings.version.clone(),
        uuid: uuid_text(vm.uuid),
        create_date: Some(vm.created),
        instance_uuid: Some(uuid_text(vm.instance_uuid)),
        template: vm.template,
        guest_id: settings.guest_id.clone(),
        alternate_guest_name: settings.alternate_guest_name.clone(),
        annotation: config.annotation.as_deref().map(Into::into),
        files: files(world, vm),
        tools: Some(tools(vm)),
        flags: settings.flags.clone(),
        default_power_ops: VirtualMachineDefaultPowerOpInfo {
            power_off_type: Some("soft".into()),
            suspend_type: Some("hard".into()),
            reset_type: Some("soft".into()),
            default_power_off_type: Some("soft".into()),
            default_suspend_type: Some("hard".into()),
            default_reset_type: Some("soft".into()),
            standby_action: Some("checkpoint".into()),
        },
        hardware: hardware(world, vm),
        cpu_allocation: Some(settings.cpu_allocation.clone()),
        memory_allocation: Some(settings.memory_allocation.clone()),
        latency_sensitivity: Some(latency_of(vm)),
        memory_hot_add_enabled: Some(settings.memory_hot_add),
        cpu_hot_add_enabled: Some(settings.cpu_hot_add),
        cpu_hot_remove_enabled: Some(settings.cpu_hot_remove),
        extra_config: config.extra.to_vec(),
        swap_placement: Some(settings.swap_placement.clone()),
        boot_options: Some(settings.boot_options.clone()),
        v_app_config: settings.v_app_config.clone(),
        change_tracking_enabled: Some(settings.change_tracking),
        firmware: Some(settings.firmware.clone()),
        managed_by: settings.managed_by.as_ref().map(|by| {
            let managed_by =
                Element::new("managedBy").with_field("extensionKey", &by.extension_key);
            managed_by.with_field("type", &by.kind)
        }),
        memory_reservation_locked_to_max: Some(settings.reservation_locked_to_max),
        nested_hv_enabled: Some(settings.nested_hv),
    }
}

/// How much the VM's neighbours may delay it.
pub(super) fn latency_of(vm: &Vm) -> Element {
    let level = vm.config.settings.latency.clone();
    Element::new("latencySensitivity").typed("LatencySensitivity").with_field("level", &level)
}

pub(super) fn hardware(world: &World, vm: &Vm) -> VirtualHardware {
    VirtualHardware {
        num_cpu: vm.config.cpus,
        num_cores_per_socket: Some(vm.config.cores_per_socket),
        memory_mb: vm.config.memory_mb,
        virtual_ich7m_present: Some(false),
        virtual_smc_present: Some(false),
        device: vm_device::wire_devices(world, vm),
    }
}

pub(super) fn tools(vm: &Vm) -> ToolsConfigInfo {
    ToolsConfigInfo {
        pending_customization: vm
            .customization
            .is_some()
            .then(|| "/var/run/roost/customization".into()),
        ..vm.config.settings.tools.clone()
    }
}

pub(super) fn files(world: &World, vm: &Vm) -> VirtualMachineFileInfo {
    let directory =
        world.inventory.datastore_path(&FilePath::new(&vm.home.datastore, vm.directory()));
    let directory = format!("{directory}/");
    VirtualMachineFileInfo {
        vm_path_name: Some(world.inventory.datastore_path(&vm.home)),
        snapshot_directory: Some(directory.clone()),
        suspend_directory: Some(directory.clone()),
        log_directory: Some(directory),
    }
}

pub(super) fn resource_config(obj: &MoRef, vm: &Vm) -> ResourceConfigSpec {
    ResourceConfigSpec {
        entity: Some(obj.clone()),
        change_version: Some(vm.change_version()),
        last_modified: Some(vm.modified),
        cpu_allocation: vm.config.settings.cpu_allocation.clone(),
        memory_allocation: vm.config.settings.memory_allocation.clone(),
    }
}
