use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::matching::refers_to;
use super::merge::Record;
use crate::api::{OwnedVm, Phase, PoolDefaults, Reason, VsphereAgentPool};
use crate::identity::{conflict, matches_mac, matches_uuid};
use crate::outside::{
    AGENT_GROUP, AgentMachineView, AgentView, MACHINE_GROUP, MachineView, V1BETA1,
};

/// What the phases of VMs follow from.
#[derive(Debug, Clone, Copy)]
pub struct PhaseInput<'a> {
    pub pool: &'a VsphereAgentPool,
    /// Those that match the pool.
    pub agents: &'a [&'a AgentView],
    /// All of the control plane's namespace.
    pub machines: &'a [MachineView],
    pub agent_machines: &'a [AgentMachineView],
    pub now: Timestamp,
}

/// What is known of the Machine behind a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paired {
    Live,
    Deleting,
    Absent,
}

/// Brings every record to the phase that follows from what is seen, and appends Agents that no VM of ours explains.
pub fn refresh(mut owned: Vec<Record>, input: &PhaseInput<'_>) -> Vec<Record> {
    let mut matched: BTreeSet<&str> = BTreeSet::new();
    for record in &mut owned {
        let agent = find_agent(&record.vm, input.agents);
        if let Some(agent) = agent {
            matched.insert(&agent.name);
        }
        match agent {
            Some(agent) => with_agent(&mut record.vm, agent, input),
            None => without_agent(record, input),
        }
    }
    for agent in input.agents {
        let name = agent.observed_hostname();
        let is_known = owned.iter().any(|record| record.vm.name == name);
        if matched.contains(agent.name.as_str()) || name.is_empty() || is_known {
            continue;
        }
        let mut record = Record { vm: OwnedVm::named(name), made: true, ..Record::default() };
        with_agent(&mut record.vm, agent, input);
        owned.push(record);
    }
    owned
}

/// Surer ways of knowing come first.
fn find_agent<'a>(vm: &OwnedVm, agents: &[&'a AgentView]) -> Option<&'a AgentView> {
    let by = |is: &dyn Fn(&AgentView) -> bool| agents.iter().rev().find(|agent| is(agent)).copied();
    let known = by(&|agent| matches_uuid(vm, &agent.identity))
        .or_else(|| by(&|agent| matches_mac(vm, &agent.identity)));
    // An Agent of the same name that is there before the VM is that of an earlier one. Taken for this VM's it would be missed as soon as the VM has its
    // identity, and the VM would be replaced for that.
    if known.is_some() || is_being_made(vm) {
        return known;
    }
    let is_named = |agent: &AgentView| !vm.name.is_empty() && vm.name == agent.observed_hostname();
    by(&|agent| is_named(agent) && !conflict(vm, &agent.identity))
        .or_else(|| by(&|agent| refers_to(vm, agent) && !conflict(vm, &agent.identity)))
}

/// It was asked for and has no identity yet.
fn is_being_made(vm: &OwnedVm) -> bool {
    let is_asked = matches!(
        vm.reason,
        Some(Reason::CreateRequested | Reason::VmReplacing | Reason::VmCreatePending)
    );
    is_asked && vm.bios_uuid.is_empty() && vm.phase == Some(Phase::Provisioning)
}

fn with_agent(vm: &mut OwnedVm, agent: &AgentView, input: &PhaseInput<'_>) {
    let before = vm.clone();
    vm.agent_ref = Some(reference(AGENT_GROUP, "Agent", &agent.namespace, &agent.name));
    if vm.bios_uuid.is_empty() {
        vm.bios_uuid.clone_from(&agent.identity.uuid);
    }
    if vm.mac_address.is_empty() {
        vm.mac_address = agent.identity.macs.first().cloned().unwrap_or_default();
    }
    let was_released = matches!(before.phase, Some(Phase::Bound | Phase::Released));
    let namespace = &input.pool.spec.control_plane_namespace;
    vm.machine_ref = match machine_of(agent, input.agent_machines) {
        Some(machine) => Some(reference(MACHINE_GROUP, "Machine", namespace, &machine)),
        // The provider takes its label off while the Machine is still there; it is remembered for as long as it matters.
        None if was_released => before.machine_ref.clone(),
        None => None,
    };
    let machine = paired(vm, input.machines);
    let (phase, reason) = if agent.is_bound() {
        (Phase::Bound, Reason::AgentBound)
    } else if was_released {
        (Phase::Released, Reason::AgentReleased)
    } else {
        (Phase::Available, Reason::AgentAvailable)
    };
    let was = |reason| before.is(Phase::Released, reason);
    let (phase, reason) = match machine {
        Paired::Deleting => (Phase::Released, Reason::MachineDeleting),
        // It stays so until its VM is gone; only a Machine that is there again takes it back.
        Paired::Absent if was(Reason::MachineDeleting) || was(Reason::MachineDeleted) => {
            (Phase::Released, Reason::MachineDeleted)
        }
        Paired::Live if was(Reason::MachineDeleting) && !agent.is_bound() => {
            (Phase::Released, Reason::AgentReleased)
        }
        Paired::Live | Paired::Absent => (phase, reason),
    };
    set(vm, &before, phase, reason, input.now);
}

fn without_agent(record: &mut Record, input: &PhaseInput<'_>) {
    let before = record.vm.clone();
    let machine = paired(&before, input.machines);
    let was_released = before.phase == Some(Phase::Released);
    // The Agent may go before its Machine. What was seen of the Machine still counts.
    if was_released && before.machine_ref.is_some() {
        let reason = match (before.reason, machine) {
            (Some(Reason::MachineDeleting | Reason::MachineDeleted), Paired::Absent) => {
                Some(Reason::MachineDeleted)
            }
            (_, Paired::Deleting) => Some(Reason::MachineDeleting),
            _ => None,
        };
        if let Some(reason) = reason {
            record.vm.agent_ref = None;
            return set(&mut record.vm, &before, Phase::Released, reason, input.now);
        }
    }
    if before.is(Phase::Released, Reason::MachineDeleted) {
        record.vm.agent_ref = None;
        return;
    }
    let had_agent = before.agent_ref.is_some()
        || matches!(before.phase, Some(Phase::Available | Phase::Bound | Phase::Released));
    let is_orphan = before.phase == Some(Phase::Orphaned);
    let since = before.last_transition_time.as_ref().map(|time| time.0);
    let timeout = input.pool.discovery_timeout();
    let is_overdue = before.is(Phase::Provisioning, Reason::AgentNotDiscovered)
        && since.is_some_and(|since| since_then(since, input.now) >= timeout);
    (record.vm.agent_ref, record.vm.machine_ref) = (None, None);
    let (phase, reason) = if is_orphan || is_overdue {
        (Phase::Orphaned, Reason::AgentDiscoveryExpired)
    } else if had_agent {
        (Phase::Orphaned, Reason::AgentMissing)
    } else if record.made {
        (Phase::Provisioning, Reason::AgentNotDiscovered)
    } else {
        // Nothing to wait for yet: the clock starts with the VM.
        let reason = before.reason.filter(|_| before.phase == Some(Phase::Provisioning));
        let reason = reason.filter(|reason| *reason != Reason::AgentNotDiscovered);
        (Phase::Provisioning, reason.unwrap_or(Reason::VmCreatePending))
    };
    set(&mut record.vm, &before, phase, reason, input.now);
}

fn set(vm: &mut OwnedVm, before: &OwnedVm, phase: Phase, reason: Reason, now: Timestamp) {
    if !before.is(phase, reason) || vm.last_transition_time.is_none() {
        vm.last_transition_time = Some(Time(whole_seconds(now)));
    }
    (vm.phase, vm.reason) = (Some(phase), Some(reason));
}

/// The Machine that the provider means: its label holds the name or the uid of an AgentMachine, which a Machine owns.
pub fn machine_of(agent: &AgentView, agent_machines: &[AgentMachineView]) -> Option<String> {
    let label = agent.machine_label();
    if label.is_empty() {
        return None;
    }
    let found = agent_machines.iter().find(|it| it.name == label || it.uid == label);
    Some(match found {
        Some(machine) => machine.machine.clone().unwrap_or_else(|| machine.name.clone()),
        None => label.to_owned(),
    })
}

pub(super) fn paired(vm: &OwnedVm, machines: &[MachineView]) -> Paired {
    let name = vm.machine_ref.as_ref().and_then(|it| it.name.as_deref());
    let found = name.and_then(|name| machines.iter().find(|machine| machine.name == name));
    match found {
        Some(machine) if machine.is_deleting => Paired::Deleting,
        Some(_) => Paired::Live,
        None => Paired::Absent,
    }
}

pub(crate) fn since_then(then: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(then)).unwrap_or_default()
}

/// The wire has whole seconds; a finer time would differ from what comes back.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

fn reference(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some(format!("{group}/{V1BETA1}")),
        kind: Some(kind.to_owned()),
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    }
}
