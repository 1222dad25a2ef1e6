use std::collections::BTreeMap;

use super::matching::refers_to;
use super::merge::Record;
use crate::api::Phase;
use crate::identity::{conflict, matches_mac, matches_uuid};
use crate::outside::AgentView;

/// Which VM each Agent is, by name of the Agent; the VM's name becomes the Agent's host name. Surer ways of knowing come first, and no VM is given
/// twice. An Agent of which nothing is known gets none: there is no guess.
pub fn assign_hostnames(agents: &[&AgentView], owned: &[Record]) -> BTreeMap<String, String> {
    type Way = fn(&Record, &AgentView) -> bool;
    const WAYS: [Way; 4] = [
        |record, agent| {
            matches_uuid(&record.vm, &agent.identity) || matches_mac(&record.vm, &agent.identity)
        },
        |record, agent| agreed(record, agent) && record.vm.name == agent.hostname,
        |record, agent| agreed(record, agent) && refers_to(&record.vm, agent),
        |record, agent| agreed(record, agent) && record.vm.name == agent.observed_hostname(),
    ];
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    for way in WAYS {
        for agent in agents {
            if given.contains_key(&agent.name) {
                continue;
            }
            let is_free = |record: &&Record| {
                !record.vm.name.is_empty()
                    && record.vm.phase != Some(Phase::Bound)
                    && !given.values().any(|name| *name == record.vm.name)
            };
            let found = owned.iter().filter(is_free).find(|record| way(record, agent));
            if let Some(record) = found {
                given.insert(agent.name.clone(), record.vm.name.clone());
            }
        }
    }
    given
}

/// The host name of an Agent of this VM: the name of the AgentMachine that it serves, unless a node has that name already. It has if the Agent of a VM
/// that was made for the AgentMachine was given to another one.
pub fn hostname_of<'a>(record: &'a Record, own: &AgentView, agents: &[&AgentView]) -> &'a str {
    let wanted = record.hostname();
    let has_it = |it: &&&AgentView| it.name != own.name && it.is_bound() && it.hostname == wanted;
    if agents.iter().any(|it| has_it(&it)) { &record.vm.name } else { wanted }
}

fn agreed(record: &Record, agent: &AgentView) -> bool {
    !conflict(&record.vm, &agent.identity)
}
