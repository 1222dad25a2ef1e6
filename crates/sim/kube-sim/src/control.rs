//! The control endpoint: the handle's verbs as JSON, for those on the wire.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::fault::{Rule, RuleId};
use crate::request::Answer;
use crate::sim::KubeSim;
use crate::status::ApiError;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Restart {
    #[serde(default)]
    for_ms: u64,
}

impl KubeSim {
    /// Below `/roost/control`.
    pub(crate) fn control(
        &self,
        method: &Method,
        path: &[&str],
        body: &Bytes,
    ) -> Result<Answer, ApiError> {
        let done = || Ok(Answer::json(StatusCode::OK, &json!({"done": true})));
        match (method.as_str(), path) {
            ("GET", ["rules"]) => Ok(Answer::json(StatusCode::OK, &json!(self.rules()))),
            ("POST", ["rules"]) => {
                let rule: Rule = read(body)?;
                Ok(Answer::json(StatusCode::CREATED, &json!({"id": self.add_rule(rule)})))
            }
            ("DELETE", ["rules"]) => {
                self.clear_rules();
                done()
            }
            ("DELETE", ["rules", id]) => {
                let id = id
                    .parse()
                    .map(RuleId)
                    .map_err(|_| ApiError::bad_request("a rule has a number"))?;
                if self.remove_rule(id) { done() } else { Err(ApiError::no_such_resource()) }
            }
            ("POST", ["restart"]) => {
                let restart: Restart =
                    if body.is_empty() { Restart { for_ms: 0 } } else { read(body)? };
                self.restart(Duration::from_millis(restart.for_ms));
                done()
            }
            ("POST", ["cut-watches"]) => {
                Ok(Answer::json(StatusCode::OK, &json!({"cut": self.cut_watches()})))
            }
            ("POST", ["compact"]) => {
                self.compact();
                done()
            }
            ("GET", ["state"]) => Ok(Answer::json(StatusCode::OK, &self.state())),
            _ => Err(ApiError::no_such_resource()),
        }
    }

    fn state(&self) -> Value {
        let world = self.world();
        let objects: serde_json::Map<String, Value> = world
            .tables()
            .filter(|(_, table)| !table.is_empty())
            .map(|((group, plural), table)| {
                let name =
                    if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
                (name, json!(table.len()))
            })
            .collect();
        let watches: usize = world.tables().map(|(_, table)| table.watches()).sum();
        json!({"resourceVersion": world.revision, "seed": world.options.seed, "objects": objects, "watches": watches})
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &Bytes) -> Result<T, ApiError> {
    serde_json::from_slice(body).map_err(|error| ApiError::bad_request(error.to_string()))
}
