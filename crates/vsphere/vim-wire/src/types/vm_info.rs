//! What a VM is: configuration, runtime, guest, snapshots.

use jiff::Timestamp;

use crate::types::{
    CustomFieldValue, OptionValue, ResourceAllocationInfo, ToolsConfigInfo, VirtualDevice,
    VirtualMachineBootOptions, VirtualMachineFileInfo,
};
use crate::{Element, MoRef};

data! {
    struct VirtualMachineSummary {
        vm: Option<MoRef>,
        runtime: VirtualMachineRuntimeInfo,
        guest: Option<VirtualMachineGuestSummary>,
        config: VirtualMachineConfigSummary,
        storage: Option<VirtualMachineStorageSummary>,
        quick_stats "quickStats": VirtualMachineQuickStats,
        overall_status "overallStatus": String,
        custom_value "customValue": Vec<CustomFieldValue>,
    }

    struct VirtualMachineConfigSummary {
        name: String,
        template: bool,
        vm_path_name "vmPathName": String,
        memory_size_mb "memorySizeMB": Option<i32>,
        cpu_reservation "cpuReservation": Option<i32>,
        memory_reservation "memoryReservation": Option<i32>,
        num_cpu "numCpu": Option<i32>,
        num_ethernet_cards "numEthernetCards": Option<i32>,
        num_virtual_disks "numVirtualDisks": Option<i32>,
        uuid: Option<String>,
        instance_uuid "instanceUuid": Option<String>,
        guest_id "guestId": Option<String>,
        guest_full_name "guestFullName": Option<String>,
        annotation: Option<String>,
        hw_version "hwVersion": Option<String>,
    }

    struct VirtualMachineGuestSummary {
        guest_id "guestId": Option<String>,
        guest_full_name "guestFullName": Option<String>,
        tools_status "toolsStatus": Option<VirtualMachineToolsStatus>,
        tools_version_status "toolsVersionStatus": Option<String>,
        tools_version_status2 "toolsVersionStatus2": Option<String>,
        tools_running_status "toolsRunningStatus": Option<String>,
        host_name "hostName": Option<String>,
        ip_address "ipAddress": Option<String>,
        hw_version "hwVersion": Option<String>,
    }

    struct VirtualMachineStorageSummary {
        committed: i64,
        uncommitted: i64,
        unshared: i64,
        timestamp: Timestamp,
    }

    struct VirtualMachineQuickStats {
        overall_cpu_usage "overallCpuUsage": Option<i32>,
        guest_memory_usage "guestMemoryUsage": Option<i32>,
        host_memory_usage "hostMemoryUsage": Option<i32>,
        guest_heartbeat_status "guestHeartbeatStatus": String,
        uptime_seconds "uptimeSeconds": Option<i32>,
    }

    struct VirtualMachineConfigInfo {
        change_version "changeVersion": String,
        modified: Timestamp,
        name: String,
        guest_full_name "guestFullName": String,
        version: String,
        uuid: String,
        create_date "createDate": Option<Timestamp>,
        instance_uuid "instanceUuid": Option<String>,
        template: bool,
        guest_id "guestId": String,
        alternate_guest_name "alternateGuestName": String,
        annotation: Option<String>,
        files: VirtualMachineFileInfo,
        tools: Option<ToolsConfigInfo>,
        flags: VirtualMachineFlagInfo,
        default_power_ops "defaultPowerOps": VirtualMachineDefaultPowerOpInfo,
        hardware: VirtualHardware,
        cpu_allocation "cpuAllocation": Option<ResourceAllocationInfo>,
        memory_allocation "memoryAllocation": Option<ResourceAllocationInfo>,
        latency_sensitivity "latencySensitivity": Option<Element>,
        memory_hot_add_enabled "memoryHotAddEnabled": Option<bool>,
        cpu_hot_add_enabled "cpuHotAddEnabled": Option<bool>,
        cpu_hot_remove_enabled "cpuHotRemoveEnabled": Option<bool>,
        extra_config "extraConfig": Vec<OptionValue>,
        swap_placement "swapPlacement": Option<String>,
        boot_options "bootOptions": Option<VirtualMachineBootOptions>,
        v_app_config "vAppConfig": Option<Element>,
        change_tracking_enabled "changeTrackingEnabled": Option<bool>,
        firmware: Option<String>,
        managed_by "managedBy": Option<Element>,
        memory_reservation_locked_to_max "memoryReservationLockedToMax": Option<bool>,
        nested_hv_enabled "nestedHVEnabled": Option<bool>,
    }

    struct VirtualMachineFlagInfo {
        disable_acceleration "disableAcceleration": Option<bool>,
        enable_logging "enableLogging": Option<bool>,
        use_toe "useToe": Option<bool>,
        run_with_debug_info "runWithDebugInfo": Option<bool>,
    }

    struct VirtualMachineDefaultPowerOpInfo {
        power_off_type "powerOffType": Option<String>,
        suspend_type "suspendType": Option<String>,
        reset_type "resetType": Option<String>,
        default_power_off_type "defaultPowerOffType": Option<String>,
        default_suspend_type "defaultSuspendType": Option<String>,
        default_reset_type "defaultResetType": Option<String>,
        standby_action "standbyAction": Option<String>,
    }

    struct VirtualHardware {
        num_cpu "numCPU": i32,
        num_cores_per_socket "numCoresPerSocket": Option<i32>,
        memory_mb "memoryMB": i32,
        virtual_ich7m_present "virtualICH7MPresent": Option<bool>,
        virtual_smc_present "virtualSMCPresent": Option<bool>,
        device: Vec<VirtualDevice>,
    }

    struct VirtualMachineRuntimeInfo {
        host: Option<MoRef>,
        connection_state "connectionState": VirtualMachineConnectionState,
        power_state "powerState": VirtualMachinePowerState,
        fault_tolerance_state "faultToleranceState": Option<String>,
        tools_installer_mounted "toolsInstallerMounted": Option<bool>,
        suspend_time "suspendTime": Option<Timestamp>,
        boot_time "bootTime": Option<Timestamp>,
        question: Option<VirtualMachineQuestionInfo>,
        max_cpu_usage "maxCpuUsage": Option<i32>,
        max_memory_usage "maxMemoryUsage": Option<i32>,
        num_mks_connections "numMksConnections": Option<i32>,
        record_replay_state "recordReplayState": Option<String>,
        clean_power_off "cleanPowerOff": Option<bool>,
        online_standby "onlineStandby": Option<bool>,
        consolidation_needed "consolidationNeeded": Option<bool>,
    }

    struct VirtualMachineQuestionInfo {
        id: String,
        text: String,
        choice: Option<Element>,
    }

    struct GuestInfo {
        tools_status "toolsStatus": Option<VirtualMachineToolsStatus>,
        tools_version_status "toolsVersionStatus": Option<String>,
        tools_version_status2 "toolsVersionStatus2": Option<String>,
        tools_running_status "toolsRunningStatus": Option<String>,
        tools_version "toolsVersion": Option<String>,
        guest_id "guestId": Option<String>,
        guest_family "guestFamily": Option<String>,
        guest_full_name "guestFullName": Option<String>,
        host_name "hostName": Option<String>,
        ip_address "ipAddress": Option<String>,
        net: Vec<GuestNicInfo>,
        ip_stack "ipStack": Vec<GuestStackInfo>,
        guest_state "guestState": String,
        app_heartbeat_status "appHeartbeatStatus": Option<String>,
        app_state "appState": Option<String>,
        guest_operations_ready "guestOperationsReady": Option<bool>,
        interactive_guest_operations_ready "interactiveGuestOperationsReady": Option<bool>,
        guest_state_change_supported "guestStateChangeSupported": Option<bool>,
        hw_version "hwVersion": Option<String>,
        customization_info "customizationInfo": Option<GuestInfoCustomizationInfo>,
    }

    struct GuestNicInfo {
        network: Option<String>,
        ip_address "ipAddress": Vec<String>,
        mac_address "macAddress": Option<String>,
        connected: bool,
        device_config_id "deviceConfigId": i32,
        dns_config "dnsConfig": Option<Element>,
        ip_config "ipConfig": Option<NetIpConfigInfo>,
    }

    struct GuestStackInfo {
        dns_config "dnsConfig": Option<Element>,
    }

    struct NetIpConfigInfo {
        ip_address "ipAddress": Vec<NetIpConfigInfoIpAddress>,
        dhcp: Option<Element>,
        auto_configuration_enabled "autoConfigurationEnabled": Option<bool>,
    }

    struct NetIpConfigInfoIpAddress {
        ip_address "ipAddress": String,
        prefix_length "prefixLength": i32,
        origin: Option<String>,
        state: Option<String>,
        lifetime: Option<Timestamp>,
    }

    struct GuestInfoCustomizationInfo {
        customization_status "customizationStatus": String,
        start_time "startTime": Option<Timestamp>,
        end_time "endTime": Option<Timestamp>,
        error_msg "errorMsg": Option<String>,
    }

    struct VirtualMachineSnapshotInfo {
        current_snapshot "currentSnapshot": Option<MoRef>,
        root_snapshot_list "rootSnapshotList": Vec<VirtualMachineSnapshotTree>,
    }

    struct VirtualMachineSnapshotTree {
        snapshot: MoRef,
        vm: MoRef,
        name: String,
        description: String,
        id: i32,
        create_time "createTime": Timestamp,
        state: VirtualMachinePowerState,
        quiesced: bool,
        child_snapshot_list "childSnapshotList": Vec<VirtualMachineSnapshotTree>,
    }
}

names! {
    enum VirtualMachinePowerState { PoweredOff = "poweredOff", PoweredOn = "poweredOn", Suspended = "suspended" }

    enum VirtualMachineConnectionState {
        Connected = "connected",
        Disconnected = "disconnected",
        Orphaned = "orphaned",
        Inaccessible = "inaccessible",
        Invalid = "invalid",
    }

    enum VirtualMachineToolsStatus {
        NotInstalled = "toolsNotInstalled",
        NotRunning = "toolsNotRunning",
        Old = "toolsOld",
        Ok = "toolsOk",
    }
}
