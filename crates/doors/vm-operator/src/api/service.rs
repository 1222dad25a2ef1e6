//! `VirtualMachineService`: a Service whose endpoints are VMs.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::{Deserialize, Serialize};

kind!(
    VirtualMachineService,
    "virtualmachineservices",
    NamespaceResourceScope,
    VirtualMachineServiceSpec,
    VirtualMachineServiceStatus
);

data! {
    pub struct VirtualMachineServiceSpec {
        /// ClusterIP, LoadBalancer or ExternalName.
        #[serde(rename = "type")]
        pub type_: String,
        pub ports: Vec<ServicePort>,
        pub selector: BTreeMap<String, String>,
        #[serde(rename = "loadBalancerIP")]
        pub load_balancer_ip: String,
        pub load_balancer_source_ranges: Vec<String>,
        pub cluster_ip: String,
        pub external_name: String,
        pub ip_families: Vec<String>,
        pub ip_family_policy: Option<String>,
    }

    pub struct VirtualMachineServiceStatus {
        pub load_balancer: LoadBalancerStatus,
        pub conditions: Vec<Condition>,
    }

    pub struct LoadBalancerStatus {
        pub ingress: Vec<LoadBalancerIngress>,
    }

    pub struct LoadBalancerIngress {
        pub ip: String,
        pub hostname: String,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    pub name: String,
    pub protocol: String,
    pub port: i32,
    pub target_port: i32,
}
