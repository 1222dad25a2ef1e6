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
        let summary = self.settings.summary;
        let ready = match summary {
            Summary::Classic => "NoSuitableAgents",
            Summary::IssuesReported => "IssuesReported",
        };
        let missing = |kind, reason, severity| condition_of(summary, kind, reason, Some(severity));
        let conditions = json!([
            missing("AgentReserved", "NoSuitableAgents", "Warning"),
            missing("AgentSpecSynced", "AgentNotYetFound", "Info"),
            missing("AgentValidated", "AgentNotYetFound", "Info"),
            missing("AgentRequirementsMet", "AgentNotYetFound", "Info"),
            missing("Installed", "AgentNotYetFound", "Info"),
            missing("Ready", ready, "Warning"),
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
            "metadata": {"resourceVersion": agent.resource_version(), "labels": {REF: value}, "annotations": {REF_NAMESPACE: self.settings.control_plane}},
            "spec": {"clusterDeploymentName": {"namespace": self.settings.control_plane, "name": self.settings.cluster}},
        });
        let api = self.api(&kinds::agents(), &self.settings.namespace);
        match api.patch(&agent_name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => {}
            // Somebody has changed it since it was chosen.
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        let api = self.api(&kinds::agent_machines(), &self.settings.control_plane);
        let patch = json!({"spec": {"providerID": format!("agent://{agent_name}")}});
        api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
        let summary = self.settings.summary;
        let conditions = json!([
            condition_of(summary, "AgentReserved", "AgentReserved", None),
            condition_of(summary, "Ready", "AgentNotInstalled", Some("Info")),
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
        let summary = self.settings.summary;
        let conditions = json!([
            condition_of(summary, "AgentReserved", "AgentReserved", None),
            condition_of(summary, "Ready", "Ready", None),
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
        let api = self.api(&kinds::agents(), &self.settings.namespace);
        let Some(found) = api.get_opt(agent).await? else { return Ok(()) };
        // One that was given back may have been bound by another machine meanwhile.
        let label = found.labels().get(REF);
        if label.is_none_or(|label| *label != machine && Some(label) != object.uid().as_ref()) {
            return Ok(());
        }
        let patch =
            json!({"metadata": {"labels": {REF: null}}, "spec": {"clusterDeploymentName": null}});
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

/// A condition in the form of its time: the classic one has a severity while it is False and says something only where there is something to
/// say; the newer one has all fields of a Kubernetes condition and knows no severity. `missing` is the severity of what is lacking.
fn condition_of(summary: Summary, kind: &str, reason: &str, missing: Option<&str>) -> Value {
    let status = if missing.is_some() { "False" } else { "True" };
    let mut one = json!({"type": kind, "status": status, "reason": reason, "lastTransitionTime": "2026-07-01T00:00:00Z"});
    match (summary, missing) {
        (Summary::IssuesReported, Some(_)) => one["message"] = json!("no Agent matches"),
        (Summary::IssuesReported, None) => one["message"] = json!(""),
        (Summary::Classic, Some(severity)) => one["severity"] = json!(severity),
        (Summary::Classic, None) => {}
    }
    one
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_the_form_of_their_time() {
        for missing in [None, Some("Warning")] {
            let newer = condition_of(Summary::IssuesReported, "Ready", "IssuesReported", missing);
            for field in ["type", "status", "reason", "message", "lastTransitionTime"] {
                assert!(newer[field].is_string(), "{field} in {newer}");
            }
            assert!(newer.get("severity").is_none(), "{newer}");
            let classic = condition_of(Summary::Classic, "Ready", "NoSuitableAgents", missing);
            assert_eq!(classic["severity"].as_str(), missing, "{classic}");
            assert!(classic.get("message").is_none(), "{classic}");
        }
    }
}
