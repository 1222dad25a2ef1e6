//! Guests as JSON: how they behave, and what programs in them do.

use std::net::IpAddr;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::glob;
use crate::guest::{
    AddressBehaviour, GuestBehaviour, GuestEffect, GuestProgram, GuestReply, GuestRun,
};
use crate::options::Credentials;

/// What the programs that fit do: `{"path": "/bin/bash", "arguments": "*worker*", "runs": {"takesMs": 60000, "effects":
/// ["powerOff"]}}`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct JsonScript {
    #[serde(default = "any")]
    vm: String,
    #[serde(default = "any")]
    path: String,
    #[serde(default = "any")]
    arguments: String,
    #[serde(flatten)]
    reply: JsonReply,
}

fn any() -> String {
    "*".into()
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum JsonReply {
    Runs(JsonRun),
    NotFound(Yes),
    Denied(Yes),
}

/// `{}`: there is nothing more to say.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Yes {}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct JsonRun {
    exit_code: i32,
    takes_ms: u64,
    output: String,
    effects: Vec<JsonEffect>,
    hangs: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum JsonEffect {
    PowerOff,
    Reboot,
    WriteFile { path: String, content: String },
}

impl JsonScript {
    pub(super) fn reply_to(&self, program: &GuestProgram) -> Option<GuestReply> {
        let fits = glob::matches(&self.vm, &program.vm)
            && glob::matches(&self.path, &program.path)
            && glob::matches(&self.arguments, &program.arguments);
        fits.then(|| match &self.reply {
            JsonReply::Runs(run) => GuestReply::Runs(run.to_run()),
            JsonReply::NotFound(Yes {}) => GuestReply::NotFound,
            JsonReply::Denied(Yes {}) => GuestReply::Denied,
        })
    }
}

impl JsonRun {
    fn to_run(&self) -> GuestRun {
        let effect = |effect: &JsonEffect| match effect {
            JsonEffect::PowerOff => GuestEffect::PowerOff,
            JsonEffect::Reboot => GuestEffect::Reboot,
            JsonEffect::WriteFile { path, content } => {
                GuestEffect::WriteFile { path: path.clone(), content: content.clone() }
            }
        };
        GuestRun {
            exit_code: self.exit_code,
            takes: Duration::from_millis(self.takes_ms),
            output: self.output.clone(),
            effects: self.effects.iter().map(effect).collect(),
            hangs: self.hangs,
        }
    }
}

/// What is left out is as it is by default.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct JsonBehaviour {
    boots: bool,
    boots_from_network: bool,
    starts_tools: bool,
    becomes_ready: bool,
    /// `"assigned"`, `"never"` or `{"wrong": "10.0.0.9"}`.
    address: JsonAddress,
    customization_fails: Option<String>,
    obeys: bool,
    credentials: Option<JsonCredentials>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum JsonAddress {
    Assigned,
    Never,
    Wrong(IpAddr),
}

/// Not `Debug`: it holds a password.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonCredentials {
    user: String,
    password: String,
}

impl std::fmt::Debug for JsonCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JsonCredentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Default for JsonBehaviour {
    fn default() -> Self {
        let usual = GuestBehaviour::default();
        Self {
            boots: usual.boots,
            boots_from_network: usual.boots_from_network,
            starts_tools: usual.starts_tools,
            becomes_ready: usual.becomes_ready,
            address: JsonAddress::Assigned,
            customization_fails: None,
            obeys: usual.obeys,
            credentials: None,
        }
    }
}

impl From<JsonBehaviour> for GuestBehaviour {
    fn from(json: JsonBehaviour) -> Self {
        Self {
            boots: json.boots,
            boots_from_network: json.boots_from_network,
            starts_tools: json.starts_tools,
            becomes_ready: json.becomes_ready,
            address: match json.address {
                JsonAddress::Assigned => AddressBehaviour::Assigned,
                JsonAddress::Never => AddressBehaviour::Never,
                JsonAddress::Wrong(address) => AddressBehaviour::Wrong(address),
            },
            customization_fails: json.customization_fails,
            obeys: json.obeys,
            credentials: json
                .credentials
                .map(|JsonCredentials { user, password }| Credentials { user, password }),
        }
    }
}

/// Without the environment, which may hold secrets.
pub(super) fn program(program: &GuestProgram) -> Value {
    json!({ "vm": program.vm, "user": program.user, "path": program.path, "arguments": program.arguments })
}
