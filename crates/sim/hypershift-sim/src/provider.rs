//! The agent provider of Cluster API.

use kube::ResourceExt;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::assisted::is_connected;
use crate::kinds;
use crate::sim::{Hypershift, RefBy, Summary, text};

const REF: &str = "agentMachineRef";
const REF_NAMESPACE: &str = "agentMachineRefNamespace";

impl Hypershift {
    pub(crate) async fn provide_agents(&self) -> Result<(), kube::Error> {
        let machines = self.agent_machines().await?;
        let mut agents = self.agents().await?;
        for machine in machines.iter().filter(|it| it.metadata.deletion_timestamp.is_none()) {
            let name = machine.name_any();
            let bound = text(machine, "/status/agentRef/name").to_owned();
            if bound.is_empty() {
                let found = agents.iter().position(|agent| is_suitable(agent, machine));
                match found {
                    Some(index) => {
                        let agent = agents.remove(index);
                        self.bind(machine, &agent).await?;
                    }
                    None => self.say_waiting(machine).await?,
                }
                continue;
            }
            let since =
                *self.memory().since.entry(format!("bound/{name}")).or_insert_with(Instant::now);
            let is_ready = condition(machine, "Ready").as_deref() == Some("True");
            if !is_ready && since.elapsed() >= self.settings.installs_in {
                self.finish(machine, &bound).await?;
            }
        }
        Ok(())
    }

    async fn say_waiting(&self, machine: &DynamicObject) -> Result<(), kube::Error> {
        let is_new = self.settings.summary == Summary::IssuesReported;
        let make = |kind: &str, reason: &str, severity: &str| {
            let mut one = json!({"type": kind, "status": "False", "reason": reason, "lastTransitionTime": "2026-07-01T00:00:00Z"});
            if is_new {
                one["message"] = json!("no Agent matches");
            } else {
                one["severity"] = json!(severity);
            }
            one
        };
        let summary = if is_new { "IssuesReported" } else { "NoSuitableAgents" };
        let conditions = json!([
            make("AgentReserved", "NoSuitableAgents", "Warning"),
            make("AgentSpecSynced", "AgentNotYetFound", "Info"),
            make("Installed", "AgentNotYetFound", "Info"),
            make("Ready", summary, "Warning"),
        ]);
        if machine.data.pointer("/status/conditions") == Some(&conditions) {
            return Ok(());
        }
        self.set_status(machine, json!({"status": {"conditions": conditions}})).await
    }

    async fn bind(
        &self,
        machine: &DynamicObject,
        agent: &DynamicObject,
    ) -> Result<(), kube::Error> {
        let (name, agent_name) = (machine.name_any(), agent.name_any());
        let value = match self.settings.ref_by {
            RefBy::Name => name.clone(),
            RefBy::Uid => machine.uid().unwrap_or_default(),
        };
        let patch = json!({
            "metadata": {"labels": {REF: value}, "annotations": {REF_NAMESPACE: self.settings.control_plane}},
            "spec": {"clusterDeploymentName": {"namespace": self.settings.control_plane, "name": self.settings.cluster}},
        });
        let api = self.api(&kinds::agents(), &self.settings.namespace);
        api.patch(&agent_name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        let api = self.api(&kinds::agent_machines(), &self.settings.control_plane);
        let patch = json!({"spec": {"providerID": format!("agent://{agent_name}")}});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        let conditions = json!([
            {"type": "AgentReserved", "status": "True", "reason": "AgentReserved", "message": ""},
            {"type": "Ready", "status": "False", "reason": "AgentNotInstalled", "message": ""},
        ]);
        let reference = json!({"namespace": self.settings.namespace, "name": agent_name});
        self.memory().since.insert(format!("bound/{name}"), Instant::now());
        self.set_status(
            machine,
            json!({"status": {"agentRef": reference, "conditions": conditions}}),
        )
        .await
    }

    async fn finish(&self, machine: &DynamicObject, agent: &str) -> Result<(), kube::Error> {
        let api = self.api(&kinds::agents(), &self.settings.namespace);
        let installed = json!({"status": {"conditions": [{"type": "Connected", "status": "True", "reason": "Seen", "message": ""}, {"type": "Installed", "status": "True", "reason": "InstallationCompleted", "message": ""}]}});
        api.patch_status(agent, &PatchParams::default(), &Patch::Merge(installed)).await?;
        let conditions = json!([
            {"type": "AgentReserved", "status": "True", "reason": "AgentReserved", "message": ""},
            {"type": "Ready", "status": "True", "reason": "Ready", "message": ""},
        ]);
        self.set_status(machine, json!({"status": {"ready": true, "conditions": conditions}}))
            .await?;
        let api = self.api(&kinds::machines(), &self.settings.control_plane);
        let running = json!({"status": {"phase": "Running"}});
        api.patch_status(&machine.name_any(), &PatchParams::default(), &Patch::Merge(running))
            .await
            .map(drop)
    }

    /// Its label, its cluster: the Agent is free while the Machine is still there.
    pub(crate) async fn give_agent_back(&self, machine: &str) -> Result<(), kube::Error> {
        let api = self.api(&kinds::agent_machines(), &self.settings.control_plane);
        let Some(object) = api.get_opt(machine).await? else { return Ok(()) };
        let agent = text(&object, "/status/agentRef/name");
        if agent.is_empty() {
            return Ok(());
        }
        let patch =
            json!({"metadata": {"labels": {REF: null}}, "spec": {"clusterDeploymentName": null}});
        let api = self.api(&kinds::agents(), &self.settings.namespace);
        match api.patch(agent, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn set_status(&self, machine: &DynamicObject, status: Value) -> Result<(), kube::Error> {
        let api = self.api(&kinds::agent_machines(), &self.settings.control_plane);
        api.patch_status(&machine.name_any(), &PatchParams::default(), &Patch::Merge(status))
            .await
            .map(drop)
    }
}

fn condition(object: &DynamicObject, kind: &str) -> Option<String> {
    let all = object.data.pointer("/status/conditions")?.as_array()?;
    let found = all.iter().find(|one| one["type"] == kind)?;
    found["status"].as_str().map(str::to_owned)
}

fn is_suitable(agent: &DynamicObject, machine: &DynamicObject) -> bool {
    let selector = machine.data.pointer("/spec/agentLabelSelector/matchLabels");
    let wanted = selector.and_then(Value::as_object);
    let matches = wanted.is_none_or(|labels| {
        labels
            .iter()
            .all(|(key, value)| agent.labels().get(key).map(String::as_str) == value.as_str())
    });
    matches
        && is_connected(agent)
        && agent.metadata.deletion_timestamp.is_none()
        && !agent.labels().contains_key(REF)
        && agent.data.pointer("/spec/approved") == Some(&Value::Bool(true))
        && text(agent, "/spec/clusterDeploymentName/name").is_empty()
}
