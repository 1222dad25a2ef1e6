//! How urgent a `VirtualMachine` is.
//!
//! The levels and their order are those of the specification. Two things are added: a VM that waits in vain for an address or for its disks falls back to the
//! default of its event after a while, and a key that is queued again is weighed anew.

use std::time::Duration;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use roost_controller::{Ageing, Cause, PriorityLabels};

use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, find};
use crate::api::names::annotation::RECONCILE_PRIORITY;

/// The VM does not exist yet.
pub const CREATING: i32 = 100;
/// Another power state is wanted than there is.
pub const POWER_STATE_CHANGE: i32 = 99;
pub const DELETING: i32 = 98;
/// Powered on, with a network, without an address.
pub const WAITING_FOR_IP: i32 = 97;
pub const WAITING_FOR_DISK_PROMOTION: i32 = 96;

/// Defaults by event, for VMs of which nothing is wanted.
pub const DEFAULT_CREATE: i32 = -1;
pub const DEFAULT_UPDATE: i32 = -2;
pub const DEFAULT_DELETE: i32 = -3;
pub const DEFAULT_GENERIC: i32 = -4;

/// What controller-runtime gives to objects that were there before and to those that did not change.
pub const LOWEST: i32 = -100;

/// Where initial lists and resyncs are queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Routine {
    /// At the default of their event.
    #[default]
    ByEvent,
    /// Below everything else, as upstream does.
    Lowest,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrioritySettings {
    /// Otherwise all are alike, and first come is first served.
    pub is_used: bool,
    pub routine: Routine,
    /// Without fast deploy there is nothing to promote, and no VM waits for it.
    pub promotes_disks: bool,
    /// A VM that waited this long for an address or for its disks no longer overtakes others.
    pub patience: Duration,
}

impl Default for PrioritySettings {
    fn default() -> Self {
        // A guest that has no address after a quarter of an hour will hardly have one by being looked at more often.
        let patience = Duration::from_mins(15);
        Self { is_used: true, routine: Routine::ByEvent, promotes_disks: true, patience }
    }
}

/// The priority of a key. Without an object (it is gone), the default of the event.
pub fn priority(
    vm: Option<&VirtualMachine>,
    cause: Cause,
    now: Timestamp,
    settings: &PrioritySettings,
) -> i32 {
    if !settings.is_used {
        return 0;
    }
    let default = default_for(cause, settings.routine);
    match (vm, cause) {
        // These are not weighed: nothing is new.
        (_, Cause::InitialList | Cause::Resync) | (None, _) => default,
        (Some(vm), _) => of_vm(vm, default, now, settings),
    }
}

/// The priority of an object that is no VM.
pub fn of_other<K: Resource>(object: &K, default: i32) -> i32 {
    overridden(object).unwrap_or(default)
}

fn default_for(cause: Cause, routine: Routine) -> i32 {
    match cause {
        Cause::InitialList | Cause::Resync if routine == Routine::Lowest => LOWEST,
        Cause::InitialList | Cause::Created => DEFAULT_CREATE,
        // A class, an image or a claim that changed is as good as a change of the VM itself.
        Cause::Changed | Cause::Resync | Cause::Related => DEFAULT_UPDATE,
        Cause::Deleted => DEFAULT_DELETE,
        Cause::Signal | Cause::Requeued { .. } => DEFAULT_GENERIC,
    }
}

/// The cascade: the first rule that holds decides.
fn of_vm(vm: &VirtualMachine, default: i32, now: Timestamp, settings: &PrioritySettings) -> i32 {
    let is_in_vain = |since: Option<Timestamp>| {
        since.is_some_and(|since| {
            Duration::try_from(now.duration_since(since)).is_ok_and(|age| age >= settings.patience)
        })
    };
    if let Some(priority) = overridden(vm) {
        priority
    } else if vm.is_being_deleted() {
        DELETING
    } else if !vm.is_created() {
        CREATING
    } else if vm.waits_for_power_state() {
        POWER_STATE_CHANGE
    } else if vm.waits_for_address() && !is_in_vain(since(vm, ConditionType::PowerStateSynced)) {
        WAITING_FOR_IP
    } else if settings.promotes_disks
        && vm.waits_for_disk_promotion()
        && !is_in_vain(since(vm, ConditionType::DiskPromotionSynced))
    {
        WAITING_FOR_DISK_PROMOTION
    } else {
        default
    }
}

fn overridden<K: Resource>(object: &K) -> Option<i32> {
    let text = object.annotations().get(RECONCILE_PRIORITY)?;
    // A number beyond what a priority can be is as urgent as can be.
    let number: i64 = text.parse().ok()?;
    Some(i32::try_from(number).unwrap_or(if number < 0 { i32::MIN } else { i32::MAX }))
}

fn since(vm: &VirtualMachine, condition: ConditionType) -> Option<Timestamp> {
    find(vm.conditions(), condition).map(|known| known.last_transition_time.0)
}

/// Routine work rises while it waits, but never to the level of what people wait for.
pub fn ageing() -> Ageing {
    Ageing { ceiling: WAITING_FOR_DISK_PROMOTION - 1, ..Ageing::default() }
}

/// The level of a VM in the queue, by its label.
pub(crate) fn level_of(
    vm: &VirtualMachine,
    now: Timestamp,
    settings: &PrioritySettings,
) -> &'static str {
    label(of_vm(vm, DEFAULT_GENERIC, now, settings))
}

fn label(priority: i32) -> &'static str {
    match priority {
        CREATING => "creating",
        POWER_STATE_CHANGE => "power",
        DELETING => "deleting",
        WAITING_FOR_IP => "ip",
        WAITING_FOR_DISK_PROMOTION => "promo",
        DEFAULT_GENERIC..=DEFAULT_CREATE | LOWEST | 0 => "default",
        _ => "override",
    }
}

/// The label of a priority in metrics. A closed set, because the annotation allows any number.
pub fn labels() -> PriorityLabels {
    PriorityLabels::Named(label)
}

#[cfg(test)]
mod tests;
