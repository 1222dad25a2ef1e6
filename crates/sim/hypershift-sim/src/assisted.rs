//! The assisted service: a host that booted a discovery ISO becomes an Agent.

use std::fmt::Debug;
use std::pin::Pin;

use kube::ResourceExt;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::Instant;

use crate::kinds;
use crate::sim::{Hypershift, text};

/// What a VM booted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    pub vm: String,
    /// As its firmware shows it.
    pub uuid: String,
    pub macs: Vec<String>,
    /// The image, if it was one.
    pub iso: Option<String>,
}

/// A look at what runs; `false` if nobody answered.
pub type Looking<'a> = Pin<Box<dyn Future<Output = bool> + Send + 'a>>;

/// Who knows what runs.
pub trait Guests: Debug + Send + Sync + 'static {
    /// Brings the other answers up to date. It is awaited after the Agents were listed: a host that went before its Agent did is then known to be
    /// gone, and does not register again.
    fn look(&self) -> Looking<'_> {
        Box::pin(std::future::ready(true))
    }

    /// All boots so far, oldest first.
    fn boots(&self) -> Vec<Boot>;

    /// A host that is powered off or gone does not run.
    fn is_running(&self, uuid: &str) -> bool;
}

/// The other byte order: what the guest's kernel prints.
fn swapped(uuid: &str) -> String {
    let parts: Vec<&str> = uuid.split('-').collect();
    let turn = |part: &str| -> String {
        part.as_bytes().chunks(2).rev().map(|pair| String::from_utf8_lossy(pair)).collect()
    };
    let turned = parts.iter().enumerate();
    turned
        .map(|(index, part)| if index < 3 { turn(part) } else { (*part).to_owned() })
        .collect::<Vec<_>>()
        .join("-")
}

pub(crate) fn is_connected(agent: &DynamicObject) -> bool {
    let all = agent.data.pointer("/status/conditions").and_then(|all| all.as_array());
    all.into_iter().flatten().any(|one| one["type"] == "Connected" && one["status"] == "True")
}

/// As the DMI table has it: `VMware-42 32 ...`.
fn serial(uuid: &str) -> String {
    let digits: String = uuid.chars().filter(|c| *c != '-').collect();
    let pairs: Vec<String> = digits
        .as_bytes()
        .chunks(2)
        .map(|pair| String::from_utf8_lossy(pair).into_owned())
        .collect();
    let (first, second) = pairs.split_at(pairs.len() / 2);
    format!("VMware-{}-{}", first.join(" "), second.join(" "))
}

impl Hypershift {
    pub(crate) async fn register_agents(&self) -> Result<(), kube::Error> {
        let known = self.agents().await?;
        if !self.guests.look().await {
            return Ok(());
        }
        let boots = self.guests.boots();
        let read = {
            let mut memory = self.memory();
            let read = memory.boots_read.min(boots.len());
            for boot in &boots[read..] {
                let is_ours = boot.iso.as_deref().is_some_and(|iso| self.isos.has_offered(iso));
                if is_ours {
                    memory.booted.entry(boot.uuid.clone()).or_insert_with(Instant::now);
                }
            }
            memory.boots_read = boots.len();
            memory.booted.clone()
        };
        self.notice_disconnected(&known, &boots).await?;
        for (uuid, since) in read {
            let Some(boot) = boots.iter().rev().find(|boot| boot.uuid == uuid) else { continue };
            let is_due = since.elapsed() >= self.settings.registers_after;
            let name = swapped(&uuid);
            let is_there = known.iter().any(|agent| agent.name_any() == name);
            if is_due && !is_there && self.guests.is_running(&uuid) && self.is_in_reach(boot) {
                self.register(&name, boot).await?;
            }
        }
        Ok(())
    }

    /// A host that does not run any more is not connected, so nobody binds its Agent.
    async fn notice_disconnected(
        &self,
        known: &[DynamicObject],
        boots: &[Boot],
    ) -> Result<(), kube::Error> {
        for agent in known {
            let name = agent.name_any();
            let Some(boot) = boots.iter().rev().find(|boot| swapped(&boot.uuid) == name) else {
                continue;
            };
            let is_running = self.guests.is_running(&boot.uuid);
            if is_connected(agent) == is_running {
                continue;
            }
            let mut conditions = agent
                .data
                .pointer("/status/conditions")
                .and_then(|all| all.as_array())
                .cloned()
                .unwrap_or_default();
            conditions.retain(|one| one["type"] != "Connected");
            let status = if is_running { "True" } else { "False" };
            conditions.push(
                json!({"type": "Connected", "status": status, "reason": "Seen", "message": ""}),
            );
            let patch = json!({"status": {"conditions": conditions}});
            let api = self.api(&kinds::agents(), &self.settings.namespace);
            match api.patch_status(&name, &PatchParams::default(), &Patch::Merge(patch)).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Only hosts that this NodePool's InfraEnv has an image of; the image says which by its path.
    fn is_in_reach(&self, boot: &Boot) -> bool {
        let namespace = format!("/{}/", self.settings.namespace);
        boot.iso
            .as_deref()
            .is_some_and(|iso| iso.contains(&namespace) || !iso.contains("agent-forge/"))
    }

    async fn register(&self, name: &str, boot: &Boot) -> Result<(), kube::Error> {
        let mut agent = DynamicObject::new(name, &kinds::agents())
            .within(&self.settings.namespace)
            .data(json!({"spec": {"approved": false, "role": ""}}));
        let mut labels: std::collections::BTreeMap<String, String> =
            self.settings.agent_labels.iter().cloned().collect();
        labels.insert(
            "infraenvs.agent-install.openshift.io".to_owned(),
            self.settings.infra_env.clone(),
        );
        agent.metadata.labels = Some(labels);
        let api = self.api(&kinds::agents(), &self.settings.namespace);
        let made = match api.create(&PostParams::default(), &agent).await {
            Ok(made) => made,
            Err(kube::Error::Api(status)) if status.is_already_exists() => return Ok(()),
            Err(error) => return Err(error),
        };
        let cards: Vec<_> = boot
            .macs
            .iter()
            .map(|mac| json!({"name": "ens192", "macAddress": mac.to_lowercase()}))
            .collect();
        let hostname =
            boot.macs.first().map(|mac| mac.to_lowercase().replace(':', "-")).unwrap_or_default();
        let status = json!({"status": {
            "inventory": {"hostname": hostname, "interfaces": cards,
                "systemVendor": {"manufacturer": "VMware, Inc.", "serialNumber": serial(&boot.uuid)}},
            "conditions": [{"type": "Connected", "status": "True", "reason": "AgentIsConnected", "message": ""}],
        }});
        debug_assert!(text(&made, "/spec/hostname").is_empty());
        api.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_shows_its_uuid_in_both_orders() {
        let uuid = "42324d21-274c-03a8-b6fe-f9e8edb55e33";
        assert_eq!(swapped(uuid), "214d3242-4c27-a803-b6fe-f9e8edb55e33");
        assert_eq!(serial(uuid), "VMware-42 32 4d 21 27 4c 03 a8-b6 fe f9 e8 ed b5 5e 33");
    }
}
