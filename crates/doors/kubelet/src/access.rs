//! What a node must be allowed, as data.

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Pod};
use roost_controller::rbac::{Need, Needs, Verb};

use crate::node::LEASE_NAMESPACE;

/// Names of what is shipped: account, roles and bindings; the namespace.
pub const NAME: &str = "roost-kubelet";
pub const NAMESPACE: &str = "roost-kubelet";

/// Everything that a kubelet asks for.
pub fn needs() -> Needs {
    Needs::new([
        // Its own Node object, with its labels, taints and addresses.
        Need::on::<Node>(&[Verb::Get, Verb::Create, Verb::Patch]),
        Need::on_status::<Node>(&[Verb::Patch]),
        // Pods that are bound to it, their status and annotations, and their end.
        Need::on::<Pod>(Verb::READ),
        Need::on::<Pod>(&[Verb::Patch, Verb::Delete]),
        Need::on_status::<Pod>(&[Verb::Patch]),
        Need::new("events.k8s.io", "events", &[Verb::Create, Verb::Patch]),
        // Who asks for logs and exec, and whether they may.
        Need::on::<TokenReview>(&[Verb::Create]),
        Need::on::<SubjectAccessReview>(&[Verb::Create]),
        // With VK_TLS_CSR: its own certificate.
        Need::on::<CertificateSigningRequest>(&[Verb::Create, Verb::List, Verb::Watch]),
        // The heartbeat of the node.
        Need::on::<Lease>(&[Verb::Get, Verb::Create, Verb::Patch]).in_namespace(LEASE_NAMESPACE),
    ])
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use roost_controller::crd::to_yaml;
    use serde_json::json;

    use super::*;

    /// `ROOST_WRITE_DEPLOY=1 cargo test -p roost-kubelet --lib access` writes it anew.
    #[test]
    fn what_is_shipped_is_made_from_the_code() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/kubelet/rbac.yaml");
        let mut manifests =
            vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})];
        manifests.extend(needs().manifests(NAME, NAMESPACE));
        let wanted = to_yaml(&manifests);
        if std::env::var_os("ROOST_WRITE_DEPLOY").is_some() {
            std::fs::write(&file, &wanted).unwrap();
        }
        let is = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(is == wanted, "deploy/kubelet/rbac.yaml is not what the code says");
    }
}
