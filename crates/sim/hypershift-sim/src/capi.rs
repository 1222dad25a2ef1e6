//! Cluster API: a Machine and an AgentMachine for each node that is wanted.

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Resource, ResourceExt};
use serde_json::json;
use tokio::time::Instant;

use crate::kinds;
use crate::sim::{Hypershift, NODE_POOL, text};

const HOOK: &str = "hypershift-sim/pre-terminate";

impl Hypershift {
    pub(crate) async fn keep_machines(&self) -> Result<(), kube::Error> {
        let machines = self.machines().await?;
        let (going, live): (Vec<_>, Vec<_>) =
            machines.into_iter().partition(|it| it.metadata.deletion_timestamp.is_some());
        for _ in live.len()..self.wanted() {
            self.make_machine().await?;
        }
        let mut surplus = live.len().saturating_sub(self.wanted());
        if surplus > 0 {
            // Those that are not ready yet go first, as a MachineSet does it.
            let ready = |machine: &&DynamicObject| text(machine, "/status/phase") == "Running";
            let (ready, unready): (Vec<_>, Vec<_>) = live.iter().partition(ready);
            for machine in unready.into_iter().chain(ready) {
                if surplus == 0 {
                    break;
                }
                surplus -= 1;
                let api = self.api(&kinds::machines(), &self.settings.control_plane);
                api.delete(&machine.name_any(), &DeleteParams::default()).await?;
            }
        }
        for machine in going {
            self.end_machine(&machine).await?;
        }
        Ok(())
    }

    async fn make_machine(&self) -> Result<(), kube::Error> {
        let number = {
            let mut memory = self.memory();
            memory.made += 1;
            memory.made
        };
        let name = format!("{}-{number:04}", self.settings.node_pool);
        let annotations = [(NODE_POOL.to_owned(), self.node_pool())];
        let mut machine = DynamicObject::new(&name, &kinds::machines())
            .within(&self.settings.control_plane)
            .data(json!({"spec": {"clusterName": self.settings.cluster}}));
        machine.metadata.annotations = Some(annotations.clone().into());
        machine.metadata.finalizers = Some(vec![HOOK.to_owned()]);
        let api = self.api(&kinds::machines(), &self.settings.control_plane);
        let made = match api.create(&PostParams::default(), &machine).await {
            Ok(made) => made,
            // Of an earlier run.
            Err(kube::Error::Api(status)) if status.is_already_exists() => return Ok(()),
            Err(error) => return Err(error),
        };
        let selector: serde_json::Map<_, _> = self
            .settings
            .agent_labels
            .iter()
            .map(|(key, value)| (key.clone(), json!(value)))
            .collect();
        let mut agent_machine = DynamicObject::new(&name, &kinds::agent_machines())
            .within(&self.settings.control_plane)
            .data(json!({"spec": {"agentLabelSelector": {"matchLabels": selector}}}));
        agent_machine.metadata.annotations = Some(annotations.into());
        agent_machine.metadata.owner_references =
            made.controller_owner_ref(&kinds::machines()).map(|owner| vec![owner]);
        let api = self.api(&kinds::agent_machines(), &self.settings.control_plane);
        api.create(&PostParams::default(), &agent_machine).await.map(drop)
    }

    /// The hook gives the Agent back first; then the AgentMachine goes, then the Machine.
    async fn end_machine(&self, machine: &DynamicObject) -> Result<(), kube::Error> {
        let name = machine.name_any();
        let since = *self.memory().since.entry(format!("end/{name}")).or_insert_with(Instant::now);
        self.give_agent_back(&name).await?;
        if since.elapsed() < self.settings.deletes_in {
            return Ok(());
        }
        let api = self.api(&kinds::agent_machines(), &self.settings.control_plane);
        match api.delete(&name, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => return Err(error),
        }
        let api = self.api(&kinds::machines(), &self.settings.control_plane);
        let patch = json!({"metadata": {"finalizers": null}});
        match api.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
