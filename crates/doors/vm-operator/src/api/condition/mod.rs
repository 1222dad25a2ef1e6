//! Conditions: which there are, with which reasons, and how they are set.

mod annotated;
mod reason;

use std::cmp::Ordering;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
pub use roost_controller::Truth;

pub use annotated::{Annotated, annotated};
pub use reason::Reason;

words! {
    /// What is said of an object.
    pub enum ConditionType {
        Ready = "Ready",
        Created = "VirtualMachineCreated",
        ClassReady = "VirtualMachineClassReady",
        ImageReady = "VirtualMachineImageReady",
        SetResourcePolicyReady = "VirtualMachineConditionVMSetResourcePolicyReady",
        StorageReady = "VirtualMachineStorageReady",
        BootstrapReady = "VirtualMachineBootstrapReady",
        NetworkReady = "VirtualMachineNetworkReady",
        ImageCacheReady = "VirtualMachineConditionImageCacheReady",
        PlacementReady = "VirtualMachineConditionPlacementReady",
        PowerStateSynced = "VirtualMachinePowerStateSynced",
        GuestNetworkConfigSynced = "VirtualMachineGuestNetworkConfigSynced",
        Tools = "VirtualMachineTools",
        GuestCustomization = "GuestCustomization",
        GuestBootstrap = "GuestBootstrap",
        GuestIdReconfigured = "GuestIDReconfigured",
        ReconcileReady = "VirtualMachineReconcileReady",
        DiskPromotionStarted = "VirtualMachineDiskPromotionStarted",
        DiskPromotionSynced = "VirtualMachineDiskPromotionSynced",
        ClassConfigurationSynced = "VirtualMachineClassConfigurationSynced",
        SnapshotRevertSucceeded = "VirtualMachineSnapshotRevertSucceeded",
        BackupUpToDate = "VirtualMachineBackupUpToDate",
        LocationValid = "VirtualMachineLocationValid",
        GroupLinked = "GroupLinked",
        EncryptionSynced = "VirtualMachineEncryptionSynced",
        ComputeConfigSynced = "VirtualMachineComputeConfigSynced",
        ExtraConfigSynced = "VirtualMachineExtraConfigSynced",
        NetworkConfigSynced = "VirtualMachineNetworkConfigSynced",
        HardwareDeviceConfigVerified = "VirtualMachineHardwareDeviceConfigVerified",
        /// Ours: is the VM's host reachable?
        Connected = "VirtualMachineConnected",
        SnapshotReady = "VirtualMachineSnapshotReady",
        SnapshotCreated = "VirtualMachineSnapshotCreated",
        SnapshotCsiSynced = "VirtualMachineSnapshotCSISynced",
        CacheHardwareReady = "VirtualMachineImageCacheHardwareReady",
        CacheProviderReady = "VirtualMachineImageCacheProviderReady",
        CacheFilesReady = "VirtualMachineImageCacheFilesReady",
    }
}

pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == kind.as_str())
}

pub fn is_true(conditions: &[Condition], kind: ConditionType) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// Does the condition say no, for this reason?
pub fn is_false_because(conditions: &[Condition], kind: ConditionType, reason: Reason) -> bool {
    find(conditions, kind)
        .is_some_and(|known| known.status == "False" && known.reason == reason.as_str())
}

/// Says yes; the reason is `True`.
pub fn mark_true(conditions: &mut Vec<Condition>, kind: ConditionType, now: Timestamp) -> bool {
    mark(conditions, kind, Truth::True, Reason::True, "", now)
}

pub fn mark_false(
    conditions: &mut Vec<Condition>,
    kind: ConditionType,
    reason: Reason,
    message: &str,
    now: Timestamp,
) -> bool {
    mark(conditions, kind, Truth::False, reason, message, now)
}

pub fn mark_unknown(
    conditions: &mut Vec<Condition>,
    kind: ConditionType,
    reason: Reason,
    message: &str,
    now: Timestamp,
) -> bool {
    mark(conditions, kind, Truth::Unknown, reason, message, now)
}

/// Sets one condition and leaves the others as they are. True if something changed.
pub fn mark(
    conditions: &mut Vec<Condition>,
    kind: ConditionType,
    truth: Truth,
    reason: Reason,
    message: &str,
    now: Timestamp,
) -> bool {
    mark_text(conditions, kind.as_str(), truth, reason.as_str(), message, now)
}

/// Like [`mark`], with a type and a reason that somebody else chose: the guest, an image, an annotation.
pub fn mark_text(
    conditions: &mut Vec<Condition>,
    kind: &str,
    truth: Truth,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> bool {
    // The wire has whole seconds; a finer time would differ from what comes back.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    let known = conditions.iter_mut().find(|condition| condition.type_ == kind);
    if known.as_ref().is_some_and(|known| {
        known.status == truth.as_str() && known.reason == reason && known.message == message
    }) {
        return false;
    }
    let wanted = Condition {
        type_: kind.to_owned(),
        status: truth.as_str().to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: None,
        last_transition_time: Time(now),
    };
    match known {
        Some(known) => *known = wanted,
        None => conditions.push(wanted),
    }
    true
}

/// Takes a condition away. True if it was there.
pub fn remove(conditions: &mut Vec<Condition>, kind: ConditionType) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != kind.as_str());
    conditions.len() != before
}

/// `Ready` first, then by type.
pub fn sort(conditions: &mut [Condition]) {
    let is_ready = |condition: &Condition| condition.type_ == ConditionType::Ready.as_str();
    conditions.sort_by(|one, other| match (is_ready(one), is_ready(other)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        _ => one.type_.cmp(&other.type_),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    #[test]
    fn the_time_changes_with_status_reason_and_message() {
        let mut list = Vec::new();
        let kind = ConditionType::ClassReady;
        assert!(mark_false(&mut list, kind, Reason::NotFound, "a", at(1)));
        assert!(!mark_false(&mut list, kind, Reason::NotFound, "a", at(2)));
        assert_eq!(list[0].last_transition_time, Time(at(1)));
        assert!(mark_false(&mut list, kind, Reason::NotFound, "b", at(3)));
        assert_eq!(list[0].last_transition_time, Time(at(3)));
        assert!(mark_false(&mut list, kind, Reason::Invalid, "b", at(4)));
        assert_eq!(list[0].last_transition_time, Time(at(4)));
        assert!(mark_true(&mut list, kind, at(5)));
        assert_eq!((list[0].reason.as_str(), list.len()), ("True", 1));
        assert!(is_true(&list, kind));
        assert!(remove(&mut list, kind) && !remove(&mut list, kind));
    }

    #[test]
    fn ready_comes_first_and_then_the_alphabet() {
        let mut list = Vec::new();
        for kind in [ConditionType::Tools, ConditionType::Ready, ConditionType::Created] {
            mark_true(&mut list, kind, at(1));
        }
        mark_text(&mut list, "Another", Truth::True, "True", "", at(1));
        sort(&mut list);
        let types: Vec<_> = list.iter().map(|condition| condition.type_.as_str()).collect();
        assert_eq!(types, ["Ready", "Another", "VirtualMachineCreated", "VirtualMachineTools"]);
    }
}
