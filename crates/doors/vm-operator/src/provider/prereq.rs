//! What must be there before a VM can be made: class, image, resource policy, bootstrap data, storage. All are looked at, so that a person sees at once
//! everything that is missing.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt as _;
use roost_controller::Key;
use roost_fleet::VmId;
use roost_vim::wire::types::VirtualMachineConfigSpec;

use super::settings::ProviderSettings;
use super::stores::Stores;
use crate::api::condition::{
    ConditionType, Reason, Truth, find, mark_false, mark_text, mark_true, remove,
};
use crate::api::names::STORAGE_POLICY_PARAMETER;
use crate::api::vm::{ProvisioningMode, SecretKey};
use crate::api::{
    ClusterVirtualMachineImage, ImageType, VirtualMachine, VirtualMachineClass,
    VirtualMachineImage, VirtualMachineImageStatus, VirtualMachineSetResourcePolicy,
};
use crate::class::base_config;

/// Everything that a VM is made of.
#[derive(Debug, Clone)]
pub(crate) struct Prereqs {
    pub(crate) class: Option<Arc<VirtualMachineClass>>,
    /// What the class says beyond its size.
    pub(crate) base: VirtualMachineConfigSpec,
    pub(crate) image: Option<VirtualMachineImageStatus>,
    pub(crate) source: Source,
    pub(crate) policy: Option<Arc<VirtualMachineSetResourcePolicy>>,
    pub(crate) storage: Storage,
}

/// What the VM is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// An OVF template in a content library.
    Ovf { item: String, version: String },
    /// A VM or template of the inventory.
    Template(VmId),
    /// Nothing; it boots from an image that is put into its drive.
    Iso,
}

/// Where its disks go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Storage {
    pub(crate) policy: Option<String>,
    /// By name.
    pub(crate) datastore: Option<String>,
    pub(crate) provisioning: Option<ProvisioningMode>,
}

/// The conditions say what is missing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing(pub(crate) Vec<String>);

struct Looking<'a> {
    vm: &'a mut VirtualMachine,
    namespace: String,
    missing: Vec<String>,
    now: Timestamp,
}

impl Looking<'_> {
    fn lacks(&mut self, kind: ConditionType, reason: Reason, message: String) {
        mark_false(&mut self.vm.status_mut().conditions, kind, reason, &message, self.now);
        self.missing.push(message);
    }

    fn has(&mut self, kind: ConditionType) {
        mark_true(&mut self.vm.status_mut().conditions, kind, self.now);
    }

    fn has_no_need(&mut self, kind: ConditionType) {
        remove(&mut self.vm.status_mut().conditions, kind);
    }
}

/// Create prereqs, in the order of the pipeline.
pub(crate) fn look(
    vm: &mut VirtualMachine,
    stores: &Stores,
    settings: &ProviderSettings,
    now: Timestamp,
) -> Result<Prereqs, Missing> {
    let namespace = vm.namespace().unwrap_or_default();
    let mut at = Looking { vm, namespace, missing: Vec::new(), now };
    let class = class(&mut at, stores);
    let image = image(&mut at, stores);
    let policy = resource_policy(&mut at, stores);
    bootstrap(&mut at, stores);
    let storage = storage(&mut at, stores, settings);
    if at.missing.is_empty()
        && let (Some((image, source)), Some(storage)) = (image, storage)
    {
        let base = class.as_deref().map(|class| base_config(&class.spec)).unwrap_or_default();
        return Ok(Prereqs { class, base, image, source, policy, storage });
    }
    Err(Missing(at.missing))
}

fn class(at: &mut Looking<'_>, stores: &Stores) -> Option<Arc<VirtualMachineClass>> {
    let kind = ConditionType::ClassReady;
    let name = at.vm.spec.class_name.clone();
    if name.is_empty() {
        at.has_no_need(kind);
        return None;
    }
    let found = stores.classes.get(&Key::new(&at.namespace, &name));
    if found.is_some() {
        at.has(kind);
    } else {
        let message = format!("there is no VirtualMachineClass {name} in this namespace");
        at.lacks(kind, Reason::NotFound, message);
    }
    found
}

type Image = (Option<VirtualMachineImageStatus>, Source);

fn image(at: &mut Looking<'_>, stores: &Stores) -> Option<Image> {
    let kind = ConditionType::ImageReady;
    let Some(wanted) = at.vm.spec.image.clone().filter(|image| !image.name.is_empty()) else {
        at.lacks(kind, Reason::NotSet, "spec.image is not set".to_owned());
        return None;
    };
    if ![VirtualMachineImage::KIND, ClusterVirtualMachineImage::KIND].contains(&&*wanted.kind) {
        let message = format!("{} is no kind of image", wanted.kind);
        at.lacks(kind, Reason::UnknownKind, message);
        return None;
    }
    let Some(status) = stores.image(&at.namespace, &wanted.kind, &wanted.name) else {
        at.lacks(kind, Reason::NotFound, format!("there is no {} {}", wanted.kind, wanted.name));
        return None;
    };
    if !status.is_ready() {
        let said = find(&status.conditions, ConditionType::Ready);
        let reason = said.map_or(Reason::NotReady.as_str(), |said| said.reason.as_str());
        let why = said.map(|said| said.message.clone()).unwrap_or_default();
        let message = format!("image {} is not ready: {why}", wanted.name);
        let conditions = &mut at.vm.status_mut().conditions;
        mark_text(conditions, kind.as_str(), Truth::False, reason, &message, at.now);
        at.missing.push(message);
        return None;
    }
    let Some(source) = source_of(&status) else {
        let message = format!("images of type {} cannot be deployed", status.type_);
        at.lacks(kind, Reason::NotSupported, message);
        return None;
    };
    at.has(kind);
    Some((Some(status), source))
}

pub(crate) fn source_of(image: &VirtualMachineImageStatus) -> Option<Source> {
    let item = image.provider_item_id.clone();
    if item.starts_with("vm-") {
        return Some(Source::Template(VmId::new(item.as_str())));
    }
    match image.image_type()? {
        ImageType::Ovf => {
            Some(Source::Ovf { item, version: image.provider_content_version.clone() })
        }
        ImageType::Iso => Some(Source::Iso),
        ImageType::Vm => Some(Source::Template(VmId::new(item.as_str()))),
    }
}

fn resource_policy(
    at: &mut Looking<'_>,
    stores: &Stores,
) -> Option<Arc<VirtualMachineSetResourcePolicy>> {
    let kind = ConditionType::SetResourcePolicyReady;
    let reserved = at.vm.spec.reserved.as_ref();
    let name = reserved.map(|of| of.resource_policy_name.clone()).unwrap_or_default();
    if name.is_empty() {
        at.has_no_need(kind);
        return None;
    }
    match stores.policies.get(&Key::new(&at.namespace, &name)) {
        Some(policy) if policy.metadata.deletion_timestamp.is_some() => {
            let message = format!("VirtualMachineSetResourcePolicy {name} is being deleted");
            at.lacks(kind, Reason::NotReady, message);
            None
        }
        Some(policy) => {
            at.has(kind);
            Some(policy)
        }
        None => {
            let message = format!("there is no VirtualMachineSetResourcePolicy {name}");
            at.lacks(kind, Reason::NotFound, message);
            None
        }
    }
}

fn bootstrap(at: &mut Looking<'_>, stores: &Stores) {
    let kind = ConditionType::BootstrapReady;
    if at.vm.spec.bootstrap.is_none() {
        at.has_no_need(kind);
        return;
    }
    for wanted in secrets_of(at.vm) {
        let Some(secret) = stores.secret(&at.namespace, &wanted.name) else {
            let message = format!("there is no Secret {}", wanted.name);
            return at.lacks(kind, Reason::NotFound, message);
        };
        let has_key = wanted.keys.is_empty()
            || secret.data.iter().flatten().any(|(key, _)| wanted.keys.contains(key));
        if !has_key {
            let message = format!("Secret {} has no key {}", wanted.name, wanted.keys[0]);
            return at.lacks(kind, Reason::RequiredKeyNotFound, message);
        }
    }
    at.has(kind);
}

/// A Secret that a bootstrap needs, with any one of these keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedSecret {
    pub(crate) name: String,
    pub(crate) keys: Vec<String>,
}

/// Every Secret that the bootstrap names.
pub(crate) fn secrets_of(vm: &VirtualMachine) -> Vec<WantedSecret> {
    let Some(bootstrap) = &vm.spec.bootstrap else { return Vec::new() };
    let mut all = Vec::new();
    let mut want = |secret: Option<&SecretKey>, usual: &[&str]| {
        if let Some(secret) = secret.filter(|secret| !secret.name.is_empty()) {
            let mut keys: Vec<String> =
                Some(secret.key.clone()).filter(|key| !key.is_empty()).into_iter().collect();
            if keys.is_empty() || usual.len() > 1 {
                keys.extend(usual.iter().map(|key| (*key).to_owned()));
            }
            all.push(WantedSecret { name: secret.name.clone(), keys });
        }
    };
    if let Some(cloud_init) = &bootstrap.cloud_init {
        want(cloud_init.raw_cloud_config.as_ref(), &["user-data", "value"]);
        if let Some(config) = &cloud_init.cloud_config {
            for user in &config.users {
                want(user.passwd.as_ref(), &[]);
                want(user.hashed_passwd.as_ref(), &[]);
            }
            for file in &config.write_files {
                let secret = file.content.clone();
                let secret = secret.filter(serde_json::Value::is_object);
                let secret: Option<SecretKey> =
                    secret.and_then(|content| serde_json::from_value(content).ok());
                want(secret.as_ref(), &[]);
            }
        }
    }
    if let Some(prep) = &bootstrap.linux_prep {
        want(prep.password.as_ref(), &["password"]);
        want(prep.script_text.as_ref().and_then(|text| text.from.as_ref()), &[]);
    }
    if let Some(sysprep) = &bootstrap.sysprep {
        want(sysprep.raw_sysprep.as_ref(), &["unattend"]);
        if let Some(inline) = &sysprep.sysprep {
            want(inline.user_data.product_id.as_ref(), &["product_id"]);
            want(
                inline.gui_unattended.as_ref().and_then(|gui| gui.password.as_ref()),
                &["password"],
            );
            let identification = inline.identification.as_ref();
            want(
                identification.and_then(|of| of.domain_admin_password.as_ref()),
                &["domain_admin_password"],
            );
            want(inline.script_text.as_ref().and_then(|text| text.from.as_ref()), &[]);
        }
    }
    if let Some(config) = &bootstrap.v_app_config {
        for property in &config.properties {
            want(property.value.from.as_ref(), &[]);
        }
        if !config.raw_properties.is_empty() {
            let raw = SecretKey { name: config.raw_properties.clone(), key: String::new() };
            want(Some(&raw), &[]);
        }
    }
    all
}

fn storage(at: &mut Looking<'_>, stores: &Stores, settings: &ProviderSettings) -> Option<Storage> {
    let kind = ConditionType::StorageReady;
    let advanced = at.vm.spec.advanced.as_ref();
    let provisioning = advanced.and_then(|of| of.default_volume_provisioning_mode);
    let name = at.vm.spec.storage_class.clone();
    if name.is_empty() {
        let usual = settings.zones.iter().find_map(|zone| zone.datastore.clone());
        if settings.storage_class_required {
            at.lacks(
                kind,
                Reason::StorageClassRequired,
                "spec.storageClass is required".to_owned(),
            );
            return None;
        }
        if usual.is_none() && settings.zones.iter().all(|zone| zone.datastore.is_none()) {
            let message = "no storage class is named and no zone has a datastore".to_owned();
            at.lacks(kind, Reason::DatastoreNotFound, message);
            return None;
        }
        at.has(kind);
        return Some(Storage { provisioning, ..Storage::default() });
    }
    let Some(class) = stores.storage_classes.get(&Key::cluster(&name)) else {
        at.lacks(kind, Reason::NotFound, format!("there is no StorageClass {name}"));
        return None;
    };
    if let Some(missing) = missing_claim(at, stores) {
        at.lacks(kind, Reason::NotFound, missing);
        return None;
    }
    at.has(kind);
    let (policy, datastore) =
        (parameter(&class, STORAGE_POLICY_PARAMETER), parameter(&class, "datastore"));
    Some(Storage { policy, datastore, provisioning })
}

fn missing_claim(at: &Looking<'_>, stores: &Stores) -> Option<String> {
    let claims = at.vm.spec.volumes.iter().filter_map(|volume| volume.claim_name());
    let is_missing = |name: &&str| stores.claims.get(&Key::new(&at.namespace, name)).is_none();
    claims
        .into_iter()
        .find(is_missing)
        .map(|name| format!("there is no PersistentVolumeClaim {name}"))
}

fn parameter(class: &StorageClass, name: &str) -> Option<String> {
    class.parameters.as_ref()?.get(name).cloned().filter(|value| !value.is_empty())
}
