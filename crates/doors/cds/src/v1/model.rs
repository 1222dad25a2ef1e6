use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::Group;
use super::Requirement;
use crate::{Secret, go_time};

/// A worker model in the API's database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    pub id: i64,
    pub name: String,
    pub description: String,
    #[serde(rename = "type")]
    pub model_type: String,
    pub disabled: bool,
    pub restricted: bool,
    pub registered_os: Option<String>,
    pub registered_arch: Option<String>,
    /// No worker has shown what the model can do; jobs do not match until one has.
    pub need_registration: bool,
    /// Somebody wants it to be shown again; jobs match meanwhile.
    pub check_registration: bool,
    #[serde(with = "go_time")]
    pub last_registration: Option<Timestamp>,
    #[serde(with = "go_time")]
    pub user_last_modified: Option<Timestamp>,
    pub group_id: i64,
    pub group: Option<Group>,
    pub nb_spawn_err: i64,
    pub last_spawn_err: Option<String>,
    pub is_deprecated: bool,
    pub model_virtual_machine: VirtualMachine,
    pub registered_capabilities: Vec<Requirement>,
    pub is_official: bool,
}

impl Model {
    pub fn path(&self) -> ModelPath {
        let group = self.group.as_ref().map_or(Group::SHARED_INFRA, |group| &group.name);
        ModelPath { group: group.to_owned(), name: self.name.clone() }
    }
}

/// What a model says about its VM.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct VirtualMachine {
    pub image: String,
    pub flavor: String,
    pub pre_cmd: String,
    pub cmd: String,
    pub post_cmd: String,
    pub user: String,
    /// As the API gives it, a placeholder such as `{{.secrets.vsphere_password}}`; see [`fill_in_secrets`].
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub password: Secret,
}

/// A secret of a model, given to hatcheries only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelSecret {
    pub id: String,
    pub worker_model_id: i64,
    pub name: String,
    #[serde(serialize_with = "Secret::serialize_exposed")]
    pub value: Secret,
}

/// Replaces `{{.name}}` by the value of the secret with that name.
pub fn fill_in_secrets(text: &Secret, secrets: &[ModelSecret]) -> Secret {
    let filled = secrets.iter().fold(text.expose().to_owned(), |text, secret| {
        text.replace(&format!("{{{{.{}}}}}", secret.name), secret.value.expose())
    });
    Secret::new(filled)
}

/// `group/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModelPath {
    pub group: String,
    pub name: String,
}

impl ModelPath {
    /// Reads `group/name`, or a bare `name` of the group `shared.infra`.
    pub fn parse(text: &str) -> Self {
        let (group, name) = text.split_once('/').unwrap_or((Group::SHARED_INFRA, text));
        Self { group: group.to_owned(), name: name.to_owned() }
    }

    /// As people see it: without the group that everybody belongs to.
    pub fn short(&self) -> String {
        if self.group == Group::SHARED_INFRA { self.name.clone() } else { self.to_string() }
    }
}

impl fmt::Display for ModelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

/// Why a worker of a model could not be registered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct SpawnError {
    pub error: String,
    /// Base64.
    pub logs: Option<String>,
}

impl SpawnError {
    pub fn new(error: impl Into<String>, logs: Option<&[u8]>) -> Self {
        Self { error: error.into(), logs: logs.map(|logs| STANDARD.encode(logs)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    const WIRE: &str = r#"{ "id": 12, "name": "debian12", "description": "", "type": "vsphere", "disabled": false, "restricted": false,
  "registered_os": "linux", "registered_arch": "amd64", "need_registration": false, "check_registration": false,
  "last_registration": "2026-06-01T00:00:00Z", "user_last_modified": "2026-06-01T00:00:00Z",
  "created_by": {"username":"","fullname":"","email":""}, "group_id": 1, "group": {"id":1,"name":"shared.infra"},
  "nb_spawn_err": 0, "last_spawn_err": null, "last_spawn_err_log": null, "date_last_spawn_err": null, "is_deprecated": false,
  "model_virtual_machine": {"image":"debian12-base","flavor":"","pre_cmd":"","cmd":"worker","post_cmd":"sudo shutdown -h now",
                             "user":"cds","password":"{{.secrets.vsphere_password}}"},
  "model_docker": {}, "registered_capabilities": [{"name":"git","type":"binary","value":"git"}], "is_official": false }"#;

    #[test]
    fn the_model_of_the_reference_is_read() {
        let model: Model = json::decode(WIRE.as_bytes()).unwrap();
        assert_eq!((model.id, model.model_type.as_str()), (12, "vsphere"));
        assert_eq!(model.user_last_modified.unwrap().as_second(), 1_780_272_000);
        assert_eq!(model.path().to_string(), "shared.infra/debian12");
        assert_eq!(model.path().short(), "debian12");
        assert_eq!(model.model_virtual_machine.post_cmd, "sudo shutdown -h now");
        assert_eq!(model.registered_capabilities[0].value, "git");
        assert_eq!(json::decode::<Model>(&json::encode(&model)).unwrap(), model);
    }

    #[test]
    fn a_password_is_filled_in_and_never_printed() {
        let model: Model = json::decode(WIRE.as_bytes()).unwrap();
        let wire = br#"[{"id":"s-1","created":"2026-06-01T00:00:00Z","worker_model_id":12,
            "name":"secrets.vsphere_password","value":"hunter2"}]"#;
        let secrets: Vec<ModelSecret> = json::decode(wire).unwrap();
        let password = fill_in_secrets(&model.model_virtual_machine.password, &secrets);
        assert_eq!(password.expose(), "hunter2");
        assert!(!format!("{secrets:?} {password:?}").contains("hunter2"));
        let plain = fill_in_secrets(&Secret::from("{{.other}}"), &secrets);
        assert_eq!(plain.expose(), "{{.other}}");
    }

    #[test]
    fn a_spawn_error_has_capital_keys() {
        let text = |error| String::from_utf8(json::encode(&error)).unwrap();
        assert_eq!(text(SpawnError::new("boom", None)), r#"{"Error":"boom","Logs":null}"#);
        assert_eq!(text(SpawnError::new("", Some(b"x"))), r#"{"Error":"","Logs":"eA=="}"#);
    }

    #[test]
    fn a_bare_name_belongs_to_shared_infra() {
        assert_eq!(ModelPath::parse("debian12").to_string(), "shared.infra/debian12");
        assert_eq!(ModelPath::parse("team/debian12").short(), "team/debian12");
    }
}
