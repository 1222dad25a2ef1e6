//! How far a pod is on its way to a VM that answers.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use roost_door::{Course, Stage, Waits};

use crate::contract::{SpecError, VmSpec, key};
use crate::pods::{Activity, PostCloneState, Tracked, Waiting};

/// One pod with all that is known of it.
pub(super) struct Seen<'a> {
    pub(super) pod: &'a Pod,
    pub(super) spec: Result<&'a VmSpec, &'a SpecError>,
    pub(super) tracked: Option<&'a Tracked>,
    /// Why no new VM is made.
    pub(super) held: Option<String>,
}

impl Seen<'_> {
    fn has_vm(&self) -> bool {
        self.tracked.is_some_and(|pod| pod.vm.is_some())
    }

    fn activity(&self) -> Option<Activity> {
        self.tracked.and_then(|pod| pod.activity)
    }

    fn asked(&self) -> Option<Timestamp> {
        self.pod.creation_timestamp().map(|time| time.0)
    }

    /// No VM, and none is wanted.
    pub(super) fn is_hibernated(&self) -> bool {
        self.spec.is_ok_and(|spec| spec.hibernate) && !self.has_vm() && self.activity().is_none()
    }

    fn next_look(&self) -> String {
        let failure = self.tracked.and_then(|pod| pod.failure.as_ref());
        failure.map_or_else(
            || "when something changes".to_owned(),
            |failure| format!("at {:.0}", failure.retry),
        )
    }
}

pub(super) fn course(seen: &Seen<'_>) -> Course {
    let mut waits = Waits::Us;
    let mut stages = vec![annotations(seen, &mut waits)];
    if seen.spec.is_ok_and(|spec| spec.hibernate && spec.managed) {
        stages.push(hibernated(seen));
    } else if seen.spec.is_ok() {
        stages.push(spawning(seen, &mut waits));
        stages.push(vm(seen));
        stages.extend(network(seen, &mut waits));
        stages.push(address(seen));
        stages.push(ready(seen));
    }
    let has_vm = seen.has_vm();
    Course { stages, waits, has_vm, asked: seen.asked(), next_look: Some(seen.next_look()) }
}

fn annotations(seen: &Seen<'_>, waits: &mut Waits) -> Stage {
    let stage = |is_done| Stage::new("annotations", "its annotations name a VM", is_done);
    match seen.spec {
        Ok(spec) => stage(true).noting(spec.name.clone()).since(seen.asked()),
        Err(error) => {
            *waits = Waits::Person;
            stage(false).noting(error.to_string()).since(seen.asked())
        }
    }
}

fn spawning(seen: &Seen<'_>, waits: &mut Waits) -> Stage {
    let stage = |is_done| Stage::new("spawning", "new VMs are not held back", is_done);
    match &seen.held {
        Some(held) if !seen.has_vm() && seen.activity().is_none() => {
            *waits = Waits::Person;
            stage(false).noting(held.clone())
        }
        _ => stage(true),
    }
}

fn vm(seen: &Seen<'_>) -> Stage {
    let stage = |is_done| Stage::new("vm", "its VM runs", is_done);
    let Some(pod) = seen.tracked else { return stage(false).noting("it is about to be looked at") };
    let since = pod.history.steps().last().map(|step| step.began);
    if let Some(activity) = pod.activity {
        return stage(false).noting(doing(activity, pod)).since(since);
    }
    match (&pod.failure, &pod.vm) {
        (Some(failure), _) => {
            let note = format!("{} (attempt {})", failure.message, failure.attempts);
            stage(false).noting(note).since(since)
        }
        (None, Some(vm)) if vm.state.is_running() => {
            stage(true).noting(format!("{} as {}", vm.name(), vm.id)).since(pod.started)
        }
        (None, Some(vm)) => stage(false).noting(format!("it is {}", vm.state.as_str())),
        (None, None) => stage(false).noting("it is about to be made"),
    }
}

/// In words, with how far a transfer is.
pub(super) fn doing(activity: Activity, pod: &Tracked) -> String {
    let words = words(activity);
    match pod.transfer.as_ref().filter(|transfer| transfer.has_begun()) {
        Some(transfer) => format!("{words}, {transfer}"),
        None => words.to_owned(),
    }
}

pub(super) fn words(activity: Activity) -> &'static str {
    match activity {
        Activity::Creating(waiting) | Activity::Waking(waiting) => match waiting {
            Waiting::Queued => "waits for its turn",
            Waiting::PullingImage => "fetches its image",
            Waiting::PullingSnapshot => "fetches its snapshot",
            Waiting::Cloning => "is cloned",
            Waiting::Booting => "boots",
        },
        Activity::Restarting => "is started again",
        Activity::Hibernating => "is saved and pushed",
        Activity::Deleting => "is removed",
        Activity::Evicting => "is given up",
        Activity::DroppingTag => "takes its hibernation back",
    }
}

/// Only where a copied guest needs a network of its own.
fn network(seen: &Seen<'_>, waits: &mut Waits) -> Option<Stage> {
    let state = seen.tracked?.post_clone?;
    let stage = Stage::new(
        "network",
        "the copied guest has a network of its own",
        state == PostCloneState::Done,
    );
    Some(match state {
        PostCloneState::Failed => {
            *waits = Waits::Person;
            stage.noting(format!("run the script of its annotation {}", key::POST_CLONE_HINT))
        }
        PostCloneState::Running => stage.noting("the script runs in the guest"),
        PostCloneState::Done => stage,
    })
}

fn address(seen: &Seen<'_>) -> Stage {
    let address = seen.tracked.and_then(|pod| pod.address).filter(|_| seen.has_vm());
    let stage = Stage::new("address", "its address is known", address.is_some());
    match address {
        Some(address) => stage.noting(address.to_string()),
        None => stage.noting("no lease for its network card yet"),
    }
}

fn ready(seen: &Seen<'_>) -> Stage {
    let pod = seen.tracked;
    let is_ready = pod.is_some_and(|pod| pod.ready && pod.vm.is_some());
    let stage = Stage::new("ready", "it answers its probe", is_ready)
        .since(ready_since(seen.pod))
        .joining();
    match pod.map(|pod| pod.probed.as_str()).filter(|words| !words.is_empty()) {
        Some(words) => stage.noting(words),
        None if is_ready => stage.noting("it answers"),
        None => stage,
    }
}

/// When the pod's condition last changed.
pub(super) fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    ready.last_transition_time.as_ref().map(|time| time.0)
}

fn hibernated(seen: &Seen<'_>) -> Stage {
    let is_done = seen.is_hibernated();
    let stage = Stage::new("hibernated", "its VM is saved and removed", is_done);
    let Some(pod) = seen.tracked else { return stage };
    let stage = stage.since(pod.history.steps().last().map(|step| step.began));
    match (pod.activity, &pod.failure) {
        (Some(activity), _) => stage.noting(doing(activity, pod)),
        (None, Some(failure)) => {
            stage.noting(format!("{} (attempt {})", failure.message, failure.attempts))
        }
        (None, None) if is_done => {
            stage.noting(format!("hibernated; it wakes when {} is removed", key::HIBERNATE))
        }
        (None, None) => stage,
    }
}

#[cfg(test)]
mod tests {
    use roost_microvm::{VmConfig, VmRecord, VmState};
    use roost_views::RequestState;

    use super::*;
    use crate::pods::Failure;
    use crate::testing::pod;

    const ANNOTATIONS: [(&str, &str); 2] = [(key::VM_NAME, "vk-a"), (key::MANAGED, "true")];

    fn stands(annotations: &[(&str, &str)], tracked: &Tracked, held: Option<&str>) -> Course {
        let pod = pod("a", annotations);
        let spec = VmSpec::of(&pod);
        let held = held.map(str::to_owned);
        course(&Seen { pod: &pod, spec: spec.as_ref(), tracked: Some(tracked), held })
    }

    fn running() -> Tracked {
        let config = VmConfig { name: "vk-a".into(), ..VmConfig::default() };
        let vm =
            VmRecord { id: "V1".into(), state: VmState::Running, config, ..VmRecord::default() };
        let address = Some([10, 0, 0, 5].into());
        Tracked {
            vm: Some(vm),
            address,
            ready: true,
            probed: "ping ok".into(),
            ..Tracked::default()
        }
    }

    #[test]
    fn the_first_thing_that_is_missing_is_where_it_stands() {
        let at = |course: &Course| course.stands_at().map(|stage| stage.name);
        let now = Timestamp::UNIX_EPOCH;
        let none = Tracked::default();
        let pulling = Activity::Creating(Waiting::PullingSnapshot);
        let failure = Some(Failure::again(None, "x", "create: no space".into(), now));
        for (case, tracked, held, stage, waits) in [
            ("nothing yet", none.clone(), None, Some("vm"), Waits::Us),
            ("held back", none.clone(), Some("drained"), Some("spawning"), Waits::Person),
            ("a VM is not held back", running(), Some("drained"), None, Waits::Us),
            (
                "pulling",
                Tracked { activity: Some(pulling), ..none.clone() },
                None,
                Some("vm"),
                Waits::Us,
            ),
            ("failed", Tracked { failure, ..none }, None, Some("vm"), Waits::Us),
            (
                "its script",
                Tracked { post_clone: Some(PostCloneState::Failed), ..running() },
                None,
                Some("network"),
                Waits::Person,
            ),
            (
                "no lease",
                Tracked { address: None, ready: false, ..running() },
                None,
                Some("address"),
                Waits::Us,
            ),
            ("no answer", Tracked { ready: false, ..running() }, None, Some("ready"), Waits::Us),
            ("all of it", running(), None, None, Waits::Us),
        ] {
            let course = stands(&ANNOTATIONS, &tracked, held);
            assert_eq!((at(&course), course.waits), (stage, waits), "{case}");
        }
        let unnamed = stands(&[], &Tracked::default(), None);
        assert_eq!((at(&unnamed), unnamed.waits), (Some("annotations"), Waits::Person));
    }

    #[test]
    fn a_pod_that_sleeps_has_arrived() {
        let mut asleep = ANNOTATIONS.to_vec();
        asleep.push((key::HIBERNATE, "true"));
        let course = stands(&asleep, &Tracked::default(), None);
        assert_eq!(course.state(), RequestState::Working);
        assert!(course.stages.last().unwrap().note.as_ref().unwrap().contains("wakes when"));
        let saving = Tracked { activity: Some(Activity::Hibernating), ..running() };
        let course = stands(&asleep, &saving, None);
        assert_eq!(course.stands_at().unwrap().note.as_deref(), Some("is saved and pushed"));
    }
}
