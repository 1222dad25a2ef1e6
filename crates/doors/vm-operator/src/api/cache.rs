//! `VirtualMachineImageCache`: the files of an image, copied to datastores, and its hardware.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use super::condition::{ConditionType, is_true};

kind!(
    VirtualMachineImageCache,
    "virtualmachineimagecaches",
    NamespaceResourceScope,
    VirtualMachineImageCacheSpec,
    VirtualMachineImageCacheStatus
);

data! {
    pub struct VirtualMachineImageCacheStatus {
        pub ovf: Option<CacheOvf>,
        pub locations: Vec<CacheLocationStatus>,
        pub conditions: Vec<Condition>,
    }

    pub struct CacheOvf {
        pub config_map_name: String,
        pub provider_version: String,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualMachineImageCacheSpec {
    /// A library item's uuid, or a VM's id (`vm-42`).
    #[serde(rename = "providerID")]
    pub provider_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub provider_version: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub locations: Vec<CacheLocation>,
}

/// Where files are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheLocation {
    #[serde(rename = "datacenterID")]
    pub datacenter_id: String,
    #[serde(rename = "datastoreID")]
    pub datastore_id: String,
    #[serde(rename = "profileID")]
    pub profile_id: String,
}

impl CacheLocation {
    /// Stands for no storage policy: a location names one.
    pub const NO_POLICY: &str = "none";

    pub fn policy(&self) -> Option<&str> {
        Some(self.profile_id.as_str()).filter(|id| !id.is_empty() && *id != Self::NO_POLICY)
    }
}

/// `datacenterID,datastoreID,profileID`, as the annotation of a waiting VM has it.
impl std::fmt::Display for CacheLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{},{},{}", self.datacenter_id, self.datastore_id, self.profile_id)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CacheLocationStatus {
    #[serde(flatten)]
    pub location: CacheLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<CacheFile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CacheFile {
    /// The datastore path.
    pub id: String,
    #[serde(rename = "type")]
    pub type_: CacheFileType,
    /// The name that the file has in the image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_type: Option<CachedDiskType>,
}

words! {
    pub enum CacheFileType {
        Disk = "Disk",
        Other = "Other",
    }

    pub enum CachedDiskType {
        Classic = "Classic",
        Managed = "Managed",
    }
}

impl CacheLocationStatus {
    pub fn is_ready(&self) -> bool {
        is_true(&self.conditions, ConditionType::Ready)
    }
}

impl VirtualMachineImageCache {
    fn is(&self, condition: ConditionType) -> bool {
        self.status.as_ref().is_some_and(|status| is_true(&status.conditions, condition))
    }

    /// Is the hardware of the image known, so that VMs may be planned from it?
    pub fn is_hardware_ready(&self) -> bool {
        self.is(ConditionType::CacheHardwareReady)
    }

    pub fn is_ready(&self) -> bool {
        self.is(ConditionType::Ready)
    }

    pub fn location(&self, wanted: &CacheLocation) -> Option<&CacheLocationStatus> {
        self.status.as_ref()?.locations.iter().find(|known| known.location == *wanted)
    }
}
