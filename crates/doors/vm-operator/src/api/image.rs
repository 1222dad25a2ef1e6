//! `VirtualMachineImage` and `ClusterVirtualMachineImage`: what a VM can be made from.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use super::Quantity;
use super::condition::{ConditionType, is_true};
use super::vm::{ControllerType, ObjectReference};

kind!(
    VirtualMachineImage,
    "virtualmachineimages",
    NamespaceResourceScope,
    VirtualMachineImageSpec,
    VirtualMachineImageStatus
);

pub use cluster::ClusterVirtualMachineImage;

mod cluster {
    use super::{VirtualMachineImageSpec, VirtualMachineImageStatus};

    kind!(
        ClusterVirtualMachineImage,
        "clustervirtualmachineimages",
        ClusterResourceScope,
        VirtualMachineImageSpec,
        VirtualMachineImageStatus
    );
}

data! {
    pub struct VirtualMachineImageSpec {
        pub provider_ref: Option<ObjectReference>,
    }

    pub struct VirtualMachineImageStatus {
        /// The display name.
        pub name: String,
        /// OVF, ISO or VM.
        #[serde(rename = "type")]
        pub type_: String,
        #[serde(rename = "providerItemID")]
        pub provider_item_id: String,
        pub provider_content_version: String,
        pub firmware: String,
        pub hardware_version: Option<i32>,
        pub os_info: OsInfo,
        pub ovf_properties: Vec<OvfProperty>,
        pub vmware_system_properties: Vec<KeyValue>,
        pub product_info: ProductInfo,
        pub disks: Vec<ImageDisk>,
        pub capabilities: Vec<String>,
        pub conditions: Vec<Condition>,
    }

    pub struct OsInfo {
        pub id: String,
        #[serde(rename = "type")]
        pub type_: String,
        pub version: String,
    }

    pub struct ProductInfo {
        pub product: String,
        pub vendor: String,
        pub version: String,
        pub full_version: String,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OvfProperty {
    pub key: String,
    #[serde(rename = "type")]
    pub type_: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyValue {
    pub key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub value: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ImageDisk {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requested: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_type: Option<ControllerType>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller_bus_number: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_number: Option<i32>,
}

/// What an image is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageType {
    Ovf,
    Iso,
    Vm,
}

impl ImageType {
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Ovf, Self::Iso, Self::Vm]
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(text))
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ovf => "OVF",
            Self::Iso => "ISO",
            Self::Vm => "VM",
        }
    }
}

impl VirtualMachineImageStatus {
    pub fn is_ready(&self) -> bool {
        is_true(&self.conditions, ConditionType::Ready)
    }

    pub fn image_type(&self) -> Option<ImageType> {
        ImageType::parse(&self.type_)
    }
}
