use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use roost_controller::{Next, Pass, Reconciler};
use roost_supervise::Chain;

use super::prepare;
use crate::api::names::POOL_FINALIZER;
use crate::api::{OwnedVm, Phase, PoolDefaults, Reason, VsphereAgent, VsphereAgentPool};
use crate::control::conditions::OF_POOL;
use crate::control::error::ForgeError;
use crate::control::region::Region;
use crate::control::world::World;
use crate::identity::matches_uuid;
use crate::outside::{AgentMachineView, AgentView, MachineView};
use crate::plan::{
    CapacityPlan, Claims, Demand, PhaseInput, PlanInput, Record, build_plan, count_demand,
    grace_left, matching_agents, merge, refresh, settle_identities, since_then,
};
use crate::vcenter::{FORGE, Site, SiteState};

pub(super) const RESYNC: Duration = Duration::from_mins(1);
/// A failed look at the ISO is tried again after this time.
const ISO_AGAIN: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(crate) struct PoolReconciler {
    pub(crate) world: Arc<World>,
}

/// One place of the pool, and its vCenter.
pub(super) struct PlaceView {
    pub(super) region: Region,
    pub(super) site: SiteState,
}

impl PlaceView {
    pub(super) fn open(&self) -> Option<&Site> {
        match &self.site {
            SiteState::Open(site) => Some(site),
            SiteState::Connecting | SiteState::Failed { .. } => None,
        }
    }
}

/// What a pass saw and planned.
pub(super) struct Round {
    pub(super) pool: Arc<VsphereAgentPool>,
    /// Why nothing may be changed.
    pub(super) held: Option<String>,
    pub(super) places: Vec<PlaceView>,
    pub(super) demand: Demand,
    pub(super) records: Vec<Record>,
    pub(super) agents: Vec<AgentView>,
    pub(super) machines: Vec<MachineView>,
    pub(super) agent_machines: Vec<AgentMachineView>,
    pub(super) plan: CapacityPlan,
}

impl Reconciler for PoolReconciler {
    type Object = VsphereAgentPool;
    type Error = ForgeError;

    async fn reconcile(&self, pass: &Pass<VsphereAgentPool>) -> Result<Next, ForgeError> {
        let world = &self.world;
        let Some(mut draft) = pass.draft() else {
            world.pool_jobs.forget_where(|(pool, _)| pool == pass.key());
            world.metrics.forget(pass.key().namespace().unwrap_or_default(), pass.key().name());
            return Ok(Next::AwaitChange);
        };
        draft.own_conditions(&OF_POOL);
        if draft.is_being_deleted() {
            return self.finalize(draft).await;
        }
        if draft.add_finalizer(POOL_FINALIZER) {
            world.writer.save_main(&mut draft).await?;
        }
        world.heed_annotation(&mut draft).await?;
        let pool = Arc::new(VsphereAgentPool::clone(&draft));
        let mut places = self.places(&pool).await;
        let url = world.iso_url(&pool);
        self.take_prepared(&mut draft, &places, &url);
        let pool = Arc::new(VsphereAgentPool::clone(&draft));
        for place in &mut places {
            let domain = place.region.domain.clone();
            place.region = Region::of(&pool, &domain).unwrap_or_else(|| Region::whole(&pool));
            let Some(site) = place.open() else { continue };
            let ended = world.pool_jobs.ended(&place.region.key());
            let is_fresh_failure = ended.is_some_and(|work| {
                work.is_failed() && since_then(work.at, pass.started()) < ISO_AGAIN
            });
            if !is_fresh_failure {
                prepare::start(world, site, &place.region, url.clone().ok());
            }
        }
        let held = world.hold_of(&pool).await;
        let mut round = self.observe(&pool, places, held);
        let failures = self.apply(&mut round).await;
        self.show(&mut draft, &round, &url, &failures);
        world.writer.save_status(&mut draft).await?;
        self.measure(&round);
        Ok(Next::After(if failures.is_empty() { self.wait(&round) } else { ISO_AGAIN }))
    }
}

impl PoolReconciler {
    /// At rest a minute; sooner while something waits for its second look, or for the end of its grace.
    fn wait(&self, round: &Round) -> Duration {
        let is_busy = !round.plan.deletions.is_empty() || !round.demand.waiting.is_empty();
        let wait = if is_busy { Duration::from_secs(20) } else { RESYNC };
        let grace = grace_left(&round.pool, &round.records, self.world.now());
        grace.map_or(wait, |grace| wait.min(grace))
    }

    pub(super) async fn places(&self, pool: &Arc<VsphereAgentPool>) -> Vec<PlaceView> {
        let mut places = Vec::new();
        for region in Region::all(pool, &self.world.vsphere_agents_of(pool)) {
            let site = self.world.site_of(&region).await;
            places.push(PlaceView { region, site });
        }
        places
    }

    fn observe(
        &self,
        pool: &Arc<VsphereAgentPool>,
        places: Vec<PlaceView>,
        held: Option<String>,
    ) -> Round {
        let world = &self.world;
        let now = world.now();
        let namespace = pool.namespace().unwrap_or_default();
        let mut own: Vec<_> = world.vsphere_agents_of(pool);
        own.retain(|agent| !agent.is_deleting());
        own.sort_by_key(|agent| agent.name_any());
        let hash = pool.template_hash();
        let now_said = own.iter().map(|agent| record(agent, &hash)).collect();
        let records = merge(&pool.status.owned_vms, now_said);
        let agent_machines = world.agent_machines_of(pool);
        let machines = world.machines_of(pool);
        let mut all = world.agents_in(&namespace);
        self.leave_undecided(pool, &places, &records, &mut all);
        settle_identities(&mut all, &records);
        let others = world.agents_of_namespace.objects(&namespace);
        let claims = Claims::of(&pool.name_any(), others.iter().map(AsRef::as_ref));
        let matching = matching_agents(pool, &all, &records, &claims);
        let input = PhaseInput {
            pool,
            agents: &matching,
            machines: &machines,
            agent_machines: &agent_machines,
            now,
        };
        let records = refresh(records, &input);
        let demand = count_demand(&agent_machines);
        let plan = build_plan(&PlanInput {
            pool,
            demand: &demand,
            agents: &matching,
            owned: &records,
            machines: &machines,
            agent_machines: &agent_machines,
            now,
        });
        let agents = matching.into_iter().cloned().collect();
        Round {
            pool: Arc::clone(pool),
            held,
            places,
            demand,
            records,
            agents,
            machines,
            agent_machines,
            plan,
        }
    }

    /// Leaves out free Agents that must not be prepared: those of VMs that go, and those of VMs whose uuid is not recorded yet. They would be taken for
    /// somebody else's, and be approved for whoever comes along.
    fn leave_undecided(
        &self,
        pool: &Arc<VsphereAgentPool>,
        places: &[PlaceView],
        records: &[Record],
        agents: &mut Vec<AgentView>,
    ) {
        let world = &self.world;
        let (mut vms, mut is_blind) = (Vec::new(), false);
        for agent in world.vsphere_agents_of(pool) {
            // Without a record nothing was asked for.
            let Some(record) = agent.recorded() else { continue };
            let is_known = !record.bios_uuid.is_empty() || agent.is_adopted();
            if is_known && agent.is_deleting() {
                vms.push(record.clone());
            }
            if is_known {
                continue;
            }
            let domain = Region::of_agent(pool, &agent).domain;
            let place = places.iter().find(|place| place.region.domain == domain);
            let shown = place.and_then(|place| {
                let site = place.open().filter(|site| world.shows(site, &place.region))?;
                Some(site.fleet.mirror().snapshot())
            });
            let Some(shown) = shown else {
                is_blind = true;
                continue;
            };
            let request = FORGE.request(agent.uid().unwrap_or_default());
            let uuid = shown.serving(&request).next().and_then(|row| row.uuid.clone());
            vms.extend(uuid.map(|uuid| OwnedVm { bios_uuid: uuid.to_string(), ..record.clone() }));
        }
        agents.retain(|agent| {
            let is_it = |vm: &OwnedVm| matches_uuid(vm, &agent.identity);
            let is_ours = || records.iter().any(|record| is_it(&record.vm));
            agent.is_bound() || !vms.iter().any(is_it) && (!is_blind || is_ours())
        });
    }

    pub(super) fn failure(what: &str, error: &(dyn std::error::Error + 'static)) -> String {
        format!("{what}: {}", Chain(error))
    }
}

/// What a VsphereAgent says of its VM. `hash` is that of the hardware that a new one would have.
fn record(agent: &VsphereAgent, hash: &str) -> Record {
    let vm = agent.recorded().cloned().unwrap_or_else(|| OwnedVm {
        phase: Some(Phase::Provisioning),
        reason: Some(Reason::VmCreatePending),
        ..OwnedVm::named(agent.vm_name())
    });
    let made = !vm.bios_uuid.is_empty() || agent.is_adopted();
    let made_with = &agent.status.template_hash;
    Record {
        managed: true,
        made,
        protected: agent.is_protected(),
        is_spare: agent.is_spare(),
        claimed_by: agent.claimed_by().map(str::to_owned),
        is_outdated: !made_with.is_empty() && made_with != hash,
        vm,
    }
}
