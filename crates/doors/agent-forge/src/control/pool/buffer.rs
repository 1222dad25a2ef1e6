//! Spares: VMs that become Agents before anybody wants one.

use kube::api::{Api, PostParams};
use kube::{Resource, ResourceExt};
use roost_controller::Key;

use super::reconcile::{PoolReconciler, Round};
use crate::api::names::{CREATED_FOR, FOR_SPARE, POOL_LABEL};
use crate::api::{NameRef, Phase, PoolDefaults, VsphereAgent, VsphereAgentPool, VsphereAgentSpec};
use crate::control::demand::{Room, is_left_over, owner_of, room};
use crate::names::label_value;

/// A VM's name has at most 80 characters.
const BASE: usize = 60;

impl PoolReconciler {
    /// Makes spares until there are enough. AgentMachines that wait come first.
    pub(super) async fn fill_buffer(&self, round: &Round, failures: &mut Vec<String>) {
        let pool = &round.pool;
        if pool.buffer() == 0 || round.plan.deficit > 0 {
            return;
        }
        let world = &self.world;
        let mut created = world.created.lock().await;
        let fresh = created.entry(Key::of(pool.as_ref())).or_default();
        let namespace = pool.namespace().unwrap_or_default();
        let known = world.agents_of_namespace.objects(&namespace);
        fresh.retain(|name| !known.iter().any(|agent| agent.name_any() == *name));
        let mut live = world.vsphere_agents_of(pool);
        live.retain(|agent| !agent.is_deleting());
        let base: String = pool.name_any().chars().take(BASE).collect();
        let base = format!("{}-spare-", base.trim_end_matches(['-', '.']));
        let coming = fresh.iter().filter(|name| name.starts_with(&base)).count();
        let have = live.iter().filter(|agent| counts(agent, round)).count() + coming;
        let api: Api<VsphereAgent> = Api::namespaced(world.client.clone(), &namespace);
        for _ in have..pool.buffer() {
            if let Room::No { .. } = room(pool, &live, fresh.len()) {
                return;
            }
            // The lowest number that is free, so that a request whose answer was lost is not made twice.
            let is_free = |name: &String| {
                !known.iter().any(|agent| agent.name_any() == *name) && !fresh.contains(name)
            };
            let name = (1..=u32::MAX).map(|number| format!("{base}{number}")).find(is_free);
            let Some(name) = name else { return };
            match api.create(&PostParams::default(), &new_spare(pool, &name)).await {
                Ok(_) => {
                    tracing::info!(vsphere_agent = %name, "VsphereAgent {name} is made ahead of demand");
                }
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                Err(error) => {
                    failures.push(Self::failure(&format!("creating VsphereAgent {name}"), &error));
                    return;
                }
            }
            fresh.push(name);
        }
    }
}

/// A spare, on its way or ready; and a VM whose AgentMachine does not need it any more.
fn counts(agent: &VsphereAgent, round: &Round) -> bool {
    let phase = agent.recorded().and_then(|vm| vm.phase);
    if agent.is_spare() {
        return matches!(phase, None | Some(Phase::Provisioning | Phase::Available));
    }
    phase == Some(Phase::Available) && is_left_over(agent, &round.agent_machines)
}

fn new_spare(pool: &VsphereAgentPool, name: &str) -> VsphereAgent {
    let spec = VsphereAgentSpec { pool_ref: NameRef::new(pool.name_any()) };
    let mut agent = VsphereAgent::new(&pool.namespace().unwrap_or_default(), name, spec);
    let labels = [(POOL_LABEL, label_value(&pool.name_any())), (CREATED_FOR, FOR_SPARE.to_owned())];
    agent.meta_mut().labels = Some(labels.map(|(key, value)| (key.to_owned(), value)).into());
    agent.meta_mut().owner_references = Some(vec![owner_of(pool)]);
    agent
}
