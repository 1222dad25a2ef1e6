//! `VirtualMachineSnapshot`: a moment of a VM to go back to.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

use super::condition::{ConditionType, is_true};
use super::vm::PowerState;
use super::{GoDuration, Quantity};

kind!(
    VirtualMachineSnapshot,
    "virtualmachinesnapshots",
    NamespaceResourceScope,
    VirtualMachineSnapshotSpec,
    VirtualMachineSnapshotStatus
);

data! {
    pub struct VirtualMachineSnapshotSpec {
        pub vm_name: String,
        pub memory: bool,
        pub quiesce: Option<QuiesceSpec>,
        pub description: String,
    }

    pub struct QuiesceSpec {
        pub timeout: Option<GoDuration>,
    }

    pub struct VirtualMachineSnapshotStatus {
        pub power_state: Option<PowerState>,
        pub quiesced: bool,
        #[serde(rename = "uniqueID")]
        pub unique_id: String,
        pub children: Vec<SnapshotReference>,
        pub storage: Option<SnapshotStorage>,
        pub conditions: Vec<Condition>,
    }

    pub struct SnapshotStorage {
        pub used: Option<Quantity>,
        pub requested: Vec<StorageClassTotal>,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageClassTotal {
    pub storage_class: String,
    pub total: Quantity,
}

/// A snapshot in a VM's tree. Ours are named by their objects, others have no name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotReference {
    pub name: String,
    #[serde(rename = "type")]
    pub type_: SnapshotReferenceType,
}

words! {
    #[derive(Default)]
    pub enum SnapshotReferenceType {
        #[default]
        Managed = "Managed",
        Unmanaged = "Unmanaged",
    }
}

impl SnapshotReference {
    pub fn managed(name: &str) -> Self {
        Self { name: name.to_owned(), type_: SnapshotReferenceType::Managed }
    }

    pub fn unmanaged() -> Self {
        Self { name: String::new(), type_: SnapshotReferenceType::Unmanaged }
    }
}

impl VirtualMachineSnapshot {
    fn is(&self, condition: ConditionType) -> bool {
        self.status.as_ref().is_some_and(|status| is_true(&status.conditions, condition))
    }

    pub fn is_ready(&self) -> bool {
        self.is(ConditionType::SnapshotReady)
    }

    pub fn is_created(&self) -> bool {
        self.is(ConditionType::SnapshotCreated)
    }

    pub fn is_csi_synced(&self) -> bool {
        self.is(ConditionType::SnapshotCsiSynced)
    }
}
