//! What is asked of a VM: clone, create, reconfigure, relocate, customize.

use jiff::Timestamp;

use crate::types::{
    OptionValue, ResourceAllocationInfo, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
};
use crate::{Element, MoRef};

data! {
    struct VirtualMachineCloneSpec {
        location: VirtualMachineRelocateSpec,
        template: bool,
        config: Option<VirtualMachineConfigSpec>,
        customization: Option<CustomizationSpec>,
        power_on "powerOn": bool,
        snapshot: Option<MoRef>,
        memory: Option<bool>,
    }

    struct VirtualMachineInstantCloneSpec {
        name: String,
        location: VirtualMachineRelocateSpec,
        config: Vec<OptionValue>,
        bios_uuid "biosUuid": Option<String>,
    }

    struct VirtualMachineRelocateSpec {
        folder: Option<MoRef>,
        datastore: Option<MoRef>,
        disk_move_type "diskMoveType": Option<String>,
        pool: Option<MoRef>,
        host: Option<MoRef>,
        disk: Vec<VirtualMachineRelocateSpecDiskLocator>,
        transform: Option<String>,
        device_change "deviceChange": Vec<VirtualDeviceConfigSpec>,
    }

    struct VirtualMachineRelocateSpecDiskLocator {
        disk_id "diskId": i32,
        datastore: MoRef,
        disk_move_type "diskMoveType": Option<String>,
        disk_backing_info "diskBackingInfo": Option<VirtualDeviceBackingInfo>,
    }

    struct VirtualMachineConfigSpec {
        change_version "changeVersion": Option<String>,
        name: Option<String>,
        version: Option<String>,
        create_date "createDate": Option<Timestamp>,
        uuid: Option<String>,
        instance_uuid "instanceUuid": Option<String>,
        guest_id "guestId": Option<String>,
        alternate_guest_name "alternateGuestName": Option<String>,
        annotation: Option<String>,
        files: Option<VirtualMachineFileInfo>,
        tools: Option<ToolsConfigInfo>,
        flags: Option<Element>,
        num_cpus "numCPUs": Option<i32>,
        num_cores_per_socket "numCoresPerSocket": Option<i32>,
        memory_mb "memoryMB": Option<i64>,
        memory_hot_add_enabled "memoryHotAddEnabled": Option<bool>,
        cpu_hot_add_enabled "cpuHotAddEnabled": Option<bool>,
        cpu_hot_remove_enabled "cpuHotRemoveEnabled": Option<bool>,
        device_change "deviceChange": Vec<VirtualDeviceConfigSpec>,
        cpu_allocation "cpuAllocation": Option<ResourceAllocationInfo>,
        memory_allocation "memoryAllocation": Option<ResourceAllocationInfo>,
        latency_sensitivity "latencySensitivity": Option<Element>,
        extra_config "extraConfig": Vec<OptionValue>,
        swap_placement "swapPlacement": Option<String>,
        boot_options "bootOptions": Option<VirtualMachineBootOptions>,
        v_app_config "vAppConfig": Option<Element>,
        v_app_config_removed "vAppConfigRemoved": Option<bool>,
        change_tracking_enabled "changeTrackingEnabled": Option<bool>,
        firmware: Option<String>,
        managed_by "managedBy": Option<ManagedByInfo>,
        memory_reservation_locked_to_max "memoryReservationLockedToMax": Option<bool>,
        nested_hv_enabled "nestedHVEnabled": Option<bool>,
        /// The storage policy of the VM's home.
        vm_profile "vmProfile": Vec<Element>,
    }

    struct ManagedByInfo {
        extension_key "extensionKey": String,
        kind "type": String,
    }

    struct VirtualMachineFileInfo {
        vm_path_name "vmPathName": Option<String>,
        snapshot_directory "snapshotDirectory": Option<String>,
        suspend_directory "suspendDirectory": Option<String>,
        log_directory "logDirectory": Option<String>,
    }

    struct ToolsConfigInfo {
        tools_version "toolsVersion": Option<i32>,
        tools_install_type "toolsInstallType": Option<String>,
        after_power_on "afterPowerOn": Option<bool>,
        after_resume "afterResume": Option<bool>,
        before_guest_standby "beforeGuestStandby": Option<bool>,
        before_guest_shutdown "beforeGuestShutdown": Option<bool>,
        before_guest_reboot "beforeGuestReboot": Option<bool>,
        tools_upgrade_policy "toolsUpgradePolicy": Option<String>,
        pending_customization "pendingCustomization": Option<String>,
        sync_time_with_host "syncTimeWithHost": Option<bool>,
    }

    struct VirtualMachineBootOptions {
        boot_delay "bootDelay": Option<i64>,
        enter_bios_setup "enterBIOSSetup": Option<bool>,
        efi_secure_boot_enabled "efiSecureBootEnabled": Option<bool>,
        boot_retry_enabled "bootRetryEnabled": Option<bool>,
        boot_retry_delay "bootRetryDelay": Option<i64>,
        boot_order "bootOrder": Vec<VirtualMachineBootOptionsBootableDevice>,
        network_boot_protocol "networkBootProtocol": Option<String>,
    }

    open VirtualMachineBootOptionsBootableDevice {
        device_key "deviceKey": Option<i32>,
    }

    struct CustomizationSpec {
        options: Option<Element>,
        identity: CustomizationIdentitySettings,
        global_ip_settings "globalIPSettings": CustomizationGlobalIPSettings,
        nic_setting_map "nicSettingMap": Vec<CustomizationAdapterMapping>,
    }

    /// `CustomizationLinuxPrep` or `CustomizationCloudinitPrep`.
    open CustomizationIdentitySettings {
        host_name "hostName": Option<CustomizationName>,
        domain: Option<String>,
        time_zone "timeZone": Option<String>,
        hw_clock_utc "hwClockUTC": Option<bool>,
        script_text "scriptText": Option<String>,
        metadata: Option<String>,
        userdata: Option<String>,
    }

    /// `CustomizationVirtualMachineName`, `CustomizationFixedName` or `CustomizationPrefixName`.
    open CustomizationName {
        name: Option<String>,
        base: Option<String>,
    }

    struct CustomizationGlobalIPSettings {
        dns_suffix_list "dnsSuffixList": Vec<String>,
        dns_server_list "dnsServerList": Vec<String>,
    }

    struct CustomizationAdapterMapping {
        mac_address "macAddress": Option<String>,
        adapter: CustomizationIPSettings,
    }

    struct CustomizationIPSettings {
        ip: CustomizationIpGenerator,
        subnet_mask "subnetMask": Option<String>,
        gateway: Vec<String>,
        ip_v6_spec "ipV6Spec": Option<Element>,
        dns_server_list "dnsServerList": Vec<String>,
        dns_domain "dnsDomain": Option<String>,
    }

    /// `CustomizationFixedIp` or `CustomizationDhcpIpGenerator`.
    open CustomizationIpGenerator {
        ip_address "ipAddress": Option<String>,
    }
}
