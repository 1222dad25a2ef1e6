//! `VirtualMachineClass`: how large a VM is and which devices it has.

use serde::{Deserialize, Serialize};

use super::{Quantity, Rest};

kind!(
    VirtualMachineClass,
    "virtualmachineclasses",
    NamespaceResourceScope,
    VirtualMachineClassSpec,
    VirtualMachineClassStatus
);

pub use instance::VirtualMachineClassInstance;

mod instance {
    use super::{VirtualMachineClassSpec, VirtualMachineClassStatus};

    kind!(
        VirtualMachineClassInstance,
        "virtualmachineclassinstances",
        NamespaceResourceScope,
        VirtualMachineClassSpec,
        VirtualMachineClassStatus
    );
}

data! {
    pub struct VirtualMachineClassSpec {
        pub hardware: ClassHardware,
        pub policies: ClassPolicies,
        pub description: String,
        pub controller_name: String,
        /// A vSphere `VirtualMachineConfigSpec` as JSON with `_typeName`s.
        pub config_spec: Option<serde_json::Value>,
        #[serde(rename = "reservedProfileID")]
        pub reserved_profile_id: String,
        pub reserved_slots: Option<i32>,
    }

    pub struct VirtualMachineClassStatus {
        #[serde(flatten)]
        pub rest: Rest,
    }

    pub struct ClassHardware {
        pub cpus: i64,
        pub memory: Option<Quantity>,
        pub devices: Option<ClassDevices>,
        pub instance_storage: Option<InstanceStorage>,
    }

    pub struct ClassDevices {
        pub vgpu_devices: Vec<VgpuDevice>,
        #[serde(rename = "dynamicDirectPathIODevices")]
        pub dynamic_direct_path_io_devices: Vec<DynamicDirectPathDevice>,
    }

    pub struct InstanceStorage {
        pub storage_class: String,
        pub volumes: Vec<InstanceVolume>,
    }

    pub struct ClassPolicies {
        pub resources: ClassResources,
    }

    pub struct ClassResources {
        pub requests: CpuMemory,
        pub limits: CpuMemory,
    }

    pub struct CpuMemory {
        pub cpu: Option<Quantity>,
        pub memory: Option<Quantity>,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VgpuDevice {
    pub profile_name: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DynamicDirectPathDevice {
    #[serde(rename = "vendorID")]
    pub vendor_id: i64,
    #[serde(rename = "deviceID")]
    pub device_id: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub custom_label: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InstanceVolume {
    pub size: Quantity,
}
