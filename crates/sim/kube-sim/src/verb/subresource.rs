//! Subresources that change an object in their own way.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Draft, Subject};
use crate::convert;
use crate::object;
use crate::request::{Answer, Request};
use crate::status::{ApiError, Cause};
use crate::user::User;
use crate::world::{Deletion, World};

/// Turns a wished `Scale` into a change of the object.
pub(super) fn draft_scale(draft: &mut Draft, scale: &Value) -> Result<(), ApiError> {
    let kind = &draft.subject.kind;
    let name = &draft.subject.key.1;
    let old = draft.old.as_ref().ok_or_else(|| ApiError::not_found(kind, name))?;
    check_scale(draft, scale)?;
    let said = object::resource_version(scale);
    if !said.is_empty() && said != old.revision.to_string() {
        return Err(ApiError::modified(kind, name));
    }
    let paths = kind.version(&draft.version).and_then(|version| version.scale.as_ref());
    let paths = paths.ok_or_else(ApiError::no_such_resource)?;
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas < 0 && kind.is_custom() {
        let why = "should be a non-negative integer";
        let cause = Cause::invalid(&paths.spec_replicas, &json!(replicas), why);
        return Err(ApiError::invalid(kind, name, &[cause]));
    }
    if replicas < 0 {
        let why = "must be greater than or equal to 0";
        let cause = Cause::invalid("spec.replicas", &json!(replicas), why);
        let mut error = ApiError::invalid(kind, name, &[cause]);
        error.message = error.message.replacen(&kind.full_kind(), "Scale.autoscaling", 1);
        error.details.insert("group".into(), "autoscaling".into());
        error.details.insert("kind".into(), "Scale".into());
        return Err(error);
    }
    let mut value = convert::from_storage(kind, &draft.version, old);
    object::set_at(&mut value, &paths.spec_replicas, json!(replicas));
    draft.new = value;
    Ok(())
}

/// What is sent must be a `Scale` of this object.
fn check_scale(draft: &Draft, scale: &Value) -> Result<(), ApiError> {
    let (kind, name) = (&draft.subject.kind, &draft.subject.key.1);
    let text = |field: &str| scale[field].as_str().unwrap_or_default();
    if !matches!(text("kind"), "" | "Scale") {
        let (version, said) = (text("apiVersion"), text("kind"));
        return Err(ApiError::bad_request(if kind.is_custom() {
            "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\""
                .to_owned()
        } else {
            format!(
                "{said} in version {version:?} cannot be handled as a Scale: converting ({version}.{said}) to (autoscaling.Scale): unknown conversion"
            )
        }));
    }
    let said = object::name(scale);
    if !said.is_empty() && said != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({said}) does not match the name on the URL ({name})"
        )));
    }
    Ok(())
}

/// An applied `Scale` as an applied part of the object.
pub(super) fn applied_scale(draft: &Draft, scale: &Value) -> Result<Value, ApiError> {
    let kind = &draft.subject.kind;
    if kind.is_custom() {
        return Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "",
            "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) to proper version: request to convert CR to an invalid group/version: autoscaling/v1",
        ));
    }
    check_scale(draft, scale)?;
    let paths = kind.version(&draft.version).and_then(|version| version.scale.as_ref());
    let paths = paths.ok_or_else(ApiError::no_such_resource)?;
    let mut applied = json!({
        "apiVersion": kind.api_version(&draft.version),
        "kind": kind.kind,
        "metadata": {"name": draft.subject.key.1},
    });
    object::set_at(&mut applied, &paths.spec_replicas, scale["spec"]["replicas"].clone());
    Ok(applied)
}

impl World {
    /// A POST below an object.
    pub(crate) fn post_below(
        &mut self,
        subject: &Subject,
        request: &Request,
    ) -> Result<Answer, ApiError> {
        let Subject { kind, key } = subject;
        let stored = self.get(kind, key).ok_or_else(|| ApiError::not_found(kind, &key.1))?;
        match request.target.subresource.as_str() {
            "binding" => {
                let node =
                    request.object()?["target"]["name"].as_str().unwrap_or_default().to_owned();
                if stored.value["spec"]["nodeName"].as_str().is_some_and(|bound| !bound.is_empty())
                {
                    let why = format!(
                        "pod {} is already assigned to node {}",
                        key.1, stored.value["spec"]["nodeName"]
                    );
                    let mut error = ApiError::conflict(kind, &key.1, &why);
                    error.message = error.message.replacen("pods", "pods/binding", 1);
                    error.details.insert("kind".into(), "pods/binding".into());
                    return Err(error);
                }
                let mut value = stored.value.clone();
                value["spec"]["nodeName"] = json!(node);
                let now = self.now();
                set_condition(
                    &mut value,
                    json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
                );
                self.write(kind, key, value);
                Ok(success(StatusCode::CREATED))
            }
            "eviction" => {
                self.delete(kind, key, &Deletion::default())?;
                Ok(success(StatusCode::CREATED))
            }
            "token" => {
                let user = User::service_account(&key.0, &key.1);
                let token = format!("sim-{}", self.random.uuid());
                let mut answer = request.object()?;
                let seconds = answer["spec"]["expirationSeconds"].as_i64().unwrap_or(3600);
                let ends =
                    self.clock.now().saturating_add(jiff::SignedDuration::from_secs(seconds));
                let ends = crate::world::timestamp(ends.unwrap_or(jiff::Timestamp::MAX));
                answer["apiVersion"] = json!("authentication.k8s.io/v1");
                answer["kind"] = json!("TokenRequest");
                answer["status"] = json!({"token": token, "expirationTimestamp": ends});
                self.options.tokens.insert(token, user);
                Ok(Answer::json(StatusCode::CREATED, &answer))
            }
            _ => Err(ApiError::method_not_allowed()),
        }
    }
}

fn set_condition(value: &mut Value, condition: Value) {
    if !value["status"]["conditions"].is_array() {
        value["status"]["conditions"] = json!([]);
    }
    if let Some(conditions) = value["status"]["conditions"].as_array_mut() {
        conditions.retain(|known| known["type"] != condition["type"]);
        conditions.push(condition);
    }
}

fn success(code: StatusCode) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": code.as_u16()});
    Answer::json(code, &status)
}
