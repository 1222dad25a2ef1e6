use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::{condition, text};
use crate::api::names::{AGENT_MACHINE_LABEL, CAPI_PAUSED, NODE_POOL_ANNOTATION};
use crate::api::{OwnedVm, VsphereAgentPool};
use crate::names::label_value;

/// What is read of an AgentMachine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentMachineView {
    pub namespace: String,
    pub name: String,
    pub uid: String,
    /// `namespace/name` of its NodePool.
    pub node_pool: String,
    pub is_deleting: bool,
    pub is_paused: bool,
    pub is_ready: bool,
    /// It says that no Agent suits it.
    pub lacks_agent: bool,
    pub has_agent: bool,
    /// The name of its Agent; empty while it has none.
    pub agent: String,
    /// The value of our label in its selector.
    pub pin: Option<String>,
    /// The Machine that owns it.
    pub machine: Option<String>,
}

impl AgentMachineView {
    pub fn of(object: &DynamicObject) -> Self {
        let ready = condition(object, "Ready");
        let lacks = |kind| {
            condition(object, kind)
                .is_some_and(|(status, reason)| status == "False" && reason == "NoSuitableAgents")
        };
        let annotation = |name: &str| object.annotations().get(name).cloned().unwrap_or_default();
        let pins = object.data.pointer("/spec/agentLabelSelector/matchLabels");
        let pin = pins.and_then(|labels| labels.get(AGENT_MACHINE_LABEL)).and_then(Value::as_str);
        let owners = object.owner_references().iter();
        let agent = text(object, "/status/agentRef/name");
        let provider_id = text(object, "/spec/providerID").strip_prefix("agent://");
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            uid: object.uid().unwrap_or_default(),
            node_pool: annotation(NODE_POOL_ANNOTATION),
            is_deleting: object.metadata.deletion_timestamp.is_some(),
            is_paused: object.annotations().contains_key(CAPI_PAUSED),
            is_ready: ready.is_some_and(|(status, _)| status == "True"),
            // The summary of newer providers has a reason of its own; the condition below it still says why.
            lacks_agent: lacks("Ready") || lacks("AgentReserved"),
            has_agent: !agent.is_empty() || provider_id.is_some(),
            agent: if agent.is_empty() { provider_id.unwrap_or_default() } else { agent }
                .to_owned(),
            pin: pin.map(str::to_owned),
            machine: owners.filter(|owner| owner.kind == "Machine").map(|o| o.name.clone()).next(),
        }
    }

    pub fn belongs_to(&self, pool: &VsphereAgentPool) -> bool {
        self.namespace == pool.spec.control_plane_namespace && self.node_pool == node_pool_of(pool)
    }

    pub fn is_waiting(&self) -> bool {
        !self.is_deleting && !self.is_ready && self.lacks_agent
    }

    /// It has the Agent of another VM than this one.
    pub fn is_served_without(&self, vm: &OwnedVm) -> bool {
        let own = vm.agent_ref.as_ref().and_then(|it| it.name.as_deref());
        !self.agent.is_empty() && own != Some(self.agent.as_str())
    }

    /// The value that its selector must have.
    pub fn wanted_pin(&self) -> String {
        label_value(&self.name)
    }

    pub fn is_pinned(&self) -> bool {
        self.pin.as_deref() == Some(&self.wanted_pin())
    }
}

/// What the nodePool annotation of this pool's machines says.
pub(crate) fn node_pool_of(pool: &VsphereAgentPool) -> String {
    format!("{}/{}", pool.namespace().unwrap_or_default(), pool.spec.node_pool_ref.name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outside::agent_machines;

    fn with_conditions(conditions: &Value) -> AgentMachineView {
        let mut object = DynamicObject::new("a", &agent_machines()).within("cp");
        object.data = json!({"status": {"conditions": conditions}});
        AgentMachineView::of(&object)
    }

    #[test]
    fn a_machine_waits_by_either_summary_and_either_form_of_condition() {
        let not_found = |kind: &str| json!({"type": kind, "status": "False", "reason": "AgentNotYetFound", "message": ""});
        for (case, conditions, waits) in [
            (
                "classic summary",
                json!([{"type": "Ready", "status": "False", "severity": "Warning", "reason": "NoSuitableAgents"}]),
                true,
            ),
            (
                "newer summary",
                json!([
                {"type": "AgentReserved", "status": "False", "reason": "NoSuitableAgents", "message": "none", "lastTransitionTime": "2026-07-01T00:00:00Z"},
                not_found("AgentSpecSynced"), not_found("Installed"),
                {"type": "Ready", "status": "False", "reason": "IssuesReported", "message": "* AgentReserved: none"}]),
                true,
            ),
            (
                "ready after all",
                json!([{"type": "AgentReserved", "status": "False", "reason": "NoSuitableAgents"}, {"type": "Ready", "status": "True"}]),
                false,
            ),
            (
                "another reason",
                json!([{"type": "Ready", "status": "False", "reason": "AgentNotYetFound"}]),
                false,
            ),
            ("nothing said", json!([]), false),
            ("nonsense", json!({"type": 1}), false),
        ] {
            assert_eq!(with_conditions(&conditions).is_waiting(), waits, "{case}");
        }
    }

    #[test]
    fn odd_fields_count_as_not_set() {
        let mut object = DynamicObject::new("a", &agent_machines()).within("cp");
        object.data = json!({"spec": {"agentLabelSelector": [], "providerID": 7}, "status": {"agentRef": "x", "conditions": [1, {"type": "Ready", "status": true}]}});
        let view = AgentMachineView::of(&object);
        assert!(!view.has_agent && !view.is_ready && !view.lacks_agent && view.pin.is_none());
        object.data = json!({"spec": {"providerID": "agent://x"}});
        assert!(AgentMachineView::of(&object).has_agent);
    }
}
