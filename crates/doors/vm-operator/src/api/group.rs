//! `VirtualMachineGroup`: VMs that are powered and placed together, in order.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use super::vm::{PowerOpMode, PowerState};
use super::{GoDuration, Rest};

kind!(
    VirtualMachineGroup,
    "virtualmachinegroups",
    NamespaceResourceScope,
    VirtualMachineGroupSpec,
    VirtualMachineGroupStatus
);

data! {
    pub struct VirtualMachineGroupSpec {
        /// The group that this one is in.
        pub group_name: String,
        pub boot_order: Vec<BootOrderGroup>,
        pub power_state: Option<PowerState>,
        pub power_off_mode: Option<PowerOpMode>,
        pub suspend_mode: Option<PowerOpMode>,
        pub next_force_power_state_sync_time: String,
    }

    pub struct BootOrderGroup {
        pub members: Vec<GroupMember>,
        pub power_on_delay: Option<GoDuration>,
        pub power_off_delay: Option<GoDuration>,
        #[serde(flatten)]
        pub rest: Rest,
    }

    pub struct VirtualMachineGroupStatus {
        pub members: Vec<GroupMemberStatus>,
        pub last_updated_power_state_time: Option<Time>,
        pub conditions: Vec<Condition>,
    }

    pub struct GroupPlacement {
        #[serde(rename = "zoneID")]
        pub zone_id: String,
        pub node: String,
        pub pool: String,
        pub datastores: Vec<PlacedDatastore>,
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupMember {
    #[serde(default)]
    pub kind: MemberKind,
    pub name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupMemberStatus {
    pub name: String,
    pub kind: MemberKind,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power_state: Option<PowerState>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub placement: Option<GroupPlacement>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlacedDatastore {
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_key: Option<i32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub supported_disk_formats: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_level_directory_create_supported: Option<bool>,
}

words! {
    #[derive(Default)]
    pub enum MemberKind {
        #[default]
        VirtualMachine = "VirtualMachine",
        VirtualMachineGroup = "VirtualMachineGroup",
    }
}
