//! What a write may touch, and what the server writes itself.

use serde_json::{Map, Value, json};

use super::{Draft, Operation, defaults};
use crate::builtin::KEEPS_STATUS;
use crate::convert;
use crate::kind::Kind;
use crate::object;
use crate::status::{ApiError, Cause};
use crate::world::World;

/// Metadata that only the server writes.
const SERVER_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Metadata that there is; everything else is dropped.
const METADATA_FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

pub(super) fn prepare(world: &mut World, draft: &mut Draft) -> Result<(), ApiError> {
    clean_metadata(draft);
    match draft.operation {
        Operation::Create => prepare_create(world, draft),
        Operation::Update => prepare_update(draft)?,
    }
    defaults::set(world, draft);
    Ok(())
}

fn clean_metadata(draft: &mut Draft) {
    let metadata = object::metadata_mut(&mut draft.new);
    metadata.retain(|name, value| METADATA_FIELDS.contains(&name.as_str()) && !is_nothing(value));
    for map in ["labels", "annotations"] {
        if let Some(Value::Object(entries)) = metadata.get_mut(map) {
            entries.retain(|_, value| !value.is_null());
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn prepare_create(world: &mut World, draft: &mut Draft) {
    let kind = draft.subject.kind.clone();
    let (uid, now) = (world.random.uuid(), world.now());
    let metadata = object::metadata_mut(&mut draft.new);
    for field in SERVER_FIELDS {
        metadata.remove(field);
    }
    metadata.remove("resourceVersion");
    metadata.remove("selfLink");
    metadata.insert("uid".into(), json!(uid));
    metadata.insert("creationTimestamp".into(), json!(now));
    let version = kind.version(&draft.version);
    let keeps = kind.built_in().is_some_and(|built_in| built_in.has(KEEPS_STATUS));
    if version.is_some_and(|version| version.has_status)
        && !keeps
        && let Some(fields) = draft.new.as_object_mut()
    {
        fields.remove("status");
    }
}

fn prepare_update(draft: &mut Draft) -> Result<(), ApiError> {
    let kind = draft.subject.kind.clone();
    let Some(old) = draft.old.as_ref().map(|old| convert::from_storage(&kind, &draft.version, old))
    else {
        return Ok(());
    };
    let has_status = kind.version(&draft.version).is_some_and(|version| version.has_status);
    match draft.subresource.as_str() {
        "status" => {
            let status = draft.new.get("status").cloned();
            let metadata = draft.new["metadata"].clone();
            draft.new = old.clone();
            replace(&mut draft.new, "status", status);
            // Of built-in kinds, labels and annotations go along with a status.
            if !kind.is_custom() {
                draft.new["metadata"] = metadata;
            }
        }
        "approval" => {
            let conditions = draft.new["status"].get("conditions").cloned();
            draft.new = old.clone();
            if let Some(conditions) = conditions {
                object::child_object(&mut draft.new, "status")
                    .insert("conditions".into(), conditions);
            }
        }
        "finalize" => {
            let finalizers = draft.new["spec"].get("finalizers").cloned();
            draft.new = old.clone();
            replace(
                &mut draft.new["spec"],
                "finalizers",
                finalizers.filter(|held| !is_nothing(held)),
            );
        }
        _ if has_status => {
            replace(&mut draft.new, "status", old.get("status").cloned());
            if kind.is("", "namespaces") {
                replace(&mut draft.new, "spec", old.get("spec").cloned());
            }
        }
        _ => {}
    }
    keep_server_fields(&mut draft.new, &old);
    check_new_finalizers(&kind, &draft.new, &old)
}

fn replace(value: &mut Value, field: &str, with: Option<Value>) {
    let Some(fields) = value.as_object_mut() else { return };
    match with {
        Some(with) => fields.insert(field.to_owned(), with),
        None => fields.remove(field),
    };
}

fn keep_server_fields(new: &mut Value, old: &Value) {
    let old_metadata = object::metadata(old).clone();
    let metadata = object::metadata_mut(new);
    for field in
        SERVER_FIELDS.into_iter().chain(["resourceVersion", "name", "namespace", "generateName"])
    {
        match old_metadata.get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
}

fn check_new_finalizers(kind: &Kind, new: &Value, old: &Value) -> Result<(), ApiError> {
    if !object::is_being_deleted(old) {
        return Ok(());
    }
    let known = object::finalizers(old);
    let added: Vec<_> =
        object::finalizers(new).into_iter().filter(|name| !known.contains(name)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let added: Vec<_> = added.iter().map(|name| format!("{name:?}")).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    let cause = Cause::forbidden("metadata.finalizers", &why);
    // The metadata of custom kinds is looked at twice.
    let times = if kind.is_custom() { 2 } else { 1 };
    Err(ApiError::invalid(kind, object::name(old), &vec![cause; times]))
}

/// Counts a change of anything but metadata and status.
pub(super) fn count_generation(kind: &Kind, draft: &mut Draft) {
    if !kind.counts_generations() {
        object::metadata_mut(&mut draft.new).remove("generation");
        return;
    }
    let generation = match &draft.old {
        None => 1,
        Some(old) => {
            let before = object::generation(&old.value);
            let old = convert::from_storage(kind, &draft.version, old);
            let has_status = kind.version(&draft.version).is_some_and(|version| version.has_status);
            let counted = |value: &Value| -> Map<String, Value> {
                let fields = value.as_object().into_iter().flatten();
                fields
                    .filter(|(name, _)| *name != "metadata" && !(has_status && *name == "status"))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect()
            };
            before + i64::from(counted(&old) != counted(&draft.new))
        }
    };
    object::metadata_mut(&mut draft.new).insert("generation".into(), json!(generation));
}
