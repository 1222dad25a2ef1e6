//! Applying a `VirtualMachineConfigSpec` to a draft: every field that is there changes, and nothing else.

use std::fmt::Write as _;
use std::sync::Arc;

use roost_vim_wire::types::{
    OptionValue, ResourceAllocationInfo, ToolsConfigInfo, VirtualMachineBootOptions,
    VirtualMachineConfigSpec,
};
use roost_vim_wire::{Element, Value};

use crate::call::Failure;
use crate::inventory::Changed;
use crate::vm::fault::invalid_power_state;
use crate::vm::{Draft, Power, device_change, upgrade, v_app};
use crate::world::World;

pub(crate) fn apply(
    world: &mut World,
    draft: &mut Draft,
    spec: &VirtualMachineConfigSpec,
) -> Result<(), Failure> {
    size(draft, spec)?;
    if let Some(annotation) = &spec.annotation {
        draft.config.annotation = (!annotation.is_empty()).then(|| annotation.as_str().into());
        draft.changed("config.annotation");
        draft.modified("summary.config.annotation", "", annotation);
    }
    settings(draft, spec)?;
    extra_config(draft, &spec.extra_config);
    device_change::apply(world, draft, &spec.device_change)
}

/// CPUs and memory, which a running VM only takes if it was made for that.
fn size(draft: &mut Draft, spec: &VirtualMachineConfigSpec) -> Result<(), Failure> {
    let is_on = draft.power != Power::Off;
    if let Some(cpus) = spec.num_cpus.filter(|cpus| *cpus != draft.config.cpus) {
        let (settings, old) = (&draft.config.settings, draft.config.cpus);
        if cpus <= 0 {
            return Err(Failure::invalid_argument("configSpec.numCPUs"));
        }
        if is_on && !(if cpus > old { settings.cpu_hot_add } else { settings.cpu_hot_remove }) {
            return Err(Failure::of(
                "CpuHotPlugNotSupported",
                "CPU hot plug is not supported for this virtual machine.",
            ));
        }
        draft.config.cpus = cpus;
        draft.changed("config.hardware.numCPU");
        draft.modified("summary.config.numCpu", &old.to_string(), &cpus.to_string());
    }
    if let Some(cores) =
        spec.num_cores_per_socket.filter(|cores| *cores != draft.config.cores_per_socket)
    {
        if cores <= 0 {
            return Err(Failure::invalid_argument("configSpec.numCoresPerSocket"));
        }
        if is_on {
            return Err(invalid_power_state(Power::Off, draft.power));
        }
        let old = draft.config.cores_per_socket;
        draft.config.cores_per_socket = cores;
        draft.modified("config.hardware.numCoresPerSocket", &old.to_string(), &cores.to_string());
    }
    if draft.config.cpus % draft.config.cores_per_socket != 0 {
        if spec.num_cores_per_socket.is_some() {
            let message =
                "The number of virtual CPUs is not a multiple of the number of cores per socket.";
            return Err(Failure::of("InvalidVmConfig", message)
                .with("property", &"configSpec.numCoresPerSocket".to_owned()));
        }
        // A count that does not fit the sockets makes every CPU a socket of its own.
        draft.config.cores_per_socket = 1;
        draft.changed("config.hardware.numCoresPerSocket");
    }
    let old = draft.config.memory_mb;
    let Some(memory) = spec.memory_mb.filter(|memory| *memory != i64::from(old)) else {
        return Ok(());
    };
    let memory = match i32::try_from(memory) {
        Ok(memory) if memory > 0 && memory % 4 == 0 => memory,
        _ => return Err(Failure::invalid_argument("configSpec.memoryMB")),
    };
    if is_on && memory < old {
        return Err(invalid_power_state(Power::Off, draft.power));
    }
    if is_on && !draft.config.settings.memory_hot_add {
        let message = "Memory hot plug is not supported for this virtual machine.";
        return Err(Failure::of("MemoryHotPlugNotSupported", message));
    }
    draft.config.memory_mb = memory;
    draft.changed("config.hardware.memoryMB");
    draft.modified("summary.config.memorySizeMB", &old.to_string(), &memory.to_string());
    Ok(())
}

/// The settings that VMs share. Those that only a VM takes that is off are refused otherwise, if they would change.
fn settings(draft: &mut Draft, spec: &VirtualMachineConfigSpec) -> Result<(), Failure> {
    let mut new = (*draft.config.settings).clone();
    let mut paths: Vec<&'static str> = Vec::new();
    let mut needs_off = false;
    macro_rules! set {
        ($given:expr, $slot:expr, off: $off:expr, $($path:literal)+) => {
            if let Some(value) = $given
                && $slot != value
            {
                $slot = value;
                needs_off |= $off;
                paths.extend([$($path),+]);
            }
        };
    }
    if spec.version.as_deref().is_some_and(|version| !upgrade::is_supported(version)) {
        return Err(Failure::invalid_argument("configSpec.version"));
    }
    set!(spec.version.clone().filter(|version| !version.is_empty()), new.version, off: true, "config.version" "summary.config.hwVersion" "guest.hwVersion");
    let latency = spec.latency_sensitivity.as_ref().and_then(|asked| asked.text_of("level"));
    if latency
        .is_some_and(|level| !matches!(level, "low" | "normal" | "medium" | "high" | "custom"))
    {
        return Err(Failure::invalid_argument("configSpec.latencySensitivity.level"));
    }
    set!(latency.map(ToOwned::to_owned), new.latency, off: false, "config.latencySensitivity");
    set!(spec.guest_id.clone(), new.guest_id, off: true, "config.guestId" "config.guestFullName" "summary.config.guestId"
        "summary.config.guestFullName" "summary.guest.guestId" "summary.guest.guestFullName" "guest.guestId" "guest.guestFullName" "guest.guestFamily");
    set!(spec.alternate_guest_name.clone(), new.alternate_guest_name, off: false, "config.alternateGuestName");
    set!(spec.memory_hot_add_enabled, new.memory_hot_add, off: true, "config.memoryHotAddEnabled");
    set!(spec.cpu_hot_add_enabled, new.cpu_hot_add, off: true, "config.cpuHotAddEnabled");
    set!(spec.cpu_hot_remove_enabled, new.cpu_hot_remove, off: true, "config.cpuHotRemoveEnabled");
    set!(spec.swap_placement.clone(), new.swap_placement, off: false, "config.swapPlacement");
    set!(spec.change_tracking_enabled, new.change_tracking, off: false, "config.changeTrackingEnabled");
    set!(spec.firmware.clone(), new.firmware, off: true, "config.firmware");
    set!(spec.memory_reservation_locked_to_max, new.reservation_locked_to_max, off: false,
        "config.memoryReservationLockedToMax");
    set!(spec.nested_hv_enabled, new.nested_hv, off: true, "config.nestedHVEnabled");
    set!(spec.managed_by.clone().map(Some), new.managed_by, off: false, "config.managedBy");
    let v_app =
        spec.v_app_config.as_ref().map(|given| v_app::apply(new.v_app_config.as_ref(), given));
    let v_app = if spec.v_app_config_removed == Some(true) { Some(None) } else { v_app.map(Some) };
    set!(v_app, new.v_app_config, off: false, "config.vAppConfig");
    if needs_off && draft.power != Power::Off {
        return Err(invalid_power_state(Power::Off, draft.power));
    }
    if let Some(firmware) =
        spec.firmware.as_deref().filter(|firmware| !matches!(*firmware, "bios" | "efi"))
    {
        let message = format!("The firmware '{firmware}' is unknown.");
        return Err(Failure::of("InvalidVmConfig", message)
            .with("property", &"configSpec.firmware".to_owned()));
    }
    if let Some(tools) = &spec.tools {
        merge_tools(&mut new.tools, tools);
        paths.push("config.tools");
    }
    if let Some(flags) = &spec.flags {
        merge_flags(&mut new.flags, flags);
        paths.push("config.flags");
    }
    if let Some(options) = &spec.boot_options {
        merge_boot_options(&mut new.boot_options, options);
        paths.push("config.bootOptions");
    }
    for (given, slot, of_config, of_summary) in [
        (
            &spec.cpu_allocation,
            &mut new.cpu_allocation,
            "config.cpuAllocation",
            "summary.config.cpuReservation",
        ),
        (
            &spec.memory_allocation,
            &mut new.memory_allocation,
            "config.memoryAllocation",
            "summary.config.memoryReservation",
        ),
    ] {
        if let Some(given) = given {
            merge_allocation(slot, given);
            paths.extend([of_config, of_summary, "resourceConfig"]);
        }
    }
    if !paths.is_empty() {
        draft.config.settings = Arc::new(new);
    }
    for path in paths {
        draft.modified(path, "", "<changed>");
    }
    Ok(())
}

macro_rules! merge {
    ($into:expr, $from:expr, $($field:ident)+) => {
        $(if $from.$field.is_some() {
            $into.$field.clone_from(&$from.$field);
        })+
    };
}

fn merge_tools(into: &mut ToolsConfigInfo, from: &ToolsConfigInfo) {
    merge!(into, from, after_power_on after_resume before_guest_standby before_guest_shutdown before_guest_reboot
        tools_upgrade_policy sync_time_with_host);
}

fn merge_boot_options(into: &mut VirtualMachineBootOptions, from: &VirtualMachineBootOptions) {
    merge!(into, from, boot_delay enter_bios_setup efi_secure_boot_enabled boot_retry_enabled boot_retry_delay
        network_boot_protocol);
    if !from.boot_order.is_empty() {
        into.boot_order.clone_from(&from.boot_order);
    }
}

pub(crate) fn merge_allocation(into: &mut ResourceAllocationInfo, from: &ResourceAllocationInfo) {
    merge!(into, from, reservation expandable_reservation limit shares overhead_limit);
}

fn merge_flags(into: &mut roost_vim_wire::types::VirtualMachineFlagInfo, from: &Element) {
    let flag = |name: &str| from.text_of(name).map(|text| text == "true");
    for (slot, name) in [
        (&mut into.disable_acceleration, "disableAcceleration"),
        (&mut into.enable_logging, "enableLogging"),
        (&mut into.use_toe, "useToe"),
        (&mut into.run_with_debug_info, "runWithDebugInfo"),
    ] {
        if let Some(value) = flag(name) {
            *slot = Some(value);
        }
    }
}

/// An empty value takes a key away.
fn extra_config(draft: &mut Draft, given: &[OptionValue]) {
    if given.is_empty() {
        return;
    }
    let mut extra = draft.config.extra.to_vec();
    for option in given {
        let is_empty = option.value.as_ref().is_none_or(|value| value.as_str() == Some(""));
        let path = format!("config.extraConfig[\"{}\"]", option.key);
        let at = extra.iter().position(|known| known.key == option.key);
        match (at, is_empty) {
            (Some(at), true) => {
                extra.remove(at);
                draft.changed(Changed::Removed(path.into()));
            }
            (None, true) => {}
            (Some(at), false) => {
                extra[at].value.clone_from(&option.value);
                draft.changed(path);
            }
            (None, false) => {
                extra.push(option.clone());
                draft.changed(Changed::Added(path.into()));
            }
        }
        let shown = option.value.as_ref().and_then(Value::as_str).unwrap_or("<value>");
        let _ = write!(draft.effects.modified, "config.extraConfig(\"{}\"): {shown}; ", option.key);
    }
    draft.config.extra = Arc::new(extra);
}

/// A host cannot run a VM with more CPUs than it has.
pub(crate) fn check_cpu_limit(
    world: &World,
    draft: &Draft,
    host: &roost_vim_wire::MoRef,
) -> Result<(), Failure> {
    let Some(host) = world.inventory.hosts.get(host) else { return Ok(()) };
    let most = i32::from(host.cores) * 2;
    if draft.config.cpus <= most {
        return Ok(());
    }
    let message =
        format!("The virtual machine needs {} CPUs; the host supports {most}.", draft.config.cpus);
    Err(Failure::of("NumVirtualCpusExceedsLimit", message).with("maxSupportedVcpus", &most))
}
