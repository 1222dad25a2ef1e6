//! What this door must be allowed, as data. The names are those of the upstream operator.

use k8s_openapi::api::core::v1::Secret;
use kube::api::ApiResource;
use roost_controller::rbac::{Names, Need, Needs, Verb};

use crate::api::names::LEASE;
use crate::api::{VsphereAgent, VsphereAgentPool};
use crate::outside;

pub const NAMESPACE: &str = "agent-forge-operator-system";

/// Of the account, the roles and their bindings.
pub fn names() -> Names {
    let name = |part: &str| format!("agent-forge-operator-{part}");
    Names {
        account: name("controller-manager"),
        cluster_role: name("manager-role"),
        cluster_role_binding: name("manager-rolebinding"),
        role: name("leader-election-role"),
        role_binding: name("leader-election-rolebinding"),
    }
}

/// Everything that the controllers and the metrics ask for.
pub fn needs() -> Needs {
    let on = |kind: ApiResource, verbs: &[Verb]| Need::new(&kind.group, &kind.plural, verbs);
    // Whatever version of Machines is served.
    let (machines, deployments) =
        (outside::machines(outside::V1BETA1), outside::machine_deployments(outside::V1BETA1));
    Needs::new([
        Need::on::<VsphereAgentPool>(Verb::READ),
        Need::on::<VsphereAgentPool>(&[Verb::Patch]),
        Need::on_status::<VsphereAgentPool>(&[Verb::Patch]),
        // For the owner reference that keeps a pool until its VsphereAgents are gone.
        Need::new(crate::api::names::GROUP, "vsphereagentpools/finalizers", &[Verb::Update])
            .for_admission(),
        Need::on::<VsphereAgent>(Verb::READ),
        Need::on::<VsphereAgent>(&[Verb::Create, Verb::Patch, Verb::Delete]),
        Need::on_status::<VsphereAgent>(&[Verb::Patch]),
        on(outside::agent_machines(), Verb::READ),
        on(outside::agent_machines(), &[Verb::Patch]),
        on(machines, Verb::READ),
        on(outside::agents(), Verb::READ),
        on(outside::agents(), &[Verb::Patch, Verb::Delete]),
        on(outside::infra_envs(), Verb::READ),
        // Whether a NodePool is paused, and hints for the autoscaler. Without these rights a pool works, and knows of no pause.
        on(outside::node_pools(), &[Verb::Get]),
        on(deployments, &[Verb::List, Verb::Patch]),
        // Logins.
        Need::on::<Secret>(&[Verb::Get]),
    ])
    .with_runtime(LEASE)
    .with_reviews()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use roost_controller::crd::to_yaml;

    use super::*;

    /// `ROOST_WRITE_DEPLOY=1 cargo test -p roost-agent-forge --lib access` writes it anew.
    #[test]
    fn what_is_shipped_is_made_from_the_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/agent-forge");
        let wanted = to_yaml(&needs().manifests(names(), NAMESPACE));
        let file = folder.join("rbac.yaml");
        if std::env::var_os("ROOST_WRITE_DEPLOY").is_some() {
            std::fs::write(&file, &wanted).unwrap();
        }
        let is = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(is == wanted, "deploy/agent-forge/rbac.yaml is not what the code says");
        let deployment = std::fs::read_to_string(folder.join("deployment.yaml")).unwrap();
        let account = format!("serviceAccountName: {}\n", names().account);
        assert!(deployment.contains(&account), "{account}");
    }
}
