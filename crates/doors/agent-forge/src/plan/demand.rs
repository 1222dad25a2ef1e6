use std::collections::BTreeSet;
use std::sync::Arc;

use crate::api::{PoolDefaults, VsphereAgentPool};
use crate::outside::AgentMachineView;

/// What the AgentMachines of a pool want.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Demand {
    pub total: usize,
    /// Names of those that wait for an Agent.
    pub waiting: BTreeSet<String>,
    pub unready: usize,
    /// Not ready, and no Agent is theirs. While there are any, nothing counts as surplus.
    pub without_agent: usize,
}

pub fn count_demand<'a>(machines: impl IntoIterator<Item = &'a AgentMachineView>) -> Demand {
    let mut demand = Demand::default();
    for machine in machines.into_iter().filter(|machine| !machine.is_deleting) {
        demand.total += 1;
        demand.unready += usize::from(!machine.is_ready);
        demand.without_agent += usize::from(!machine.is_ready && !machine.has_agent);
        if machine.is_waiting() {
            demand.waiting.insert(machine.name.clone());
        }
    }
    demand
}

/// The pools that serve an AgentMachine. More than one is a mistake that a person must undo.
pub fn pools_of(
    machine: &AgentMachineView,
    pools: &[Arc<VsphereAgentPool>],
) -> Vec<Arc<VsphereAgentPool>> {
    let serves = |pool: &&Arc<VsphereAgentPool>| !pool.is_deleting() && machine.belongs_to(pool);
    let mut found: Vec<_> = pools.iter().filter(serves).cloned().collect();
    found.sort_by(|a, b| {
        let name =
            |pool: &VsphereAgentPool| (pool.metadata.namespace.clone(), pool.metadata.name.clone());
        name(a).cmp(&name(b))
    });
    found
}
