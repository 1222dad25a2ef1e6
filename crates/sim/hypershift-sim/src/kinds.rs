//! The kinds that others own, as loosely defined as a test needs them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::json;

const KINDS: [(&str, &str, &str); 7] = [
    ("capi-provider.agent-install.openshift.io", "AgentMachine", "agentmachines"),
    ("cluster.x-k8s.io", "Machine", "machines"),
    ("agent-install.openshift.io", "InfraEnv", "infraenvs"),
    ("agent-install.openshift.io", "Agent", "agents"),
    ("cluster.x-k8s.io", "MachineDeployment", "machinedeployments"),
    ("hypershift.openshift.io", "NodePool", "nodepools"),
    ("hypershift.openshift.io", "HostedCluster", "hostedclusters"),
];

fn resource(kind: &str) -> ApiResource {
    let found = KINDS.iter().find(|(_, name, _)| *name == kind);
    let (group, kind, plural) = found.copied().unwrap_or(KINDS[0]);
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1beta1", kind), plural)
}

pub(crate) fn agent_machines() -> ApiResource {
    resource("AgentMachine")
}

pub(crate) fn machines() -> ApiResource {
    resource("Machine")
}

pub(crate) fn infra_envs() -> ApiResource {
    resource("InfraEnv")
}

pub(crate) fn agents() -> ApiResource {
    resource("Agent")
}

pub(crate) fn machine_deployments() -> ApiResource {
    resource("MachineDeployment")
}

pub(crate) fn node_pools() -> ApiResource {
    resource("NodePool")
}

/// Permissive definitions of all of them, with the status apart.
pub fn neighbour_crds() -> Vec<CustomResourceDefinition> {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = |(group, kind, plural): &(&str, &str, &str)| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": "v1beta1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open, "status": open}}}}],
            },
        })
    };
    KINDS.iter().filter_map(|kind| serde_json::from_value(definition(kind)).ok()).collect()
}
