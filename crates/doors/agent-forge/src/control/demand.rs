//! A waiting AgentMachine becomes a VsphereAgent.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use roost_controller::{Cause, Key, Next, Pass, Reconciler};
use serde_json::{Value, json};

use super::error::ForgeError;
use super::world::World;
use crate::api::names::{
    AGENT_MACHINE_LABEL, CLAIMED_BY, CREATED_FOR, FOR_AGENT_MACHINE, FOR_SPARE, POOL_LABEL, VM_NAME,
};
use crate::api::{
    NameRef, OwnedVm, Phase, PoolDefaults, VsphereAgent, VsphereAgentPool, VsphereAgentSpec,
};
use crate::names::{alternate_name, label_value};
use crate::outside::AgentMachineView;
use crate::plan::{pools_of, taker};
use crate::planted::{self, Bug};

/// A machine that could not be served is looked at again after this time, beside every change.
const LATER: Duration = Duration::from_secs(30);
/// After a write, for what it changed to be seen.
const SOON: Duration = Duration::from_secs(1);
/// A VM's name has at most 80 characters.
const VM_BASE: usize = 60;

#[derive(Debug)]
pub(crate) struct DemandReconciler {
    pub(crate) world: Arc<World>,
}

/// Whether another VM may be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Room {
    Yes,
    No { why: String },
}

/// The limits of a pool against what it has.
pub(crate) fn room(pool: &VsphereAgentPool, agents: &[Arc<VsphereAgent>], fresh: usize) -> Room {
    let scaling = pool.spec.scaling.unwrap_or_default();
    let limit = |limit: Option<i32>| limit.and_then(|limit| usize::try_from(limit).ok());
    let count = agents.len() + fresh;
    if let Some(limit) = limit(scaling.max_vms).filter(|limit| count >= *limit) {
        return Room::No { why: format!("spec.scaling.maxVMs: {count} of {limit} VMs") };
    }
    let is_on_its_way = |agent: &&Arc<VsphereAgent>| {
        agent.recorded().is_none_or(|vm| vm.phase == Some(Phase::Provisioning))
    };
    let count = agents.iter().filter(is_on_its_way).count() + fresh;
    match limit(scaling.max_provisioning).filter(|limit| count >= *limit) {
        Some(limit) => {
            Room::No { why: format!("spec.scaling.maxProvisioning: {count} of {limit} VMs") }
        }
        None => Room::Yes,
    }
}

impl Reconciler for DemandReconciler {
    type Object = DynamicObject;
    type Error = ForgeError;

    async fn reconcile(&self, pass: &Pass<DynamicObject>) -> Result<Next, ForgeError> {
        let Some(object) = pass.object() else { return Ok(Next::AwaitChange) };
        let machine = AgentMachineView::of(object);
        if !machine.is_waiting() || machine.is_paused {
            return Ok(Next::AwaitChange);
        }
        let world = &self.world;
        let candidates = world.pools_by_control_plane.objects(&machine.namespace);
        let pools = pools_of(&machine, &candidates);
        let pool = match pools.as_slice() {
            [] => return Ok(Next::AwaitChange),
            [pool] => pool,
            several => {
                let pools: Vec<String> =
                    several.iter().map(|p| Key::of(p.as_ref()).to_string()).collect();
                let machine = format!("{}/{}", machine.namespace, machine.name);
                return Err(ForgeError::SeveralPools { machine, pools: pools.join(", ") });
            }
        };
        if let Some(why) = world.hold_of(pool).await {
            tracing::debug!(machine = machine.name, "AgentMachine {} waits: {why}", machine.name);
            return Ok(Next::After(LATER));
        }
        world.pin(&machine).await?;
        self.ensure_vsphere_agent(pool, &machine).await
    }

    fn priority(&self, object: Option<&DynamicObject>, cause: Cause) -> i32 {
        let waits = object.is_some_and(|object| AgentMachineView::of(object).is_waiting());
        if waits { 100 } else { cause.usual_priority() }
    }
}

impl DemandReconciler {
    async fn ensure_vsphere_agent(
        &self,
        pool: &Arc<VsphereAgentPool>,
        machine: &AgentMachineView,
    ) -> Result<Next, ForgeError> {
        let world = &self.world;
        // One at a time, so that two machines do not both take the last place below a limit.
        let mut created = world.created.lock().await;
        let all = world.vsphere_agents_of(pool);
        let live: Vec<_> = all.iter().filter(|agent| !agent.is_deleting()).cloned().collect();
        let fresh = created.entry(Key::of(pool.as_ref())).or_default();
        fresh.retain(|name| !all.iter().any(|agent| agent.name_any() == *name));
        let own: Vec<_> = live.iter().filter(|agent| agent.is_for(&machine.name)).collect();
        if let Some(next) = self.hand_over(pool, machine, &own, &live).await? {
            return Ok(next);
        }
        // Its Agent may be given to another AgentMachine yet.
        if own.len() >= if planted::is(Bug::AsksTwice) { 2 } else { 1 } {
            return Ok(Next::After(LATER));
        }
        // One that goes makes room for the next: its end is an event of its own, and the timer is for one that was missed.
        if all.iter().any(|agent| agent.is_deleting() && agent.is_for(&machine.name)) {
            return Ok(Next::After(LATER));
        }
        if self.is_served_unseen(pool, machine).await? && !planted::is(Bug::AsksTwice) {
            return Ok(Next::After(SOON));
        }
        if let Some(spare) = self.spare(pool, &live) {
            return self.claim(&spare, machine).await;
        }
        if let Room::No { why } = room(pool, &live, fresh.len()) {
            tracing::info!(machine = machine.name, "AgentMachine {} waits: {why}", machine.name);
            world.wake_pool(Key::of(pool.as_ref()));
            return Ok(Next::After(LATER));
        }
        let namespace = pool.namespace().unwrap_or_default();
        let api: Api<VsphereAgent> = Api::namespaced(world.client.clone(), &namespace);
        let alternate =
            alternate_name(&namespace, &pool.name_any(), &machine.namespace, &machine.name);
        let vm_name = self.vm_name(pool, machine, &all);
        let names = match &vm_name {
            Some(name) => [name, &alternate],
            None => [&machine.name, &alternate],
        };
        for name in names {
            let wanted = new_vsphere_agent(pool, machine, name, vm_name.as_deref());
            match api.create(&PostParams::default(), &wanted).await {
                Ok(_) => {
                    tracing::info!(vsphere_agent = %name, machine = machine.name, "VsphereAgent {name} is made for AgentMachine {}", machine.name);
                    fresh.push(name.clone());
                    return Ok(Next::After(LATER));
                }
                Err(kube::Error::Api(status)) if status.is_already_exists() => {
                    let failed =
                        ForgeError::kube(format!("reading VsphereAgent {namespace}/{name}"));
                    let Some(found) = api.get_opt(name).await.map_err(failed)? else {
                        return Ok(Next::Now);
                    };
                    if found.is_of_pool(&pool.name_any()) && found.is_for(&machine.name) {
                        return Ok(Next::After(LATER));
                    }
                }
                Err(source) => {
                    let what = format!("creating VsphereAgent {namespace}/{name}");
                    return Err(ForgeError::Kube { what, source: Box::new(source) });
                }
            }
        }
        Err(ForgeError::NamesTaken { name: machine.name.clone(), alternate })
    }
}

impl DemandReconciler {
    /// Whether a create or claim whose answer was lost has served it already. Watches may be late, so that this is read from the server.
    async fn is_served_unseen(
        &self,
        pool: &VsphereAgentPool,
        machine: &AgentMachineView,
    ) -> Result<bool, ForgeError> {
        let namespace = pool.namespace().unwrap_or_default();
        let api: Api<VsphereAgent> = Api::namespaced(self.world.client.clone(), &namespace);
        let label = format!("{AGENT_MACHINE_LABEL}={}", label_value(&machine.name));
        let failed = ForgeError::kube(format!("listing VsphereAgents in {namespace}"));
        let found = api.list(&ListParams::default().labels(&label)).await.map_err(failed)?;
        let is_its =
            |it: &VsphereAgent| it.is_of_pool(&pool.name_any()) && it.is_for(&machine.name);
        Ok(found.items.iter().any(is_its))
    }

    /// A VM of this machine whose Agent another one has got is the other one's from here on. If that one has a VM of its own too, it becomes a
    /// spare, so that nobody has two at any moment.
    async fn hand_over(
        &self,
        pool: &VsphereAgentPool,
        machine: &AgentMachineView,
        own: &[&Arc<VsphereAgent>],
        live: &[Arc<VsphereAgent>],
    ) -> Result<Option<Next>, ForgeError> {
        let machines = self.world.agent_machines_of(pool);
        let agents = self.world.agents_in(&pool.namespace().unwrap_or_default());
        let taken = own.iter().find_map(|agent| {
            let taker = taker(agent.recorded()?, &agents, &machines)?;
            (taker != machine.name).then_some((*agent, taker))
        });
        let Some((taken, taker)) = taken else { return Ok(None) };
        if let Some(other) = live.iter().find(|agent| agent.is_for(&taker)) {
            let labels = json!({CREATED_FOR: FOR_SPARE, AGENT_MACHINE_LABEL: null});
            let note = format!("AgentMachine {taker} has the Agent of {}", taken.name_any());
            let change = json!({"labels": labels, "annotations": {CLAIMED_BY: null}});
            self.attribute(other, change, "SpareReturned", &note).await?;
        } else {
            let labels =
                json!({CREATED_FOR: FOR_AGENT_MACHINE, AGENT_MACHINE_LABEL: label_value(&taker)});
            let change = json!({"labels": labels, "annotations": {CLAIMED_BY: taker}});
            let note = format!("AgentMachine {taker} has its Agent, not {}", machine.name);
            self.attribute(taken, change, "AgentTaken", &note).await?;
        }
        Ok(Some(Next::After(SOON)))
    }

    /// Changes whose a VsphereAgent is. Whoever changed it meanwhile is not overruled.
    async fn attribute(
        &self,
        agent: &VsphereAgent,
        mut change: Value,
        reason: &str,
        note: &str,
    ) -> Result<Next, ForgeError> {
        let (namespace, name) = (agent.namespace().unwrap_or_default(), agent.name_any());
        let api: Api<VsphereAgent> = Api::namespaced(self.world.client.clone(), &namespace);
        change["resourceVersion"] = json!(agent.resource_version());
        let patch = json!({"metadata": change});
        match api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => {
                tracing::info!(vsphere_agent = %name, "VsphereAgent {name}: {note}");
                self.world.events.normal(agent, reason, note);
                Ok(Next::After(LATER))
            }
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {
                Ok(Next::After(SOON))
            }
            Err(error) => {
                Err(ForgeError::kube(format!("attributing VsphereAgent {namespace}/{name}"))(error))
            }
        }
    }

    /// What the VM is to be called, where a VM or node of the machine's name is another one's by now: the lowest number that is free, so that a
    /// request whose answer was lost is not made twice.
    fn vm_name(
        &self,
        pool: &VsphereAgentPool,
        machine: &AgentMachineView,
        all: &[Arc<VsphereAgent>],
    ) -> Option<String> {
        let agents = self.world.agents_in(&pool.namespace().unwrap_or_default());
        let is_taken = |name: &str| {
            all.iter().any(|agent| agent.vm_name() == name)
                || agents.iter().any(|it| it.is_bound() && it.hostname == name)
        };
        if !is_taken(&machine.name) {
            return None;
        }
        let base: String = machine.name.chars().take(VM_BASE).collect();
        (2..=u32::MAX).map(|number| format!("{base}-{number}")).find(|name| !is_taken(name))
    }

    /// A VM that nobody has: one that has its Agent already, else one that is on its way.
    fn spare(
        &self,
        pool: &VsphereAgentPool,
        live: &[Arc<VsphereAgent>],
    ) -> Option<Arc<VsphereAgent>> {
        let machines = self.world.agent_machines_of(pool);
        let agents = self.world.agents_in(&pool.namespace().unwrap_or_default());
        let is_bound = |vm: &OwnedVm| {
            let name = vm.agent_ref.as_ref().and_then(|it| it.name.as_deref());
            agents.iter().any(|agent| Some(agent.name.as_str()) == name && agent.is_bound())
        };
        let is_nobodys = |agent: &VsphereAgent| {
            agent.is_spare() || pool.shares_spares() && is_left_over(agent, &machines)
        };
        let rank = |agent: &VsphereAgent| {
            let vm = agent.recorded().filter(|vm| !vm.bios_uuid.is_empty() && !is_bound(vm))?;
            match vm.phase? {
                Phase::Available => Some(0),
                Phase::Provisioning if agent.is_spare() => Some(1),
                _ => None,
            }
        };
        let free = live.iter().filter(|agent| is_nobodys(agent));
        let ranked = free.filter_map(|agent| Some((rank(agent)?, agent.name_any(), agent)));
        ranked.min_by_key(|(rank, name, _)| (*rank, name.clone())).map(|(.., it)| Arc::clone(it))
    }

    /// Gives a spare to this machine.
    async fn claim(
        &self,
        spare: &VsphereAgent,
        machine: &AgentMachineView,
    ) -> Result<Next, ForgeError> {
        let labels = json!({CREATED_FOR: FOR_AGENT_MACHINE, AGENT_MACHINE_LABEL: label_value(&machine.name)});
        let change = json!({"labels": labels, "annotations": {CLAIMED_BY: machine.name}});
        let note = format!("AgentMachine {} gets it", machine.name);
        self.attribute(spare, change, "SpareClaimed", &note).await
    }
}

/// Made for an AgentMachine that is gone, or that has got the Agent of another VM.
pub(crate) fn is_left_over(agent: &VsphereAgent, machines: &[AgentMachineView]) -> bool {
    let name = agent.agent_machine();
    let machine = machines.iter().find(|it| Some(&it.name) == name.as_ref());
    let needs_it = |vm: &OwnedVm| machine.is_some_and(|it| !it.is_served_without(vm));
    !agent.is_adopted() && !agent.recorded().is_some_and(needs_it)
}

/// A pool as the owner of its VsphereAgents.
pub(crate) fn owner_of(pool: &VsphereAgentPool) -> OwnerReference {
    OwnerReference {
        api_version: pool.api_version.clone(),
        kind: VsphereAgentPool::kind(&()).into_owned(),
        name: pool.name_any(),
        uid: pool.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

fn new_vsphere_agent(
    pool: &VsphereAgentPool,
    machine: &AgentMachineView,
    name: &str,
    vm_name: Option<&str>,
) -> VsphereAgent {
    let spec = VsphereAgentSpec { pool_ref: NameRef::new(pool.name_any()) };
    let mut agent = VsphereAgent::new(&pool.namespace().unwrap_or_default(), name, spec);
    let pair = |key: &str, value: String| (key.to_owned(), value);
    agent.metadata.labels = Some(
        [
            pair(POOL_LABEL, label_value(&pool.name_any())),
            pair(CREATED_FOR, FOR_AGENT_MACHINE.to_owned()),
            pair(AGENT_MACHINE_LABEL, label_value(&machine.name)),
        ]
        .into(),
    );
    agent.metadata.annotations = Some(match vm_name {
        // The VM is called otherwise, so that the name does not tell whose it is.
        Some(vm_name) => {
            [pair(VM_NAME, vm_name.to_owned()), pair(CLAIMED_BY, machine.name.clone())].into()
        }
        None => [pair(VM_NAME, machine.name.clone())].into(),
    });
    agent.metadata.owner_references = Some(vec![owner_of(pool)]);
    agent
}

impl World {
    /// Lets the provider choose only the Agent of this machine's own VM.
    pub(crate) async fn pin(&self, machine: &AgentMachineView) -> Result<(), ForgeError> {
        if machine.is_pinned() {
            return Ok(());
        }
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), &machine.namespace, &self.agent_machine_kind);
        let labels = json!({AGENT_MACHINE_LABEL: machine.wanted_pin()});
        let patch = json!({"spec": {"agentLabelSelector": {"matchLabels": labels}}});
        let failed = ForgeError::kube(format!(
            "pinning AgentMachine {}/{}",
            machine.namespace, machine.name
        ));
        match api.patch(&machine.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}
