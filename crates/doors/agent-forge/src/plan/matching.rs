use kube::ResourceExt;

use super::merge::Record;
use crate::api::names::{NODEPOOL_LABEL, NODEPOOL_ROLE};
use crate::api::{OwnedVm, PoolDefaults, VsphereAgent, VsphereAgentPool};
use crate::identity::{conflict, matches_mac, matches_uuid};
use crate::outside::AgentView;

/// What VsphereAgents of other pools in the namespace have.
#[derive(Debug, Clone, Default)]
pub struct Claims(Vec<(String, OwnedVm)>);

impl Claims {
    pub fn of<'a>(pool: &str, agents: impl IntoIterator<Item = &'a VsphereAgent>) -> Self {
        let others = agents.into_iter().filter(|it| !it.is_deleting() && !it.is_of_pool(pool));
        let claim = |it: &VsphereAgent| {
            let vm = it.recorded().cloned().unwrap_or_else(|| OwnedVm::named(it.vm_name()));
            (it.name_any(), vm)
        };
        Self(others.map(claim).collect())
    }

    fn has(&self, agent: &AgentView) -> bool {
        self.0.iter().any(|(name, vm)| {
            refers_to(vm, agent)
                || matches_uuid(vm, &agent.identity)
                || matches_mac(vm, &agent.identity)
                || !conflict(vm, &agent.identity)
                    && [vm.name.as_str(), name].contains(&agent.observed_hostname())
        })
    }
}

pub(super) fn refers_to(vm: &OwnedVm, agent: &AgentView) -> bool {
    vm.agent_ref.as_ref().and_then(|it| it.name.as_deref()) == Some(agent.name.as_str())
}

/// Whether an Agent is one of these VMs.
pub(super) fn is_associated<'a>(
    agent: &AgentView,
    vms: impl IntoIterator<Item = &'a Record>,
) -> bool {
    associated(agent, vms).is_some()
}

/// The first of these VMs that an Agent is.
pub(super) fn associated<'a>(
    agent: &AgentView,
    vms: impl IntoIterator<Item = &'a Record>,
) -> Option<&'a Record> {
    vms.into_iter().filter(|record| !record.vm.name.is_empty()).find(|record| {
        let vm = &record.vm;
        matches_uuid(vm, &agent.identity)
            || matches_mac(vm, &agent.identity)
            || !conflict(vm, &agent.identity)
                && (refers_to(vm, agent) || vm.name == agent.observed_hostname())
    })
}

/// An Agent whose uuid is that of a VM of ours is that VM and no other: neither its cards nor its host name count any more. Two vCenters may give the
/// same address to two cards, and an Agent that another AgentMachine got keeps the host name of the one that it was prepared for.
pub fn settle_identities(agents: &mut [AgentView], owned: &[Record]) {
    for agent in agents {
        if owned.iter().any(|record| matches_uuid(&record.vm, &agent.identity)) {
            agent.identity.macs.clear();
            agent.identity.is_settled = true;
        }
    }
}

/// The Agents of a pool. One whose identity is that of a VM of ours needs no labels to be found.
pub fn matching_agents<'a>(
    pool: &VsphereAgentPool,
    agents: &'a [AgentView],
    owned: &[Record],
    claims: &Claims,
) -> Vec<&'a AgentView> {
    let is_ours = |agent: &AgentView| {
        owned.iter().filter(|record| record.managed).any(|record| {
            matches_uuid(&record.vm, &agent.identity) || matches_mac(&record.vm, &agent.identity)
        })
    };
    let has_labels = |agent: &AgentView| {
        let asked = pool.spec.agent.labels.iter();
        asked
            .filter(|(key, _)| *key != NODEPOOL_ROLE && *key != NODEPOOL_LABEL)
            .all(|(key, value)| agent.labels.get(key) == Some(value))
    };
    let is_of_discriminator = |agent: &AgentView| match (pool.discriminator(), agent.nodepool()) {
        (None, "") => true,
        (None, _) => false,
        (Some(_), "") => !agent.is_bound() && is_associated(agent, owned),
        (Some(wanted), has) => wanted == has,
    };
    let cluster = &pool.spec.hosted_cluster_ref.name;
    let matches = |agent: &&AgentView| {
        Some(agent.namespace.as_str()) == pool.metadata.namespace.as_deref()
            && !agent.is_deleting
            && agent.infra_envs.contains(&pool.spec.infra_env_ref.name)
            && (agent.cluster.is_empty() || agent.cluster == *cluster)
            && (is_ours(agent) || has_labels(agent))
            && is_of_discriminator(agent)
            && !claims.has(agent)
    };
    agents.iter().filter(matches).collect()
}
