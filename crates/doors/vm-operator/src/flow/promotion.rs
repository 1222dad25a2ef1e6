//! Disk promotion: disks that stand on those of an image get a whole copy of their own, while the VM runs or while it is off.

use roost_controller::Key;
use roost_fleet::Power;

use super::Context;
use super::outcome::{Done, Flow};
use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, Reason, find, mark_false, mark_true, remove};
use crate::api::vm::PromoteDisksMode;
use crate::provider::Seen;

/// What is known when a promotion is decided upon.
#[derive(Debug, Clone)]
struct Situation {
    mode: PromoteDisksMode,
    /// Keys of disks with a parent.
    candidates: Vec<i32>,
    power: Power,
    has_snapshot: bool,
    is_customizing: bool,
    /// What the last one ended with, unless it may pass.
    has_failed: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// Nobody wants to know.
    Forget,
    Synced,
    /// And why not yet.
    Pending(&'static str),
    /// It failed, and would again.
    Stop,
    Promote(Vec<i32>),
}

fn plan(seen: &Situation) -> Step {
    match seen.mode {
        PromoteDisksMode::Disabled => Step::Forget,
        _ if seen.candidates.is_empty() => Step::Synced,
        _ if seen.has_failed => Step::Stop,
        PromoteDisksMode::Online if seen.has_snapshot => Step::Pending("the VM has a snapshot"),
        PromoteDisksMode::Online if seen.power != Power::On => {
            Step::Pending("the VM is not powered on")
        }
        PromoteDisksMode::Online if seen.is_customizing => {
            Step::Pending("the guest is being customized")
        }
        PromoteDisksMode::Offline if seen.power != Power::Off => {
            Step::Pending("the VM is not powered off")
        }
        PromoteDisksMode::Online | PromoteDisksMode::Offline => {
            Step::Promote(seen.candidates.clone())
        }
    }
}

fn situation(vm: &VirtualMachine, seen: &Seen) -> Situation {
    let has_parent = |disk: &&roost_vim::wire::types::VirtualDevice| {
        disk.backing.as_ref().is_some_and(|backing| backing.parent.is_some())
    };
    let status = seen.customization().map(|info| info.customization_status.as_str());
    let last = find(vm.conditions(), ConditionType::DiskPromotionSynced);
    Situation {
        mode: vm.promote_disks_mode(),
        candidates: seen.disks().filter(has_parent).map(|disk| disk.key).collect(),
        power: seen.power(),
        has_snapshot: seen.detail.snapshots().is_some(),
        is_customizing: status
            .is_some_and(|status| status.ends_with("PENDING") || status.ends_with("RUNNING")),
        has_failed: last.is_some_and(|of| of.reason == Reason::DiskPromotionTaskError.as_str()),
    }
}

/// Nothing is promoted without fast deploy: clones of templates stay what they were made as, and nobody waits for it.
pub(super) async fn promote_disks(
    cx: &Context,
    key: &Key,
    vm: &mut VirtualMachine,
    seen: &Seen,
) -> Flow {
    let (kind, now) = (ConditionType::DiskPromotionSynced, cx.now());
    let step = match cx.provider.settings.features.fast_deploy {
        Some(_) => plan(&situation(vm, seen)),
        None if vm.promote_disks_mode() == PromoteDisksMode::Disabled => Step::Forget,
        None => Step::Synced,
    };
    let conditions = &mut vm.status_mut().conditions;
    match step {
        Step::Forget => {
            remove(conditions, kind);
            Ok(())
        }
        Step::Synced => {
            mark_true(conditions, kind, now);
            Ok(())
        }
        Step::Stop => Ok(()),
        Step::Pending(why) => {
            mark_false(conditions, kind, Reason::DiskPromotionPending, why, now);
            Ok(())
        }
        Step::Promote(keys) => {
            mark_true(conditions, ConditionType::DiskPromotionStarted, now);
            mark_false(conditions, kind, Reason::DiskPromotionRunning, "", now);
            cx.provider.promote(key, seen, &keys).await
        }
    }
}

/// How a promotion ended that was started in an earlier pass.
pub(super) fn note_end(cx: &Context, vm: &mut VirtualMachine, step: Done, error: Option<&str>) {
    let (Done::PromotionStarted, Some(error)) = (step, error) else { return };
    // Somebody else was at the VM; that passes.
    let passes = ["ConcurrentAccess", "TaskInProgress", "InvalidPowerState", "FileLocked"];
    let reason = if passes.iter().any(|fault| error.contains(fault)) {
        Reason::DiskPromotionTaskTransientError
    } else {
        Reason::DiskPromotionTaskError
    };
    let conditions = &mut vm.status_mut().conditions;
    mark_false(conditions, ConditionType::DiskPromotionSynced, reason, error, cx.now());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_are_promoted_when_the_mode_and_the_vm_allow_it() {
        let base = Situation {
            mode: PromoteDisksMode::Online,
            candidates: vec![2000],
            power: Power::On,
            has_snapshot: false,
            is_customizing: false,
            has_failed: false,
        };
        let offline = Situation { mode: PromoteDisksMode::Offline, ..base.clone() };
        for (case, seen, want) in [
            ("online", base.clone(), Some(Step::Promote(vec![2000]))),
            (
                "disabled",
                Situation { mode: PromoteDisksMode::Disabled, ..base.clone() },
                Some(Step::Forget),
            ),
            (
                "nothing to promote",
                Situation { candidates: vec![], ..base.clone() },
                Some(Step::Synced),
            ),
            ("failed before", Situation { has_failed: true, ..base.clone() }, Some(Step::Stop)),
            ("snapshot", Situation { has_snapshot: true, ..base.clone() }, None),
            ("off", Situation { power: Power::Off, ..base.clone() }, None),
            ("customizing", Situation { is_customizing: true, ..base.clone() }, None),
            ("offline, on", offline.clone(), None),
            (
                "offline, off",
                Situation { power: Power::Off, ..offline },
                Some(Step::Promote(vec![2000])),
            ),
        ] {
            let got = plan(&seen);
            match want {
                Some(want) => assert_eq!(got, want, "{case}"),
                None => assert!(matches!(got, Step::Pending(_)), "{case}: {got:?}"),
            }
        }
    }
}
