//! The one decision: from what is wanted and what is there to the next step. Pure.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::table::{Debt, Tracked};
use crate::contract::{SpecError, VmSpec};

/// A VM that stopped twice within this time is broken, not unlucky.
const COOLDOWN: Duration = Duration::from_secs(30);

/// What a pod wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) pod: &'a Pod,
    pub(super) spec: Result<&'a VmSpec, &'a SpecError>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Something is being done; its end calls.
    Await,
    WaitUntil(Timestamp),
    /// The pod is not known yet.
    Track,
    /// Nothing of the pod is left, here or at the API server.
    Forget,
    /// The pod is to go: its VM first.
    Delete,
    /// The VM is gone; now the pod object.
    Finalize,
    BringUp,
    Restart,
    /// The VM cannot go on: it is removed and the pod ends.
    GiveUp {
        reason: &'static str,
        message: String,
    },
    /// The pod object is deleted because its VM is lost.
    Evict,
    Hibernate,
    /// The VM goes on although it was to hibernate: what was saved of it is older than it is.
    DropTag,
    /// The guest may still have the network of another: whoever was to change that has died.
    ResumePostClone,
    /// The annotations cannot be followed.
    Refuse,
    Settled,
}

/// Row by row, the first that holds.
pub(super) fn plan(wanted: Option<Wanted<'_>>, seen: Option<&Tracked>, now: Timestamp) -> Step {
    let Some(wanted) = wanted else { return without_pod(seen, now) };
    let meta = &wanted.pod.metadata;
    let uid = meta.uid.as_deref().unwrap_or_default();
    let Some(seen) = seen else {
        return if meta.deletion_timestamp.is_some() { Step::Finalize } else { Step::Track };
    };
    if seen.activity.is_some() {
        return Step::Await;
    }
    if let Some(failure) = &seen.failure
        && now < failure.retry
    {
        return Step::WaitUntil(failure.retry);
    }
    if seen.uid != uid {
        return if seen.vm.is_some() { Step::Delete } else { Step::Forget };
    }
    if meta.deletion_timestamp.is_some() {
        return if seen.vm.is_some() { Step::Delete } else { Step::Finalize };
    }
    if let Some(ending) = &seen.ending {
        return if ending.told { Step::Settled } else { Step::Evict };
    }
    let phase = wanted.pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if seen.vm.is_none() && matches!(phase, Some("Failed" | "Succeeded")) {
        return Step::Settled;
    }
    let Ok(spec) = wanted.spec else { return Step::Refuse };
    match &seen.vm {
        None if spec.hibernate => Step::Settled,
        None => Step::BringUp,
        Some(vm) if !spec.managed => {
            debug_assert!(!vm.id.is_empty());
            Step::Settled
        }
        // One that does not run cannot be saved: it is started first.
        Some(vm) if spec.hibernate && vm.state.is_running() => Step::Hibernate,
        Some(vm) if vm.state.is_running() && seen.unhealthy.is_none() => {
            if seen.has_stale_tag {
                Step::DropTag
            } else if seen.debt == Debt::Open {
                Step::ResumePostClone
            } else {
                Step::Settled
            }
        }
        // It runs, so there is no hurry: only one that stops by itself is given up.
        Some(vm) if vm.state.is_running() => match seen.restarted {
            Some(at) if now < at + COOLDOWN => Step::WaitUntil(at + COOLDOWN),
            _ => Step::Restart,
        },
        Some(_) if seen.restarted.is_some_and(|at| now < at + COOLDOWN) => Step::GiveUp {
            reason: "RestartCooldown",
            message: "restart cooldown not elapsed".to_owned(),
        },
        Some(_) => Step::Restart,
    }
}

/// The pod object is gone: its VM goes too.
fn without_pod(seen: Option<&Tracked>, now: Timestamp) -> Step {
    match seen {
        None => Step::Settled,
        Some(seen) if seen.activity.is_some() => Step::Await,
        Some(seen) if seen.vm.is_none() => Step::Forget,
        Some(seen) => match &seen.failure {
            Some(failure) if now < failure.retry => Step::WaitUntil(failure.retry),
            _ => Step::Delete,
        },
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use roost_microvm::{VmConfig, VmRecord, VmState};

    use super::*;
    use crate::contract::key;
    use crate::pods::table::{Activity, Ending, Failure, Waiting};
    use crate::testing::pod;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn vm(state: VmState) -> VmRecord {
        let config = VmConfig { name: "x".into(), ..VmConfig::default() };
        VmRecord { id: "VM1".into(), state, config, ..VmRecord::default() }
    }

    fn with(vm: Option<VmRecord>) -> Tracked {
        Tracked { uid: "uid-a".into(), vm, ..Tracked::default() }
    }

    fn step(
        annotations: &[(&str, &str)],
        seen: Option<&Tracked>,
        change: impl FnOnce(&mut Pod),
    ) -> Step {
        let mut all = vec![(key::VM_NAME, "x"), (key::MANAGED, "true")];
        all.extend(annotations);
        let mut pod = pod("a", &all);
        change(&mut pod);
        let spec = VmSpec::of(&pod);
        plan(Some(Wanted { pod: &pod, spec: spec.as_ref() }), seen, NOW)
    }

    #[test]
    fn the_table_row_by_row() {
        use Step::*;
        let as_is = |_: &mut Pod| {};
        let deleted = |pod: &mut Pod| pod.metadata.deletion_timestamp = Some(Time(NOW));
        let running = with(Some(vm(VmState::Running)));
        let without = with(None);
        let off = || with(Some(vm(VmState::Stopped)));
        let hibernate = [(key::HIBERNATE, "true")];
        assert_eq!(step(&[], None, as_is), Track);
        assert_eq!(step(&[], None, deleted), Finalize, "deleted before it was known");
        assert_eq!(step(&[], Some(&without), as_is), BringUp);
        assert_eq!(step(&[], Some(&running), as_is), Settled);
        assert_eq!(step(&[], Some(&running), deleted), Delete);
        assert_eq!(step(&[], Some(&without), deleted), Finalize);
        assert_eq!(step(&hibernate, Some(&running), as_is), Hibernate);
        assert_eq!(step(&hibernate, Some(&without), as_is), Settled, "hibernated");
        assert_eq!(step(&hibernate, Some(&off()), as_is), Restart, "what is off cannot be saved");
        let tagged = Tracked { has_stale_tag: true, ..running.clone() };
        assert_eq!(step(&[], Some(&tagged), as_is), DropTag);
        assert_eq!(step(&hibernate, Some(&tagged), as_is), Hibernate);
        assert_eq!(
            step(&hibernate, Some(&running), deleted),
            Delete,
            "deletion outranks hibernation"
        );
        assert_eq!(step(&[], Some(&off()), as_is), Restart);
        let again = Tracked { restarted: Some(NOW), ..off() };
        assert!(matches!(step(&[], Some(&again), as_is), GiveUp { reason: "RestartCooldown", .. }));
        let busy = Tracked { activity: Some(Activity::Creating(Waiting::Cloning)), ..with(None) };
        assert_eq!(step(&[], Some(&busy), deleted), Await, "one thing at a time");
        let other = Tracked { uid: "another".into(), ..off() };
        assert_eq!(
            step(&[], Some(&other), as_is),
            Delete,
            "a new pod of the name does not inherit the VM"
        );
        assert_eq!(
            step(&[], Some(&Tracked { uid: "another".into(), ..with(None) }), as_is),
            Forget
        );
        assert_eq!(step(&[(key::PROBE_PORT, "x")], Some(&without), as_is), Refuse);
    }

    #[test]
    fn what_failed_is_tried_again_in_time_also_when_nothing_changes() {
        let failure = Failure::again(None, "x", "no".into(), NOW);
        let seen = Tracked { failure: Some(failure.clone()), ..with(None) };
        assert_eq!(step(&[], Some(&seen), |_| {}), Step::WaitUntil(failure.retry));
        let pod = pod("a", &[(key::VM_NAME, "x"), (key::MANAGED, "true")]);
        let spec = VmSpec::of(&pod);
        let wanted = Some(Wanted { pod: &pod, spec: spec.as_ref() });
        assert_eq!(plan(wanted, Some(&seen), failure.retry), Step::BringUp);
    }

    #[test]
    fn a_lost_vm_ends_its_pod_once() {
        let ending =
            Ending { reason: "VMGone", message: "vm no longer exists".into(), told: false };
        let lost = Tracked { ending: Some(ending.clone()), ..with(None) };
        assert_eq!(step(&[], Some(&lost), |_| {}), Step::Evict);
        let told = Tracked { ending: Some(Ending { told: true, ..ending }), ..with(None) };
        assert_eq!(step(&[], Some(&told), |_| {}), Step::Settled);
    }

    #[test]
    fn a_pod_that_is_gone_takes_its_vm_along() {
        assert_eq!(plan(None, None, NOW), Step::Settled);
        assert_eq!(plan(None, Some(&with(None)), NOW), Step::Forget);
        assert_eq!(plan(None, Some(&with(Some(vm(VmState::Running)))), NOW), Step::Delete);
    }

    #[test]
    fn vms_of_others_are_never_touched() {
        let mut pod = pod("a", &[(key::VM_NAME, "x"), (key::HIBERNATE, "true")]);
        pod.metadata.uid = Some("uid-a".into());
        let spec = VmSpec::of(&pod);
        let wanted = Some(Wanted { pod: &pod, spec: spec.as_ref() });
        let seen = with(Some(vm(VmState::Stopped)));
        assert_eq!(plan(wanted, Some(&seen), NOW), Step::Settled);
    }
}
