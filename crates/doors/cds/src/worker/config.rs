use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::json::{self, DecodeError};
use crate::{JobId, Secret};

/// What a worker reads from its environment variable `CDS_CONFIG`. Field order is that of the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerConfig {
    pub name: String,
    #[serde(rename = "basedir")]
    pub base_dir: String,
    pub log: LogOptions,
    pub hatchery_name: String,
    pub api_endpoint: String,
    #[serde(skip_serializing_if = "is_false")]
    pub api_endpoint_insecure: bool,
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub api_token: Secret,
    pub cdn_endpoint: String,
    pub gelf_service_addr: String,
    #[serde(skip_serializing_if = "is_false")]
    pub gelf_service_addr_enable_tls: bool,
    pub model: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub booked_job_id: i64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub run_job_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub region: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inject_env_vars: BTreeMap<String, String>,
}

/// Where a worker logs to. Keys are the names of Go's fields; ports are text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct LogOptions {
    pub level: String,
    pub format: String,
    pub text_fields: Option<Vec<String>>,
    pub skip_text_fields: Option<Vec<String>>,
    pub graylog_host: String,
    pub graylog_port: String,
    pub graylog_protocol: String,
    pub graylog_extra_key: String,
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub graylog_extra_value: Secret,
    #[serde(rename = "GraylogFieldCDSServiceType")]
    pub service_type: String,
    #[serde(rename = "GraylogFieldCDSServiceName")]
    pub service_name: String,
    #[serde(rename = "GraylogFieldCDSVersion")]
    pub version: String,
    #[serde(rename = "GraylogFieldCDSOS")]
    pub os: String,
    #[serde(rename = "GraylogFieldCDSArch")]
    pub arch: String,
    pub syslog_host: String,
    pub syslog_port: String,
    pub syslog_protocol: String,
    pub syslog_extra_tag: String,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            level: String::new(),
            format: String::new(),
            text_fields: None,
            skip_text_fields: None,
            graylog_host: String::new(),
            graylog_port: "0".to_owned(),
            graylog_protocol: String::new(),
            graylog_extra_key: String::new(),
            graylog_extra_value: Secret::default(),
            service_type: "worker".to_owned(),
            service_name: String::new(),
            version: String::new(),
            os: String::new(),
            arch: String::new(),
            syslog_host: String::new(),
            syslog_port: "0".to_owned(),
            syslog_protocol: String::new(),
            syslog_extra_tag: String::new(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Why a `CDS_CONFIG` cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    #[error("CDS_CONFIG is not base64")]
    Base64,
    #[error("CDS_CONFIG does not hold a worker's configuration")]
    Json(#[from] DecodeError),
}

impl WorkerConfig {
    /// The variable's name.
    pub const VARIABLE: &str = "CDS_CONFIG";

    /// The variable's value. Holds the worker's token.
    pub fn encode(&self) -> Secret {
        Secret::new(STANDARD.encode(json::encode(self)))
    }

    pub fn decode(value: &Secret) -> Result<Self, ConfigError> {
        let bytes = STANDARD.decode(value.expose().trim()).map_err(|_| ConfigError::Base64)?;
        Ok(json::decode(&bytes)?)
    }

    /// The job that the worker is for; `None` for one that only registers its model.
    pub fn job(&self) -> Option<JobId> {
        match (self.booked_job_id, &*self.run_job_id) {
            (0, "") => None,
            (0, id) => Some(JobId::V2(id.to_owned())),
            (id, _) => Some(JobId::V1(id)),
        }
    }

    /// The environment of the guest's program: this configuration, then what the operator injects.
    pub fn environment(&self) -> Vec<(String, Secret)> {
        let injected = self.inject_env_vars.iter();
        let injected = injected.map(|(name, value)| (name.clone(), Secret::from(value.as_str())));
        let own = (Self::VARIABLE.to_owned(), self.encode());
        std::iter::once(own).chain(injected).collect()
    }
}

/// `K=V` entries of a configuration file, told apart from those that are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InjectedVariables {
    pub variables: BTreeMap<String, String>,
    /// Entries without `=`, which are skipped.
    pub unusable: Vec<String>,
}

impl InjectedVariables {
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let mut parsed = Self::default();
        for entry in entries {
            match entry.split_once('=') {
                Some((name, value)) => {
                    parsed.variables.insert(name.to_owned(), value.to_owned());
                }
                None => parsed.unusable.push(entry.to_owned()),
            }
        }
        parsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> WorkerConfig {
        WorkerConfig {
            name: "keen-bohr".into(),
            log: LogOptions { service_name: "keen-bohr".into(), ..LogOptions::default() },
            hatchery_name: "h".into(),
            api_endpoint: "http://api".into(),
            api_token: "jwt".into(),
            cdn_endpoint: "http://cdn".into(),
            gelf_service_addr: "cdn:8090".into(),
            model: "shared.infra/debian12".into(),
            booked_job_id: 123,
            ..WorkerConfig::default()
        }
    }

    const SMALL: &str = concat!(
        r#"{"name":"keen-bohr","basedir":"","log":{"Level":"","Format":"","TextFields":null,"SkipTextFields":null,"#,
        r#""GraylogHost":"","GraylogPort":"0","GraylogProtocol":"","GraylogExtraKey":"","GraylogExtraValue":"","#,
        r#""GraylogFieldCDSServiceType":"worker","GraylogFieldCDSServiceName":"keen-bohr","GraylogFieldCDSVersion":"","#,
        r#""GraylogFieldCDSOS":"","GraylogFieldCDSArch":"","SyslogHost":"","SyslogPort":"0","SyslogProtocol":"","#,
        r#""SyslogExtraTag":""},"hatchery_name":"h","api_endpoint":"http://api","api_token":"jwt","#,
        r#""cdn_endpoint":"http://cdn","gelf_service_addr":"cdn:8090","model":"shared.infra/debian12","booked_job_id":123}"#
    );

    #[test]
    fn what_is_zero_false_or_empty_is_left_out_byte_for_byte() {
        let encoded = small().encode();
        assert_eq!(STANDARD.decode(encoded.expose()).unwrap(), SMALL.as_bytes());
        assert_eq!(encoded.expose().len() % 4, 0, "padded");
        assert_eq!(WorkerConfig::decode(&encoded).unwrap(), small());
        assert_eq!(small().job(), Some(JobId::V1(123)));
    }

    #[test]
    fn everything_set_is_written_in_the_order_of_the_reference_byte_for_byte() {
        let mut config = small();
        config.api_endpoint_insecure = true;
        config.gelf_service_addr_enable_tls = true;
        config.booked_job_id = 0;
        config.run_job_id = "j-1".into();
        config.region = "default".into();
        config.inject_env_vars = InjectedVariables::parse(["K=V", "A=<&>"]).variables;
        let wanted = SMALL
            .replace(r#""api_token""#, r#""api_endpoint_insecure":true,"api_token""#)
            .replace(r#""model""#, r#""gelf_service_addr_enable_tls":true,"model""#)
            .replace(
                r#""booked_job_id":123}"#,
                concat!(
                    r#""run_job_id":"j-1","region":"default","#,
                    r#""inject_env_vars":{"A":"\u003c\u0026\u003e","K":"V"}}"#
                ),
            );
        assert_eq!(String::from_utf8(json::encode(&config)).unwrap(), wanted);
        assert_eq!(config.job(), Some(JobId::V2("j-1".into())));
        let names: Vec<_> = config.environment().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["CDS_CONFIG", "A", "K"]);
    }

    #[test]
    fn entries_without_an_equals_sign_are_set_apart() {
        let parsed = InjectedVariables::parse(["A=1=2", "B", "C="]);
        let pairs: Vec<_> = parsed.variables.into_iter().collect();
        assert_eq!(pairs, [("A".into(), "1=2".into()), ("C".into(), String::new())]);
        assert_eq!(parsed.unusable, ["B"]);
    }

    #[test]
    fn what_is_no_configuration_is_refused_without_being_quoted() {
        assert_eq!(WorkerConfig::decode(&"%".into()), Err(ConfigError::Base64));
        let text = Secret::new(STANDARD.encode("hunter2"));
        let error = WorkerConfig::decode(&text).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }
}
