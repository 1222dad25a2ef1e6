//! From what the kubelet knows to what people are shown.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use roost_controller::Key;
use roost_microvm::{Reference, VmState};
use roost_views::words::{Style, memory};
use roost_views::{
    Ended, Facts, Part, Power, RequestView, StepView, Verdict, VmKind, VmPhase, VmView,
};

use super::WORDS;
use super::way::{self, Seen};
use crate::contract::{Mode, VmSpec, fork_snapshot, import_snapshot};
use crate::pods::{Activity, Host, Passed, Tracked, Waiting};

pub(super) fn request(seen: &Seen<'_>, host: &Host, now: Timestamp) -> RequestView {
    let id = Key::of(seen.pod).to_string();
    let course = way::course(seen);
    let spec = seen.spec.ok();
    let vm = seen.tracked.and_then(|pod| pod.vm.as_ref()).map(|vm| vm.name().to_owned());
    let mut verdict = course.decision(&WORDS, &id, vm.as_deref());
    if seen.is_hibernated() {
        // Nothing is owed: whoever wants it awake takes the annotation off.
        verdict.verdict = Verdict::Skipped;
    }
    let ending = seen.tracked.and_then(|pod| pod.ending.as_ref());
    if let Some(ending) = ending {
        verdict.verdict = Verdict::Failed;
        verdict.reason = format!("{}: {}", ending.reason, ending.message);
    }
    let is_over = ending.is_some() || seen.pod.metadata.deletion_timestamp.is_some();
    let served = seen.tracked.filter(|pod| pod.vm.is_some());
    let part = served.map(|pod| phase(pod, Some(seen.pod)).part);
    let state = course.standing(part, is_over);
    let transfer = seen.tracked.and_then(|pod| pod.transfer.as_ref());
    let transfer = transfer.filter(|it| it.has_begun()).map(ToString::to_string);
    RequestView {
        noun: WORDS.noun.to_owned(),
        group: WORDS.group.to_owned(),
        state,
        queued: course.asked,
        waited_secs: course.waited_secs(now),
        project: seen.pod.namespace(),
        wants: spec.map(wants),
        verdict: Some(verdict),
        outcome: None,
        facts: Facts::default()
            .listed("phase", "Phase", phase_of(seen))
            .listed("transfer", "Transfer", transfer)
            .with("mode", "Made by", spec.map(made_by))
            .with("base", "Cloned from", spec.and_then(|spec| base(spec, host)))
            .with(
                "saved",
                "Saved as",
                spec.filter(|_| seen.is_hibernated()).map(|it| saved(it, host)),
            )
            .with("image", "Image", spec.map(|spec| spec.image.clone()))
            .with("vm_id", "VM id", seen.tracked.and_then(|pod| Some(pod.vm.as_ref()?.id.clone())))
            .with("probe", "Probe", seen.tracked.map(|pod| pod.probed.clone()))
            .with("restarts", "Restarts", seen.tracked.map(|pod| pod.restarts.to_string()))
            .with("vnc_port", "VNC port", spec.and_then(|spec| Some(spec.vnc_port?.to_string()))),
        id: WORDS.request(id),
        vm,
    }
}

/// As `kubectl` shows it.
fn phase_of(seen: &Seen<'_>) -> Option<String> {
    if seen.is_hibernated() {
        return Some("Hibernated".to_owned());
    }
    seen.pod.status.as_ref().and_then(|status| status.phase.clone())
}

/// Such as `2 CPU, 4 GiB`.
fn wants(spec: &VmSpec) -> String {
    let cpus = spec.cpus.map(|cpus| format!("{cpus} CPU"));
    let size = spec.memory.map(|bytes| memory(bytes >> 20, Style::Short));
    cpus.into_iter().chain(size).collect::<Vec<_>>().join(", ")
}

fn made_by(spec: &VmSpec) -> String {
    match (&spec.fork_from, &spec.clone_from_dir) {
        _ if !spec.managed => "somebody else".to_owned(),
        (Some(source), _) => format!("fork of {source}"),
        (None, Some(folder)) => format!("clone of {}", folder.display()),
        (None, None) if spec.mode == Mode::Run => "run".to_owned(),
        (None, None) => "clone".to_owned(),
    }
}

/// The snapshot that its VM is made from, and what of it is on this host.
fn base(spec: &VmSpec, host: &Host) -> Option<String> {
    if let Some(source) = spec.fork_from.as_deref().filter(|_| spec.managed) {
        return Some(format!("snapshot {} of this host", fork_snapshot(source)));
    }
    let is_clone = spec.managed && spec.mode == Mode::Clone && spec.clone_from_dir.is_none();
    let name = is_clone.then(|| Reference::parse(&spec.image).local_name())?;
    Some(match host.cache.kept(&name) {
        None => format!("snapshot {name}, which is not kept on this host"),
        Some((bytes, used)) => {
            let size = memory(bytes.div_ceil(1 << 20), Style::Short);
            let used = used.map(|at| format!(", last used {at:.0}")).unwrap_or_default();
            format!("snapshot {name}, {size} on this host{used}")
        }
    })
}

/// Where a VM that sleeps is.
fn saved(spec: &VmSpec, host: &Host) -> String {
    if host.registry.is_some() {
        format!("{}:hibernate in the registry", spec.name)
    } else {
        format!("snapshot {} of this host", import_snapshot(&spec.name))
    }
}

pub(super) fn vm(key: &Key, pod: Option<&Pod>, seen: &Tracked) -> Option<VmView> {
    let vm = seen.vm.as_ref()?;
    let is_leaving = is_leaving(seen, pod);
    let (cpus, size) = (u64::from(vm.config.cpu), vm.config.memory >> 20);
    Some(VmView {
        id: vm.id.clone(),
        name: vm.name().to_owned(),
        door: WORDS.name.to_owned(),
        kind: if is_leaving { VmKind::Leaving } else { VmKind::Machine },
        power: match vm.state {
            VmState::Running => Power::On,
            VmState::Creating | VmState::Unknown | VmState::Other(_) => Power::Unknown,
            VmState::Created | VmState::Stopped | VmState::Stale | VmState::Error => Power::Off,
        },
        phase: Some(phase(seen, pod)),
        // One whose pod is gone serves nobody any more.
        request: pod.map(|_| WORDS.request(key.to_string())),
        template: Some(vm.config.image.clone()).filter(|image| !image.is_empty()),
        cpus: Some(cpus).filter(|cpus| *cpus > 0),
        memory_mb: Some(size).filter(|size| *size > 0),
        address: seen.address.map(|address| address.to_string()),
        created: vm.created_at.or(seen.started),
        started: pod.and_then(way::ready_since).filter(|_| seen.ready),
        fate: is_leaving.then(|| "its pod is deleted".to_owned()),
        facts: Facts::default()
            .listed("hypervisor", "Hypervisor", Some(vm.hypervisor.to_string()))
            .listed("restarts", "Restarts", Some(seen.restarts.to_string()))
            .with("probe", "Probe", Some(seen.probed.clone()))
            .with("pid", "Process", Some(vm.pid.to_string()))
            .with("mac", "MAC", vm.mac()),
    })
}

/// It is removed, or is about to be.
fn is_leaving(seen: &Tracked, pod: Option<&Pod>) -> bool {
    pod.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
        || seen.ending.is_some()
        || matches!(seen.activity, Some(Activity::Deleting | Activity::Evicting))
}

fn phase(seen: &Tracked, pod: Option<&Pod>) -> VmPhase {
    let began = seen.history.steps().last().map(|step| step.began);
    let of = |words: &str, label: &str, part, since| VmPhase {
        words: words.to_owned(),
        label: label.to_owned(),
        part,
        since,
    };
    let is_leaving = is_leaving(seen, pod);
    match seen.activity {
        Some(activity) => {
            let part = if is_leaving { Part::Leaving } else { part(activity) };
            of(way::words(activity), label(activity), part, began)
        }
        None if is_leaving => of("is about to be removed", "deleting", Part::Leaving, began),
        None if seen.ready => of("answers", "ready", Part::Working, pod.and_then(way::ready_since)),
        None => of("does not answer yet", "answering", Part::Joining, seen.started),
    }
}

fn label(activity: Activity) -> &'static str {
    match activity {
        Activity::Creating(waiting) | Activity::Waking(waiting) => match waiting {
            Waiting::Queued => "queued",
            Waiting::PullingImage => "pulling-image",
            Waiting::PullingSnapshot => "pulling-snapshot",
            Waiting::Cloning => "cloning",
            Waiting::Booting => "booting",
        },
        Activity::Restarting => "restarting",
        Activity::Hibernating => "hibernating",
        Activity::Deleting => "deleting",
        Activity::Evicting => "evicting",
        Activity::DroppingTag => "dropping-tag",
    }
}

fn part(activity: Activity) -> Part {
    match activity {
        Activity::Creating(Waiting::Booting) | Activity::Restarting => Part::Starting,
        Activity::Creating(_) | Activity::Waking(_) => Part::Making,
        Activity::DroppingTag => Part::Working,
        Activity::Hibernating | Activity::Deleting | Activity::Evicting => Part::Leaving,
    }
}

/// What the VM went through; the wait for an answer at the end, which is no step of ours.
pub(super) fn timeline(seen: &Tracked, pod: Option<&Pod>) -> Vec<StepView> {
    let mut steps: Vec<StepView> = seen.history.steps().map(step).collect();
    if let (Some(started), Some(_), None) = (seen.started, &seen.vm, seen.activity) {
        // The condition has whole seconds, and stays as it was when the VM is back before a probe has failed.
        let ready = pod.and_then(way::ready_since).filter(|_| seen.ready);
        let ready = ready.map(|at| at.max(started));
        steps.push(StepView {
            phase: "answering".to_owned(),
            words: "until it answers".to_owned(),
            part: Part::Joining,
            began: started,
            took_ms: ready.map(|ready| millis(started, ready)),
            deadline_ms: 0,
            ended: ready.map(|_| Ended::Done),
        });
    }
    steps.sort_by_key(|step| step.began);
    steps
}

fn step(passed: &Passed) -> StepView {
    StepView {
        phase: label(passed.activity).to_owned(),
        words: way::words(passed.activity).to_owned(),
        part: part(passed.activity),
        began: passed.began,
        took_ms: passed.ended.map(|(at, _)| millis(passed.began, at)),
        deadline_ms: 0,
        ended: passed.ended.map(|(_, well)| if well { Ended::Done } else { Ended::Failed }),
    }
}

fn millis(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.duration_since(from).as_millis()).unwrap_or_default()
}
