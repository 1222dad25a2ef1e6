use roost_vim_wire::types::{
    GuestInfo, GuestNicInfo, NetIpConfigInfo, NetIpConfigInfoIpAddress, VirtualMachineGuestSummary,
    VirtualMachineToolsStatus,
};
use roost_vim_wire::{Array, Value};

use super::{Answer, known, text};
use crate::guest::ToolsState;
use crate::vm::{Power, Vm, guest_family, guest_full_name};
use crate::world::World;

pub(super) fn answer(world: &World, vm: &Vm, path: &str) -> Answer {
    let guest = &vm.guest;
    match path {
        "" => known(&info(world, vm)),
        "ipAddress" => Some(guest.primary().map(|ip| Value::String(ip.to_string()))),
        "hostName" => Some(guest.host_name.as_deref().map(Value::string)),
        "guestOperationsReady" => known(&ready(vm)),
        "toolsRunningStatus" => text(guest.tools.running_status()),
        "toolsStatus" => known(&tools_status(world, vm)),
        "guestState" => text(state(vm)),
        "net" => {
            let nics = nics(world, vm).into_iter().map(Value::data).collect::<Vec<_>>();
            Some((!nics.is_empty()).then(|| Value::Array(Array::new("GuestNicInfo", nics))))
        }
        "customizationInfo" => known(&guest.customization.as_deref().cloned()),
        "guestFamily" => text(guest_family(&vm.config.settings.guest_id)),
        "guestId" => text(&vm.config.settings.guest_id),
        "guestFullName" => text(guest_full_name(&vm.config.settings.guest_id)),
        "toolsInstallType" => known(&vm.config.settings.tools.tools_install_type),
        _ => None,
    }
}

pub(super) fn guest_summary(world: &World, vm: &Vm) -> VirtualMachineGuestSummary {
    VirtualMachineGuestSummary {
        guest_id: Some(vm.config.settings.guest_id.clone()),
        guest_full_name: Some(guest_full_name(&vm.config.settings.guest_id).into()),
        tools_status: Some(tools_status(world, vm)),
        tools_version_status: Some(version_status(world, vm).into()),
        tools_version_status2: Some(version_status(world, vm).into()),
        tools_running_status: Some(vm.guest.tools.running_status().into()),
        host_name: vm.guest.host_name.as_deref().map(Into::into),
        ip_address: vm.guest.primary().map(|ip| ip.to_string()),
        hw_version: None,
    }
}

/// What the tools last said about the guest's health.
pub(super) fn heartbeat(vm: &Vm) -> &'static str {
    if vm.guest.tools == ToolsState::Running { "green" } else { "gray" }
}

fn info(world: &World, vm: &Vm) -> GuestInfo {
    let summary = guest_summary(world, vm);
    GuestInfo {
        tools_status: summary.tools_status,
        tools_version_status: summary.tools_version_status,
        tools_version_status2: summary.tools_version_status2,
        tools_running_status: summary.tools_running_status,
        tools_version: vm.config.settings.tools.tools_version.map(|version| version.to_string()),
        guest_id: summary.guest_id,
        guest_family: Some(guest_family(&vm.config.settings.guest_id).into()),
        guest_full_name: summary.guest_full_name,
        host_name: summary.host_name,
        ip_address: summary.ip_address,
        net: nics(world, vm),
        ip_stack: Vec::new(),
        guest_state: state(vm).into(),
        app_heartbeat_status: Some("appStatusGray".into()),
        app_state: Some("none".into()),
        guest_operations_ready: ready(vm),
        interactive_guest_operations_ready: Some(false),
        guest_state_change_supported: Some(vm.guest.tools == ToolsState::Running),
        hw_version: Some(vm.config.settings.version.clone()),
        customization_info: vm.guest.customization.as_deref().cloned(),
    }
}

/// Unset until the tools have said it once.
fn ready(vm: &Vm) -> Option<bool> {
    (vm.guest.is_ready || vm.guest.tools != ToolsState::NotRunning).then_some(vm.guest.is_ready)
}

fn state(vm: &Vm) -> &'static str {
    match (vm.power, vm.guest.tools) {
        (Power::On, ToolsState::Running | ToolsState::ExecutingScripts) => "running",
        (Power::On, ToolsState::NotRunning) => "unknown",
        (Power::Off | Power::Suspended, _) => "notRunning",
    }
}

fn tools_status(world: &World, vm: &Vm) -> VirtualMachineToolsStatus {
    match vm.guest.tools {
        ToolsState::Running | ToolsState::ExecutingScripts => VirtualMachineToolsStatus::Ok,
        ToolsState::NotRunning if vm.has_tools(world) => VirtualMachineToolsStatus::NotRunning,
        ToolsState::NotRunning => VirtualMachineToolsStatus::NotInstalled,
    }
}

fn version_status(world: &World, vm: &Vm) -> &'static str {
    if vm.has_tools(world) { "guestToolsUnmanaged" } else { "guestToolsNotInstalled" }
}

/// The cards that the tools report: those with an address, while the tools run.
fn nics(world: &World, vm: &Vm) -> Vec<GuestNicInfo> {
    if vm.guest.tools == ToolsState::NotRunning {
        return Vec::new();
    }
    let nic = |device: &crate::vm::Device| {
        let addresses: Vec<_> =
            vm.guest.addresses.iter().filter(|address| address.device == device.key()).collect();
        let network =
            device.network().and_then(|network| world.inventory.name(&network).map(str::to_owned));
        let config = |address: &&crate::guest::GuestAddress| NetIpConfigInfoIpAddress {
            ip_address: address.ip.to_string(),
            prefix_length: address.prefix.into(),
            origin: Some(if address.is_static { "manual" } else { "dhcp" }.into()),
            state: Some("preferred".into()),
            lifetime: None,
        };
        GuestNicInfo {
            network,
            ip_address: addresses.iter().map(|address| address.ip.to_string()).collect(),
            mac_address: device.mac().map(|mac| mac.to_string()),
            connected: device.is_connected(),
            device_config_id: device.key(),
            dns_config: None,
            ip_config: (!addresses.is_empty()).then(|| NetIpConfigInfo {
                ip_address: addresses.iter().map(config).collect(),
                dhcp: None,
                auto_configuration_enabled: None,
            }),
        }
    };
    vm.config.nics().map(nic).collect()
}
