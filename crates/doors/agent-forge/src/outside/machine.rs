use kube::ResourceExt;
use kube::api::DynamicObject;

use super::agent_machine::node_pool_of;
use super::text;
use crate::api::VsphereAgentPool;
use crate::api::names::NODE_POOL_ANNOTATION;

/// What is read of a Machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineView {
    pub namespace: String,
    pub name: String,
    pub node_pool: String,
    pub is_deleting: bool,
}

impl MachineView {
    pub fn of(object: &DynamicObject) -> Self {
        let annotation = object.annotations().get(NODE_POOL_ANNOTATION);
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            node_pool: annotation.cloned().unwrap_or_default(),
            is_deleting: object.metadata.deletion_timestamp.is_some()
                || text(object, "/status/phase") == "Deleting",
        }
    }

    pub fn belongs_to(&self, pool: &VsphereAgentPool) -> bool {
        self.namespace == pool.spec.control_plane_namespace && self.node_pool == node_pool_of(pool)
    }
}
