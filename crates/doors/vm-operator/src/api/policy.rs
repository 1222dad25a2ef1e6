//! `VirtualMachineSetResourcePolicy`: a child folder, a child pool and cluster modules for a set of VMs.

use serde::{Deserialize, Serialize};

use super::class::CpuMemory;

kind!(
    VirtualMachineSetResourcePolicy,
    "virtualmachinesetresourcepolicies",
    NamespaceResourceScope,
    VirtualMachineSetResourcePolicySpec,
    VirtualMachineSetResourcePolicyStatus
);

data! {
    pub struct VirtualMachineSetResourcePolicySpec {
        pub resource_pool: ResourcePoolPolicy,
        pub folder: String,
        pub cluster_module_groups: Vec<String>,
    }

    pub struct ResourcePoolPolicy {
        pub name: String,
        pub reservations: CpuMemory,
        pub limits: CpuMemory,
    }

    pub struct VirtualMachineSetResourcePolicyStatus {
        pub resource_pools: Vec<ResourcePoolStatus>,
        #[serde(rename = "clustermodules")]
        pub cluster_modules: Vec<ClusterModuleStatus>,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourcePoolStatus {
    #[serde(rename = "clusterMoID")]
    pub cluster_id: String,
    #[serde(rename = "childResourcePoolMoID")]
    pub child_resource_pool_id: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterModuleStatus {
    #[serde(rename = "groupName")]
    pub group_name: String,
    #[serde(rename = "moduleUUID")]
    pub module_uuid: String,
    #[serde(rename = "clusterMoID")]
    pub cluster_id: String,
}
