use serde::{Deserialize, Serialize};

use super::ControllerType;
use crate::api::{Quantity, Rest};

data! {
    pub struct Volume {
        pub name: String,
        pub persistent_volume_claim: Option<PersistentVolumeClaim>,
        pub removable: Option<bool>,
        pub application_type: Option<ApplicationType>,
        pub controller_type: Option<ControllerType>,
        pub controller_bus_number: Option<i32>,
        pub unit_number: Option<i32>,
        pub disk_mode: Option<DiskMode>,
        pub sharing_mode: Option<SharingMode>,
        #[serde(flatten)]
        pub rest: Rest,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PersistentVolumeClaim {
    pub claim_name: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instance_volume_claim: Option<InstanceVolumeClaim>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InstanceVolumeClaim {
    pub storage_class: String,
    pub size: Quantity,
}

words! {
    pub enum ApplicationType {
        OracleRac = "OracleRAC",
        MicrosoftWsfc = "MicrosoftWSFC",
    }

    pub enum DiskMode {
        Persistent = "Persistent",
        NonPersistent = "NonPersistent",
        IndependentPersistent = "IndependentPersistent",
        IndependentNonPersistent = "IndependentNonPersistent",
    }

    pub enum SharingMode {
        None = "None",
        MultiWriter = "MultiWriter",
    }
}

impl Volume {
    pub fn claim_name(&self) -> Option<&str> {
        self.persistent_volume_claim.as_ref().map(|claim| claim.claim_name.as_str())
    }

    pub fn is_removable(&self) -> bool {
        self.removable.unwrap_or(true)
    }
}
