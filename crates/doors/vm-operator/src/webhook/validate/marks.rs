//! Annotations and labels that not everybody may write.

use std::collections::BTreeMap;

use kube::{Resource, ResourceExt};

use super::{Problems, Rights};
use crate::api::VirtualMachine;
use crate::api::names::{annotation, label};

/// Annotations that only privileged users may write.
const PRIVILEGED: [&str; 5] = [
    annotation::FIRST_BOOT_DONE,
    annotation::RESTORED_VM,
    annotation::IMPORTED_VM,
    annotation::FAILED_OVER_VM,
    annotation::CLOUD_INIT_INSTANCE_ID,
];

const REFUSED: &str = "modifying this is not allowed for non-admin users";

pub(super) fn check(
    vm: &VirtualMachine,
    old: Option<&VirtualMachine>,
    rights: Rights,
    problems: &mut Problems,
) {
    check_protected(vm, old, rights, problems);
    if rights == Rights::Privileged {
        return;
    }
    for key in changed(old.map(ResourceExt::annotations), vm.annotations()) {
        let is_power_on_check = key.starts_with(annotation::POWER_ON_CHECK_PREFIX);
        let is_refused = PRIVILEGED.contains(&key)
            || key.starts_with(annotation::DELETE_CHECK_PREFIX)
            // Whoever makes a VM may hold it back; who releases it is another matter.
            || (is_power_on_check && old.is_some());
        problems.when(is_refused, format!("metadata.annotations[{key}]"), REFUSED);
    }
    for key in changed(old.map(ResourceExt::labels), vm.labels()) {
        let place = format!("metadata.labels[{key}]");
        let had_zone = old.is_some_and(|old| old.labels().contains_key(label::ZONE));
        problems.when(key == label::PAUSED, &place, REFUSED);
        problems.when(key == label::ZONE && had_zone, &place, super::IMMUTABLE);
    }
}

/// Keys whose domain ends in `.protected` belong to privileged users: to set, to change and to take away.
pub(super) fn check_protected<K: Resource>(
    object: &K,
    old: Option<&K>,
    rights: Rights,
    problems: &mut Problems,
) {
    if rights == Rights::Privileged {
        return;
    }
    for key in changed(old.map(ResourceExt::annotations), object.annotations()) {
        let place = format!("metadata.annotations[{key}]");
        problems.when(annotation::is_protected(key), place, REFUSED);
    }
    for key in changed(old.map(ResourceExt::labels), object.labels()) {
        let place = format!("metadata.labels[{key}]");
        problems.when(annotation::is_protected(key), place, REFUSED);
    }
}

/// The keys that came, went or got another value.
fn changed<'a>(
    old: Option<&'a BTreeMap<String, String>>,
    new: &'a BTreeMap<String, String>,
) -> Vec<&'a str> {
    let was = |key: &str| old.and_then(|old| old.get(key));
    let came =
        new.iter().filter(|(key, value)| was(key) != Some(value)).map(|(key, _)| key.as_str());
    let gone = old.into_iter().flat_map(BTreeMap::keys).map(String::as_str);
    came.chain(gone.filter(|key| !new.contains_key(*key))).collect()
}
