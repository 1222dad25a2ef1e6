use serde::{Deserialize, Serialize};

use super::{BootOptions, Bootstrap, Hardware, Network, ReadinessProbe, Volume};
use crate::api::class::CpuMemory;
use crate::api::{KeyValue, Quantity};

data! {
    pub struct VirtualMachineSpec {
        pub image_name: String,
        pub image: Option<ImageReference>,
        pub class_name: String,
        pub class: Option<ClassReference>,
        pub storage_class: String,
        pub volume_attributes_class_name: Option<String>,
        pub power_state: Option<PowerState>,
        pub power_off_mode: Option<PowerOpMode>,
        pub suspend_mode: Option<PowerOpMode>,
        pub restart_mode: Option<PowerOpMode>,
        pub next_restart_time: String,
        pub bootstrap: Option<Bootstrap>,
        pub network: Option<Network>,
        pub volumes: Vec<Volume>,
        pub readiness_probe: Option<ReadinessProbe>,
        pub advanced: Option<Advanced>,
        pub reserved: Option<Reserved>,
        pub min_hardware_version: i32,
        #[serde(rename = "instanceUUID")]
        pub instance_uuid: String,
        #[serde(rename = "biosUUID")]
        pub bios_uuid: String,
        #[serde(rename = "guestID")]
        pub guest_id: String,
        pub promote_disks_mode: Option<PromoteDisksMode>,
        pub boot_options: Option<BootOptions>,
        pub current_snapshot_name: String,
        pub group_name: String,
        pub affinity: Option<serde_json::Value>,
        pub hardware: Option<Hardware>,
        pub crypto: Option<Crypto>,
        pub policies: Vec<ObjectReference>,
        pub resources: Option<Resources>,
        pub cpu_advanced: Option<CpuAdvanced>,
        pub memory_advanced: Option<MemoryAdvanced>,
    }

    pub struct Reserved {
        pub resource_policy_name: String,
    }

    pub struct Advanced {
        pub boot_disk_capacity: Option<Quantity>,
        pub default_volume_provisioning_mode: Option<ProvisioningMode>,
        pub change_block_tracking: Option<bool>,
        pub extra_config: Vec<KeyValue>,
        pub prefer_ht_enabled: Option<bool>,
        #[serde(rename = "hugePages1GEnabled")]
        pub huge_pages_1g_enabled: Option<bool>,
        pub time_tracker_low_latency_enabled: Option<bool>,
        pub cpu_affinity_exclusive_no_stats_enabled: Option<bool>,
        pub vmx_swap_enabled: Option<bool>,
        pub pnuma_node_affinity: Vec<i32>,
    }

    pub struct Crypto {
        pub encryption_class_name: String,
        pub use_default_key_provider: Option<bool>,
        #[serde(rename = "vTPMMode")]
        pub vtpm_mode: Option<CryptoVtpmMode>,
    }

    pub struct Resources {
        /// How large the VM is: vCPUs and memory.
        pub size: Option<CpuMemory>,
        /// What is reserved: MHz and memory.
        pub requests: Option<CpuMemory>,
        /// The most it gets: MHz and memory.
        pub limits: Option<CpuMemory>,
    }

    pub struct CpuAdvanced {
        pub latency_sensitivity: Option<LatencySensitivity>,
        pub topology: Option<CpuTopology>,
        pub hot_add_enabled: Option<bool>,
        pub iommu_enabled: Option<bool>,
        pub nested_hardware_virtualization_enabled: Option<bool>,
        pub performance_counters_enabled: Option<bool>,
    }

    pub struct CpuTopology {
        pub cores_per_socket: Option<i32>,
        pub vnuma_node_count: Option<i32>,
    }

    pub struct MemoryAdvanced {
        pub hot_add_enabled: Option<bool>,
        pub reservation_locked_to_max: Option<bool>,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageReference {
    /// `VirtualMachineImage` or `ClusterVirtualMachineImage`.
    pub kind: String,
    pub name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    pub api_version: String,
    pub kind: String,
    pub name: String,
}

/// The class that a VM has, or the class instance that it wants.
pub type ClassReference = ObjectReference;

words! {
    pub enum PowerState {
        PoweredOn = "PoweredOn",
        PoweredOff = "PoweredOff",
        Suspended = "Suspended",
    }

    pub enum PowerOpMode {
        Hard = "Hard",
        Soft = "Soft",
        TrySoft = "TrySoft",
    }

    pub enum PromoteDisksMode {
        Online = "Online",
        Offline = "Offline",
        Disabled = "Disabled",
    }

    pub enum ProvisioningMode {
        Thin = "Thin",
        Thick = "Thick",
        ThickEagerZero = "ThickEagerZero",
    }

    pub enum CryptoVtpmMode {
        New = "New",
        Clone = "Clone",
    }

    pub enum LatencySensitivity {
        Normal = "Normal",
        High = "High",
        HighWithHyperthreading = "HighWithHyperthreading",
    }
}
