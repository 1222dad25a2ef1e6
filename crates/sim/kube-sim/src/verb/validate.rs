//! The schema at work on a draft.

use http::StatusCode;
use serde_json::{Value, json};

use super::{Draft, Operation, scale};
use crate::convert;
use crate::custom;
use crate::object;
use crate::status::{ApiError, Cause};
use crate::world::{World, name_problems};
use crate::{builtin, schema::Schema};
use std::sync::Arc;

/// An object with one of these is too wrong for rules.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];

fn schema(draft: &Draft) -> Option<Arc<Schema>> {
    let kind = &draft.subject.kind;
    if kind.is_custom() { kind.version(&draft.version)?.schema() } else { builtin::schema(kind) }
}

/// Drops unknown fields; says so, or refuses, as the client wishes.
pub(super) fn prune(draft: &mut Draft) -> Result<(), ApiError> {
    let Some(schema) = schema(draft) else { return Ok(()) };
    let before = (draft.is_patch && draft.field_validation == "Strict").then(|| draft.new.clone());
    let dropped = schema.prune(&mut draft.new);
    if dropped.is_empty() {
        return Ok(());
    }
    let said: Vec<_> = dropped.iter().map(|path| format!("unknown field {path:?}")).collect();
    match draft.field_validation.as_str() {
        "Strict" => {
            if let Some(before) = before {
                let why = format!("strict decoding error: {}", said.join(", "));
                let cause = Cause::invalid("patch", &json!(before.to_string()), &why);
                let message = format!(" \"\" is invalid: {}: {}", cause.field, cause.message);
                return Err(ApiError::unprocessable(message).with_causes(&[cause]));
            }
            let kind = &draft.subject.kind;
            let name = &kind.kind;
            let what =
                format!("{name} in version {:?} cannot be handled as a {name}: ", draft.version);
            Err(ApiError::bad_request(format!("{what}strict decoding error: {}", said.join(", "))))
        }
        "Ignore" => Ok(()),
        _ => {
            for warning in said {
                if !draft.warnings.contains(&warning) {
                    draft.warnings.push(warning);
                }
            }
            Ok(())
        }
    }
}

/// What is applied must be in the schema: nobody could own it.
pub(super) fn check_declared(draft: &Draft, applied: &Value) -> Result<(), ApiError> {
    let Some(schema) = schema(draft) else { return Ok(()) };
    let dropped = schema.prune(&mut applied.clone());
    let lines: Vec<_> =
        dropped.iter().map(|path| format!(".{path}: field not declared in schema")).collect();
    let why = match lines.as_slice() {
        [] => return Ok(()),
        [one] => one.clone(),
        many => format!("errors:\n  {}", many.join("\n  ")),
    };
    let kind = &draft.subject.kind;
    let message = format!(
        "failed to create typed patch object ({}/{}; {}, Kind={}): {why}",
        object::namespace(applied),
        object::name(applied),
        kind.api_version(&draft.version),
        kind.kind
    );
    Err(ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "", message))
}

pub(super) fn set_defaults(draft: &mut Draft) {
    if draft.subject.kind.is_custom()
        && let Some(schema) = schema(draft)
    {
        schema.set_defaults(&mut draft.new);
    }
}

pub(super) fn check(world: &World, draft: &Draft) -> Result<(), ApiError> {
    let kind = &draft.subject.kind;
    let name = &draft.subject.key.1;
    let mut causes = Vec::new();
    if draft.operation == Operation::Create {
        causes.extend(name_problems(kind, name));
    }
    causes.extend(metadata_problems(&draft.new));
    causes.extend(scale::problems(draft));
    if let Some(schema) = schema(draft) {
        let mut found = schema.validate(&draft.new);
        if !kind.is_custom() {
            // What a built-in kind cannot hold cannot be read in the first place.
            if let Some(cause) = found.iter().find(|cause| cause.reason == "FieldValueTypeInvalid")
            {
                return Err(ApiError::bad_request(format!(
                    "{} in version {:?} cannot be handled as a {}: {}: {}",
                    kind.kind, draft.version, kind.kind, cause.field, cause.message
                )));
            }
            found.retain(|cause| cause.field != "metadata" && is_really_required(cause));
        }
        if kind.is_custom() && draft.subresource == "status" {
            // The status is looked at apart, so what has no place of its own is at its root.
            for cause in &mut found {
                if cause.field == "<nil>" {
                    "status".clone_into(&mut cause.field);
                }
                cause.message = cause.message.replacen(": status.", ": ", 1);
            }
        }
        causes.extend(found);
        let is_blocked = causes.iter().any(|cause| BLOCKING.contains(&cause.reason));
        if is_blocked && kind.is_custom() && schema.has_rules() {
            let message = "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
            causes.push(Cause::new("FieldValueInvalid", "<nil>", message.to_owned()));
        } else if kind.is_custom() {
            let old =
                draft.old.as_ref().map(|old| convert::from_storage(kind, &draft.version, old));
            schema.check_rules(&draft.new, old.as_ref(), "", &mut causes);
        }
    }
    if kind.is("apiextensions.k8s.io", "customresourcedefinitions") {
        causes.extend(custom::problems(&draft.new));
    }
    causes.extend(built_in_problems(world, draft));
    if causes.is_empty() { Ok(()) } else { Err(ApiError::invalid(kind, name, &causes)) }
}

/// Schemas of built-in kinds mark more as required than the real server asks for: what is empty there counts as said.
fn is_really_required(cause: &Cause) -> bool {
    cause.reason != "FieldValueRequired"
        || matches!(
            cause.field.rsplit('.').next().unwrap_or_default(),
            "containers"
                | "selector"
                | "template"
                | "roleRef"
                | "provisioner"
                | "ports"
                | "signerName"
                | "request"
        )
}

fn metadata_problems(value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let metadata = object::metadata(value);
    for (index, reference) in
        metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten().enumerate()
    {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if reference[field].as_str().unwrap_or_default().is_empty() {
                causes.push(Cause::required(
                    &format!("metadata.ownerReferences[{index}].{field}"),
                    "must not be empty",
                ));
            }
        }
    }
    let controllers =
        metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    if controllers.filter(|reference| reference["controller"] == true).count() > 1 {
        let why = "Only one reference can have Controller set to true";
        causes.push(Cause::invalid("metadata.ownerReferences", &metadata["ownerReferences"], why));
    }
    for (label, value) in metadata.get("labels").and_then(Value::as_object).into_iter().flatten() {
        let Some(text) = value.as_str() else { continue };
        let fits = text.is_empty()
            || text.len() <= 63
                && text
                    .chars()
                    .all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
                && text.starts_with(|letter: char| letter.is_ascii_alphanumeric())
                && text.ends_with(|letter: char| letter.is_ascii_alphanumeric());
        if !fits {
            let why = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
            let _ = label;
            causes.push(Cause::invalid("metadata.labels", value, why));
        }
    }
    causes
}

/// Changes of built-in kinds that the real server refuses.
fn built_in_problems(_world: &World, draft: &Draft) -> Vec<Cause> {
    let kind = &draft.subject.kind;
    let (new, old) = (&draft.new, draft.old.as_ref().map(|old| &old.value));
    let mut causes = Vec::new();
    if matches!(kind.plural.as_str(), "configmaps" | "secrets")
        && kind.group.is_empty()
        && let Some(old) = old.filter(|old| old["immutable"] == true)
    {
        if new["immutable"] != true {
            causes
                .push(Cause::forbidden("immutable", "field is immutable when `immutable` is set"));
        }
        for field in ["data", "binaryData"] {
            if new.get(field) != old.get(field) {
                causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    if kind.is("", "pods")
        && let Some(old) = old.filter(|_| draft.subresource.is_empty())
    {
        let fixed = |pod: &Value| {
            let mut spec = pod["spec"].clone();
            if let Some(fields) = spec.as_object_mut() {
                for field in [
                    "activeDeadlineSeconds",
                    "tolerations",
                    "terminationGracePeriodSeconds",
                    "schedulingGates",
                    "nodeSelector",
                    "affinity",
                ] {
                    fields.remove(field);
                }
            }
            for list in ["containers", "initContainers"] {
                for container in
                    spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten()
                {
                    container["image"] = Value::Null;
                }
            }
            spec
        };
        if fixed(old) != fixed(new) {
            let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
            causes.push(Cause::forbidden("spec", why));
        }
    }
    if kind.is("coordination.k8s.io", "leases") {
        for field in ["leaseDurationSeconds"] {
            if new["spec"][field].as_i64().is_some_and(|seconds| seconds <= 0) {
                causes.push(Cause::invalid(
                    &format!("spec.{field}"),
                    &new["spec"][field],
                    "must be greater than 0",
                ));
            }
        }
    }
    causes
}
