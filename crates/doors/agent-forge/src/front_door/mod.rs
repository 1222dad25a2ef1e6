//! The door as the house shows it: AgentMachines on their way, VMs, pools.

mod advice;
mod shown;
mod way;

use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use roost_controller::{Key, Status};
use roost_door::{
    Acting, Action, DoorWords, Found, FrontDoor, Order, Refused, Steer, Summary, api_server_outage,
};
use roost_fleet::{Decided, Draft, Resume, Snapshot, Subject, Vm};
use roost_views::words::count;
use roost_views::{
    CheckView, NeedView, OutageView, PoolView, RequestDetail, RequestView, StepView, VmDetail,
    VmView,
};

use self::way::Seen;
use crate::api::{OwnedVm, VsphereAgent, VsphereAgentPool};
use crate::control::{World, room};
use crate::outside::{AgentMachineView, AgentView};
use crate::plan::pools_of;
use crate::vcenter::FORGE;

/// What the door and its requests are called.
pub const WORDS: DoorWords = DoorWords {
    name: "agent-forge",
    noun: "AgentMachine",
    nouns: "AgentMachines",
    group: "NodePool",
    about: "Each AgentMachine that finds no Agent gets a VM that boots the discovery ISO, registers as an Agent and becomes a node. The VM goes when its Machine has gone.",
};

/// A running door as the house sees it.
#[derive(Debug)]
pub struct ForgeDoor {
    world: Arc<World>,
    status: Status,
    can_act: bool,
}

/// One AgentMachine with all that hangs on it.
struct Joined {
    machine: AgentMachineView,
    object: Arc<DynamicObject>,
    pools: Vec<Arc<VsphereAgentPool>>,
    vsphere_agent: Option<Arc<VsphereAgent>>,
    agent: Option<AgentView>,
    vm: Option<Arc<Vm>>,
}

impl ForgeDoor {
    pub(crate) fn new(world: Arc<World>, status: Status) -> Self {
        Self { world, status, can_act: true }
    }

    /// For a service that changes nothing.
    #[must_use]
    pub fn only_shown(mut self) -> Self {
        self.can_act = false;
        self
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        self.world.sites.open_ones().iter().map(|site| site.fleet.mirror().snapshot()).collect()
    }

    fn join(&self, object: Arc<DynamicObject>, seen: &[Snapshot]) -> Joined {
        let machine = AgentMachineView::of(&object);
        let candidates = self.world.pools_by_control_plane.objects(&machine.namespace);
        let pools = pools_of(&machine, &candidates);
        let mut vsphere_agent = None;
        for pool in &pools {
            let all = self.world.vsphere_agents_of(pool);
            vsphere_agent = all.into_iter().find(|agent| agent.is_for(&machine.name));
            if vsphere_agent.is_some() {
                break;
            }
        }
        let record = vsphere_agent.as_ref().and_then(|agent| agent.recorded());
        let agent = record.and_then(|record| self.agent_of(record));
        let vm = vsphere_agent.as_ref().and_then(|agent| row_of(agent, seen));
        Joined { machine, object, pools, vsphere_agent, agent, vm }
    }

    fn agent_of(&self, record: &OwnedVm) -> Option<AgentView> {
        let found = record.agent_ref.as_ref()?;
        let (namespace, name) = (found.namespace.as_deref()?, found.name.as_deref()?);
        self.world.agents_in(namespace).into_iter().find(|agent| agent.name == name)
    }

    fn view(&self, joined: &Joined) -> RequestView {
        let pools: Vec<_> = joined.pools.iter().map(AsRef::as_ref).collect();
        let room_for = |pool: &Arc<VsphereAgentPool>| {
            let all = self.world.vsphere_agents_of(pool);
            let live: Vec<_> = all.into_iter().filter(|agent| !agent.is_deleting()).collect();
            room(pool, &live, 0)
        };
        let course = way::course(&Seen {
            machine: &joined.machine,
            created: joined.object.creation_timestamp().map(|time| time.0),
            pools: &pools,
            room: joined.pools.first().map_or(crate::control::Room::Yes, room_for),
            held: joined.pools.first().and_then(|pool| self.world.known_hold(pool)),
            arriving: joined.pools.first().and_then(|pool| self.world.arriving(pool)),
            vsphere_agent: joined.vsphere_agent.as_deref(),
            agent: joined.agent.as_ref(),
        });
        shown::request(joined, &course, self.world.now())
    }

    fn machines(&self) -> Vec<Arc<DynamicObject>> {
        let pools = self.world.pools.objects();
        let mut spaces: Vec<_> =
            pools.iter().map(|pool| pool.spec.control_plane_namespace.clone()).collect();
        spaces.sort();
        spaces.dedup();
        spaces.iter().flat_map(|space| self.world.agent_machines.objects(space)).collect()
    }
}

fn row_of(agent: &VsphereAgent, seen: &[Snapshot]) -> Option<Arc<Vm>> {
    let request = crate::vcenter::FORGE.request(agent.uid()?);
    seen.iter().find_map(|snapshot| snapshot.serving(&request).next().cloned())
}

impl FrontDoor for ForgeDoor {
    fn words(&self) -> DoorWords {
        WORDS
    }

    fn title(&self) -> String {
        WORDS.name.to_owned()
    }

    fn liveness(&self) -> Vec<CheckView> {
        Vec::new()
    }

    fn readiness(&self) -> Vec<CheckView> {
        let is_synced = self.status.is_synced();
        let words = if is_synced { "every kind is listed" } else { "kinds are still being listed" };
        vec![CheckView::new("watches", is_synced, words)]
    }

    fn summary(&self) -> Summary {
        Summary::of(&self.requests(), &self.vms(), self.status.is_synced())
    }

    fn requests(&self) -> Vec<RequestView> {
        let seen = self.snapshots();
        let machines = self.machines().into_iter();
        let mut all: Vec<_> =
            machines.map(|machine| self.view(&self.join(machine, &seen))).collect();
        all.sort_by_key(|request| (request.state, request.queued, request.id.clone()));
        all
    }

    fn request(&self, id: &str) -> Option<RequestDetail> {
        let (namespace, name) = id.split_once('/')?;
        let found = self.world.agent_machines.objects(namespace);
        let object = found.into_iter().find(|object| object.name_any() == name)?;
        let joined = self.join(object, &self.snapshots());
        let request = self.view(&joined);
        let decisions = request.verdict.clone().into_iter().collect();
        let vm = joined.vsphere_agent.as_ref().and_then(|agent| self.vm(&agent.vm_name()));
        let verdict = request.verdict.clone().map(roost_views::DecisionView::brief);
        Some(RequestDetail::new(RequestView { verdict, ..request }, decisions, vm))
    }

    fn vms(&self) -> Vec<VmView> {
        let seen = self.snapshots();
        let agents = self.world.vsphere_agents.objects();
        let recorded = agents.iter().filter(|agent| agent.recorded().is_some());
        let view = |agent: &Arc<VsphereAgent>| {
            let pool = self.world.pool_of(agent);
            shown::vm(agent, pool.as_deref(), row_of(agent, &seen).as_deref())
        };
        let mut all: Vec<_> = recorded.map(view).collect();
        for vm in &mut all {
            // Its AgentMachine may be gone before it.
            vm.request = vm.request.take().filter(|request| self.is_known(&request.id));
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        let vm = self.vms().into_iter().find(|vm| vm.name == name_or_id || vm.id == name_or_id)?;
        let sites = self.world.sites.open_ones();
        let steps = sites.iter().find_map(|site| site.fleet.timelines().of(&vm.name));
        let steps = steps.iter().flat_map(|timeline| &timeline.steps);
        let mut timeline: Vec<_> = steps.map(roost_door::fleet::step).collect();
        timeline.extend(self.joining(&vm.name, &timeline));
        timeline.sort_by_key(|step| step.began);
        Some(VmDetail { annotation: None, timeline, decisions: Vec::new(), vm })
    }

    fn pools(&self) -> Vec<PoolView> {
        let mut all = self.world.pools.objects();
        all.sort_by_key(|pool| Key::of(pool.as_ref()));
        let held = |pool: &VsphereAgentPool| self.world.known_hold(pool);
        let arriving = |pool: &VsphereAgentPool| self.world.arriving(pool);
        all.iter().map(|pool| shown::pool(pool, held(pool), arriving(pool))).collect()
    }

    fn needs(&self) -> Vec<NeedView> {
        let (pools, seen) = (self.world.pools.keys(), self.snapshots());
        let frozen = pools.iter().flat_map(|pool| {
            self.world
                .freezes(pool)
                .into_iter()
                .map(|(_, freeze)| shown::frozen(pool, &freeze, &seen))
        });
        let mut needs: Vec<NeedView> = frozen.collect();
        needs.sort_by(|one, other| one.words.cmp(&other.words));
        needs
    }

    fn forgets_ended(&self) -> bool {
        true
    }

    fn advice(&self, gate: &str) -> Option<&'static str> {
        advice::advice(gate)
    }

    fn runbook(&self) -> Option<&'static str> {
        Some("forge-demand-unmet")
    }

    fn outages(&self) -> Vec<OutageView> {
        let lost = self.status.server_trouble().into_iter();
        lost.map(|it| api_server_outage(it.since, it.words, WORDS.nouns)).collect()
    }

    fn steer(&self) -> Option<&dyn Steer> {
        self.can_act.then_some(self as &dyn Steer)
    }
}

impl Steer for ForgeDoor {
    fn act(&self, order: Order) -> Acting<'_> {
        let subject = match &order.action {
            Action::Recheck { request } => FORGE.about_request(&*request.id),
            Action::RefillPool { pool } => FORGE.about_pool(&**pool),
            _ => FORGE.about_service("orders"),
        };
        let answer = match &order.action {
            Action::Recheck { request } => self.recheck(&request.id),
            Action::RefillPool { pool } => match pool.split_once('/') {
                Some((namespace, name)) => {
                    self.world.wake_pool(Key::new(namespace, name));
                    Ok(format!("pool {pool} is looked at now"))
                }
                None => Err(Refused::Unknown { what: format!("pool {pool}") }),
            },
            Action::ResumeDeletions { found } => self.resume_deletions(*found, &order.to_string()),
            _ => Err(Refused::NotNow {
                why: "pause a pool by its annotation agent-forge.containeroo.ch/paused=true, and delete a VM by deleting its VsphereAgent".to_owned(),
            }),
        };
        // A freeze that ends is entered for each pool already.
        let is_entered = matches!(order.action, Action::ResumeDeletions { .. }) && answer.is_ok();
        if !is_entered {
            self.enter(subject, &order, &answer);
        }
        Box::pin(std::future::ready(answer))
    }
}

impl ForgeDoor {
    fn resume_deletions(&self, found: Found, who: &str) -> Result<String, Refused> {
        let (found, what) = match found {
            Found::Approve => (Resume::Approve, "may go"),
            Found::StartOver => (Resume::StartOver, "are looked at anew"),
        };
        match self.world.resume_deletions(None, found, who) {
            0 => Err(Refused::NotNow {
                why: "no deletion of a VsphereAgentPool is frozen".to_owned(),
            }),
            vms => Ok(format!("{} {what}", count(vms as u64, "VM", "VMs"))),
        }
    }

    fn is_known(&self, id: &str) -> bool {
        let Some((namespace, name)) = id.split_once('/') else { return false };
        let known = self.world.agent_machines.objects(namespace);
        known.iter().any(|object| object.name_any() == name)
    }

    /// From the end of what the vCenter did for it.
    fn joining(&self, vm: &str, steps: &[StepView]) -> Vec<StepView> {
        let agents = self.world.vsphere_agents.objects();
        let Some(agent) = agents.iter().find(|agent| agent.vm_name() == vm) else {
            return Vec::new();
        };
        let end = |step: &StepView| {
            let took = std::time::Duration::from_millis(step.took_ms?);
            step.began.checked_add(took).ok()
        };
        let starts = steps.iter().filter(|step| !step.part.is_afterwards());
        let up = starts.filter_map(end).max();
        let found = agent.recorded().and_then(|record| record.agent_ref.as_ref());
        let registered = found.and_then(|found| {
            let all = self.world.agents.objects(found.namespace.as_deref()?);
            let object = all.into_iter().find(|it| Some(it.name_any()) == found.name)?;
            Some(object.creation_timestamp()?.0)
        });
        shown::joining(agent, up, registered)
    }

    /// Into the journals of the vCenters that are open: who, and what came of it.
    fn enter(&self, subject: Subject, order: &Order, said: &Result<String, Refused>) {
        let words = match said {
            Ok(words) => format!("{words}, by {order}"),
            Err(refused) => format!("not done: {refused}; by {order}"),
        };
        // One line, wherever the pool works.
        if let Some(site) = self.world.sites.open_ones().first() {
            let draft = Draft::new(subject, Decided::Steered, words);
            site.fleet.journal().record(draft, self.world.now());
        }
    }

    fn recheck(&self, id: &str) -> Result<String, Refused> {
        let unknown = || Refused::Unknown { what: format!("AgentMachine {id}") };
        let (namespace, name) = id.split_once('/').ok_or_else(unknown)?;
        let found = self.world.agent_machines.objects(namespace);
        let object = found.into_iter().find(|it| it.name_any() == name).ok_or_else(unknown)?;
        let joined = self.join(object, &self.snapshots());
        for pool in &joined.pools {
            self.world.wake_pool(Key::of(pool.as_ref()));
        }
        if let Some(agent) = &joined.vsphere_agent {
            self.world.wake_vm(Key::of(agent.as_ref()));
        }
        Ok(format!("AgentMachine {id} is looked at now"))
    }
}
