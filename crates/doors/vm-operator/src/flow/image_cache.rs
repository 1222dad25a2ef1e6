//! The image cache gate: a VM that waits for a copy of its image goes on when the copy is there.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt as _;

use crate::api::names::{annotation, label};
use crate::api::{CacheLocation, CacheLocationStatus, VirtualMachine, VirtualMachineImageCache};

/// A cache object that does not exist after this time is not waited for: the VM asks for it anew.
const MISSING_FOR: Duration = Duration::from_mins(5);

/// Whether a VM may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Ready,
    /// And what it waited for is not asked about again.
    ReadyDropMarks,
    NotReady,
    /// What it waits for is written as nobody writes it any more, or will never come: it asks anew.
    AskAnew,
}

/// `waits_since` is when the VM began to wait.
pub(crate) fn check_cache_ready(
    vm: &VirtualMachine,
    cache: Option<&VirtualMachineImageCache>,
    waits_since: Option<Timestamp>,
    now: Timestamp,
) -> Gate {
    if !vm.labels().contains_key(label::IMAGE_CACHE_NAME) {
        return Gate::Ready;
    }
    let Some(cache) = cache else {
        let waited = waits_since.map(|since| now.duration_since(since).unsigned_abs());
        let is_over = waited.is_some_and(|waited| waited >= MISSING_FOR);
        return if is_over { Gate::AskAnew } else { Gate::NotReady };
    };
    if !cache.is_hardware_ready() {
        return Gate::NotReady;
    }
    let Some(location) = vm.annotations().get(annotation::IMAGE_CACHE_LOCATION) else {
        return Gate::ReadyDropMarks;
    };
    let Some(location) = parse_location(location) else { return Gate::AskAnew };
    if cache.location(&location).is_some_and(CacheLocationStatus::is_ready) {
        Gate::ReadyDropMarks
    } else {
        Gate::NotReady
    }
}

/// `datacenterID,datastoreID,profileID`.
pub(crate) fn parse_location(text: &str) -> Option<CacheLocation> {
    let parts: Vec<&str> = text.split(',').collect();
    let [datacenter_id, datastore_id, profile_id] = parts[..] else { return None };
    Some(CacheLocation {
        datacenter_id: datacenter_id.to_owned(),
        datastore_id: datastore_id.to_owned(),
        profile_id: profile_id.to_owned(),
    })
}

pub(crate) fn remove_label_and_annotation(vm: &mut VirtualMachine) {
    vm.labels_mut().remove(label::IMAGE_CACHE_NAME);
    vm.annotations_mut().remove(annotation::IMAGE_CACHE_LOCATION);
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

    use super::*;
    use crate::api::VirtualMachineImageCacheStatus;
    use crate::api::condition::{ConditionType, mark_true};

    fn conditions(all: &[ConditionType]) -> Vec<Condition> {
        let mut list = Vec::new();
        for kind in all {
            mark_true(&mut list, *kind, Timestamp::UNIX_EPOCH);
        }
        list
    }

    #[test]
    fn a_vm_goes_on_when_what_it_waits_for_is_there() {
        let hardware = [ConditionType::CacheHardwareReady];
        let ready = [ConditionType::Ready];
        let cache = |is_hardware_ready: bool, locations: Vec<CacheLocationStatus>| {
            let conditions = if is_hardware_ready { conditions(&hardware) } else { Vec::new() };
            let status =
                VirtualMachineImageCacheStatus { locations, conditions, ..Default::default() };
            VirtualMachineImageCache { status: Some(status), ..Default::default() }
        };
        let at = |is_ready: bool| CacheLocationStatus {
            location: parse_location("dc,ds,p").unwrap(),
            conditions: if is_ready { conditions(&ready) } else { Vec::new() },
            ..Default::default()
        };
        let (whole, none) = (Some("dc,ds,p"), None);
        for (case, is_labelled, cache, location, want) in [
            ("no label", false, None, none, Gate::Ready),
            ("no cache", true, None, whole, Gate::NotReady),
            ("hardware unknown", true, Some(cache(false, vec![])), none, Gate::NotReady),
            ("no location", true, Some(cache(true, vec![])), none, Gate::ReadyDropMarks),
            ("two parts", true, Some(cache(true, vec![])), Some("dc,ds"), Gate::AskAnew),
            ("not there", true, Some(cache(true, vec![])), whole, Gate::NotReady),
            ("not ready", true, Some(cache(true, vec![at(false)])), whole, Gate::NotReady),
            ("ready", true, Some(cache(true, vec![at(true)])), whole, Gate::ReadyDropMarks),
        ] {
            let mut vm = VirtualMachine::default();
            if is_labelled {
                vm.labels_mut().insert(label::IMAGE_CACHE_NAME.into(), "vmi-1".into());
            }
            if let Some(location) = location {
                vm.annotations_mut()
                    .insert(annotation::IMAGE_CACHE_LOCATION.into(), location.into());
            }
            let now = Timestamp::UNIX_EPOCH;
            assert_eq!(check_cache_ready(&vm, cache.as_ref(), Some(now), now), want, "{case}");
        }
    }

    #[test]
    fn a_cache_that_never_comes_is_asked_for_anew() {
        let mut vm = VirtualMachine::default();
        vm.labels_mut().insert(label::IMAGE_CACHE_NAME.into(), "vmi-1".into());
        let since = Timestamp::UNIX_EPOCH;
        let later = |secs: i64| Timestamp::from_second(secs).unwrap();
        assert_eq!(check_cache_ready(&vm, None, Some(since), later(299)), Gate::NotReady);
        assert_eq!(check_cache_ready(&vm, None, Some(since), later(300)), Gate::AskAnew);
    }
}
