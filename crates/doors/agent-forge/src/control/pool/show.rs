//! What a pass found goes into the status, events and metrics.

use roost_controller::{Draft, Key};

use super::apply::PIN_FAILED;
use super::prepare::{IsoWork, PoolWork};
use super::reconcile::{PlaceView, PoolReconciler, Round};
use crate::api::{
    ActionKind, DomainStatus, IsoStatus, Phase, PlannedAction, PoolDefaults, VsphereAgentPool,
};
use crate::control::conditions::{
    CAPACITY, DEMAND_FOUND, FROZEN, INFRA_ENV, ISO, LIMITED, READY, VSPHERE, Wanted,
};
use crate::control::demand::{Room, room};
use crate::control::region::Region;
use crate::control::world::World;
use crate::metrics::Capacity;
use crate::plan::Record;
use crate::vcenter::SiteState;

impl PoolReconciler {
    /// What the last rounds of preparation found goes into the status.
    pub(super) fn take_prepared(
        &self,
        draft: &mut Draft<VsphereAgentPool>,
        places: &[PlaceView],
        url: &Result<String, String>,
    ) {
        let world = &self.world;
        let (now, generation) = (world.now(), draft.metadata.generation);
        let mut wanted = vec![vsphere_ready(world, places)];
        let mut iso = None;
        for place in places {
            let Some(work) = world.pool_jobs.ended(&place.region.key()) else { continue };
            match &work.iso {
                IsoWork::NotLooked => {}
                IsoWork::Found { status, uploaded, not_pruned } => {
                    self.take_iso(draft, &place.region, status, *uploaded, not_pruned);
                    let message = format!("{} is on the datastore", status.path);
                    iso.get_or_insert(Wanted::yes(ISO, "ISOReady", message));
                }
                IsoWork::Failed { reason, why } => {
                    let is_told = iso.as_ref().is_some_and(|it: &Wanted| !it.truth);
                    if !is_told {
                        iso = Some(Wanted::no(ISO, reason, place.region.told(why)));
                    }
                }
            }
        }
        wanted.push(iso);
        wanted.push(Some(match url {
            Err(why) => Wanted::no(INFRA_ENV, "InfraEnvUnavailable", why.clone()),
            Ok(_) => Wanted::yes(INFRA_ENV, "Available", "the InfraEnv has an ISO"),
        }));
        for wanted in wanted.into_iter().flatten() {
            wanted.set(&mut draft.status.conditions, generation, now);
        }
    }

    fn take_iso(
        &self,
        draft: &mut Draft<VsphereAgentPool>,
        region: &Region,
        found: &IsoStatus,
        uploaded: bool,
        not_pruned: &[String],
    ) {
        let known = region.pool.status.iso.as_ref();
        let time = |iso: &IsoStatus| iso.checked_at.as_ref().map(|time| time.0);
        // Once: a later look has a later time.
        let is_older = known.is_some_and(|known| time(known) > time(found));
        if known == Some(found) || is_older {
            return;
        }
        let (world, object) = (&self.world, VsphereAgentPool::clone(draft));
        let reason = if uploaded { "ISOUploaded" } else { "ISOReused" };
        let was_same = known.is_some_and(|known| known.path == found.path);
        if uploaded || !was_same {
            world.events.normal(&object, reason, &region.told(&found.path));
        }
        for why in not_pruned {
            world.events.warning(&object, "ISOPruneFailed", &region.told(why));
        }
        if region.domain.is_empty() {
            draft.status.iso = Some(found.clone());
            return;
        }
        let domains = &mut draft.status.failure_domains;
        match domains.iter_mut().find(|it| it.name == region.domain) {
            Some(domain) => domain.iso = Some(found.clone()),
            None => domains.push(DomainStatus {
                name: region.domain.clone(),
                iso: Some(found.clone()),
                ..DomainStatus::default()
            }),
        }
    }

    /// How things are in each failure domain.
    fn domains(&self, round: &Round) -> Vec<DomainStatus> {
        let known = &round.pool.status.failure_domains;
        let places = round.places.iter().filter(|place| !place.region.domain.is_empty());
        let status = |place: &PlaceView| {
            let name = &place.region.domain;
            let vms = round.records.iter().filter(|record| record.vm.failure_domain == *name);
            let iso = known.iter().find(|it| it.name == *name).and_then(|it| it.iso.clone());
            let ended = self.world.pool_jobs.ended(&place.region.key());
            let has_iso = iso.as_ref().is_some_and(|iso| !iso.path.is_empty());
            let (reason, why) = match (&place.site, ended.as_deref()) {
                (SiteState::Connecting, _) => {
                    (DomainStatus::PENDING, "connecting to the vCenter".to_owned())
                }
                (SiteState::Failed { why }, _)
                | (SiteState::Open(_), Some(PoolWork { place: Err(why), .. })) => {
                    (DomainStatus::ERROR, why.clone())
                }
                (SiteState::Open(_), _) if has_iso => ("", String::new()),
                (SiteState::Open(_), Some(PoolWork { iso: IsoWork::Failed { why, .. }, .. })) => {
                    (DomainStatus::ERROR, why.clone())
                }
                (SiteState::Open(_), _) => {
                    (DomainStatus::PENDING, "the ISO is not on the datastore yet".to_owned())
                }
            };
            DomainStatus {
                name: name.clone(),
                vms: i32::try_from(vms.count()).unwrap_or(i32::MAX),
                ready: reason.is_empty(),
                reason: reason.to_owned(),
                message: why,
                iso,
            }
        };
        places.map(status).collect()
    }

    pub(super) fn show(
        &self,
        draft: &mut Draft<VsphereAgentPool>,
        round: &Round,
        url: &Result<String, String>,
        failures: &[String],
    ) {
        let world = &self.world;
        let (now, generation) = (world.now(), draft.metadata.generation);
        let Round { demand, plan, records, .. } = round;
        let actions = plan.actions();
        self.announce(draft, &actions, round.held.is_some());
        self.warn_of_prefix(draft);
        let domains = self.domains(round);
        let count = |number: usize| i32::try_from(number).unwrap_or(i32::MAX);
        let status = &mut draft.status;
        status.observed_generation = generation;
        status.desired_replicas = count(demand.total);
        status.agent_machines = count(demand.total);
        status.waiting_agent_machines = count(demand.waiting.len());
        status.unready_agent_machines = count(demand.unready);
        status.agent_machines_without_agent = count(demand.without_agent);
        status.matching_agents = count(plan.matching);
        status.bound_agents = count(plan.bound);
        status.available_agents = count(plan.available);
        status.demand_deficit = count(plan.deficit);
        let is_kept = |record: &&Record| {
            record.is_spare
                && matches!(record.vm.phase, Some(Phase::Provisioning | Phase::Available))
        };
        status.spare_agents = count(records.iter().filter(is_kept).count());
        let outdated = records.iter().filter(|record| record.is_outdated);
        status.outdated_vms = outdated.map(|record| record.vm.name.clone()).collect();
        status.failure_domains = domains;
        status.owned_vms = records.iter().map(|record| record.vm.clone()).collect();
        status.planned_actions = actions;
        let mut set = |wanted: Wanted| wanted.set(&mut status.conditions, generation, now);
        let waiting = demand.waiting.len();
        set(Wanted::yes(
            DEMAND_FOUND,
            "Observed",
            format!(
                "agentMachines={} waitingForAgents={waiting} unready={} withoutAgent={}",
                demand.total, demand.unready, demand.without_agent
            ),
        ));
        let message = format!(
            "agentMachines={} waitingAgentMachines={waiting} unreadyAgentMachines={} agentMachinesWithoutAgent={} matchingAgents={} pendingOwnedVMs={} boundAgents={} availableAgents={}",
            demand.total,
            demand.unready,
            demand.without_agent,
            plan.matching,
            plan.pending,
            plan.bound,
            plan.available
        );
        set(if plan.deficit == 0 {
            Wanted::yes(CAPACITY, "Satisfied", message)
        } else {
            Wanted::no(CAPACITY, "Deficit", message)
        });
        if round.pool.spec.scaling.is_some() {
            let live: Vec<_> = world
                .vsphere_agents_of(&round.pool)
                .into_iter()
                .filter(|it| !it.is_deleting())
                .collect();
            set(match room(&round.pool, &live, 0) {
                Room::No { why } if plan.deficit > 0 => Wanted::yes(LIMITED, "Limited", why),
                Room::No { .. } | Room::Yes => Wanted::no(LIMITED, "NotLimited", "no limit binds"),
            });
        }
        set(match (url, failures) {
            (Err(why), _) => Wanted::no(READY, "InfraEnvUnavailable", why.clone()),
            (Ok(_), []) => Wanted::yes(READY, "Reconciled", "the pool was looked at"),
            (Ok(_), failures) => {
                let is_pin = |failure: &String| failure.starts_with(PIN_FAILED);
                let is_only_pins = failures.iter().all(is_pin);
                let reason = if is_only_pins { PIN_FAILED } else { "ApplyFailed" };
                Wanted::no(READY, reason, failures.join("; "))
            }
        });
        self.tell_freeze(draft);
        if let Err(why) = url {
            let object = VsphereAgentPool::clone(draft);
            world.events.warning(&object, "InfraEnvUnavailable", why);
        }
        if !failures.is_empty() {
            let object = VsphereAgentPool::clone(draft);
            world.events.warning(&object, "ApplyPlanFailed", &failures.join("; "));
        }
    }

    /// Deletions that are frozen are told until a person has looked; a pool that never froze says nothing.
    fn tell_freeze(&self, draft: &mut Draft<VsphereAgentPool>) {
        let (world, key) = (&self.world, draft.key());
        let freezes = world.freezes(&key);
        world.metrics.frozen(key.namespace().unwrap_or_default(), key.name(), !freezes.is_empty());
        let words = freezes.iter().map(|(domain, freeze)| match domain.as_str() {
            "" => freeze.to_string(),
            domain => format!("{domain}: {freeze}"),
        });
        let words: Vec<String> = words.collect();
        let known = draft.status.conditions.iter().find(|it| it.type_ == FROZEN);
        let was_frozen = known.is_some_and(|it| it.status == "True");
        let wanted = match (words.as_slice(), known) {
            ([], None) => return,
            ([], Some(_)) => Wanted::no(FROZEN, "NotFrozen", "deletion goes on"),
            (words, _) => Wanted::yes(FROZEN, "TooManyAtOnce", words.join("; ")),
        };
        let (now, generation) = (world.now(), draft.metadata.generation);
        wanted.set(&mut draft.status.conditions, generation, now);
        if wanted.truth && !was_frozen {
            let object = VsphereAgentPool::clone(draft);
            world.events.warning(&object, "DeletionFrozen", &wanted.message);
        }
    }

    /// Tells of a plan when it is another one than before, and is not to do nothing.
    fn announce(&self, draft: &Draft<VsphereAgentPool>, actions: &[PlannedAction], is_held: bool) {
        let is_idle = actions.iter().all(|action| action.kind == ActionKind::Noop);
        if is_idle || draft.status.planned_actions == actions {
            return;
        }
        let words = actions.iter().map(|action| match action.name.as_str() {
            "" => action.kind.as_str().to_owned(),
            name => format!("{}/{name}", action.kind.as_str()),
        });
        let words: Vec<String> = words.collect();
        let reason = if is_held { "PlanOnly" } else { "PlanApplied" };
        let note = format!("{} actions: {}", words.len(), words.join(", "));
        self.world.events.normal(&VsphereAgentPool::clone(draft), reason, &note);
    }

    /// Whoever sets it expects something of it: told once for each change of the spec.
    fn warn_of_prefix(&self, draft: &Draft<VsphereAgentPool>) {
        let prefix = draft.spec.template.name_prefix.as_deref().unwrap_or_default();
        let is_new = draft.status.observed_generation != draft.metadata.generation;
        if !prefix.is_empty() && is_new {
            let note = "spec.template.namePrefix has no effect: VMs are named after AgentMachines";
            self.world.events.warning(&VsphereAgentPool::clone(draft), "NamePrefixIgnored", note);
        }
    }

    pub(super) fn measure(&self, round: &Round) {
        let (key, pool) = (Key::of(round.pool.as_ref()), &round.pool);
        let namespace = key.namespace().unwrap_or_default();
        let Round { demand, plan, .. } = round;
        let capacity = Capacity {
            desired: demand.total,
            agent_machines: demand.total,
            waiting_agent_machines: demand.waiting.len(),
            unready_agent_machines: demand.unready,
            without_agent: demand.without_agent,
            matching_agents: plan.matching,
            bound_agents: plan.bound,
            available_agents: plan.available,
            pending_owned_vms: plan.pending,
            demand_deficit: plan.deficit,
        };
        self.world.metrics.pool(namespace, key.name(), capacity);
        let shape = (pool.cpus(), pool.memory_mib(), pool.disk_gib());
        self.world.metrics.shape(namespace, key.name(), shape);
    }
}

/// Whether every place of a pool can be worked with; `None` while nothing is known.
fn vsphere_ready(world: &World, places: &[PlaceView]) -> Option<Wanted> {
    let mut is_known = false;
    let mut is_connecting = false;
    for place in places {
        let work = world.pool_jobs.ended(&place.region.key());
        let why = match (&place.site, work.as_deref()) {
            (SiteState::Failed { why }, _) | (_, Some(PoolWork { place: Err(why), .. })) => why,
            (SiteState::Connecting, _) => {
                is_connecting = true;
                continue;
            }
            (SiteState::Open(_), work) => {
                is_known |= work.is_some();
                continue;
            }
        };
        return Some(Wanted::no(VSPHERE, "Error", place.region.told(why)));
    }
    if is_connecting {
        return Some(Wanted::no(VSPHERE, "Connecting", "connecting to the vCenter"));
    }
    is_known.then(|| Wanted::yes(VSPHERE, "Ready", "everything that the pool names is there"))
}
