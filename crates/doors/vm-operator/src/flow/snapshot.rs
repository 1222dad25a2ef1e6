//! Snapshots: one is taken per pass, the oldest first; going back replaces the object by the copy that was frozen with the snapshot.

use std::sync::Arc;

use kube::ResourceExt as _;
use roost_controller::Key;
use roost_vim::wire::types::VirtualMachineSnapshotTree;

use super::Context;
use super::outcome::{Done, Flow, Halt};
use crate::api::condition::{ConditionType, Reason, is_false_because, mark_false, mark_true};
use crate::api::names::annotation;
use crate::api::{VirtualMachine, VirtualMachineSnapshot};
use crate::provider::{Seen, walk};

/// The snapshot of an object: the one of its name, and of several the one whose id it has.
pub(crate) fn of_object<'a>(
    seen: &'a Seen,
    snapshot: &VirtualMachineSnapshot,
) -> Result<Option<&'a VirtualMachineSnapshotTree>, Halt> {
    let roots = seen.detail.snapshots().map_or(&[][..], |info| &info.root_snapshot_list);
    let own = snapshot.status.as_ref().map_or("", |status| &status.unique_id);
    let name = snapshot.name_any();
    let known = walk(roots).into_iter().find(|tree| tree.name == name && *tree.snapshot.id == *own);
    known.map_or_else(|| named(seen, &name), |known| Ok(Some(known)))
}

/// A snapshot of this name, unless there are several.
pub(crate) fn named<'a>(
    seen: &'a Seen,
    name: &str,
) -> Result<Option<&'a VirtualMachineSnapshotTree>, Halt> {
    let info = seen.detail.snapshots();
    let roots = info.map_or(&[][..], |info| &info.root_snapshot_list);
    let found: Vec<_> = walk(roots).into_iter().filter(|tree| tree.name == name).collect();
    match found[..] {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        _ => Err(Halt::failed(format!("{} snapshots are called {name}", found.len()))),
    }
}

/// What going back comes to next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RevertStep {
    None,
    Wait,
    Refuse(Reason, String),
    Revert,
}

pub(crate) fn plan_revert(
    vm: &VirtualMachine,
    snapshot: Option<&VirtualMachineSnapshot>,
    is_in_vsphere: bool,
    copy: Option<&VirtualMachine>,
    is_busy: bool,
) -> RevertStep {
    let name = &vm.spec.current_snapshot_name;
    if name.is_empty() {
        return RevertStep::None;
    }
    if is_busy {
        return RevertStep::Wait;
    }
    if vm.is_cluster_node() {
        let why = "a node of a cluster is not reverted".to_owned();
        return RevertStep::Refuse(Reason::RevertSkipped, why);
    }
    let Some(snapshot) = snapshot else {
        let why = format!("there is no VirtualMachineSnapshot {name}");
        return RevertStep::Refuse(Reason::RevertFailed, why);
    };
    if !snapshot.is_ready() {
        let why = format!("snapshot {name} is not ready");
        return RevertStep::Refuse(Reason::RevertFailed, why);
    }
    if !is_in_vsphere {
        let why = format!("the VM has no snapshot {name}");
        return RevertStep::Refuse(Reason::RevertFailed, why);
    }
    let is_imported = snapshot.annotations().contains_key(annotation::IMPORTED_SNAPSHOT);
    if copy.is_none() && !is_imported {
        let why = format!("snapshot {name} holds no copy of the object");
        return RevertStep::Refuse(Reason::RevertFailedInvalidManifest, why);
    }
    RevertStep::Revert
}

pub(super) async fn reconcile_snapshot_revert(
    cx: &Context,
    key: &Key,
    vm: &mut VirtualMachine,
    seen: &Seen,
) -> Flow {
    let name = vm.spec.current_snapshot_name.clone();
    if name.is_empty() || !cx.provider.settings.features.snapshots {
        clear_revert_mark(cx, key, vm);
        return Ok(());
    }
    let namespace = vm.namespace().unwrap_or_default();
    let snapshot = cx.stores.snapshots.get(&Key::new(&namespace, &name));
    let tree = match snapshot.as_deref() {
        Some(snapshot) => of_object(seen, snapshot)?,
        None => named(seen, &name)?,
    };
    let kind = ConditionType::SnapshotRevertSucceeded;
    let is_busy = cx.provider.is_busy(key, seen.id());
    // Validated before anything is touched: a revert that cannot be finished is not begun.
    let copy = match tree {
        Some(tree) if !is_busy => cx.provider.copy_in_snapshot(&tree.snapshot).await?,
        _ => None,
    };
    match plan_revert(vm, snapshot.as_deref(), tree.is_some(), copy.as_ref(), is_busy) {
        RevertStep::None => Ok(()),
        RevertStep::Wait => Err(Halt::Done(Done::HasOutstandingTask)),
        RevertStep::Refuse(reason, why) => {
            // A wish that cannot be fulfilled holds nothing else up: the snapshot may be the next to be taken.
            clear_revert_mark(cx, key, vm);
            mark_false(&mut vm.status_mut().conditions, kind, reason, &why, cx.now());
            Ok(())
        }
        RevertStep::Revert => {
            let Some(tree) = tree else { return Ok(()) };
            if cx.provider.steps.take_reverted(key) {
                finish_revert(vm, copy.as_ref(), snapshot.as_deref());
                mark_true(&mut vm.status_mut().conditions, kind, cx.now());
                return Err(Halt::Requeue(std::time::Duration::ZERO));
            }
            let mark = annotation::SNAPSHOT_REVERT_IN_PROGRESS.to_owned();
            vm.annotations_mut().insert(mark, String::new());
            let conditions = &mut vm.status_mut().conditions;
            mark_false(conditions, kind, Reason::RevertInProgress, "", cx.now());
            cx.provider.revert(key, seen, &tree.snapshot)
        }
    }
}

/// A mark that nobody works at any more must not hold the VM for ever.
fn clear_revert_mark(cx: &Context, key: &Key, vm: &mut VirtualMachine) {
    if cx.provider.steps.running(key).is_none()
        && vm.annotations().contains_key(annotation::SNAPSHOT_REVERT_IN_PROGRESS)
    {
        vm.annotations_mut().remove(annotation::SNAPSHOT_REVERT_IN_PROGRESS);
    }
}

/// The spec is that of the snapshot; labels and annotations of then go over those of now, and what was added since stays.
fn finish_revert(
    vm: &mut VirtualMachine,
    copy: Option<&VirtualMachine>,
    snapshot: Option<&VirtualMachineSnapshot>,
) {
    if let Some(copy) = copy {
        vm.spec = copy.spec.clone();
        vm.labels_mut().extend(copy.labels().clone());
        vm.annotations_mut().extend(copy.annotations().clone());
    }
    vm.spec.current_snapshot_name.clear();
    let power = snapshot.and_then(|snapshot| snapshot.status.as_ref()?.power_state);
    if power.is_some() {
        vm.spec.power_state = power;
    }
    vm.annotations_mut().remove(annotation::SNAPSHOT_REVERT_IN_PROGRESS);
    // The VM has the size that it had then, whichever class that was of: it is compared anew.
    let unknown = serde_json::json!({}).to_string();
    vm.annotations_mut().insert(annotation::LAST_RESIZED_VM_CLASS.to_owned(), unknown);
}

/// The snapshot that is taken next: the oldest that is wanted and not there.
pub(crate) fn next_snapshot(
    all: &[Arc<VirtualMachineSnapshot>],
) -> Option<&Arc<VirtualMachineSnapshot>> {
    all.iter()
        .filter(|snapshot| snapshot.metadata.deletion_timestamp.is_none())
        .filter(|snapshot| !snapshot.is_created())
        .min_by_key(|snapshot| {
            let made = snapshot.metadata.creation_timestamp.as_ref().map(|time| time.0);
            (made, snapshot.name_any())
        })
}

pub(super) async fn reconcile_snapshot_create(
    cx: &Context,
    key: &Key,
    vm: &mut VirtualMachine,
    seen: &Seen,
) -> Flow {
    if !cx.provider.settings.features.snapshots || vm.is_cluster_node() {
        return Ok(());
    }
    let all = cx.stores.snapshots_of.objects(&vm.namespaced_name());
    let Some(snapshot) = next_snapshot(&all) else { return Ok(()) };
    // Disks below a snapshot are not promoted any more, so the first one waits.
    let is_first = seen.detail.snapshots().is_none();
    if cx.provider.settings.features.fast_deploy.is_some()
        && is_first
        && vm.waits_for_disk_promotion()
        && !is_false_because(
            vm.conditions(),
            ConditionType::DiskPromotionSynced,
            Reason::DiskPromotionTaskError,
        )
    {
        return Ok(());
    }
    // One that is there already was taken by us before a crash, or by hand: the snapshot's own controller adopts it.
    if named(seen, &snapshot.name_any())?.is_some() || cx.provider.is_busy(key, seen.id()) {
        return Ok(());
    }
    cx.provider.check_not_taken(seen, &snapshot.name_any()).await?;
    cx.provider.take_snapshot(key, seen, snapshot)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::api::VirtualMachineSnapshotSpec;

    fn snapshot(name: &str, made: i64, is_ready: bool) -> VirtualMachineSnapshot {
        let mut snapshot = VirtualMachineSnapshot::new(name, VirtualMachineSnapshotSpec::default());
        snapshot.metadata.creation_timestamp = Some(Time(Timestamp::from_second(made).unwrap()));
        if is_ready {
            for kind in [ConditionType::SnapshotReady, ConditionType::SnapshotCreated] {
                mark_true(&mut snapshot.status_mut().conditions, kind, Timestamp::UNIX_EPOCH);
            }
        }
        snapshot
    }

    #[test]
    fn the_oldest_snapshot_that_is_not_there_is_taken_next() {
        let mut leaving = snapshot("leaving", 1, false);
        leaving.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let all: Vec<_> = [
            snapshot("third", 30, false),
            snapshot("done", 5, true),
            snapshot("second", 20, false),
            leaving,
        ]
        .map(Arc::new)
        .into();
        assert_eq!(next_snapshot(&all).unwrap().name_any(), "second");
    }

    #[test]
    fn a_revert_is_validated_before_it_is_begun() {
        let mut vm = VirtualMachine::default();
        let ready = snapshot("a", 1, true);
        let copy = VirtualMachine::default();
        assert_eq!(plan_revert(&vm, None, false, None, false), RevertStep::None);
        vm.spec.current_snapshot_name = "a".into();
        let refused = |step: RevertStep| match step {
            RevertStep::Refuse(reason, _) => reason,
            other => panic!("{other:?}"),
        };
        let young = snapshot("a", 1, false);
        assert_eq!(plan_revert(&vm, Some(&ready), true, Some(&copy), true), RevertStep::Wait);
        for (case, snapshot, is_there, copy, want) in [
            ("no object", None, true, Some(&copy), Reason::RevertFailed),
            ("not ready", Some(&young), true, Some(&copy), Reason::RevertFailed),
            ("not in vSphere", Some(&ready), false, Some(&copy), Reason::RevertFailed),
            ("no copy", Some(&ready), true, None, Reason::RevertFailedInvalidManifest),
        ] {
            assert_eq!(refused(plan_revert(&vm, snapshot, is_there, copy, false)), want, "{case}");
        }
        assert_eq!(plan_revert(&vm, Some(&ready), true, Some(&copy), false), RevertStep::Revert);
    }

    #[test]
    fn what_was_added_since_a_snapshot_stays() {
        let mut vm = VirtualMachine::default();
        vm.spec.current_snapshot_name = "a".into();
        vm.labels_mut().insert("new".into(), "1".into());
        vm.labels_mut().insert("app".into(), "now".into());
        let mut copy = VirtualMachine::default();
        copy.spec.class_name = "then".into();
        copy.labels_mut().insert("app".into(), "then".into());
        finish_revert(&mut vm, Some(&copy), None);
        assert_eq!((&*vm.spec.class_name, &*vm.spec.current_snapshot_name), ("then", ""));
        assert_eq!((&*vm.labels()["app"], &*vm.labels()["new"]), ("then", "1"));
    }
}
