//! What this door must be allowed, as data.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Endpoints, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use roost_controller::rbac::{Need, Needs, Verb};

use crate::api::{
    ClusterVirtualMachineImage, CnsNodeVmAttachment, VirtualMachine, VirtualMachineClass,
    VirtualMachineGroup, VirtualMachineImage, VirtualMachineImageCache, VirtualMachineReplicaSet,
    VirtualMachineService, VirtualMachineSetResourcePolicy, VirtualMachineSnapshot,
    VirtualMachineWebConsoleRequest,
};

/// The name of the lease, which the upstream controller has, too: while one of them leads, the other waits.
pub const LEASE: &str = "vmoperator-controller-manager-runtime";

/// Names of what is shipped: account, roles and webhook configurations; the Service and the Secret of the webhooks; the namespace.
pub const NAME: &str = "roost-vm-operator";
pub const WEBHOOK: &str = "roost-vm-operator-webhook";
pub const NAMESPACE: &str = "vmop-system";

/// Everything that the controllers and the webhooks ask for.
pub fn needs() -> Needs {
    let write: &[Verb] = &[Verb::Patch];
    let own: &[Verb] = &[Verb::Create, Verb::Delete];
    let kinds = [
        Need::on::<VirtualMachine>(Verb::READ),
        Need::on::<VirtualMachine>(write),
        // A replica set makes and deletes VMs.
        Need::on::<VirtualMachine>(own),
        Need::on_status::<VirtualMachine>(write),
        Need::on::<VirtualMachineClass>(Verb::READ),
        Need::on::<VirtualMachineImage>(Verb::READ),
        Need::on::<VirtualMachineImage>(own),
        Need::on_status::<VirtualMachineImage>(write),
        Need::on::<ClusterVirtualMachineImage>(Verb::READ),
        Need::on::<ClusterVirtualMachineImage>(own),
        Need::on_status::<ClusterVirtualMachineImage>(write),
        Need::on::<VirtualMachineImageCache>(Verb::READ),
        Need::on::<VirtualMachineImageCache>(own).in_own_namespace(),
        Need::on::<VirtualMachineImageCache>(write).in_own_namespace(),
        Need::on_status::<VirtualMachineImageCache>(write).in_own_namespace(),
        Need::on::<VirtualMachineSnapshot>(Verb::READ),
        Need::on::<VirtualMachineSnapshot>(write),
        Need::on_status::<VirtualMachineSnapshot>(write),
        Need::on::<VirtualMachineGroup>(Verb::READ),
        Need::on::<VirtualMachineGroup>(write),
        Need::on_status::<VirtualMachineGroup>(write),
        Need::on::<VirtualMachineSetResourcePolicy>(Verb::READ),
        Need::on::<VirtualMachineSetResourcePolicy>(write),
        Need::on_status::<VirtualMachineSetResourcePolicy>(write),
        Need::on::<VirtualMachineService>(Verb::READ),
        Need::on::<VirtualMachineService>(write),
        Need::on_status::<VirtualMachineService>(write),
        Need::on::<VirtualMachineReplicaSet>(Verb::READ),
        Need::on::<VirtualMachineReplicaSet>(write),
        Need::on_status::<VirtualMachineReplicaSet>(write),
        Need::on::<VirtualMachineWebConsoleRequest>(Verb::READ),
        Need::on::<VirtualMachineWebConsoleRequest>(write),
        Need::on::<VirtualMachineWebConsoleRequest>(&[Verb::Delete]),
        Need::on_status::<VirtualMachineWebConsoleRequest>(write),
    ];
    let others = [
        // Bootstrap data.
        Need::on::<Secret>(Verb::READ),
        Need::on::<PersistentVolumeClaim>(Verb::READ),
        // Disks of claims are attached by the CSI driver.
        Need::on::<CnsNodeVmAttachment>(&[Verb::Get, Verb::Create, Verb::Delete]),
        Need::on::<StorageClass>(Verb::READ),
        Need::on::<Service>(Verb::READ),
        Need::on::<Service>(own),
        Need::on::<Service>(write),
        Need::on::<Endpoints>(Verb::READ),
        Need::on::<Endpoints>(own),
        Need::on::<Endpoints>(write),
        // How the vCenter is reached, what guests are told of DNS, and the descriptors of images.
        Need::on::<ConfigMap>(Verb::READ).in_own_namespace(),
        Need::on::<ConfigMap>(&[Verb::Create, Verb::Patch]).in_own_namespace(),
        // The certificate of the webhooks, and where its authority is written.
        Need::on::<Secret>(&[Verb::Create]).in_own_namespace(),
        Need::on::<Secret>(&[Verb::Update]).named(&[WEBHOOK]).in_own_namespace(),
        Need::on::<MutatingWebhookConfiguration>(&[Verb::Get, Verb::Patch]).named(&[NAME]),
        Need::on::<ValidatingWebhookConfiguration>(&[Verb::Get, Verb::Patch]).named(&[NAME]),
    ];
    Needs::new(kinds.into_iter().chain(others)).with_runtime(LEASE).with_reviews()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use roost_controller::crd::{crds_to_yaml, to_yaml};

    use super::*;
    use crate::api::definitions;
    use crate::webhook::configurations;

    /// `ROOST_WRITE_DEPLOY=1 cargo test -p roost-vm-operator --lib access` writes them anew.
    #[test]
    fn what_is_shipped_is_made_from_the_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/vm-operator");
        for (name, wanted) in [
            ("crds.yaml", crds_to_yaml(&definitions().unwrap())),
            ("rbac.yaml", to_yaml(&needs().manifests(NAME, NAMESPACE))),
            ("webhooks.yaml", to_yaml(&configurations(NAME, NAMESPACE, WEBHOOK))),
        ] {
            let file = folder.join(name);
            if std::env::var_os("ROOST_WRITE_DEPLOY").is_some() {
                std::fs::write(&file, &wanted).unwrap();
            }
            let is = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(is == wanted, "deploy/vm-operator/{name} is not what the code says");
        }
        let deployment = std::fs::read_to_string(folder.join("deployment.yaml")).unwrap();
        for name in [format!("serviceAccountName: {NAME}\n"), format!("  name: {WEBHOOK}\n")] {
            assert!(deployment.contains(&name), "{name}");
        }
    }

    #[test]
    fn secrets_are_read_and_only_the_webhooks_own_is_written() {
        let manifests = needs().manifests("vm-operator", "roost");
        let role = manifests.iter().find(|manifest| manifest["kind"] == "ClusterRole").unwrap();
        let rules = role["rules"].as_array().unwrap();
        let of = |resource: &str| {
            let named = rules.iter().filter(|rule| rule["resources"][0] == resource);
            let verbs =
                named.flat_map(|rule| rule["verbs"].as_array().cloned().unwrap_or_default());
            verbs.map(|verb| verb.as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of("secrets"), ["get", "list", "watch"]);
        assert_eq!(of("virtualmachineclasses"), ["get", "list", "watch"]);
        assert_eq!(of("virtualmachines/status"), ["patch"]);
        let own = manifests.iter().find(|manifest| manifest["kind"] == "Role").unwrap();
        let of_secrets: Vec<_> = own["rules"].as_array().unwrap().iter().collect();
        let of_secrets = of_secrets.iter().filter(|rule| rule["resources"][0] == "secrets");
        for rule in of_secrets {
            let is_create = rule["verbs"] == serde_json::json!(["create"]);
            assert!(is_create || rule["resourceNames"] == serde_json::json!([WEBHOOK]), "{rule}");
        }
    }
}
