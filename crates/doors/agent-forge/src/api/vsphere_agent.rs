use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

use super::names::{
    AGENT_MACHINE_LABEL, CLAIMED_BY, CREATED_FOR, FOR_ADOPTED, FOR_AGENT_MACHINE, FOR_SPARE,
    FORCE_DELETE, POOL_LABEL, PROTECT, VM_NAME,
};
use super::{NameRef, OwnedVm, VsphereAgent};

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VsphereAgentSpec {
    #[serde(default)]
    pub pool_ref: NameRef,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VsphereAgentStatus {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm: Option<OwnedVm>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<Time>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub iso_ejected: bool,
    /// What is in the drive of its VM.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub iso_path: String,
    /// Of the hardware that it was made with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub template_hash: String,
    /// Since then its VM is off and has another name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantined_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(count: &i32) -> bool {
    *count == 0
}

impl VsphereAgent {
    /// What its VM is called.
    pub fn vm_name(&self) -> String {
        let given = self.annotations().get(VM_NAME).map(|name| name.trim());
        given.filter(|name| !name.is_empty()).map_or_else(|| self.name_any(), str::to_owned)
    }

    /// The VM that is recorded. Other writers record none as one without a name.
    pub fn recorded(&self) -> Option<&OwnedVm> {
        self.status.vm.as_ref().filter(|vm| !vm.name.is_empty())
    }

    pub fn is_of_pool(&self, pool: &str) -> bool {
        self.spec.pool_ref.name == pool || self.labels().get(POOL_LABEL).is_some_and(|p| p == pool)
    }

    pub fn is_adopted(&self) -> bool {
        self.labels().get(CREATED_FOR).is_some_and(|value| value == FOR_ADOPTED)
    }

    /// Nobody uses it yet.
    pub fn is_spare(&self) -> bool {
        self.labels().get(CREATED_FOR).is_some_and(|value| value == FOR_SPARE)
    }

    /// The AgentMachine that has taken a VM that was not made for it.
    pub fn claimed_by(&self) -> Option<&str> {
        self.annotations().get(CLAIMED_BY).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The AgentMachine that it serves, if it serves one.
    pub fn agent_machine(&self) -> Option<String> {
        if self.is_spare() || self.is_adopted() {
            return None;
        }
        Some(self.claimed_by().map_or_else(|| self.vm_name(), str::to_owned))
    }

    /// The failure domain of its VM; empty where there is none.
    pub fn failure_domain(&self) -> &str {
        self.recorded().map(|vm| vm.failure_domain.as_str()).unwrap_or_default()
    }

    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    pub fn is_forced(&self) -> bool {
        self.annotations().get(FORCE_DELETE).is_some_and(|value| value == "true")
    }

    pub fn is_protected(&self) -> bool {
        self.annotations().get(PROTECT).is_some_and(|value| value == "true")
    }

    /// Whether it was made for the AgentMachine of this name. A name that is too long for a label is there as its short form.
    pub fn is_for(&self, agent_machine: &str) -> bool {
        if let Some(claimed_by) = self.claimed_by() {
            return claimed_by == agent_machine;
        }
        let label = crate::names::label_value(agent_machine);
        self.labels().get(AGENT_MACHINE_LABEL).is_some_and(|name| *name == label)
            || self.annotations().get(VM_NAME).is_some_and(|name| name == agent_machine)
            || self.labels().get(CREATED_FOR).is_some_and(|value| value == FOR_AGENT_MACHINE)
                && self.name_any() == agent_machine
    }
}
