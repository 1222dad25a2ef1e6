//! From the version that is stored to the one that is asked for, and back.

use serde_json::{Value, json};

use crate::kind::Kind;

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

fn is_new_event(kind: &Kind) -> bool {
    kind.is("events.k8s.io", "events")
}

/// Whether a stored object differs from what the URL asks for.
pub(crate) fn is_needed(kind: &Kind, version: &str, stored: &Value) -> bool {
    is_new_event(kind)
        || kind.versions.len() > 1
            && stored["apiVersion"].as_str() != Some(kind.api_version(version).as_str())
}

pub(crate) fn from_storage(kind: &Kind, version: &str, stored: &Value) -> Value {
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
