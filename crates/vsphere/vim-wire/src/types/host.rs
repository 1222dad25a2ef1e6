//! Hosts and clusters, as far as placement and transfers look at them.

use crate::MoRef;

data! {
    struct ComputeResourceConfigInfo {
        vm_swap_placement "vmSwapPlacement": String,
        spbm_enabled "spbmEnabled": Option<bool>,
        default_hardware_version_key "defaultHardwareVersionKey": Option<String>,
    }

    open ComputeResourceSummary {
        total_cpu "totalCpu": i32,
        total_memory "totalMemory": i64,
        num_cpu_cores "numCpuCores": i32,
        num_cpu_threads "numCpuThreads": i32,
        effective_cpu "effectiveCpu": i32,
        effective_memory "effectiveMemory": i64,
        num_hosts "numHosts": i32,
        num_effective_hosts "numEffectiveHosts": i32,
        overall_status "overallStatus": String,
    }

    struct HostRuntimeInfo {
        connection_state "connectionState": String,
        power_state "powerState": String,
        standby_mode "standbyMode": Option<String>,
        in_maintenance_mode "inMaintenanceMode": bool,
        boot_time "bootTime": Option<jiff::Timestamp>,
    }

    struct HostHardwareSummary {
        vendor: String,
        model: String,
        uuid: String,
        memory_size "memorySize": i64,
        cpu_model "cpuModel": String,
        cpu_mhz "cpuMhz": i32,
        num_cpu_pkgs "numCpuPkgs": i16,
        num_cpu_cores "numCpuCores": i16,
        num_cpu_threads "numCpuThreads": i16,
        num_nics "numNics": i32,
        num_hbas "numHBAs": i32,
    }

    struct HostConfigSummary {
        name: String,
        port: i32,
        ssl_thumbprint "sslThumbprint": Option<String>,
        product: Option<super::AboutInfo>,
        vmotion_enabled "vmotionEnabled": bool,
    }

    struct HostListSummaryQuickStats {
        overall_cpu_usage "overallCpuUsage": Option<i32>,
        overall_memory_usage "overallMemoryUsage": Option<i32>,
        uptime: Option<i32>,
    }

    struct HostListSummary {
        host: Option<MoRef>,
        hardware: Option<HostHardwareSummary>,
        runtime: Option<HostRuntimeInfo>,
        config: HostConfigSummary,
        quick_stats "quickStats": HostListSummaryQuickStats,
        overall_status "overallStatus": String,
        reboot_required "rebootRequired": bool,
    }
}
