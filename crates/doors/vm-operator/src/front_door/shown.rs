//! From what the door sees to what people are shown.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;
use roost_controller::Key;
use roost_fleet::Step;
use roost_views::{
    DecisionView, Ended, Facts, GaugeView, LimitView, Mood, Part, Power, RequestView, StepView,
    SubjectKind, TileView, Unit, VmKind, VmPhase, VmView,
};

use super::{Joined, WORDS};
use crate::api::{PowerState, VirtualMachine, VirtualMachineImageCache};
use crate::flow::Done;
use crate::priority::{PrioritySettings, level_of};
use crate::provider::Running;

/// How long a guest may take to an address before a person should look. As for its priority.
const PATIENCE: Duration = Duration::from_mins(15);

pub(super) fn request(
    joined: &Joined,
    running: Option<Running>,
    now: Timestamp,
    priority: &PrioritySettings,
) -> RequestView {
    let (vm, course) = (&joined.vm, &joined.course);
    let id = vm.namespaced_name();
    let name = has_vm(joined).then(|| vm.name_any());
    let part = has_vm(joined).then(|| phase(vm, running, joined).part);
    let state = course.standing(part, vm.is_being_deleted());
    let at = joined.passes.running.as_ref().map(|walk| (walk.at, walk.since));
    let at = at.or(joined.passes.last);
    let status = vm.status.as_ref();
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let image = vm.spec.image.as_ref().map(|image| image.name.clone());
    let level = level_of(vm, now, priority);
    RequestView {
        noun: WORDS.noun.to_owned(),
        group: WORDS.group.to_owned(),
        state,
        queued: course.asked,
        waited_secs: course.waited_secs(now),
        project: vm.namespace(),
        wants: wants(vm),
        verdict: Some(course.decision(&WORDS, &id, name.as_deref())),
        outcome: None,
        facts: Facts::default()
            .listed("class", "Class", text(&vm.spec.class_name))
            .listed("image", "Image", text(&vm.spec.image_name).or(image))
            .with("zone", "Zone", status.and_then(|status| text(&status.zone)))
            .with("host", "Host", status.and_then(|status| text(&status.node_name)))
            .with("vm_id", "VM id", status.and_then(|status| text(&status.unique_id)))
            .with("flow", "Flow", at.map(|(step, _)| step.chart.as_str()))
            .with("step", "Last step", at.map(|(step, _)| step.step))
            .with("passed", "Last pass", at.map(|(_, at)| format!("{at:.0}")))
            .with("level", "Queue level", Some(level)),
        id: WORDS.request(id),
        vm: name,
    }
}

/// Such as `small, powered on`.
fn wants(vm: &VirtualMachine) -> Option<String> {
    let power = vm.spec.power_state.map(|state| match state {
        PowerState::PoweredOn => "powered on",
        PowerState::PoweredOff => "powered off",
        PowerState::Suspended => "suspended",
    });
    let class = Some(vm.spec.class_name.as_str()).filter(|class| !class.is_empty());
    let words: Vec<_> = class.into_iter().chain(power).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// Earlier passes, oldest first. The last word is the course's own.
pub(super) fn passed(joined: &Joined, id: &str) -> Vec<DecisionView> {
    let name = joined.vm.name_any();
    let view = |passed: &super::trail::Passed| DecisionView {
        seq: 0,
        at: passed.at,
        door: WORDS.name.to_owned(),
        subject_kind: SubjectKind::Request(WORDS.noun.to_owned()),
        subject: id.to_owned(),
        subject_name: None,
        verdict: passed.verdict,
        reason: passed.words.clone(),
        bound_by: Some(passed.step.to_string()),
        gates: Vec::new(),
        next_look: None,
        vm: joined.course.has_vm.then(|| name.clone()),
        times: passed.times,
        since: passed.since,
    };
    joined.passes.past.iter().map(view).collect()
}

/// There is one, or one is being made.
fn has_vm(joined: &Joined) -> bool {
    joined.course.has_vm || joined.row.is_some()
}

/// `None` while there is none.
pub(super) fn vm(joined: &Joined, running: Option<Running>) -> Option<VmView> {
    if !has_vm(joined) {
        return None;
    }
    let (vm, row) = (&joined.vm, joined.row.as_deref());
    let status = vm.status.as_ref();
    let own = |row: &roost_fleet::Vm| row.id.to_string();
    let unique = status.map(|status| status.unique_id.clone()).filter(|id| !id.is_empty());
    let phase = phase(vm, running, joined);
    let image = vm.spec.image.as_ref().map(|image| image.name.clone());
    Some(VmView {
        id: row.map(own).or(unique).unwrap_or_else(|| vm.name_any()),
        door: WORDS.name.to_owned(),
        kind: if vm.is_being_deleted() { VmKind::Leaving } else { VmKind::Machine },
        power: row.map_or(Power::Unknown, |row| roost_door::fleet::power(row.power)),
        phase: Some(phase),
        request: Some(WORDS.request(Key::of(vm.as_ref()).to_string())),
        template: image,
        cpus: row.map(|row| row.cpus.into()),
        memory_mb: row.map(|row| row.memory_mb),
        address: vm.primary_ip().map(str::to_owned),
        created: row.and_then(|row| row.created).or(joined.course.asked),
        started: joined.passes.address.and_then(|wait| wait.ended),
        fate: None,
        facts: Facts::default()
            .listed("namespace", "Namespace", vm.namespace())
            .listed("class", "Class", Some(vm.spec.class_name.clone()))
            .with("instance_uuid", "Instance uuid", Some(vm.spec.instance_uuid.clone())),
        name: vm.name_any(),
    })
}

fn phase(vm: &VirtualMachine, running: Option<Running>, joined: &Joined) -> VmPhase {
    let named = |label: &str, words: &str, part, since| VmPhase {
        label: label.to_owned(),
        words: words.to_owned(),
        part,
        since,
    };
    if let Some(running) = running {
        let since = Some(running.since);
        return match running.step {
            Done::CreateStarted => named("creating", "creating", Part::Making, since),
            Done::DeleteStarted => named("deleting", "deleting", Part::Leaving, since),
            Done::PowerStateUpdated => named("powering", "changing power", Part::Starting, since),
            Done::Restarted => named("restarting", "restarting", Part::Starting, since),
            Done::Customized => named("customising", "customizing", Part::Starting, since),
            _ => named("reconfiguring", "reconfiguring", Part::Making, since),
        };
    }
    let stands = joined.course.stands_at().and_then(|stage| stage.since);
    if vm.is_being_deleted() {
        return named("deleting", "deleting", Part::Leaving, stands);
    }
    match vm.current_power_state() {
        Some(PowerState::PoweredOn) if vm.waits_for_address() => {
            named("waiting-for-address", "waiting for address", Part::Joining, stands)
        }
        Some(PowerState::PoweredOn) => {
            let since = joined.passes.address.and_then(|wait| wait.ended);
            named("running", "running", Part::Working, since)
        }
        Some(PowerState::PoweredOff) => named("powered-off", "powered off", Part::Working, None),
        Some(PowerState::Suspended) => named("suspended", "suspended", Part::Working, None),
        None => named("creating", "creating", Part::Making, stands),
    }
}

/// What the VM went through, and from there on what only this door waits for: its address.
pub(super) fn timeline(steps: &[Step], joined: &Joined) -> Vec<StepView> {
    let mut all: Vec<_> = steps.iter().map(roost_door::fleet::step).collect();
    let millis = |from: Timestamp, to: Timestamp| {
        u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or_default()
    };
    if let Some(wait) = joined.passes.address {
        all.push(StepView {
            phase: "waiting-for-address".to_owned(),
            words: "waiting for address".to_owned(),
            part: Part::Joining,
            began: wait.began,
            took_ms: wait.ended.map(|ended| millis(wait.began, ended)),
            deadline_ms: u64::try_from(PATIENCE.as_millis()).unwrap_or(u64::MAX),
            ended: wait.ended.map(|_| Ended::Done),
        });
        if let Some(began) = wait.ended {
            all.push(StepView {
                phase: "running".to_owned(),
                words: "running".to_owned(),
                part: Part::Working,
                began,
                took_ms: None,
                deadline_ms: 0,
                ended: None,
            });
        }
    }
    all.sort_by_key(|step| step.began);
    all
}

pub(super) fn creates(used: u64, most: u64) -> GaugeView {
    GaugeView {
        words: "VMs being made".to_owned(),
        brief: "creates".to_owned(),
        unit: Unit::Pieces,
        used,
        reserved: 0,
        limit: LimitView::At(most),
    }
}

/// The queue by level, and the images that are copied to datastores.
pub(super) fn tiles(
    depths: &[(String, u64)],
    caches: &[Arc<VirtualMachineImageCache>],
    has_signals: bool,
) -> Vec<TileView> {
    let href = format!("/{}", WORDS.path());
    let tile = |number, words: String, mood| TileView { number, words, href: href.clone(), mood };
    let queued = depths.iter().filter(|(_, keys)| *keys > 0);
    let mut all: Vec<_> = queued
        .map(|(level, keys)| tile(*keys, format!("in the queue: {level}"), Mood::Busy))
        .collect();
    if !caches.is_empty() {
        let ready = caches.iter().filter(|cache| cache.is_ready()).count();
        let mood = if ready == caches.len() { Mood::Good } else { Mood::Busy };
        all.push(tile(ready as u64, format!("of {} images cached", caches.len()), mood));
    }
    if !has_signals {
        let words = "signals: vCenter tells no changes, VMs are looked at by time".to_owned();
        all.push(tile(0, words, Mood::Bad));
    }
    all
}
