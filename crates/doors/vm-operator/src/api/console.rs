//! `VirtualMachineWebConsoleRequest`: a ticket for a VM's console, for whoever has the private key.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Serialize};

kind!(
    VirtualMachineWebConsoleRequest,
    "virtualmachinewebconsolerequests",
    NamespaceResourceScope,
    VirtualMachineWebConsoleRequestSpec,
    VirtualMachineWebConsoleRequestStatus
);

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VirtualMachineWebConsoleRequestSpec {
    /// The VM.
    pub name: String,
    /// A PEM block `PUBLIC KEY` that holds PKCS#1 bytes.
    pub public_key: String,
}

data! {
    pub struct VirtualMachineWebConsoleRequestStatus {
        /// The ticket's address, encrypted for the key, base64.
        pub response: String,
        pub expiry_time: Option<Time>,
        pub proxy_addr: String,
    }
}
