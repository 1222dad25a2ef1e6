//! Resource pools, datastores, networks: what VMs live on, and placement among it.

use crate::types::{
    VirtualDeviceBackingInfo, VirtualMachineCloneSpec, VirtualMachineConfigSpec,
    VirtualMachineRelocateSpec,
};
use crate::{Element, MoRef};

data! {
    struct ResourceConfigSpec {
        entity: Option<MoRef>,
        change_version "changeVersion": Option<String>,
        last_modified "lastModified": Option<jiff::Timestamp>,
        cpu_allocation "cpuAllocation": ResourceAllocationInfo,
        memory_allocation "memoryAllocation": ResourceAllocationInfo,
    }

    struct ResourceAllocationInfo {
        reservation: Option<i64>,
        expandable_reservation "expandableReservation": Option<bool>,
        limit: Option<i64>,
        shares: Option<SharesInfo>,
        overhead_limit "overheadLimit": Option<i64>,
    }

    struct SharesInfo {
        shares: i32,
        level: String,
    }

    /// Memory in bytes, CPU in MHz.
    struct ResourcePoolRuntimeInfo {
        memory: ResourcePoolResourceUsage,
        cpu: ResourcePoolResourceUsage,
        overall_status "overallStatus": String,
    }

    struct ResourcePoolResourceUsage {
        reservation_used "reservationUsed": i64,
        reservation_used_for_vm "reservationUsedForVm": i64,
        unreserved_for_pool "unreservedForPool": i64,
        unreserved_for_vm "unreservedForVm": i64,
        overall_usage "overallUsage": i64,
        max_usage "maxUsage": i64,
    }

    typed ResourcePoolSummary {
        name: String,
        config: ResourceConfigSpec,
        runtime: ResourcePoolRuntimeInfo,
        quick_stats "quickStats": Option<ResourcePoolQuickStats>,
        configured_memory_mb "configuredMemoryMB": Option<i32>,
    }

    struct ResourcePoolQuickStats {
        overall_cpu_usage "overallCpuUsage": Option<i64>,
        guest_memory_usage "guestMemoryUsage": Option<i64>,
        host_memory_usage "hostMemoryUsage": Option<i64>,
    }

    struct DatastoreSummary {
        datastore: Option<MoRef>,
        name: String,
        url: String,
        capacity: i64,
        free_space "freeSpace": i64,
        uncommitted: Option<i64>,
        accessible: bool,
        multiple_host_access "multipleHostAccess": Option<bool>,
        kind "type": String,
        maintenance_mode "maintenanceMode": Option<String>,
    }

    /// Also `OpaqueNetworkSummary`, which adds the two ids.
    open NetworkSummary {
        network: Option<MoRef>,
        name: String,
        accessible: bool,
        ip_pool_name "ipPoolName": String,
        ip_pool_id "ipPoolId": Option<i32>,
        opaque_network_id "opaqueNetworkId": Option<String>,
        opaque_network_type "opaqueNetworkType": Option<String>,
    }

    struct StoragePlacementSpec {
        kind "type": String,
        priority: Option<String>,
        vm: Option<MoRef>,
        pod_selection_spec "podSelectionSpec": StorageDrsPodSelectionSpec,
        clone_spec "cloneSpec": Option<VirtualMachineCloneSpec>,
        clone_name "cloneName": Option<String>,
        config_spec "configSpec": Option<VirtualMachineConfigSpec>,
        relocate_spec "relocateSpec": Option<VirtualMachineRelocateSpec>,
        resource_pool "resourcePool": Option<MoRef>,
        host: Option<MoRef>,
        folder: Option<MoRef>,
    }

    struct StorageDrsPodSelectionSpec {
        initial_vm_config "initialVmConfig": Vec<VmPodConfigForPlacement>,
        storage_pod "storagePod": Option<MoRef>,
    }

    struct VmPodConfigForPlacement {
        storage_pod "storagePod": MoRef,
        disk: Vec<PodDiskLocator>,
        vm_config "vmConfig": Option<Element>,
    }

    struct PodDiskLocator {
        disk_id "diskId": i32,
        disk_move_type "diskMoveType": Option<String>,
        disk_backing_info "diskBackingInfo": Option<VirtualDeviceBackingInfo>,
    }

    struct StoragePlacementResult {
        recommendations: Vec<ClusterRecommendation>,
        drs_fault "drsFault": Option<Element>,
        task: Option<MoRef>,
    }

    struct ClusterRecommendation {
        key: String,
        kind "type": String,
        time: jiff::Timestamp,
        rating: i32,
        reason: String,
        reason_text "reasonText": String,
        action: Vec<StoragePlacementAction>,
        target: Option<MoRef>,
    }

    /// The action of a storage recommendation: put it on `destination`.
    open StoragePlacementAction {
        kind "type": String,
        target: Option<MoRef>,
        vm: Option<MoRef>,
        relocate_spec "relocateSpec": Option<VirtualMachineRelocateSpec>,
        destination: Option<MoRef>,
    }
}
