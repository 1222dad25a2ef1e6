//! What a guest is told about itself: cloud-init, LinuxPrep, Sysprep and vApp properties.
//!
//! Everything here is computed from the object, its Secrets and the cards of the VM; the same input always gives the same bytes, so a pass that changes
//! nothing sends nothing.

mod cloud_init;
mod customize;
mod hash;
mod network;
mod payload;
mod sysprep;
mod template;
mod v_app;
mod yaml;

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;

pub use cloud_init::{
    CloudInitKeys, GatewayForm, cloud_init_keys, cloud_init_prep, metadata, userdata,
};
pub use customize::{Customize, customize_now, linux_prep};
pub use hash::{payload_hash, xxh64};
pub use network::{DnsDefaults, GuestCard, GuestNetwork};
pub use payload::{decode, encode};
pub use sysprep::sysprep;
pub use template::render;
pub use v_app::{Edit, ExistingProperty, v_app_edits, v_app_values};

use crate::api::VirtualMachine;
use crate::api::names::annotation;
use crate::api::vm::{Bootstrap, GuestFamily, LinuxPrep, SecretKey};

/// Where Secrets of the object's namespace come from.
pub trait Secrets {
    fn secret(&self, name: &str) -> Option<Arc<Secret>>;
}

impl<F: Fn(&str) -> Option<Arc<Secret>>> Secrets for F {
    fn secret(&self, name: &str) -> Option<Arc<Secret>> {
        self(name)
    }
}

/// Why a guest cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BootstrapError {
    #[error("there is no Secret {name}")]
    SecretMissing { name: String },
    #[error("Secret {name} has none of the keys {}", keys.join(", "))]
    KeyMissing { name: String, keys: Vec<String> },
    #[error("key {key} of Secret {name} holds no text")]
    NotText { name: String, key: String },
    #[error(
        "spec.bootstrap.cloudInit.cloudConfig.write_files: the content of {path} is neither a text nor a name and key of a Secret"
    )]
    FileContent { path: String },
    #[error(
        "the VM has no vApp configuration; use an image that has one, or another bootstrap provider"
    )]
    NoVAppConfig,
    #[error("spec.bootstrap.vAppConfig: {key} {problem}")]
    Property { key: String, problem: String },
    #[error("spec.network.interfaces: {address} is no address with a prefix length")]
    Address { address: String },
}

/// Who prepares the guest.
#[derive(Debug, Clone, PartialEq)]
pub enum Provider {
    /// Nobody; the guest finds out by itself.
    None,
    CloudInit,
    LinuxPrep(LinuxPrep),
    Sysprep,
    /// vApp properties only.
    VApp,
}

/// The provider of a VM. Without a word on it, a Linux guest that boots from a disk gets its name by LinuxPrep.
pub fn provider(vm: &VirtualMachine, guest_id: &str) -> Provider {
    match &vm.spec.bootstrap {
        Some(bootstrap) if bootstrap.disabled => Provider::None,
        Some(Bootstrap { cloud_init: Some(_), .. }) => Provider::CloudInit,
        Some(Bootstrap { linux_prep: Some(prep), .. }) => Provider::LinuxPrep(prep.clone()),
        Some(Bootstrap { sysprep: Some(_), .. }) => Provider::Sysprep,
        Some(Bootstrap { v_app_config: Some(_), .. }) => Provider::VApp,
        _ => {
            let has_cdrom = vm.spec.hardware.as_ref().is_some_and(|of| !of.cdrom.is_empty());
            if GuestFamily::of(guest_id) == GuestFamily::Linux && !has_cdrom {
                let prep = LinuxPrep { hardware_clock_is_utc: Some(true), ..LinuxPrep::default() };
                Provider::LinuxPrep(prep)
            } else {
                Provider::None
            }
        }
    }
}

/// Does the object forbid the customization of its guest?
pub fn is_customization_disabled(vm: &VirtualMachine) -> bool {
    let annotations = vm.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get(annotation::VSPHERE_CUSTOMIZATION))
        .is_some_and(|text| text == "disable")
}

/// The bytes of one key; `usual` are the keys that are tried behind the named one.
pub(crate) fn secret_bytes(
    secrets: &dyn Secrets,
    wanted: &SecretKey,
    usual: &[&str],
) -> Result<Vec<u8>, BootstrapError> {
    let missing = || BootstrapError::SecretMissing { name: wanted.name.clone() };
    let secret = secrets.secret(&wanted.name).ok_or_else(missing)?;
    let keys: Vec<&str> = Some(wanted.key.as_str())
        .filter(|key| !key.is_empty())
        .into_iter()
        .chain(usual.iter().copied())
        .collect();
    let found = keys.iter().find_map(|key| {
        let data = secret.data.as_ref()?.get(*key)?;
        (!data.0.is_empty()).then(|| data.0.clone())
    });
    found.ok_or_else(|| BootstrapError::KeyMissing {
        name: wanted.name.clone(),
        keys: keys.into_iter().map(str::to_owned).collect(),
    })
}

pub(crate) fn secret_text(
    secrets: &dyn Secrets,
    wanted: &SecretKey,
    usual: &[&str],
) -> Result<String, BootstrapError> {
    let bytes = secret_bytes(secrets, wanted, usual)?;
    String::from_utf8(bytes)
        .map_err(|_| BootstrapError::NotText { name: wanted.name.clone(), key: wanted.key.clone() })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use k8s_openapi::ByteString;
    use serde_json::json;

    use super::*;

    /// Secrets by name, with their keys.
    pub(crate) fn secrets(
        all: &[(&str, &str, &str)],
    ) -> impl Fn(&str) -> Option<Arc<Secret>> + use<> {
        let mut found: BTreeMap<String, Secret> = BTreeMap::new();
        for (name, key, value) in all {
            let secret = found.entry((*name).to_owned()).or_default();
            let value = ByteString(value.as_bytes().to_vec());
            secret.data.get_or_insert_default().insert((*key).to_owned(), value);
        }
        move |name: &str| found.get(name).cloned().map(Arc::new)
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
    pub(crate) fn vm(spec: serde_json::Value) -> VirtualMachine {
        serde_json::from_value(json!({
            "metadata": {"name": "web-0", "namespace": "team-a", "uid": "uid-1"}, "spec": spec,
        }))
        .unwrap()
    }

    #[test]
    fn a_provider_is_named_or_follows_from_the_guest() {
        for (spec, guest, want) in [
            (json!({"bootstrap": {"cloudInit": {}}}), "", Provider::CloudInit),
            (json!({"bootstrap": {"sysprep": {}}}), "", Provider::Sysprep),
            (json!({"bootstrap": {"vAppConfig": {}}}), "ubuntu64Guest", Provider::VApp),
            (json!({"bootstrap": {"disabled": true, "cloudInit": {}}}), "", Provider::None),
            (json!({}), "windows2022srvNext_64Guest", Provider::None),
            (
                json!({"hardware": {"cdrom": [{"name": "cd1", "image": {"kind": "", "name": ""}}]}}),
                "ubuntu64Guest",
                Provider::None,
            ),
        ] {
            assert_eq!(provider(&vm(spec.clone()), guest), want, "{spec}");
        }
        let implied = provider(&vm(json!({})), "ubuntu64Guest");
        let prep = LinuxPrep { hardware_clock_is_utc: Some(true), ..LinuxPrep::default() };
        assert_eq!(implied, Provider::LinuxPrep(prep));
    }

    #[test]
    fn a_missing_secret_is_named() {
        let all = secrets(&[("boot", "a", "x"), ("boot", "empty", "")]);
        let wanted = |name: &str, key: &str| SecretKey { name: name.into(), key: key.into() };
        let text =
            |wanted, usual: &[&str]| secret_text(&all, &wanted, usual).map_err(|e| e.to_string());
        assert_eq!(text(wanted("boot", "a"), &[]), Ok("x".to_owned()));
        assert_eq!(text(wanted("boot", "empty"), &["a"]), Ok("x".to_owned()));
        let error = text(wanted("boot", "b"), &["value"]).unwrap_err();
        assert_eq!(error, "Secret boot has none of the keys b, value");
        assert_eq!(text(wanted("other", "b"), &[]).unwrap_err(), "there is no Secret other");
    }
}
