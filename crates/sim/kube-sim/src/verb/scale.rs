//! The scale subresource: replicas of any kind in one form.

use std::collections::BTreeMap;

use http::StatusCode;
use serde_json::{Value, json};

use super::{Draft, Subject};
use crate::kind::Scale;
use crate::object;
use crate::request::{Answer, Request};
use crate::selector;
use crate::status::{ApiError, Cause};
use crate::store::Stored;
use crate::world::World;

impl World {
    #[expect(clippy::unused_self, reason = "beside the other ways to read")]
    pub(super) fn get_scale(
        &self,
        subject: &Subject,
        request: &Request,
        stored: &Stored,
    ) -> Result<Answer, ApiError> {
        let version = subject.version(&request.target)?;
        let scale = version.scale.as_ref().ok_or_else(ApiError::no_such_resource)?;
        Ok(Answer::json(StatusCode::OK, &view(scale, &stored.value)))
    }
}

/// An object as a `Scale`.
pub(super) fn view(scale: &Scale, value: &Value) -> Value {
    let metadata = object::metadata(value);
    let number = |path: &str| object::at(value, path).and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({"replicas": number(&scale.status_replicas)});
    let labels = scale.label_selector.as_deref().and_then(|path| object::at(value, path));
    match labels {
        Some(Value::String(text)) => status["selector"] = json!(text),
        Some(labels @ Value::Object(_)) => {
            let labels: BTreeMap<String, String> =
                serde_json::from_value(labels["matchLabels"].clone()).unwrap_or_default();
            status["selector"] = json!(selector::to_text(&labels));
        }
        _ => {}
    }
    let mut shown = json!({"name": metadata.get("name")});
    for field in ["namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = metadata.get(field) {
            shown[field] = value.clone();
        }
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": shown,
        "spec": {"replicas": number(&scale.spec_replicas)},
        "status": status,
    })
}

/// Replicas that are no number, or less than none, where the scale would look for them.
pub(super) fn problems(draft: &Draft) -> Vec<Cause> {
    let kind = &draft.subject.kind;
    let version = kind.version(&draft.version).filter(|_| kind.is_custom());
    let Some(scale) = version.and_then(|version| version.scale.as_ref()) else { return Vec::new() };
    let spec = Some(&scale.spec_replicas).filter(|_| draft.subresource.is_empty());
    spec.into_iter()
        .chain([&scale.status_replicas])
        .filter_map(|path| {
            let why = replicas_problem(&draft.new, path)?;
            Some(Cause::invalid(path, &json!(0), &why))
        })
        .collect()
}

fn replicas_problem(value: &Value, path: &str) -> Option<String> {
    let mut value = value;
    for name in path.trim_start_matches('.').split('.') {
        let Some(fields) = value.as_object() else {
            return Some(format!(
                "{path} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                bare(value),
                type_of(value)
            ));
        };
        value = fields.get(name)?;
    }
    match value.as_i64() {
        None => Some(format!(
            "{path} accessor error: {} is of the type {}, expected int64",
            bare(value),
            type_of(value)
        )),
        Some(number) if number < 0 => Some("should be a non-negative integer".to_owned()),
        Some(_) => None,
    }
}

/// As Go prints it.
fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
