//! What a webhook fills in, for clusters without one.

use kube::ResourceExt as _;

use super::Context;
use crate::api::VirtualMachine;
use crate::webhook::{Defaults, Identity, Lookup as _, Rights, default_on_create};

/// Changes nothing that is set. An image that is not found is a condition later, no refusal.
pub(crate) fn default_object(cx: &Context, vm: &mut VirtualMachine) {
    let (own, cluster) = cx.stores.images(&vm.namespace().unwrap_or_default());
    let uid = vm.uid().unwrap_or_default();
    let uuid = |of: Identity| match of {
        Identity::Instance => uid.clone(),
        Identity::Bios => other_uuid(&uid),
    };
    let settings = &cx.admission;
    let defaults = Defaults { settings, own_images: &own, cluster_images: &cluster, uuid: &uuid };
    for problem in default_on_create(vm, &defaults, Rights::Privileged) {
        tracing::debug!("{problem}");
    }
}

/// Another identity that the same object always gets: a crash before it is written must not give it two.
fn other_uuid(uid: &str) -> String {
    let digits: Vec<char> = uid.chars().filter(char::is_ascii_hexdigit).rev().collect();
    if digits.len() != 32 {
        return String::new();
    }
    let mut text = String::new();
    for (index, digit) in digits.into_iter().enumerate() {
        if matches!(index, 8 | 12 | 16 | 20) {
            text.push('-');
        }
        text.push(match index {
            12 => '4',
            16 => 'a',
            _ => digit,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_identity_is_a_uuid_and_always_the_same() {
        let uid = "0f3f8c2e-1111-4222-9333-444455556666";
        let other = other_uuid(uid);
        assert_eq!(other, other_uuid(uid));
        assert_eq!(other.len(), 36);
        assert_eq!((other.as_bytes()[14], other.as_bytes()[19]), (b'4', b'a'));
        assert_ne!(other, uid);
        assert_eq!(other_uuid("no uid"), "");
    }
}
