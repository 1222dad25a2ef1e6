use std::sync::Arc;

use roost_vim_wire::Element;
use roost_vim_wire::types::{
    ManagedByInfo, OptionValue, ResourceAllocationInfo, SharesInfo, ToolsConfigInfo,
    VirtualMachineBootOptions, VirtualMachineFlagInfo,
};

use crate::vm::{Device, Disk, Own};

/// What a snapshot keeps and a revert restores.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub annotation: Option<Arc<str>>,
    pub cpus: i32,
    pub cores_per_socket: i32,
    pub memory_mb: i32,
    /// Whether guest tools are installed on its disk.
    pub has_tools: bool,
    pub settings: Arc<Settings>,
    pub extra: Arc<Vec<OptionValue>>,
    pub devices: Vec<Device>,
}

/// The settings that VMs of one origin share until one of them is changed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Settings {
    pub version: String,
    /// `low`, `normal`, `medium` or `high`.
    pub latency: String,
    pub guest_id: String,
    pub alternate_guest_name: String,
    pub tools: ToolsConfigInfo,
    pub flags: VirtualMachineFlagInfo,
    pub cpu_allocation: ResourceAllocationInfo,
    pub memory_allocation: ResourceAllocationInfo,
    pub memory_hot_add: bool,
    pub cpu_hot_add: bool,
    pub cpu_hot_remove: bool,
    pub swap_placement: String,
    pub boot_options: VirtualMachineBootOptions,
    pub v_app_config: Option<Element>,
    pub change_tracking: bool,
    pub firmware: String,
    pub managed_by: Option<ManagedByInfo>,
    pub reservation_locked_to_max: bool,
    pub nested_hv: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: "vmx-19".into(),
            latency: "normal".into(),
            guest_id: "otherGuest".into(),
            alternate_guest_name: String::new(),
            tools: ToolsConfigInfo {
                tools_version: Some(12_352),
                tools_install_type: Some("guestToolsTypeOpenVMTools".into()),
                after_power_on: Some(true),
                after_resume: Some(true),
                before_guest_standby: Some(true),
                before_guest_shutdown: Some(true),
                before_guest_reboot: None,
                tools_upgrade_policy: Some("manual".into()),
                pending_customization: None,
                sync_time_with_host: Some(false),
            },
            flags: VirtualMachineFlagInfo {
                disable_acceleration: Some(false),
                enable_logging: Some(true),
                use_toe: Some(false),
                run_with_debug_info: Some(false),
            },
            cpu_allocation: default_allocation(1000),
            memory_allocation: default_allocation(10_240),
            memory_hot_add: false,
            cpu_hot_add: false,
            cpu_hot_remove: false,
            swap_placement: "inherit".into(),
            boot_options: VirtualMachineBootOptions {
                boot_delay: Some(0),
                enter_bios_setup: Some(false),
                efi_secure_boot_enabled: Some(false),
                boot_retry_enabled: Some(false),
                boot_retry_delay: Some(10_000),
                boot_order: Vec::new(),
                network_boot_protocol: Some("ipv4".into()),
            },
            v_app_config: None,
            change_tracking: false,
            firmware: "bios".into(),
            managed_by: None,
            reservation_locked_to_max: false,
            nested_hv: false,
        }
    }
}

fn default_allocation(shares: i32) -> ResourceAllocationInfo {
    ResourceAllocationInfo {
        reservation: Some(0),
        expandable_reservation: Some(false),
        limit: Some(-1),
        shares: Some(SharesInfo { shares, level: "normal".into() }),
        overhead_limit: None,
    }
}

impl Config {
    pub(crate) fn device(&self, key: i32) -> Option<&Device> {
        self.devices.iter().find(|device| device.base.key == key)
    }

    pub(crate) fn disks(&self) -> impl Iterator<Item = &Disk> {
        self.devices.iter().filter_map(|device| match &device.own {
            Own::Disk(disk) => Some(disk),
            Own::Nothing | Own::Nic(_) => None,
        })
    }

    pub(crate) fn nics(&self) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(|device| matches!(device.own, Own::Nic(_)))
    }
}

/// What vCenter calls the operating system of a guest id; an unknown id is shown as it is.
pub(crate) fn guest_full_name(guest_id: &str) -> &str {
    match guest_id {
        "otherGuest" => "Other (32-bit)",
        "otherGuest64" => "Other (64-bit)",
        "otherLinuxGuest" => "Other Linux (32-bit)",
        "otherLinux64Guest" => "Other Linux (64-bit)",
        "other5xLinux64Guest" => "Other 5.x or later Linux (64-bit)",
        "debian10_64Guest" => "Debian GNU/Linux 10 (64-bit)",
        "debian11_64Guest" => "Debian GNU/Linux 11 (64-bit)",
        "debian12_64Guest" => "Debian GNU/Linux 12 (64-bit)",
        "ubuntu64Guest" => "Ubuntu Linux (64-bit)",
        "centos9_64Guest" => "CentOS 9 (64-bit)",
        "rhel8_64Guest" => "Red Hat Enterprise Linux 8 (64-bit)",
        "rhel9_64Guest" => "Red Hat Enterprise Linux 9 (64-bit)",
        "windows2019srv_64Guest" => "Microsoft Windows Server 2019 (64-bit)",
        "windows2022srvNext_64Guest" => "Microsoft Windows Server 2022 (64-bit)",
        other => other,
    }
}

pub(crate) fn guest_family(guest_id: &str) -> &'static str {
    if guest_id.starts_with("win") { "windowsGuest" } else { "linuxGuest" }
}
