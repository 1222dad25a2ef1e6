//! Reading and changing the metadata of an object that is plain JSON.

use serde_json::{Map, Value, json};

pub(crate) fn metadata(object: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// Makes the metadata if there is none.
pub(crate) fn metadata_mut(object: &mut Value) -> &mut Map<String, Value> {
    child_object(object, "metadata")
}

/// The object under this name; anything else that stood there is replaced.
pub(crate) fn child_object<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    if !object[name].is_object() {
        object[name] = json!({});
    }
    match &mut object[name] {
        Value::Object(map) => map,
        _ => unreachable!("it was made an object above"),
    }
}

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    metadata(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    text(object, "uid")
}

pub(crate) fn resource_version(object: &Value) -> &str {
    text(object, "resourceVersion")
}

pub(crate) fn generation(object: &Value) -> i64 {
    metadata(object).get("generation").and_then(Value::as_i64).unwrap_or(0)
}

pub(crate) fn is_being_deleted(object: &Value) -> bool {
    metadata(object).get("deletionTimestamp").is_some_and(|at| !at.is_null())
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    strings(metadata(object).get("finalizers"))
}

pub(crate) fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array)
        .map(|list| list.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default()
}

pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let metadata = metadata_mut(object);
    if finalizers.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), json!(finalizers));
    }
}

/// What an owner reference says of the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: String,
    pub(crate) blocks_deletion: bool,
}

pub(crate) fn owners(object: &Value) -> Vec<Owner> {
    let references = metadata(object).get("ownerReferences").and_then(Value::as_array);
    references
        .into_iter()
        .flatten()
        .map(|reference| Owner {
            uid: reference["uid"].as_str().unwrap_or_default().to_owned(),
            blocks_deletion: reference["blockOwnerDeletion"].as_bool().unwrap_or(false),
        })
        .collect()
}

/// The value at a path such as `spec.nodeName`.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|step| !step.is_empty()).try_fold(object, |value, step| value.get(step))
}

/// Sets the value at a path such as `.spec.replicas`, making objects on the way.
pub(crate) fn set_at(object: &mut Value, path: &str, value: Value) {
    let steps: Vec<_> = path.split('.').filter(|step| !step.is_empty()).collect();
    let Some((last, way)) = steps.split_last() else { return };
    let mut here = object;
    for step in way {
        if !here[*step].is_object() {
            here[*step] = json!({});
        }
        here = &mut here[*step];
    }
    here[*last] = value;
}

/// Equal but for what the server itself counts: resourceVersion and managedFields.
pub(crate) fn is_same_content(one: &Value, other: &Value) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
        return one == other;
    };
    let ignored = |name: &str| matches!(name, "resourceVersion" | "managedFields");
    let metadata_equal = {
        let (a, b) = (
            one.get("metadata").and_then(Value::as_object),
            other.get("metadata").and_then(Value::as_object),
        );
        match (a, b) {
            (Some(a), Some(b)) => a
                .iter()
                .filter(|(name, _)| !ignored(name))
                .eq(b.iter().filter(|(name, _)| !ignored(name))),
            _ => a == b,
        }
    };
    metadata_equal
        && one
            .iter()
            .filter(|(name, _)| *name != "metadata")
            .eq(other.iter().filter(|(name, _)| *name != "metadata"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_made_on_the_way() {
        let mut object = json!({"spec": 3});
        set_at(&mut object, ".spec.replicas", json!(2));
        assert_eq!(object, json!({"spec": {"replicas": 2}}));
        assert_eq!(at(&object, ".spec.replicas"), Some(&json!(2)));
        assert_eq!(at(&object, ".status.replicas"), None);
    }

    #[test]
    fn counters_of_the_server_are_not_content() {
        let one = json!({"metadata": {"name": "a", "resourceVersion": "1"}, "data": {"k": "v"}});
        let mut other = one.clone();
        other["metadata"]["resourceVersion"] = json!("2");
        other["metadata"]["managedFields"] = json!([]);
        assert!(is_same_content(&one, &other));
        other["data"]["k"] = json!("w");
        assert!(!is_same_content(&one, &other));
    }
}
