//! Boot options.

use roost_vim::wire::types::{
    VirtualMachineBootOptions, VirtualMachineBootOptionsBootableDevice as Bootable,
    VirtualMachineConfigSpec,
};

use super::super::seen::Seen;
use crate::api::GoDuration;
use crate::api::VirtualMachine;
use crate::api::vm::{BootDeviceType, NetworkBootProtocol, Switch};

pub(super) fn differences(vm: &VirtualMachine, seen: &Seen, spec: &mut VirtualMachineConfigSpec) {
    let Some(wanted) = wanted(vm, seen) else { return };
    let none = VirtualMachineBootOptions::default();
    let is = seen.boot_options().unwrap_or(&none);
    // What nobody asked for is left as it is.
    let same =
        |one: Option<i64>, other: Option<i64>| one.is_none_or(|one| other.unwrap_or(0) == one);
    let flag = |one: Option<bool>, other: Option<bool>| {
        one.is_none_or(|one| other.unwrap_or_default() == one)
    };
    let is_same = same(wanted.boot_delay, is.boot_delay)
        && same(wanted.boot_retry_delay, is.boot_retry_delay)
        && flag(wanted.boot_retry_enabled, is.boot_retry_enabled)
        && flag(wanted.efi_secure_boot_enabled, is.efi_secure_boot_enabled)
        && (wanted.network_boot_protocol.is_none()
            || wanted.network_boot_protocol == is.network_boot_protocol)
        && (wanted.boot_order.is_empty() || order(&wanted.boot_order) == order(&is.boot_order));
    if !is_same {
        spec.boot_options = Some(wanted);
    }
}

fn order(devices: &[Bootable]) -> Vec<(&str, Option<i32>)> {
    devices.iter().map(|device| (device.class.as_str(), device.device_key)).collect()
}

fn wanted(vm: &VirtualMachine, seen: &Seen) -> Option<VirtualMachineBootOptions> {
    let options = vm.spec.boot_options.as_ref()?;
    let milliseconds = |of: &Option<GoDuration>| {
        let duration = of.as_ref()?.parse().ok()?;
        i64::try_from(duration.as_millis()).ok()
    };
    let is_on = |of: Option<Switch>| of.map(|of| of == Switch::Enabled);
    let boot_order = options.boot_order.iter().map(|entry| {
        let interface = || {
            let network = vm.spec.network.as_ref()?;
            let index = network.interfaces.iter().position(|of| of.name == entry.name)?;
            seen.nics().nth(index)
        };
        let (class, key) = match entry.type_ {
            BootDeviceType::Disk => ("Disk", seen.disks().next().map(|disk| disk.key)),
            BootDeviceType::Network => ("Ethernet", interface().map(|card| card.key)),
            BootDeviceType::CdRom => ("Cdrom", None),
        };
        let class = format!("VirtualMachineBootOptionsBootable{class}Device");
        Bootable { device_key: key, ..Bootable::of(&class) }
    });
    let options = VirtualMachineBootOptions {
        boot_delay: milliseconds(&options.boot_delay),
        boot_retry_enabled: options
            .boot_retry
            .as_deref()
            .map(|text| text == Switch::Enabled.as_str()),
        boot_retry_delay: milliseconds(&options.boot_retry_delay),
        efi_secure_boot_enabled: is_on(options.efi_secure_boot),
        network_boot_protocol: options.network_boot_protocol.map(|of| {
            match of {
                NetworkBootProtocol::Ip4 => "ipv4",
                NetworkBootProtocol::Ip6 => "ipv6",
            }
            .to_owned()
        }),
        boot_order: boot_order.collect(),
        ..VirtualMachineBootOptions::default()
    };
    (options != VirtualMachineBootOptions::default()).then_some(options)
}
