//! Where an AgentMachine stands on its way to an Agent. Pure.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use roost_door::{Course, Stage, Waits};

use crate::api::{OwnedVm, Phase, PoolDefaults, Reason, VsphereAgent, VsphereAgentPool};
use crate::control::{INFRA_ENV, ISO, READY, Room, VSPHERE};
use crate::outside::{AgentMachineView, AgentView};

/// What is seen of one AgentMachine and all that hangs on it.
#[derive(Debug, Clone)]
pub(super) struct Seen<'a> {
    pub(super) machine: &'a AgentMachineView,
    pub(super) created: Option<Timestamp>,
    /// Those that serve its NodePool: one, if all is well.
    pub(super) pools: &'a [&'a VsphereAgentPool],
    /// Why its pool may not change anything.
    pub(super) held: Option<String>,
    /// Whether its pool may have another VM.
    pub(super) room: Room,
    /// Percent of the ISO that are on the datastore, while it is copied.
    pub(super) arriving: Option<u64>,
    pub(super) vsphere_agent: Option<&'a VsphereAgent>,
    pub(super) agent: Option<&'a AgentView>,
}

/// Reasons that only a person can remove.
const FOR_A_PERSON: [&str; 4] =
    ["DiscoveryFailed", "NameConflict", "VMNameConflict", "DeletionBlocked"];

fn condition<'a>(all: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    all.iter().find(|condition| condition.type_ == kind)
}

/// The message of a condition that does not hold, and since when.
fn trouble(all: &[Condition], kind: &str) -> Option<(String, Timestamp)> {
    let found = condition(all, kind).filter(|condition| condition.status == "False")?;
    let message = if found.message.is_empty() { &found.reason } else { &found.message };
    Some((message.clone(), found.last_transition_time.0))
}

pub(super) fn course(seen: &Seen<'_>) -> Course {
    let machine = seen.machine;
    let record = seen.vsphere_agent.and_then(VsphereAgent::recorded);
    if machine.has_agent && record.is_none() {
        return of_another(seen);
    }
    let mut waits = Waits::Us;
    let mut stages = vec![demand(machine), pool(seen, &mut waits)];
    // What lies behind counts as done: a pool whose ISO is being renewed does not stop a VM that is there.
    let has_vm = record.is_some_and(|vm| !vm.bios_uuid.is_empty());
    if let [pool] = seen.pools {
        stages.push(vcenter(pool, has_vm));
        stages.push(iso(pool, has_vm, seen.arriving));
    }
    stages.push(vsphere_agent(seen));
    stages.push(vm(seen, record, &mut waits));
    stages.push(registered(seen, record));
    stages.push(prepared(seen, record));
    stages.push(bound(seen, record));
    let at = stages.iter().find(|stage| !stage.is_done);
    if at.is_some_and(|stage| matches!(stage.name, "demand" | "registered" | "bound"))
        && waits == Waits::Us
    {
        waits = Waits::Others;
    }
    let next_look = Some("when something changes".to_owned());
    Course { stages, waits, has_vm: record.is_some(), asked: seen.created, next_look }
}

/// It got an Agent that no VM of ours backs.
fn of_another(seen: &Seen<'_>) -> Course {
    let stage = Stage::new("bound", "the provider has bound an Agent to it", true);
    let stages = vec![stage.noting("bound to an Agent that was there already").since(seen.created)];
    Course { stages, waits: Waits::Others, has_vm: false, asked: seen.created, next_look: None }
}

fn demand(machine: &AgentMachineView) -> Stage {
    let is_done = machine.lacks_agent || machine.has_agent || machine.is_ready;
    let stage = Stage::new("demand", "its provider says that no Agent suits it", is_done);
    if machine.is_paused {
        return Stage { is_done: false, ..stage }.noting("cluster.x-k8s.io/paused is set on it");
    }
    if is_done {
        return stage;
    }
    stage.noting("the provider has not said NoSuitableAgents yet, so that nothing is made for it")
}

fn pool(seen: &Seen<'_>, waits: &mut Waits) -> Stage {
    let stage =
        |is_done| Stage::new("pool", "one pool serves its NodePool and may make VMs", is_done);
    let name = |pool: &VsphereAgentPool| roost_controller::Key::of(pool).to_string();
    match seen.pools {
        [] => {
            *waits = Waits::Person;
            stage(false).noting(format!(
                "no VsphereAgentPool serves NodePool {} in {}",
                seen.machine.node_pool, seen.machine.namespace
            ))
        }
        [pool] if pool.is_deleting() => stage(false).noting(format!("{} is deleted", name(pool))),
        [_] if seen.held.is_some() => {
            *waits = Waits::Person;
            let why = seen.held.clone().unwrap_or_default();
            stage(seen.vsphere_agent.is_some()).noting(why)
        }
        [pool] => match &seen.room {
            Room::No { why } if seen.vsphere_agent.is_none() => stage(false).noting(why.clone()),
            _ => stage(true).noting(name(pool)),
        },
        several => {
            *waits = Waits::Person;
            let names: Vec<_> = several.iter().map(|pool| name(pool)).collect();
            stage(false).noting(format!("several pools serve it: {}", names.join(", ")))
        }
    }
}

fn vcenter(pool: &VsphereAgentPool, has_vm: bool) -> Stage {
    let stage = Stage::new("vcenter", "everything that the pool names is in the vCenter", true);
    match trouble(&pool.status.conditions, VSPHERE).filter(|_| !has_vm) {
        Some((why, since)) => Stage { is_done: false, ..stage }.noting(why).since(Some(since)),
        None => stage,
    }
}

fn iso(pool: &VsphereAgentPool, has_vm: bool, arriving: Option<u64>) -> Stage {
    let path = pool.shown_iso().map(|iso| iso.path.clone());
    let is_done = has_vm || path.is_some();
    let stage = Stage::new("iso", "the discovery ISO is in the datastore", is_done);
    if is_done {
        return stage.noting(path.unwrap_or_default());
    }
    let conditions = &pool.status.conditions;
    match trouble(conditions, INFRA_ENV).or_else(|| trouble(conditions, ISO)) {
        Some((why, since)) => stage.noting(why).since(Some(since)),
        None => stage.noting(match arriving {
            Some(percent) => format!("it is being copied, {percent} %"),
            None => "it is being copied".to_owned(),
        }),
    }
}

fn vsphere_agent(seen: &Seen<'_>) -> Stage {
    use kube::ResourceExt as _;
    let stage =
        Stage::new("vsphereagent", "a VsphereAgent stands for it", seen.vsphere_agent.is_some());
    match seen.vsphere_agent {
        Some(agent) => {
            let created = agent.creation_timestamp().map(|time| time.0);
            stage.noting(agent.name_any()).since(created)
        }
        None => stage,
    }
}

fn vm(seen: &Seen<'_>, record: Option<&OwnedVm>, waits: &mut Waits) -> Stage {
    let is_made = record.is_some_and(|vm| !vm.bios_uuid.is_empty());
    let stage = |is_done| Stage::new("vm", "its VM is there and runs", is_done);
    let Some(agent) = seen.vsphere_agent else { return stage(false) };
    let ready = condition(&agent.status.conditions, READY);
    let since = ready.map(|ready| ready.last_transition_time.0);
    match trouble(&agent.status.conditions, READY) {
        Some((why, since)) => {
            let reason = ready.map(|ready| ready.reason.as_str()).unwrap_or_default();
            if FOR_A_PERSON.contains(&reason) {
                *waits = Waits::Person;
            }
            stage(false).noting(why).since(Some(since))
        }
        None if is_made => {
            let name = record.map(|vm| vm.name.clone()).unwrap_or_default();
            stage(true).noting(name).since(since)
        }
        None => stage(false).noting("it is being made").since(since),
    }
}

fn moved(record: Option<&OwnedVm>) -> Option<Timestamp> {
    record.and_then(|vm| vm.last_transition_time.as_ref()).map(|time| time.0)
}

fn registered(seen: &Seen<'_>, record: Option<&OwnedVm>) -> Stage {
    let name = record.and_then(|vm| vm.agent_ref.as_ref()).and_then(|agent| agent.name.clone());
    let stage = Stage::new("registered", "an Agent has registered from the VM", name.is_some());
    if let Some(name) = name {
        return stage.noting(name).since(moved(record));
    }
    let Some(record) = record else { return stage };
    let attempt = seen.vsphere_agent.map_or(0, |agent| agent.status.attempts).saturating_add(1);
    let note = match record.reason {
        Some(Reason::AgentDiscoveryExpired) => "no Agent registered in time".to_owned(),
        Some(Reason::AgentMissing) => "its Agent is gone".to_owned(),
        _ => format!("the VM boots the discovery ISO, attempt {attempt}"),
    };
    stage.noting(note).since(moved(Some(record)))
}

fn prepared(seen: &Seen<'_>, record: Option<&OwnedVm>) -> Stage {
    let is_bound = record.is_some_and(|vm| vm.phase == Some(Phase::Bound));
    let is_done = is_bound
        || seen
            .agent
            .is_some_and(|agent| agent.approved && agent.pin() == seen.machine.wanted_pin());
    Stage::new("prepared", "the Agent is approved and labelled for it", is_done)
        .joining()
        .since(moved(record))
}

fn bound(seen: &Seen<'_>, record: Option<&OwnedVm>) -> Stage {
    let is_done = seen.machine.has_agent || record.is_some_and(|vm| vm.phase == Some(Phase::Bound));
    let stage = Stage::new("bound", "the provider has bound the Agent to it", is_done).joining();
    match seen.agent.filter(|_| is_done) {
        Some(agent) => stage.noting(format!("bound to Agent {}", agent.name)).since(moved(record)),
        None if is_done => stage.since(moved(record)),
        None => stage.noting("the provider has not bound the Agent yet"),
    }
}
