use std::collections::HashSet;

use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt};
use roost_fleet::Freshness;
use serde_json::{Map, Value, json};

use super::reconcile::{PlaceView, PoolReconciler, Round};
use crate::api::names::{AGENT_MACHINE_LABEL, NODEPOOL_ROLE};
use crate::api::{PoolDefaults, VsphereAgentPool};
use crate::outside::AgentView;
use crate::plan::{assign_hostnames, hostname_of};

/// What a failure to pin an AgentMachine begins with, and the reason where nothing else failed.
pub(super) const PIN_FAILED: &str = "AgentMachinePatchFailed";

impl PoolReconciler {
    /// Carries a plan out. One that fails does not keep the others from being done; each failure is told.
    pub(super) async fn apply(&self, round: &mut Round) -> Vec<String> {
        let mut failures = Vec::new();
        if round.held.is_some() {
            return failures;
        }
        for machine in round.agent_machines.iter().filter(|it| !it.is_deleting && !it.is_paused) {
            if let Err(error) = self.world.pin(machine).await {
                failures.push(Self::failure(PIN_FAILED, &error));
            }
        }
        let prepared = self.prepare_agents(round, &mut failures).await;
        self.fill_buffer(round, &mut failures).await;
        self.hint_autoscaler(round).await;
        self.clean_up(round, &mut failures).await;
        let now = self.world.now();
        for record in round.records.iter_mut().filter(|it| prepared.contains(&it.vm.name)) {
            record.prepared(now);
        }
        failures
    }

    /// Gives the names of the VMs whose Agents were prepared.
    async fn prepare_agents(&self, round: &Round, failures: &mut Vec<String>) -> Vec<String> {
        let mut prepared = Vec::new();
        let wanted: HashSet<&str> = round.plan.patches.iter().map(String::as_str).collect();
        let agents: Vec<&AgentView> =
            round.agents.iter().filter(|agent| wanted.contains(agent.name.as_str())).collect();
        let hostnames = assign_hostnames(&agents, &round.records);
        let all: Vec<&AgentView> = round.agents.iter().collect();
        let namespace = round.pool.namespace().unwrap_or_default();
        let world = &self.world;
        let api: Api<DynamicObject> =
            Api::namespaced_with(world.client.clone(), &namespace, &world.agent_kind);
        for agent in agents {
            // Without a VM of its own it is not known what it should be called.
            let Some(hostname) = hostnames.get(&agent.name) else { continue };
            let Some(record) = round.records.iter().find(|it| it.vm.name == *hostname) else {
                continue;
            };
            let hostname = hostname_of(record, agent, &all);
            let patch = preparation(&round.pool, agent, hostname, record.pin().as_deref());
            let params = PatchParams::default();
            match api.patch(&agent.name, &params, &Patch::Merge(&patch)).await {
                Ok(_) => {
                    tracing::info!(agent = agent.name, vm = %hostname, "Agent {} is prepared as {hostname}", agent.name);
                    let note = format!("Agent {} is VM {hostname}", agent.name);
                    world.events.normal(round.pool.as_ref(), "AgentPrepared", &note);
                    prepared.push(record.vm.name.clone());
                }
                Err(kube::Error::Api(status)) if status.is_not_found() => {}
                Err(error) => {
                    failures
                        .push(Self::failure(&format!("preparing Agent {}", agent.name), &error));
                }
            }
        }
        prepared
    }

    /// What the deletion of VMs in one place rests on: the vCenter's side and Kubernetes' side.
    pub(super) fn evidence(&self, round: &Round, place: &PlaceView) -> (Freshness, Freshness) {
        let world = &self.world;
        let inventory = match place.open() {
            Some(site) if world.shows(site, &place.region) => site.fleet.mirror().freshness(),
            Some(_) | None => Freshness::default(),
        };
        let items = round.agent_machines.len()
            + round.machines.len()
            + round.agents.len()
            + world.vsphere_agents_of(&round.pool).len();
        // Passes begin when every kind was listed, and watches are followed from there.
        (inventory, Freshness::complete(world.now(), items))
    }
}

/// One merge patch: labels, role, host name, approval.
fn preparation(
    pool: &VsphereAgentPool,
    agent: &AgentView,
    hostname: &str,
    pin: Option<&str>,
) -> Value {
    let mut labels: Map<String, Value> = Map::new();
    for (key, value) in &pool.spec.agent.labels {
        labels.insert(key.clone(), json!(value));
    }
    labels.insert(NODEPOOL_ROLE.to_owned(), json!(pool.role()));
    if let Some(pin) = pin {
        labels.insert(AGENT_MACHINE_LABEL.to_owned(), json!(pin));
    }
    let mut spec = Map::new();
    spec.insert("role".to_owned(), json!(pool.role()));
    if agent.hostname != hostname {
        spec.insert("hostname".to_owned(), json!(hostname));
    }
    if pool.approves() && pin.is_some() {
        spec.insert("approved".to_owned(), json!(true));
    }
    json!({"metadata": {"labels": labels}, "spec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{AgentSpec, PoolSpec};

    #[test]
    fn an_agent_is_prepared_by_one_patch() {
        let labels = [
            ("tenant", "blue"),
            (NODEPOOL_ROLE, "odd"),
            ("agent-forge.containeroo.ch/nodepool", "gp"),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let spec =
            PoolSpec { agent: AgentSpec { labels, ..AgentSpec::default() }, ..PoolSpec::default() };
        let mut pool = VsphereAgentPool::new("blue", "gp", spec);
        let patch =
            preparation(&pool, &AgentView::default(), "blue-gp-7kx2q", Some("blue-gp-7kx2q"));
        assert_eq!(
            patch,
            json!({
                "metadata": {"labels": {"tenant": "blue", "hypershift.openshift.io/nodepool-role": "worker",
                    "agent-forge.containeroo.ch/nodepool": "gp", "agent-forge.containeroo.ch/agent-machine": "blue-gp-7kx2q"}},
                "spec": {"approved": true, "role": "worker", "hostname": "blue-gp-7kx2q"},
            })
        );
        pool.spec.agent.approve = Some(false);
        let named = AgentView { hostname: "a".into(), ..AgentView::default() };
        let spare = preparation(&pool, &named, "a", None);
        assert_eq!(spare["spec"], json!({"role": "worker"}));
        assert!(spare["metadata"]["labels"].get(AGENT_MACHINE_LABEL).is_none(), "no pin");
    }
}
