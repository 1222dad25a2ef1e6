use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::{ClassReference, ControllerType, DiskMode, PowerState, SharingMode};
use crate::api::snapshot::SnapshotReference;
use crate::api::{KeyValue, Quantity, Rest};

data! {
    pub struct VirtualMachineStatus {
        pub class: Option<ClassReference>,
        pub node_name: String,
        pub power_state: Option<PowerState>,
        /// The managed object's id, such as `vm-42`.
        #[serde(rename = "uniqueID")]
        pub unique_id: String,
        #[serde(rename = "biosUUID")]
        pub bios_uuid: String,
        #[serde(rename = "instanceUUID")]
        pub instance_uuid: String,
        pub zone: String,
        pub hardware_version: i32,
        pub last_restart_time: Option<Time>,
        pub change_block_tracking: Option<bool>,
        pub conditions: Vec<Condition>,
        pub guest: Option<GuestStatus>,
        pub provider: Option<ProviderStatus>,
        pub network: Option<NetworkStatus>,
        pub volumes: Vec<VolumeStatus>,
        pub storage: Option<StorageStatus>,
        pub hardware: Option<HardwareStatus>,
        pub crypto: Option<CryptoStatus>,
        pub current_snapshot: Option<SnapshotReference>,
        pub root_snapshots: Vec<SnapshotReference>,
        pub policies: Vec<serde_json::Value>,
        pub extra_config: Vec<KeyValue>,
    }

    pub struct GuestStatus {
        #[serde(rename = "guestID")]
        pub guest_id: String,
        pub guest_full_name: String,
    }

    pub struct ProviderStatus {
        pub creation_timestamp: Option<Time>,
    }

    pub struct CryptoStatus {
        pub encrypted: Vec<String>,
        #[serde(rename = "providerID")]
        pub provider_id: String,
        #[serde(rename = "keyID")]
        pub key_id: String,
        #[serde(rename = "hasVTPM")]
        pub has_vtpm: bool,
    }

    pub struct NetworkStatus {
        /// What the guest was told.
        pub config: Option<NetworkConfig>,
        pub host_name: String,
        pub interfaces: Vec<InterfaceStatus>,
        pub ip_stacks: Vec<IpStackStatus>,
        #[serde(rename = "primaryIP4")]
        pub primary_ip4: String,
        #[serde(rename = "primaryIP6")]
        pub primary_ip6: String,
    }

    pub struct NetworkConfig {
        pub dns: Option<DnsStatus>,
        pub interfaces: Vec<InterfaceConfig>,
    }

    pub struct DnsStatus {
        pub host_name: String,
        pub domain_name: String,
        pub nameservers: Vec<String>,
        pub search_domains: Vec<String>,
    }

    pub struct InterfaceConfig {
        pub name: String,
        pub ip: Option<InterfaceIpConfig>,
        pub dns: Option<DnsStatus>,
    }

    pub struct InterfaceIpConfig {
        pub addresses: Vec<String>,
        pub gateway4: String,
        pub gateway6: String,
        pub dhcp: Option<DhcpStatus>,
    }

    pub struct DhcpStatus {
        pub ip4: DhcpFamilyStatus,
        pub ip6: DhcpFamilyStatus,
    }

    pub struct DhcpFamilyStatus {
        pub enabled: bool,
        pub config: Vec<KeyValue>,
    }

    pub struct InterfaceStatus {
        pub name: String,
        pub device_key: i32,
        pub ip: Option<InterfaceIpStatus>,
        pub dns: Option<InterfaceDnsStatus>,
        #[serde(flatten)]
        pub rest: Rest,
    }

    pub struct InterfaceIpStatus {
        pub mac_addr: String,
        pub auto_configuration_enabled: Option<bool>,
        pub addresses: Vec<AddressStatus>,
        pub dhcp: Option<DhcpStatus>,
    }

    pub struct AddressStatus {
        pub address: String,
        pub lifetime: Option<Time>,
        pub origin: Option<String>,
        pub state: Option<String>,
    }

    pub struct InterfaceDnsStatus {
        pub dhcp: bool,
        pub host_name: String,
        pub domain_name: String,
        pub nameservers: Vec<String>,
        pub search_domains: Vec<String>,
    }

    pub struct IpStackStatus {
        pub dhcp: Option<DhcpStatus>,
        pub dns: Option<InterfaceDnsStatus>,
        pub ip_routes: Vec<RouteStatus>,
        pub kernel_config: Vec<KeyValue>,
    }

    pub struct RouteStatus {
        pub gateway: RouteGateway,
        pub network_address: String,
    }

    pub struct RouteGateway {
        pub device: String,
        pub address: String,
    }

    pub struct StorageStatus {
        pub total: Option<Quantity>,
        pub requested: Option<StorageRequested>,
        pub usage: Option<StorageUsage>,
    }

    pub struct StorageRequested {
        pub disks: Option<Quantity>,
    }

    pub struct StorageUsage {
        pub disks: Option<Quantity>,
        pub other: Option<Quantity>,
        pub snapshots: Option<SnapshotUsage>,
    }

    pub struct SnapshotUsage {
        pub vm: Option<Quantity>,
        pub volume: Option<Quantity>,
    }

    pub struct HardwareStatus {
        pub cpu: Option<CpuStatus>,
        pub memory: Option<MemoryStatus>,
        #[serde(rename = "vGPUs")]
        pub vgpus: Vec<VgpuStatus>,
        pub controllers: Vec<ControllerStatus>,
    }

    pub struct CpuStatus {
        pub total: i32,
        pub reservation: i64,
        pub limit: Option<i64>,
        pub cores_per_socket: i32,
        pub hot_add_enabled: Option<bool>,
        pub iommu_enabled: Option<bool>,
        pub nested_hardware_virtualization_enabled: Option<bool>,
        pub performance_counters_enabled: Option<bool>,
    }

    pub struct MemoryStatus {
        pub total: Option<Quantity>,
        pub reservation: Option<Quantity>,
        pub limit: Option<Quantity>,
        pub hot_add_enabled: Option<bool>,
        pub reservation_locked_to_max: Option<bool>,
    }

    pub struct VgpuStatus {
        #[serde(rename = "type")]
        pub type_: String,
        pub profile: String,
        pub migration_type: String,
    }

    pub struct VolumeCryptoStatus {
        #[serde(rename = "providerID")]
        pub provider_id: String,
        #[serde(rename = "keyID")]
        pub key_id: String,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerStatus {
    #[serde(rename = "type")]
    pub type_: ControllerType,
    pub bus_number: i32,
    pub device_key: i32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<ControllerDeviceStatus>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ControllerDeviceStatus {
    #[serde(rename = "type")]
    pub type_: ControllerDeviceType,
    pub unit_number: i32,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VolumeStatus {
    pub name: String,
    #[serde(rename = "type")]
    pub type_: VolumeType,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub attached: bool,
    #[serde(rename = "diskUUID", skip_serializing_if = "String::is_empty")]
    pub disk_uuid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crypto: Option<VolumeCryptoStatus>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_type: Option<ControllerType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_bus_number: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_number: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_mode: Option<DiskMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharing_mode: Option<SharingMode>,
}

words! {
    pub enum ControllerDeviceType {
        Cdrom = "CDROM",
        Disk = "Disk",
    }

    #[derive(Default)]
    pub enum VolumeType {
        Classic = "Classic",
        #[default]
        Managed = "Managed",
    }
}
