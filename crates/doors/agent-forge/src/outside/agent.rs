use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;

use super::{condition, text};
use crate::api::names::{
    AGENT_MACHINE_LABEL, AGENT_MACHINE_REF, INFRA_ENV_LABEL, NODEPOOL_LABEL, NODEPOOL_ROLE,
};
use crate::identity::{self, Identity};

/// What is read of an Agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentView {
    pub namespace: String,
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub infra_envs: Vec<String>,
    pub is_deleting: bool,
    pub approved: bool,
    pub role: String,
    /// What its spec says, which may be nothing.
    pub hostname: String,
    /// What it reports.
    pub inventory_hostname: String,
    pub cluster: String,
    pub identity: Identity,
    pub is_installed: bool,
}

impl AgentView {
    pub fn of(object: &DynamicObject) -> Self {
        let labels = object.labels().clone();
        let owners = object.owner_references().iter();
        let owners = owners.filter(|owner| owner.kind == "InfraEnv").map(|o| o.name.clone());
        let infra_envs = labels.get(INFRA_ENV_LABEL).cloned().into_iter().chain(owners).collect();
        let cards = object.data.pointer("/status/inventory/interfaces").and_then(Value::as_array);
        let mac = |card: &Value| {
            let of = |field: &str| card.get(field).and_then(Value::as_str).map(identity::mac);
            of("macAddress").filter(|mac| !mac.is_empty()).or_else(|| of("mac"))
        };
        let macs = cards.into_iter().flatten().filter_map(mac).filter(|mac| !mac.is_empty());
        let serial = text(object, "/status/inventory/systemVendor/serialNumber");
        let name = object.name_any();
        let uuid = identity::uuid(serial);
        // Without a serial number the name tells: it is the uuid that the guest's kernel prints.
        let uuid = if uuid.is_empty() { identity::uuid(&name) } else { uuid };
        let approved = object.data.pointer("/spec/approved").and_then(Value::as_bool);
        Self {
            namespace: object.namespace().unwrap_or_default(),
            infra_envs,
            is_deleting: object.metadata.deletion_timestamp.is_some(),
            approved: approved.unwrap_or(false),
            role: text(object, "/spec/role").to_owned(),
            hostname: text(object, "/spec/hostname").to_owned(),
            inventory_hostname: text(object, "/status/inventory/hostname").to_owned(),
            cluster: text(object, "/spec/clusterDeploymentName/name").to_owned(),
            identity: Identity { uuid, macs: macs.collect(), is_settled: false },
            is_installed: condition(object, "Installed")
                .is_some_and(|(status, _)| status == "True"),
            labels,
            name,
        }
    }

    fn label(&self, name: &str) -> &str {
        self.labels.get(name).map(String::as_str).unwrap_or_default()
    }

    /// What the provider wrote: name or uid of an AgentMachine.
    pub fn machine_label(&self) -> &str {
        self.label(AGENT_MACHINE_REF)
    }

    pub fn pin(&self) -> &str {
        self.label(AGENT_MACHINE_LABEL)
    }

    pub fn nodepool(&self) -> &str {
        self.label(NODEPOOL_LABEL)
    }

    pub fn role_label(&self) -> &str {
        self.label(NODEPOOL_ROLE)
    }

    pub fn is_bound(&self) -> bool {
        !self.machine_label().is_empty() || !self.cluster.is_empty()
    }

    pub fn observed_hostname(&self) -> &str {
        if self.hostname.is_empty() { &self.inventory_hostname } else { &self.hostname }
    }
}
