//! From what the door sees to what people are shown.

use jiff::Timestamp;
use kube::ResourceExt;
use roost_controller::Key;
use roost_door::Course;
use roost_fleet::{Freeze, Snapshot, Vm, VmId};
use roost_views::words::{Style, memory};
use roost_views::{
    Ended, Facts, NeedKind, NeedView, Part, PoolView, Power, RequestView, StepView, VmKind,
    VmPhase, VmView,
};

use super::{Joined, WORDS};
use crate::api::names::RESUME_DELETIONS;
use crate::api::{Phase, PoolDefaults, VsphereAgent, VsphereAgentPool};

pub(super) fn request(joined: &Joined, course: &Course, now: Timestamp) -> RequestView {
    let id = format!("{}/{}", joined.machine.namespace, joined.machine.name);
    let pool = joined.pools.first();
    let vm = joined.vsphere_agent.as_ref().filter(|agent| agent.recorded().is_some());
    let vm = vm.map(|agent| agent.vm_name());
    let served = joined.vsphere_agent.as_ref().filter(|_| vm.is_some());
    let part = served.map(|agent| part_of(agent));
    let state = course.standing(part, joined.machine.is_deleting);
    let agent = joined.agent.as_ref().map(|agent| agent.name.clone());
    let seen = joined.vm.as_ref().map(|row| row.id.to_string());
    RequestView {
        noun: WORDS.noun.to_owned(),
        group: WORDS.group.to_owned(),
        state,
        queued: course.asked,
        waited_secs: course.waited_secs(now),
        project: pool.map(|pool| Key::of(pool.as_ref()).to_string()),
        wants: pool.map(|pool| size(pool)),
        verdict: Some(course.decision(&WORDS, &id, vm.as_deref())),
        outcome: None,
        facts: Facts::default()
            .listed("pool", "Pool", pool.map(|pool| pool.name_any()))
            .with("machine", "Machine", joined.machine.machine.clone())
            .with(
                "vsphere_agent",
                "VsphereAgent",
                joined.vsphere_agent.as_ref().map(|it| it.name_any()),
            )
            .with("agent", "Agent", agent)
            .with("vm_id", "VM id", seen),
        id: WORDS.request(id),
        vm,
    }
}

/// Such as `4 CPU, 16 GiB, 120 GiB disk`.
fn size(pool: &VsphereAgentPool) -> String {
    let mb = u64::try_from(pool.memory_mib()).unwrap_or_default();
    format!("{} CPU, {}, {} GiB disk", pool.cpus(), memory(mb, Style::Short), pool.disk_gib())
}

pub(super) fn vm(
    agent: &VsphereAgent,
    pool: Option<&VsphereAgentPool>,
    row: Option<&Vm>,
) -> VmView {
    let name = agent.vm_name();
    let record = agent.recorded();
    let phase = record.and_then(|record| record.phase).unwrap_or(Phase::Provisioning);
    let moved = record.and_then(|record| record.last_transition_time.as_ref()).map(|time| time.0);
    let kind = match phase {
        _ if agent.is_deleting() => VmKind::Leaving,
        Phase::Released | Phase::Orphaned => VmKind::Leaving,
        _ => VmKind::Machine,
    };
    let machine = record.and_then(|record| record.machine_ref.as_ref());
    let machine = machine.and_then(|machine| machine.name.clone());
    let control_plane = pool.map(|pool| pool.spec.control_plane_namespace.clone());
    let served = control_plane.zip(agent.agent_machine());
    let request = served.map(|(namespace, name)| WORDS.request(format!("{namespace}/{name}")));
    let reason = record.and_then(|record| record.reason).map(|reason| format!("{reason:?}"));
    VmView {
        id: row.map_or_else(|| name.clone(), |row| row.id.to_string()),
        door: WORDS.name.to_owned(),
        kind,
        power: row.map_or(Power::Unknown, |row| roost_door::fleet::power(row.power)),
        phase: Some(VmPhase {
            words: words(phase).to_owned(),
            label: label(phase).to_owned(),
            part: part_of(agent),
            since: moved,
        }),
        request,
        template: None,
        cpus: row.map(|row| row.cpus.into()),
        memory_mb: row.map(|row| row.memory_mb),
        address: row.and_then(|row| row.guest.address).map(|address| address.to_string()),
        created: row.and_then(|row| row.created).or(agent.creation_timestamp().map(|time| time.0)),
        started: moved.filter(|_| phase == Phase::Bound),
        fate: None,
        facts: Facts::default()
            .listed("pool", "Pool", Some(agent.spec.pool_ref.name.clone()))
            .listed("reason", "Reason", reason)
            .with("machine", "Machine", machine)
            .with(
                "domain",
                "Failure domain",
                Some(agent.failure_domain().to_owned()).filter(|it| !it.is_empty()),
            )
            .with("bios_uuid", "BIOS uuid", record.map(|record| record.bios_uuid.clone())),
        name,
    }
}

/// What a person has to look at before VMs of a pool go.
pub(super) fn frozen(pool: &Key, freeze: &Freeze, seen: &[Snapshot]) -> NeedView {
    let name = |vm: &VmId| {
        let row = seen.iter().find_map(|snapshot| snapshot.vm(vm));
        row.map_or_else(|| vm.to_string(), |row| row.name.to_string())
    };
    NeedView {
        kind: NeedKind::Frozen,
        door: WORDS.name.to_owned(),
        words: format!("Deletions of pool {pool} are frozen: {}", freeze.finding()),
        advice: format!(
            "See whether the Machines of these VMs are really gone. Then `roost thaw --approve`, or the annotation {RESUME_DELETIONS}=approve on the pool, lets the VMs go; `roost thaw` has everything looked at anew."
        ),
        since: Some(freeze.since),
        count: freeze.vms.len() as u64,
        names: freeze.vms.iter().take(NeedView::NAMES).map(name).collect(),
        href: "/deletions".to_owned(),
        runbook: Some("deletions-frozen".to_owned()),
    }
}

fn label(phase: Phase) -> &'static str {
    match phase {
        Phase::Provisioning | Phase::Unknown => "provisioning",
        Phase::Available => "available",
        Phase::Bound => "bound",
        Phase::Released => "released",
        Phase::Orphaned => "orphaned",
    }
}

fn words(phase: Phase) -> &'static str {
    match phase {
        Phase::Provisioning | Phase::Unknown => "Boots and registers",
        Phase::Available => "Agent waits to be bound",
        Phase::Bound => "Node",
        Phase::Released => "Machine is deleted",
        Phase::Orphaned => "No Agent",
    }
}

/// Where its VM is in its life. One that is to go is on its way out, whatever it was before.
fn part_of(agent: &VsphereAgent) -> Part {
    let phase = agent.recorded().and_then(|record| record.phase).unwrap_or(Phase::Provisioning);
    if agent.is_deleting() { Part::Leaving } else { part(phase) }
}

/// Waits of the way after the VM is up, which are nobody's phase in the vCenter: until an Agent registers, and until it is bound.
pub(super) fn joining(
    agent: &VsphereAgent,
    up: Option<Timestamp>,
    registered: Option<Timestamp>,
) -> Vec<StepView> {
    let Some(record) = agent.recorded() else { return Vec::new() };
    let moved = record.last_transition_time.as_ref().map(|time| time.0);
    let bound = moved.filter(|_| record.phase == Some(Phase::Bound));
    let step = |phase: &str, words: &str, began: Timestamp, ended: Option<Timestamp>| StepView {
        phase: phase.to_owned(),
        words: words.to_owned(),
        part: Part::Joining,
        began,
        took_ms: ended.map(|ended| roost_views::words::ms_between(began, ended)),
        deadline_ms: 0,
        ended: ended.map(|_| Ended::Done),
    };
    let registering = up.map(|up| {
        // Objects carry whole seconds.
        let registered = registered.map(|at| at.max(up));
        step("registering", "until an Agent registers", up, registered)
    });
    let binding = registered.map(|at| {
        let at = up.map_or(at, |up| at.max(up));
        step("binding", "until the Agent is prepared and bound", at, bound.map(|it| it.max(at)))
    });
    let working = bound.map(|at| StepView {
        part: Part::Working,
        ..step("bound", "bound", registered.map_or(at, |registered| at.max(registered)), None)
    });
    // A VM that is to go waits for no Agent any more.
    let waits = registering.into_iter().chain(binding).chain(working);
    waits.filter(|step| step.ended.is_some() || part_of(agent) != Part::Leaving).collect()
}

fn part(phase: Phase) -> Part {
    match phase {
        Phase::Provisioning | Phase::Unknown => Part::Starting,
        Phase::Available => Part::Joining,
        Phase::Bound => Part::Working,
        Phase::Released | Phase::Orphaned => Part::Leaving,
    }
}

pub(super) fn pool(
    pool: &VsphereAgentPool,
    held: Option<String>,
    arriving: Option<u64>,
) -> PoolView {
    let status = &pool.status;
    let count = |number: i32| u64::try_from(number).unwrap_or_default();
    let coming = status.owned_vms.iter().filter(|vm| vm.phase == Some(Phase::Provisioning)).count();
    let ready = status.conditions.iter().find(|it| it.type_ == crate::control::READY);
    let trouble = ready.filter(|it| it.status == "False").map(|it| it.message.clone());
    let iso = pool.shown_iso();
    let domains = status.failure_domains.iter().map(|domain| match domain.message.as_str() {
        "" => format!("{} {}", domain.name, domain.vms),
        why => format!("{} {} ({why})", domain.name, domain.vms),
    });
    let domains: Vec<String> = domains.collect();
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    PoolView {
        door: WORDS.name.to_owned(),
        name: Key::of(pool).to_string(),
        template: None,
        wanted: count(status.agent_machines),
        ready: count(status.available_agents),
        coming: coming as u64,
        in_use: count(status.bound_agents),
        missing: count(status.demand_deficit),
        waiting: held.or(trouble),
        size: Some(size(pool)),
        facts: Facts::default()
            .listed("waiting_machines", "Waiting", Some(status.waiting_agent_machines.to_string()))
            .with("node_pool", "NodePool", Some(pool.spec.node_pool_ref.name.clone()))
            .with("spares", "Spares", (pool.buffer() > 0).then(|| status.spare_agents.to_string()))
            .with("domains", "VMs by failure domain", some(domains.join(", ")))
            .with("outdated", "VMs with older hardware", some(status.outdated_vms.join(", ")))
            .with("iso_arriving", "ISO arriving", arriving.map(|percent| format!("{percent} %")))
            .with("iso", "ISO", iso.map(|iso| iso.path.clone()))
            .with(
                "iso_checked",
                "ISO checked",
                iso.and_then(|iso| iso.checked_at.as_ref()).map(|at| format!("{:.0}", at.0)),
            ),
    }
}
