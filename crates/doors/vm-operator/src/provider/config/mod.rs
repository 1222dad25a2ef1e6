//! Config: what differs between a VM as it is wanted and as it is, as one spec. Pure.

mod boot;
mod cdrom;
mod nics;

use roost_vim::wire::types::{ManagedByInfo, OptionValue, VirtualMachineConfigSpec};
use roost_vim::{DeviceError, grow_disk};

use super::compute::Compute;
use super::seen::Seen;
use crate::api::VirtualMachine;
use crate::api::names::{MANAGED_TYPE, extra_config};

pub(crate) use self::cdrom::{WantedCdrom, new_drives};
pub(crate) use self::nics::{WantedNic, card_class, cards_for_clone, new_cards};

/// Why a VM cannot become what is wanted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error("spec.advanced.bootDiskCapacity")]
    BootDisk { source: DeviceError },
    #[error("spec.advanced.bootDiskCapacity: {text} is no quantity")]
    Quantity { text: String },
    #[error("spec.advanced.bootDiskCapacity: the VM has no disk")]
    NoDisk,
}

/// How a VM is wanted, as far as its configuration goes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) extension_key: String,
    /// An empty value takes a key away.
    pub(crate) extra_config: Vec<(String, String)>,
    /// Set if it is to be resized.
    pub(crate) compute: Option<Compute>,
    /// `None` leaves the cards alone.
    pub(crate) nics: Option<Vec<WantedNic>>,
    pub(crate) cdroms: Option<Vec<WantedCdrom>>,
}

/// What may be changed at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Only whose it is.
    Marks,
    /// What a running VM takes.
    PoweredOn,
    Everything,
}

/// The one request that makes the VM what is wanted; empty if it is.
pub(crate) fn differences(
    vm: &VirtualMachine,
    wanted: &Wanted,
    seen: &Seen,
    reach: Reach,
) -> Result<VirtualMachineConfigSpec, ConfigError> {
    let mut spec = VirtualMachineConfigSpec::default();
    marks(wanted, seen, &mut spec);
    if reach == Reach::Marks {
        spec.extra_config.retain(|option| option.key == extra_config::NAMESPACED_NAME);
        return Ok(spec);
    }
    change_block_tracking(vm, seen, &mut spec);
    if let Some(cdroms) = &wanted.cdroms {
        cdrom::differences(cdroms, seen, reach, &mut spec);
    }
    if reach == Reach::Everything {
        if let Some(compute) = &wanted.compute {
            compute.differences(seen, &mut spec);
        }
        guest_id(vm, seen, &mut spec);
        boot::differences(vm, seen, &mut spec);
        boot_disk(vm, seen, &mut spec)?;
        if let Some(nics) = &wanted.nics {
            nics::differences(nics, seen, &mut spec);
        }
    }
    Ok(spec)
}

pub(crate) fn is_empty(spec: &VirtualMachineConfigSpec) -> bool {
    *spec == VirtualMachineConfigSpec::default()
}

fn marks(wanted: &Wanted, seen: &Seen, spec: &mut VirtualMachineConfigSpec) {
    if seen.managed_by().is_none() && !wanted.extension_key.is_empty() {
        spec.managed_by = Some(managed_by(&wanted.extension_key));
    }
    let legacy = (extra_config::EVACUATION_POWER_OFF.to_owned(), String::new());
    for (key, value) in wanted.extra_config.iter().chain([&legacy]) {
        let is = seen.extra_config(key).unwrap_or_default();
        if is != value {
            spec.extra_config.push(OptionValue::text(key.as_str(), value.as_str()));
        }
    }
}

pub(crate) fn managed_by(extension_key: &str) -> ManagedByInfo {
    ManagedByInfo { extension_key: extension_key.to_owned(), kind: MANAGED_TYPE.to_owned() }
}

fn change_block_tracking(vm: &VirtualMachine, seen: &Seen, spec: &mut VirtualMachineConfigSpec) {
    let wanted = vm.spec.advanced.as_ref().and_then(|of| of.change_block_tracking);
    let is = seen.flag("config.changeTrackingEnabled").unwrap_or_default();
    spec.change_tracking_enabled = wanted.filter(|wanted| *wanted != is);
}

fn guest_id(vm: &VirtualMachine, seen: &Seen, spec: &mut VirtualMachineConfigSpec) {
    let wanted = &vm.spec.guest_id;
    if !wanted.is_empty() && seen.text("config.guestId").is_some_and(|is| is != wanted) {
        spec.guest_id = Some(wanted.clone());
    }
}

fn boot_disk(
    vm: &VirtualMachine,
    seen: &Seen,
    spec: &mut VirtualMachineConfigSpec,
) -> Result<(), ConfigError> {
    let wanted = vm.spec.advanced.as_ref().and_then(|of| of.boot_disk_capacity.as_ref());
    let Some(wanted) = wanted else { return Ok(()) };
    let bytes = wanted.value().map_err(|error| ConfigError::Quantity { text: error.text })?;
    let first = seen.disks().min_by_key(|disk| (disk.controller_key, disk.unit_number));
    let disk = first.ok_or(ConfigError::NoDisk)?;
    let is = disk.capacity_in_bytes.or(disk.capacity_in_kb.map(|kib| kib << 10)).unwrap_or(0);
    if bytes == is {
        return Ok(());
    }
    let size = u64::try_from(bytes).unwrap_or_default();
    let grown = grow_disk(disk, size).map_err(|source| ConfigError::BootDisk { source })?;
    spec.device_change.extend(grown);
    Ok(())
}

/// What goes into the `extraConfig` of every VM, by its class, and what its object asks for.
pub(crate) fn extra_config_of(
    vm: &VirtualMachine,
    base: &VirtualMachineConfigSpec,
    global: &[(String, String)],
) -> Vec<(String, String)> {
    let mut all = crate::class::extra_config(vm, base, global);
    let mut set = |key: &str, value: String| match all.iter_mut().find(|(own, _)| own == key) {
        Some(known) if key != extra_config::NAMESPACED_NAME => known.1 = value,
        Some(_) => {}
        None => all.push((key.to_owned(), value)),
    };
    if let Some(advanced) = &vm.spec.advanced {
        for pair in &advanced.extra_config {
            set(&pair.key, pair.value.clone());
        }
        let flags = [
            (extra_config::PREFER_HT, advanced.prefer_ht_enabled),
            (extra_config::HUGE_PAGES_1G, advanced.huge_pages_1g_enabled),
            (extra_config::TIME_TRACKER_LOW_LATENCY, advanced.time_tracker_low_latency_enabled),
            (
                extra_config::CPU_AFFINITY_EXCLUSIVE_NO_STATS,
                advanced.cpu_affinity_exclusive_no_stats_enabled,
            ),
            (extra_config::VMX_SWAP, advanced.vmx_swap_enabled),
        ];
        for (key, flag) in flags {
            if let Some(flag) = flag {
                set(key, if flag { "TRUE" } else { "FALSE" }.to_owned());
            }
        }
        if !advanced.pnuma_node_affinity.is_empty() {
            let nodes: Vec<_> = advanced.pnuma_node_affinity.iter().map(i32::to_string).collect();
            set(extra_config::NUMA_NODE_AFFINITY, nodes.join(","));
        }
    }
    all
}

/// Those of a VM that is there. What its class gave it at the beginning is not asked for again: it may have been changed since, and a class that is
/// edited does not change the VMs of others.
pub(crate) fn extra_config_kept(
    vm: &VirtualMachine,
    base: &VirtualMachineConfigSpec,
    global: &[(String, String)],
) -> Vec<(String, String)> {
    let mut all = extra_config_of(vm, base, global);
    let own = vm.spec.advanced.iter().flat_map(|of| &of.extra_config);
    let own: Vec<&str> = own.map(|pair| pair.key.as_str()).collect();
    let of_class = |key: &str| base.extra_config.iter().any(|option| option.key == key);
    all.retain(|(key, _)| {
        key == extra_config::NAMESPACED_NAME || own.contains(&key.as_str()) || !of_class(key)
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::KeyValue;
    use crate::api::vm::Advanced;

    #[test]
    fn the_object_goes_before_what_all_vms_get_but_never_changes_whose_it_is() {
        let mut vm = VirtualMachine::default();
        vm.metadata.name = Some("web-0".into());
        vm.metadata.namespace = Some("team-a".into());
        let pair = |key: &str, value: &str| KeyValue { key: key.into(), value: value.into() };
        let extra_config = vec![pair("a", "mine"), pair(extra_config::NAMESPACED_NAME, "stolen/x")];
        vm.spec.advanced = Some(Advanced {
            extra_config,
            prefer_ht_enabled: Some(true),
            pnuma_node_affinity: vec![0, 1],
            ..Advanced::default()
        });
        let base = VirtualMachineConfigSpec {
            extra_config: vec![OptionValue::text("b", "class"), OptionValue::text("c", "class")],
            ..VirtualMachineConfigSpec::default()
        };
        let global = [("a".into(), "all".into()), ("b".into(), "all".into())];
        let kept = extra_config_kept(&vm, &base, &global);
        assert!(!kept.iter().any(|(key, _)| key == "b" || key == "c"), "the class spoke once");
        let all = extra_config_of(&vm, &base, &global);
        let of = |key: &str| all.iter().find(|(own, _)| own == key).map(|(_, value)| &**value);
        assert_eq!(of(extra_config::NAMESPACED_NAME), Some("team-a/web-0"));
        assert_eq!((of("a"), of("b")), (Some("mine"), Some("class")));
        assert_eq!(of("c"), Some("class"));
        assert_eq!(
            (of("numa.vcpu.preferHT"), of("numa.nodeAffinity")),
            (Some("TRUE"), Some("0,1"))
        );
        assert_eq!(of("disk.enableUUID"), Some("TRUE"));
    }
}
