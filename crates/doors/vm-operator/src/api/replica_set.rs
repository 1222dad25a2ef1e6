//! `VirtualMachineReplicaSet`: a number of equal VMs.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};

use super::vm::VirtualMachineSpec;

kind!(
    VirtualMachineReplicaSet,
    "virtualmachinereplicasets",
    NamespaceResourceScope,
    VirtualMachineReplicaSetSpec,
    VirtualMachineReplicaSetStatus
);

data! {
    pub struct VirtualMachineReplicaSetSpec {
        pub replicas: Option<i32>,
        pub delete_policy: String,
        pub selector: LabelSelector,
        pub template: VirtualMachineTemplate,
    }

    pub struct VirtualMachineTemplate {
        pub metadata: TemplateMeta,
        pub spec: VirtualMachineSpec,
    }

    pub struct TemplateMeta {
        pub labels: BTreeMap<String, String>,
        pub annotations: BTreeMap<String, String>,
    }

    pub struct VirtualMachineReplicaSetStatus {
        pub replicas: i32,
        pub fully_labeled_replicas: i32,
        pub ready_replicas: i32,
        pub observed_generation: i64,
        pub conditions: Vec<Condition>,
    }
}
