//! From the version that is stored to the one that is asked for, and back.
//!
//! Versions of most kinds differ in their names only. Those of a definition with a conversion webhook are what the webhook says;
//! that is asked before the world is looked at, and each state of an object remembers what it is in other versions.

mod webhook;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::kind::Kind;
use crate::object;
use crate::store::Stored;

/// Core events and those of `events.k8s.io` are the same objects with other names of fields.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// What a conversion may change of the metadata.
const CONVERTED_METADATA: [&str; 2] = ["labels", "annotations"];

fn is_new_event(kind: &Kind) -> bool {
    kind.is("events.k8s.io", "events")
}

/// Whether a stored object differs from what the URL asks for.
pub(crate) fn is_needed(kind: &Kind, version: &str, stored: &Value) -> bool {
    is_new_event(kind)
        || kind.versions.len() > 1
            && stored["apiVersion"].as_str() != Some(kind.api_version(version).as_str())
}

/// Whether a webhook has to be asked before this state can be shown.
pub(crate) fn is_missing(kind: &Kind, version: &str, stored: &Stored) -> bool {
    kind.conversion.is_some()
        && is_needed(kind, version, &stored.value)
        && stored.converted(version).is_none()
}

pub(crate) fn from_storage(kind: &Kind, version: &str, stored: &Stored) -> Value {
    if kind.conversion.is_some()
        && is_needed(kind, version, &stored.value)
        && let Some(converted) = stored.converted(version)
    {
        return with_metadata(Value::clone(&converted), &stored.value);
    }
    rename_version(kind, version, &stored.value)
}

/// Of kinds whose versions differ in their names only.
pub(crate) fn rename_version(kind: &Kind, version: &str, stored: &Value) -> Value {
    let mut value = stored.clone();
    value["apiVersion"] = json!(kind.api_version(version));
    if is_new_event(kind) {
        rename(&mut value, |(core, new)| (core, new));
    }
    value
}

pub(crate) fn to_storage(kind: &Kind, mut value: Value) -> Value {
    if is_new_event(kind) {
        rename(&mut value, |(core, new)| (new, core));
        value["apiVersion"] = json!("v1");
    } else {
        value["apiVersion"] = json!(kind.api_version(&kind.storage_version().name));
    }
    value
}

/// The metadata of `original`, but for what a conversion may change.
fn with_metadata(mut converted: Value, original: &Value) -> Value {
    let mut metadata = object::metadata(original).clone();
    for field in CONVERTED_METADATA {
        match converted["metadata"].get(field) {
            Some(value) if !value.is_null() => metadata.insert(field.to_owned(), value.clone()),
            _ => metadata.remove(field),
        };
    }
    converted["metadata"] = Value::Object(metadata);
    converted
}

/// Lets a new state of an object know what the old one knew, if only its metadata changed and not what conversions look at.
pub(crate) fn inherit(before: &Stored, now: &Arc<Stored>) {
    let content = |stored: &Stored| -> Vec<(String, Value)> {
        let fields = stored.value.as_object().into_iter().flatten();
        fields
            .filter(|(name, _)| *name != "metadata")
            .map(|(name, value)| (name.clone(), value.clone()))
            .chain(
                CONVERTED_METADATA
                    .map(|field| (field.to_owned(), stored.value["metadata"][field].clone())),
            )
            .collect()
    };
    if before.has_converted() && content(before) == content(now) {
        now.inherit_converted(before);
    }
}

fn rename(
    value: &mut Value,
    from_to: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str),
) {
    let Some(fields) = value.as_object_mut() else { return };
    for pair in EVENT_FIELDS {
        let (from, to) = from_to(pair);
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}
