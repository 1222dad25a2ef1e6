//! The copy of an object that its VM carries. Reverting to a snapshot restores the object from the copy that was frozen with it.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;

use super::Seen;
use crate::api::VirtualMachine;
use crate::api::names::{annotation, extra_config, label};

/// Annotations that this program writes by itself; they say nothing about what is wanted.
const OWN: &[&str] = &[
    annotation::FIRST_BOOT_DONE,
    annotation::MANAGER_ID,
    annotation::BOOTSTRAP_HASH_CONFIG_SPEC,
    annotation::BOOTSTRAP_HASH_CUSTOM_SPEC,
    annotation::LAST_RESIZED_VM_CLASS,
    annotation::UPGRADED_TO_BUILD_VERSION,
    annotation::UPGRADED_TO_SCHEMA_VERSION,
    annotation::UPGRADED_TO_FEATURE_VERSION,
    annotation::CREATED_AT_BUILD_VERSION,
    annotation::CREATED_AT_SCHEMA_VERSION,
    annotation::APPLY_POWER_STATE_TIME,
    annotation::SNAPSHOT_REVERT_IN_PROGRESS,
    "kubectl.kubernetes.io/last-applied-configuration",
];

/// What of an object is worth keeping.
fn copy_of(vm: &VirtualMachine) -> VirtualMachine {
    let mut copy = vm.clone();
    copy.status = None;
    copy.spec.current_snapshot_name.clear();
    let meta = &mut copy.metadata;
    meta.managed_fields = None;
    meta.resource_version = None;
    meta.generation = None;
    meta.finalizers = None;
    meta.creation_timestamp = None;
    copy.labels_mut().remove(label::ZONE);
    copy.labels_mut().remove(label::PAUSED);
    copy.annotations_mut().retain(|key, _| !OWN.contains(&key.as_str()));
    copy
}

/// The keys that must be written so that the VM carries a current copy; none if it does.
pub(crate) fn backup_keys(vm: &VirtualMachine, seen: &Seen) -> Vec<(String, String)> {
    let copy = copy_of(vm);
    let known = seen.extra_config(extra_config::BACKUP_VM_YAML).and_then(decode);
    if known.as_ref().map(copy_of).as_ref() == Some(&copy) {
        return Vec::new();
    }
    match encode(&copy) {
        Some(text) => vec![(extra_config::BACKUP_VM_YAML.to_owned(), text)],
        None => Vec::new(),
    }
}

fn encode(copy: &VirtualMachine) -> Option<String> {
    // JSON is YAML, and the same object always is the same text.
    pack(&serde_json::to_vec(copy).ok()?)
}

fn pack(text: &[u8]) -> Option<String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(text).ok()?;
    Some(STANDARD.encode(encoder.finish().ok()?))
}

fn unpack(text: &str) -> Option<String> {
    let packed = STANDARD.decode(text.trim()).ok()?;
    let mut plain = String::new();
    GzDecoder::new(packed.as_slice()).read_to_string(&mut plain).ok()?;
    Some(plain)
}

/// Whether the VM was restored from a backup: its object knows a newer one than the VM carries. It is not written over then.
pub(crate) fn is_paused(vm: &VirtualMachine, seen: &Seen) -> bool {
    let number = |text: &str| text.trim().parse::<i64>().ok();
    let of_object = vm.annotations().get(annotation::BACKUP_VERSION).and_then(|of| number(of));
    let of_vm = seen.extra_config(extra_config::BACKUP_VERSION).and_then(number);
    matches!((of_object, of_vm), (Some(object), Some(vm)) if object > vm)
}

/// The Secrets that the bootstrap uses, as one text of several documents.
fn documents(secrets: &[Arc<Secret>]) -> String {
    let document = |secret: &Arc<Secret>| {
        let mut copy = Secret::clone(secret);
        copy.metadata.managed_fields = None;
        serde_json::to_string(&copy).unwrap_or_default()
    };
    secrets.iter().map(document).collect::<Vec<_>>().join("\n---\n")
}

/// The key that must be written so that the VM carries these Secrets; none if it does.
pub(crate) fn secret_keys(secrets: &[Arc<Secret>], seen: &Seen) -> Option<(String, String)> {
    let wanted = documents(secrets);
    let known = seen.extra_config(extra_config::BACKUP_ADDITIONAL_YAML).and_then(unpack);
    if known.unwrap_or_default() == wanted {
        return None;
    }
    let text = if wanted.is_empty() { String::new() } else { pack(wanted.as_bytes())? };
    Some((extra_config::BACKUP_ADDITIONAL_YAML.to_owned(), text))
}

/// The object that a VM carries, also as others have written it.
pub(crate) fn decode(text: &str) -> Option<VirtualMachine> {
    serde_saphyr::from_str(&unpack(text)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_comes_back_as_it_was_without_what_is_ours() {
        let mut vm = VirtualMachine::default();
        vm.metadata.name = Some("web-0".into());
        vm.spec.class_name = "small".into();
        vm.labels_mut().insert("app".into(), "web".into());
        vm.annotations_mut().insert(annotation::FIRST_BOOT_DONE.into(), "true".into());
        vm.status_mut().unique_id = "vm-1".into();
        let text = encode(&copy_of(&vm)).unwrap();
        assert_eq!(text, encode(&copy_of(&vm)).unwrap(), "always the same text");
        let back = decode(&text).unwrap();
        assert_eq!((&*back.spec.class_name, back.labels()["app"].as_str()), ("small", "web"));
        assert!(back.status.is_none() && back.annotations().is_empty());
        assert_eq!(copy_of(&back), copy_of(&vm));
        assert_eq!(decode("no base64"), None);
    }

    #[test]
    fn a_copy_in_yaml_by_others_can_be_read() {
        let yaml = "apiVersion: vmoperator.vmware.com/v1alpha6\nkind: VirtualMachine\nmetadata: {name: a}\nspec:\n  className: large\n";
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(yaml.as_bytes()).unwrap();
        let text = STANDARD.encode(encoder.finish().unwrap());
        assert_eq!(decode(&text).unwrap().spec.class_name, "large");
    }
}
