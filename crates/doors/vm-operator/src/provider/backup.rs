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
use roost_vim::wire::types::VirtualDevice;
use serde_json::{Value, json};

use super::Seen;
use crate::api::VirtualMachine;
use crate::api::names::{annotation, extra_config, label};
use crate::api::vm::{VolumeStatus, VolumeType};

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
    annotation::BACKUP_VERSION,
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

/// The keys that must be written so that the VM carries the list of its disks: those of claims with their claims, and its own. None if it does.
pub(crate) fn disk_keys(
    vm: &VirtualMachine,
    disks: &[VirtualDevice],
    known: impl Fn(&str) -> Option<String>,
    access_modes: impl Fn(&str) -> Vec<String>,
) -> Vec<(String, String)> {
    let file = |disk: &VirtualDevice| disk.backing.as_ref()?.file_name.clone();
    let uuid = |disk: &VirtualDevice| disk.backing.as_ref()?.uuid.clone();
    let volumes = vm.status.as_ref().map(|status| status.volumes.as_slice()).unwrap_or_default();
    let (mut claimed, mut claims) = (Vec::new(), Vec::new());
    for volume in &vm.spec.volumes {
        let is_it = |of: &&VolumeStatus| {
            of.type_ == VolumeType::Managed && of.attached && of.name == volume.name
        };
        let Some(claim) = volume.claim_name() else { continue };
        let Some(attached) = volumes.iter().find(is_it) else { continue };
        let of = disks.iter().find(|disk| {
            uuid(disk).is_some_and(|own| own.eq_ignore_ascii_case(&attached.disk_uuid))
        });
        claims.push(json!({
            "FileName": of.and_then(file).unwrap_or_default(),
            "PVCName": claim,
            "AccessModes": access_modes(claim),
            "UUID": attached.disk_uuid,
        }));
        claimed.extend(of.map(|disk| disk.key));
    }
    let own = disks.iter().filter(|disk| !claimed.contains(&disk.key)).filter_map(file);
    let own: Vec<Value> = own.map(|file| json!({ "FileName": file })).collect();
    let mut keys = Vec::new();
    for (key, list) in
        [(extra_config::BACKUP_PVC_DISKS, claims), (extra_config::BACKUP_CLASSIC_DISKS, own)]
    {
        let wanted = if list.is_empty() { String::new() } else { Value::from(list).to_string() };
        if known(key).and_then(|text| unpack(&text)).unwrap_or_default() != wanted {
            let packed = if wanted.is_empty() { Some(wanted) } else { pack(wanted.as_bytes()) };
            keys.extend(packed.map(|text| (key.to_owned(), text)));
        }
    }
    keys
}

/// The version of the copy that the VM carries is the one that its object knows: one that is newer here than there is the sign of a restore.
pub(crate) fn note_version(vm: &mut VirtualMachine, carried: Option<&str>) {
    let (key, Some(carried)) = (annotation::BACKUP_VERSION, carried) else { return };
    if vm.annotations().get(key).map(String::as_str) != Some(carried) {
        vm.annotations_mut().insert(key.to_owned(), carried.to_owned());
    }
}

/// The object that a VM carries, also as others have written it.
pub(crate) fn decode(text: &str) -> Option<VirtualMachine> {
    serde_saphyr::from_str(&unpack(text)?).ok()
}

#[cfg(test)]
mod tests {
    use roost_vim::wire::types::VirtualDeviceBackingInfo;

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
    fn disks_are_listed_with_their_claims_and_only_what_differs_is_written() {
        let vm: VirtualMachine = serde_json::from_value(json!({
            "metadata": { "name": "web-0" },
            "spec": { "volumes": [
                { "name": "data", "persistentVolumeClaim": { "claimName": "c" } },
                { "name": "later", "persistentVolumeClaim": { "claimName": "d" } },
            ] },
            "status": { "volumes": [
                { "name": "data", "type": "Managed", "attached": true, "diskUUID": "6000C29A" },
                { "name": "later", "type": "Managed", "attached": false, "diskUUID": "" },
            ] },
        }))
        .unwrap();
        let disk = |key: i32, file: &str, uuid: &str| VirtualDevice {
            key,
            backing: Some(VirtualDeviceBackingInfo {
                file_name: Some(file.into()),
                uuid: Some(uuid.into()),
                ..VirtualDeviceBackingInfo::default()
            }),
            ..VirtualDevice::default()
        };
        let disks =
            [disk(2000, "[ds] a/a.vmdk", "6000aaaa"), disk(2001, "[ds] fcd/x.vmdk", "6000c29a")];
        let modes = |claim: &str| vec![format!("{claim}-ReadWriteOnce")];
        let keys = disk_keys(&vm, &disks, |_| None, modes);
        let of = |key: &str| {
            let (_, text) = keys.iter().find(|(own, _)| own == key).unwrap();
            serde_json::from_str::<Value>(&unpack(text).unwrap()).unwrap()
        };
        assert_eq!(
            of(extra_config::BACKUP_PVC_DISKS),
            json!([{ "FileName": "[ds] fcd/x.vmdk", "PVCName": "c", "AccessModes": ["c-ReadWriteOnce"], "UUID": "6000C29A" }])
        );
        assert_eq!(
            of(extra_config::BACKUP_CLASSIC_DISKS),
            json!([{ "FileName": "[ds] a/a.vmdk" }])
        );
        let known =
            |key: &str| keys.iter().find(|(own, _)| own == key).map(|(_, text)| text.clone());
        assert!(disk_keys(&vm, &disks, known, modes).is_empty(), "it carries them");
        let fewer = disk_keys(&vm, &disks[1..], known, modes);
        assert_eq!(fewer, [(extra_config::BACKUP_CLASSIC_DISKS.to_owned(), String::new())]);
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
