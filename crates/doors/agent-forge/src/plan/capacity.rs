use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::demand::Demand;
use super::hostnames::hostname_of;
use super::matching::{associated, is_associated, refers_to};
use super::merge::Record;
use super::phases::{Paired, paired, since_then};
use crate::api::{
    ActionKind, OwnedVm, Phase, PlannedAction, PoolDefaults, Reason, VsphereAgentPool,
};
use crate::identity::{matches_mac, matches_uuid};
use crate::names::label_value;
use crate::outside::{AgentMachineView, AgentView, MachineView};

/// What a plan is made of.
#[derive(Debug, Clone, Copy)]
pub struct PlanInput<'a> {
    pub pool: &'a VsphereAgentPool,
    pub demand: &'a Demand,
    pub agents: &'a [&'a AgentView],
    /// With their phases as of now.
    pub owned: &'a [Record],
    pub machines: &'a [MachineView],
    pub agent_machines: &'a [AgentMachineView],
    pub now: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct CapacityPlan {
    pub matching: usize,
    pub bound: usize,
    pub available: usize,
    /// VMs on their way.
    pub pending: usize,
    pub deficit: usize,
    /// Names of Agents to prepare.
    pub patches: Vec<String>,
    pub deletions: Vec<Deletion>,
}

/// A VM that is not needed any more, and the Agent that goes after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deletion {
    pub vm: String,
    pub agent: Option<String>,
    pub why: DeleteWhy,
}

/// What a deletion rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeleteWhy {
    /// Its Machine was seen deleting, and is gone.
    MachineDeleted,
    /// Its Machine is gone, and nobody saw it go.
    MachineAbsent,
    Surplus,
    Orphaned,
}

impl DeleteWhy {
    pub fn words(self) -> &'static str {
        match self {
            Self::MachineDeleted => "its Machine was deleted",
            Self::MachineAbsent => "its Machine is gone and its Agent is free",
            Self::Surplus => "no AgentMachine needs its Agent",
            Self::Orphaned => "it has no Agent and no AgentMachine needs one",
        }
    }
}

pub fn build_plan(input: &PlanInput<'_>) -> CapacityPlan {
    let PlanInput { demand, agents, owned, .. } = *input;
    let bound = agents.iter().filter(|agent| agent.is_bound()).count();
    let is_pending = |record: &&Record| {
        record.vm.phase == Some(Phase::Provisioning) && !record.vm.name.is_empty()
    };
    let pending = owned.iter().filter(is_pending).count();
    let usable = agents.iter().filter(|agent| is_usable(agent, input)).count();
    let deficit = demand.waiting.len().saturating_sub(usable + pending);
    CapacityPlan {
        matching: agents.len(),
        bound,
        available: agents.len() - bound,
        pending,
        deficit,
        patches: patches(input),
        deletions: deletions(input),
    }
}

/// Whether an AgentMachine that waits could get this Agent. One that is pinned to another, or whose VM is on its way out, cannot be chosen.
fn is_usable(agent: &AgentView, input: &PlanInput<'_>) -> bool {
    let wanted = |pin: &str| input.demand.waiting.iter().any(|name| label_value(name) == pin);
    let released = input.owned.iter().filter(|record| record.vm.phase == Some(Phase::Released));
    !agent.is_bound()
        && (agent.pin().is_empty() || wanted(agent.pin()))
        && !is_associated(agent, released)
}

fn patches(input: &PlanInput<'_>) -> Vec<String> {
    let pool = input.pool;
    let is_spare =
        |agent: &AgentView| associated(agent, input.owned).is_some_and(|record| record.is_spare);
    let needs_patch = |agent: &AgentView| {
        pool.discriminator().is_some_and(|wanted| agent.nodepool() != wanted)
            // A spare is approved when somebody gets it, or whoever comes along could bind it.
            || pool.approves() && !agent.approved && !is_spare(agent)
            || agent.role != pool.role()
            || agent.role_label() != pool.role()
            || agent.hostname.is_empty()
    };
    let stays =
        |record: &&Record| !matches!(record.vm.phase, Some(Phase::Released | Phase::Orphaned));
    let reselect = |agent: &AgentView| {
        let Some(record) = associated(agent, input.owned.iter().filter(stays)) else {
            return false;
        };
        let has_name = || {
            let hostname = hostname_of(record, agent, input.agents);
            label_value(&agent.hostname) == label_value(hostname)
        };
        !input.demand.waiting.is_empty()
            && !agent.hostname.is_empty()
            && record.pin().is_some_and(|pin| agent.pin() != pin || !has_name())
    };
    let is_due = |agent: &&&AgentView| {
        !agent.is_bound()
            && (needs_patch(agent) || reselect(agent))
            && is_associated(agent, input.owned)
    };
    input.agents.iter().filter(is_due).map(|agent| agent.name.clone()).collect()
}

fn deletions(input: &PlanInput<'_>) -> Vec<Deletion> {
    let pool = input.pool;
    let mut chosen: Vec<Deletion> = Vec::new();
    if pool.retains() {
        return chosen;
    }
    // What no VsphereAgent of ours stands for is never deleted.
    let ours = || input.owned.iter().filter(|record| record.managed && !record.protected);
    let push = |chosen: &mut Vec<Deletion>, record: &Record, why: DeleteWhy| {
        if chosen.iter().any(|known| known.vm == record.vm.name) {
            return;
        }
        let is_its = |agent: &&&AgentView| !agent.is_bound() && backs(&record.vm, agent);
        let agent = match why {
            // There is none.
            DeleteWhy::Orphaned => None,
            DeleteWhy::MachineDeleted | DeleteWhy::MachineAbsent | DeleteWhy::Surplus => {
                input.agents.iter().find(is_its).map(|agent| agent.name.clone())
            }
        };
        chosen.push(Deletion { vm: record.vm.name.clone(), agent, why });
    };
    for record in ours().filter(|it| it.vm.is(Phase::Released, Reason::MachineDeleted)) {
        push(&mut chosen, record, DeleteWhy::MachineDeleted);
    }
    for record in ours().filter(|record| is_absent(record, input)) {
        push(&mut chosen, record, DeleteWhy::MachineAbsent);
    }
    if !input.demand.waiting.is_empty() || input.demand.without_agent > 0 {
        return chosen;
    }
    let (keep, grace) = (pool.keep_spares().max(pool.buffer()), pool.surplus_grace());
    let is_free = |record: &&Record| {
        let is_free = |agent: &&&AgentView| !agent.is_bound() && refers_to(&record.vm, agent);
        record.vm.phase == Some(Phase::Available) && input.agents.iter().any(|a| is_free(&a))
    };
    let mut free: Vec<&Record> = ours().filter(is_free).collect();
    // Those with the hardware of today are kept first.
    free.sort_by_key(|record| record.is_outdated);
    for record in
        free.into_iter().skip(keep).filter(|record| is_older(&record.vm, grace, input.now))
    {
        push(&mut chosen, record, DeleteWhy::Surplus);
    }
    let grace = pool.orphan_grace();
    let orphans = ours().filter(|record| record.vm.phase == Some(Phase::Orphaned));
    for record in orphans.filter(|record| is_older(&record.vm, grace, input.now)) {
        push(&mut chosen, record, DeleteWhy::Orphaned);
    }
    chosen
}

fn is_older(vm: &OwnedVm, grace: Duration, now: Timestamp) -> bool {
    grace.is_zero()
        || vm.last_transition_time.as_ref().is_some_and(|time| since_then(time.0, now) >= grace)
}

/// The Agent was given back while nobody looked: neither its Machine nor its AgentMachine is there any more.
fn is_absent(record: &Record, input: &PlanInput<'_>) -> bool {
    let vm = &record.vm;
    let machine = vm.machine_ref.as_ref().and_then(|it| it.name.as_deref()).unwrap_or(&vm.name);
    let is_named = |name: &str| name == machine || name == vm.name;
    vm.is(Phase::Released, Reason::AgentReleased)
        && paired(vm, input.machines) == Paired::Absent
        && !input.machines.iter().any(|it| is_named(&it.name))
        && !input.agent_machines.iter().any(|it| is_named(&it.name))
        && is_older(vm, input.pool.absent_grace().max(Duration::from_secs(1)), input.now)
}

/// How long until the first of the Agents that were given back has been free for the grace.
pub fn grace_left(pool: &VsphereAgentPool, owned: &[Record], now: Timestamp) -> Option<Duration> {
    let grace = pool.absent_grace().max(Duration::from_secs(1));
    let released = owned.iter().filter(|it| it.vm.is(Phase::Released, Reason::AgentReleased));
    let since = released.filter_map(|it| it.vm.last_transition_time.as_ref());
    let left = since.map(|time| grace.saturating_sub(since_then(time.0, now)));
    left.filter(|left| !left.is_zero()).min()
}

/// Whether the Agent is this very VM, so that it may go with it.
fn backs(vm: &OwnedVm, agent: &AgentView) -> bool {
    matches_uuid(vm, &agent.identity)
        || matches_mac(vm, &agent.identity)
        || refers_to(vm, agent) && !crate::identity::conflict(vm, &agent.identity)
}

impl CapacityPlan {
    /// For the status, in the order of the plan.
    pub fn actions(&self) -> Vec<PlannedAction> {
        let action = |kind, name: &str, reason: String| PlannedAction {
            kind,
            name: name.to_owned(),
            reason,
        };
        let deficit = (0..self.deficit).map(|_| {
            let reason =
                "an AgentMachine waits and neither an Agent nor a VM is on its way".to_owned();
            action(ActionKind::DemandDeficit, "", reason)
        });
        let patches = self.patches.iter().map(|name| {
            action(
                ActionKind::PatchAgent,
                name,
                "the Agent of an owned VM is to be prepared".to_owned(),
            )
        });
        let vms = self
            .deletions
            .iter()
            .map(|it| action(ActionKind::DeleteVm, &it.vm, it.why.words().to_owned()));
        let agents = self.deletions.iter().filter_map(|it| {
            let reason = format!("its VM {} goes: {}", it.vm, it.why.words());
            Some(action(ActionKind::DeleteAgent, it.agent.as_deref()?, reason))
        });
        let all: Vec<_> = deficit.chain(patches).chain(vms).chain(agents).collect();
        if all.is_empty() {
            return vec![action(ActionKind::Noop, "", "nothing to do".to_owned())];
        }
        all
    }

    /// Names of all VMs that are to go.
    pub fn deleted_vms(&self) -> BTreeSet<&str> {
        self.deletions.iter().map(|it| it.vm.as_str()).collect()
    }
}
