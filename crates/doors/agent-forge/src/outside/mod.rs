//! The kinds of others, read as they come: a field that is absent or of the wrong type counts as not set.

mod agent;
mod agent_machine;
mod infra_env;
mod machine;
pub(crate) mod trim;

use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde_json::Value;

pub use agent::AgentView;
pub use agent_machine::AgentMachineView;
pub(crate) use agent_machine::node_pool_of;
pub use infra_env::InfraEnvView;
pub use machine::MachineView;

pub const AGENT_MACHINE_GROUP: &str = "capi-provider.agent-install.openshift.io";
pub const MACHINE_GROUP: &str = "cluster.x-k8s.io";
pub const AGENT_GROUP: &str = "agent-install.openshift.io";
/// What all of them are served as; Machines may be served in other versions too.
pub const V1BETA1: &str = "v1beta1";

pub fn agent_machines() -> ApiResource {
    resource(AGENT_MACHINE_GROUP, V1BETA1, "AgentMachine", "agentmachines")
}

pub fn machines(version: &str) -> ApiResource {
    resource(MACHINE_GROUP, version, "Machine", "machines")
}

pub fn agents() -> ApiResource {
    resource(AGENT_GROUP, V1BETA1, "Agent", "agents")
}

pub fn infra_envs() -> ApiResource {
    resource(AGENT_GROUP, V1BETA1, "InfraEnv", "infraenvs")
}

pub fn node_pools() -> ApiResource {
    resource("hypershift.openshift.io", V1BETA1, "NodePool", "nodepools")
}

pub fn machine_deployments(version: &str) -> ApiResource {
    resource(MACHINE_GROUP, version, "MachineDeployment", "machinedeployments")
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// A text below `path`; empty if there is none.
fn text<'a>(object: &'a DynamicObject, path: &str) -> &'a str {
    object.data.pointer(path).and_then(Value::as_str).unwrap_or_default().trim()
}

/// Status and reason of a condition. Both forms are read: with `severity`, and with a required `message`.
fn condition<'a>(object: &'a DynamicObject, kind: &str) -> Option<(&'a str, &'a str)> {
    let all = object.data.pointer("/status/conditions")?.as_array()?;
    let found = all.iter().find(|one| one.get("type").and_then(Value::as_str) == Some(kind))?;
    let field = |name| found.get(name).and_then(Value::as_str).unwrap_or_default();
    Some((field("status"), field("reason")))
}
