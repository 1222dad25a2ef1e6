use std::sync::Arc;

use roost_controller::Key;

use super::world::{World, lock};
use crate::api::{DomainStatus, VsphereAgent, VsphereAgentPool};
use crate::plan::{DomainUse, choose_domain};

/// One place of a pool: all of it, or one of its failure domains.
#[derive(Debug, Clone)]
pub(crate) struct Region {
    /// The pool as if this were all of it.
    pub(crate) pool: Arc<VsphereAgentPool>,
    /// Empty for the pool itself.
    pub(crate) domain: String,
}

/// The pool and the domain.
pub(crate) type RegionKey = (Key, String);

impl Region {
    pub(crate) fn of(pool: &Arc<VsphereAgentPool>, domain: &str) -> Option<Self> {
        if domain.is_empty() {
            return Some(Self::whole(pool));
        }
        let pool = Arc::new(pool.in_domain(domain)?);
        Some(Self { pool, domain: domain.to_owned() })
    }

    /// The pool without regard to failure domains.
    pub(crate) fn whole(pool: &Arc<VsphereAgentPool>) -> Self {
        Self { pool: Arc::clone(pool), domain: String::new() }
    }

    /// Where the VM of this object is. A domain that the pool does not name any more is looked for where the pool itself is.
    pub(crate) fn of_agent(pool: &Arc<VsphereAgentPool>, agent: &VsphereAgent) -> Self {
        Self::of(pool, agent.failure_domain()).unwrap_or_else(|| Self::whole(pool))
    }

    /// Where VMs of a pool are made, and where there are some from before.
    pub(crate) fn all(pool: &Arc<VsphereAgentPool>, agents: &[Arc<VsphereAgent>]) -> Vec<Self> {
        let names = pool.domain_names();
        let mut all: Vec<_> = names.iter().filter_map(|name| Self::of(pool, name)).collect();
        let is_elsewhere = |agent: &Arc<VsphereAgent>| {
            agent.recorded().is_some_and(|vm| !names.contains(&vm.failure_domain.as_str()))
        };
        if !names.contains(&"") && agents.iter().any(is_elsewhere) {
            all.push(Self::whole(pool));
        }
        all
    }

    pub(crate) fn key(&self) -> RegionKey {
        (Key::of(self.pool.as_ref()), self.domain.clone())
    }

    /// New VMs are made here.
    pub(crate) fn takes_vms(&self) -> bool {
        self.pool.spec.vsphere.failure_domains.is_empty()
    }

    /// What went wrong here, with the name of the place.
    pub(crate) fn told(&self, why: &str) -> String {
        if self.domain.is_empty() {
            return why.to_owned();
        }
        format!("failure domain {}: {why}", self.domain)
    }
}

impl World {
    /// The failure domain of a VM that is to be made. It stays the same from pass to pass, unless something is wrong there.
    /// `except` is where the VM before it found no Agent.
    pub(crate) fn choose_domain(
        &self,
        pool: &Arc<VsphereAgentPool>,
        agent: &VsphereAgent,
        except: &str,
    ) -> String {
        let own = Key::of(agent);
        let others = self.vsphere_agents_of(pool);
        let others: Vec<_> = others.iter().filter(|it| Key::of(it.as_ref()) != own).collect();
        let mut chosen = lock(&self.chosen);
        let used_by = |other: &VsphereAgent| {
            let recorded = other.failure_domain().to_owned();
            let unseen = || chosen.get(&Key::of(other)).cloned().unwrap_or_default();
            if recorded.is_empty() { unseen() } else { recorded }
        };
        let used: Vec<String> = others.iter().map(|other| used_by(other)).collect();
        let domains: Vec<DomainUse> = pool
            .spec
            .vsphere
            .failure_domains
            .iter()
            .map(|domain| {
                let vms = used.iter().filter(|name| **name == domain.name).count();
                let status = pool.status.failure_domains.iter().find(|it| it.name == domain.name);
                DomainUse {
                    name: domain.name.clone(),
                    weight: domain.weight.unwrap_or(1).try_into().unwrap_or_default(),
                    vms: u32::try_from(vms).unwrap_or(u32::MAX),
                    // One that is still being prepared counts, or all would go to the first that is.
                    is_ready: status.is_none_or(|it| it.reason != DomainStatus::ERROR)
                        && domain.name != except,
                }
            })
            .collect();
        let is_ready = |name: &str| domains.iter().any(|it| it.name == name && it.is_ready);
        if let Some(before) = chosen.get(&own).filter(|name| is_ready(name)) {
            return before.clone();
        }
        let name = choose_domain(&domains).unwrap_or_default().to_owned();
        chosen.insert(own, name.clone());
        name
    }
}
