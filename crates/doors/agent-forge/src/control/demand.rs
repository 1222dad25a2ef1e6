//! A waiting AgentMachine becomes a VsphereAgent.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use roost_controller::{Cause, Key, Next, Pass, Reconciler};
use serde_json::json;

use super::error::ForgeError;
use super::world::World;
use crate::api::names::{
    AGENT_MACHINE_LABEL, CLAIMED_BY, CREATED_FOR, FOR_AGENT_MACHINE, POOL_LABEL, VM_NAME,
};
use crate::api::{
    NameRef, OwnedVm, Phase, PoolDefaults, VsphereAgent, VsphereAgentPool, VsphereAgentSpec,
};
use crate::names::{alternate_name, label_value};
use crate::outside::AgentMachineView;
use crate::plan::pools_of;
use crate::planted::{self, Bug};

/// A machine that could not be served is looked at again after this time, beside every change.
const LATER: Duration = Duration::from_secs(30);

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
        let is_served = live.iter().any(|agent| agent.is_for(&machine.name));
        if is_served && !planted::is(Bug::AsksTwice) {
            return Ok(Next::AwaitChange);
        }
        // One that goes makes room for the next: its end is an event of its own, and the timer is for one that was missed.
        if all.iter().any(|agent| agent.is_deleting() && agent.is_for(&machine.name)) {
            return Ok(Next::After(LATER));
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
        for name in [&machine.name, &alternate] {
            let wanted = new_vsphere_agent(pool, machine, name);
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
    /// A VM that nobody has: one that has its Agent already, else one that is on its way.
    fn spare(
        &self,
        pool: &VsphereAgentPool,
        live: &[Arc<VsphereAgent>],
    ) -> Option<Arc<VsphereAgent>> {
        if !pool.shares_spares() {
            return None;
        }
        let machines = self.world.agent_machines_of(pool);
        let agents = self.world.agents_in(&pool.namespace().unwrap_or_default());
        let is_bound = |vm: &OwnedVm| {
            let name = vm.agent_ref.as_ref().and_then(|it| it.name.as_deref());
            agents.iter().any(|agent| Some(agent.name.as_str()) == name && agent.is_bound())
        };
        let is_nobodys = |agent: &VsphereAgent| {
            let machine = agent.agent_machine();
            agent.is_spare()
                || !agent.is_adopted()
                    && !machines.iter().any(|it| Some(&it.name) == machine.as_ref())
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

    /// Gives a spare to this machine. Whoever changed it meanwhile is not overruled.
    async fn claim(
        &self,
        spare: &VsphereAgent,
        machine: &AgentMachineView,
    ) -> Result<Next, ForgeError> {
        let world = &self.world;
        let (namespace, name) = (spare.namespace().unwrap_or_default(), spare.name_any());
        let api: Api<VsphereAgent> = Api::namespaced(world.client.clone(), &namespace);
        let labels = json!({CREATED_FOR: FOR_AGENT_MACHINE, AGENT_MACHINE_LABEL: label_value(&machine.name)});
        let patch = json!({"metadata": {
            "resourceVersion": spare.resource_version(), "labels": labels,
            "annotations": {CLAIMED_BY: machine.name},
        }});
        match api.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Ok(_) => {
                tracing::info!(vsphere_agent = %name, machine = machine.name, "AgentMachine {} gets the spare {name}", machine.name);
                let note = format!("AgentMachine {} gets it", machine.name);
                world.events.normal(spare, "SpareClaimed", &note);
                Ok(Next::After(LATER))
            }
            Err(kube::Error::Api(status)) if status.is_conflict() || status.is_not_found() => {
                Ok(Next::After(Duration::from_secs(1)))
            }
            Err(error) => {
                Err(ForgeError::kube(format!("claiming VsphereAgent {namespace}/{name}"))(error))
            }
        }
    }
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
    agent.metadata.annotations = Some([pair(VM_NAME, machine.name.clone())].into());
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
