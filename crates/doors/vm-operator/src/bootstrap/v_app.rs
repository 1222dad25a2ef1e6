//! vApp properties: the values that an image asks for.

use std::net::IpAddr;

use super::network::GuestNetwork;
use super::template::render;
use super::{BootstrapError, Secrets, secret_text};
use crate::api::VirtualMachine;
use crate::api::vm::VAppConfig;

/// A property that the VM has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExistingProperty {
    /// vSphere's number for it.
    pub key: i32,
    pub id: String,
    /// Such as `string`, `string(..8)`, `int(0..9)`, `boolean`, `ip`.
    pub type_: String,
    pub value: String,
    pub is_user_configurable: bool,
}

/// Another value for a property.
#[derive(Clone, PartialEq, Eq)]
pub struct Edit {
    pub key: i32,
    pub id: String,
    pub value: String,
}

impl std::fmt::Debug for Edit {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Edit").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The values that differ from those of the VM. Properties that the VM has not, or that a user may not set, are left alone. `existing` is `None` for a VM
/// without a vApp configuration.
pub fn v_app_edits(
    vm: &VirtualMachine,
    config: &VAppConfig,
    existing: Option<&[ExistingProperty]>,
    network: &GuestNetwork,
    secrets: &dyn Secrets,
) -> Result<Vec<Edit>, BootstrapError> {
    let existing = existing.ok_or(BootstrapError::NoVAppConfig)?;
    let mut edits = Vec::new();
    for (id, text) in wanted(config, secrets)? {
        let Some(known) =
            existing.iter().find(|known| known.id == id && known.is_user_configurable)
        else {
            continue;
        };
        let value = render(&text, vm, network);
        let value = checked(&known.type_, &value)
            .map_err(|problem| BootstrapError::Property { key: id.clone(), problem })?;
        if value != known.value {
            edits.push(Edit { key: known.key, id, value });
        }
    }
    Ok(edits)
}

/// The values that an object wants, whatever the VM has: by them an applied configuration is remembered.
pub fn v_app_values(
    config: &VAppConfig,
    secrets: &dyn Secrets,
) -> Result<Vec<(String, String)>, BootstrapError> {
    wanted(config, secrets)
}

fn wanted(
    config: &VAppConfig,
    secrets: &dyn Secrets,
) -> Result<Vec<(String, String)>, BootstrapError> {
    if !config.raw_properties.is_empty() {
        let missing = || BootstrapError::SecretMissing { name: config.raw_properties.clone() };
        let secret = secrets.secret(&config.raw_properties).ok_or_else(missing)?;
        let text = |(key, value): (&String, &k8s_openapi::ByteString)| {
            (key.clone(), String::from_utf8_lossy(&value.0).into_owned())
        };
        return Ok(secret.data.iter().flatten().map(text).collect());
    }
    let mut all = Vec::new();
    for property in &config.properties {
        let value = match &property.value.from {
            Some(from) => secret_text(secrets, from, &[])?,
            None => property.value.value.clone().unwrap_or_default(),
        };
        all.push((property.key.clone(), value));
    }
    Ok(all)
}

/// The value as the type wants it, or what is wrong with it.
fn checked(type_: &str, value: &str) -> Result<String, String> {
    let (name, range) = match type_.split_once('(') {
        Some((name, rest)) => (name, rest.strip_suffix(')')),
        None => (type_, None),
    };
    let bounds = range.and_then(|range| range.split_once(".."));
    let bound = |text: &str| text.trim().parse::<f64>().ok();
    let is_within = |number: f64| {
        bounds.is_none_or(|(low, high)| {
            bound(low).is_none_or(|low| number >= low)
                && bound(high).is_none_or(|high| number <= high)
        })
    };
    match name {
        "boolean" => match value.to_ascii_lowercase().as_str() {
            "true" | "1" | "t" => Ok("True".to_owned()),
            "false" | "0" | "f" => Ok("False".to_owned()),
            _ => Err("is a boolean".to_owned()),
        },
        "int" => match value.parse::<i32>() {
            Ok(number) if is_within(number.into()) => Ok(value.to_owned()),
            _ => Err(format!("is an {type_}")),
        },
        "real" => match value.parse::<f64>() {
            Ok(number) if number.is_finite() && is_within(number) => Ok(value.to_owned()),
            _ => Err(format!("is a {type_}")),
        },
        "ip" => match value.parse::<IpAddr>() {
            Ok(_) => Ok(value.to_owned()),
            Err(_) => Err("is an address".to_owned()),
        },
        "string" | "password" => {
            let length = value.chars().count();
            #[expect(clippy::cast_precision_loss, reason = "no text is that long")]
            let fits = length <= 65_535 && is_within(length as f64);
            if fits { Ok(value.to_owned()) } else { Err(format!("is a {type_}")) }
        }
        // Types that this program does not know are vSphere's to judge.
        _ => Ok(value.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::network::DnsDefaults;
    use super::super::tests::{secrets, vm};
    use super::*;

    fn property(key: i32, id: &str, type_: &str, value: &str) -> ExistingProperty {
        ExistingProperty {
            key,
            id: id.into(),
            type_: type_.into(),
            value: value.into(),
            is_user_configurable: true,
        }
    }

    fn edits(
        config: serde_json::Value,
        existing: Option<&[ExistingProperty]>,
    ) -> Result<Vec<(i32, String)>, String> {
        let vm = vm(
            json!({"network": {"interfaces": [{"name": "eth0", "addresses": ["10.0.0.21/24"]}]}}),
        );
        let network = GuestNetwork::of(&vm, &[], &DnsDefaults::default());
        let config = serde_json::from_value(config).unwrap();
        let all = secrets(&[("s", "pw", "word"), ("raw", "host", "a"), ("raw", "other", "b")]);
        let found = v_app_edits(&vm, &config, existing, &network, &all);
        let pairs =
            |edits: Vec<Edit>| edits.into_iter().map(|edit| (edit.key, edit.value)).collect();
        found.map(pairs).map_err(|error| error.to_string())
    }

    #[test]
    fn only_values_that_differ_are_sent() {
        let mut fixed = property(4, "fixed", "string", "");
        fixed.is_user_configurable = false;
        let existing = [
            property(0, "host", "string", "a"),
            property(1, "pw", "password", ""),
            property(2, "ip", "ip", ""),
            property(3, "on", "boolean", "False"),
            fixed,
        ];
        let config = json!({"properties": [
            {"key": "host", "value": {"value": "a"}},
            {"key": "pw", "value": {"from": {"name": "s", "key": "pw"}}},
            {"key": "ip", "value": {"value": "{{ V1alpha6_FirstIPv4 }}"}},
            {"key": "on", "value": {"value": "true"}},
            {"key": "fixed", "value": {"value": "x"}},
            {"key": "unknown", "value": {"value": "x"}},
        ]});
        let expected =
            [(1, "word".to_owned()), (2, "10.0.0.21".to_owned()), (3, "True".to_owned())];
        assert_eq!(edits(config, Some(&existing)).unwrap(), expected);
        assert_eq!(edits(json!({"rawProperties": "raw"}), Some(&existing)).unwrap(), []);
        let error = edits(json!({"properties": []}), None).unwrap_err();
        assert!(error.starts_with("the VM has no vApp configuration"), "{error}");
    }

    #[test]
    fn values_fit_their_types() {
        for (type_, value, want) in [
            ("boolean", "TRUE", Ok("True")),
            ("boolean", "maybe", Err("is a boolean")),
            ("int", "42", Ok("42")),
            ("int", "4294967296", Err("is an int")),
            ("int(0..9)", "10", Err("is an int(0..9)")),
            ("real(0..1)", "0.5", Ok("0.5")),
            ("ip", "10.0.0.1", Ok("10.0.0.1")),
            ("ip", "ten", Err("is an address")),
            ("string(..3)", "abcd", Err("is a string(..3)")),
            ("string(2..)", "ab", Ok("ab")),
            ("password(4..)", "abc", Err("is a password(4..)")),
            ("string[\"a\"]", "x", Ok("x")),
        ] {
            let got = checked(type_, value);
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{type_} {value}");
        }
    }
}
