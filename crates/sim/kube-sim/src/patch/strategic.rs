//! Strategic merge patch: lists of built-in kinds merge by key.

use serde_json::{Map, Value};

use crate::status::ApiError;

/// The key by which items of a list of a built-in kind merge; `""` is a list of plain values that merges as a set;
/// `None` is a list that is replaced. `parent` is the field that holds the object that holds the list.
pub(crate) fn merge_key(parent: &str, field: &str) -> Option<&'static str> {
    Some(match (parent, field) {
        ("metadata", "finalizers") => "",
        ("metadata", "ownerReferences") => "uid",
        ("containers" | "initContainers" | "ephemeralContainers", "ports") => "containerPort",
        ("spec", "ports") => "port",
        (
            _,
            "containers"
            | "initContainers"
            | "ephemeralContainers"
            | "volumes"
            | "env"
            | "imagePullSecrets"
            | "webhooks"
            | "resourceClaims",
        ) => "name",
        (_, "volumeMounts") => "mountPath",
        (_, "volumeDevices") => "devicePath",
        (_, "hostAliases" | "podIPs" | "hostIPs") => "ip",
        (_, "topologySpreadConstraints") => "topologyKey",
        ("status", "conditions" | "addresses") => "type",
        ("spec", "taints") => "key",
        _ => return None,
    })
}

/// Merges a patch into an object.
pub(crate) fn merge(target: &mut Value, patch: &Value) -> Result<(), ApiError> {
    merge_node(target, patch, "", "")
}

fn merge_node(
    target: &mut Value,
    patch: &Value,
    parent: &str,
    field: &str,
) -> Result<(), ApiError> {
    match patch {
        Value::Object(patch) => merge_object(target, patch, field),
        Value::Array(items) => {
            match merge_key(parent, field) {
                Some(key) => merge_list(target, items, key, field)?,
                None => *target = patch.clone(),
            }
            Ok(())
        }
        other => {
            *target = other.clone();
            Ok(())
        }
    }
}

fn merge_object(
    target: &mut Value,
    patch: &Map<String, Value>,
    field: &str,
) -> Result<(), ApiError> {
    match patch.get("$patch").and_then(Value::as_str) {
        Some("replace") => {
            let rest = patch.iter().filter(|(name, _)| !name.starts_with('$'));
            *target =
                Value::Object(rest.map(|(name, value)| (name.clone(), value.clone())).collect());
            return Ok(());
        }
        Some("delete") => {
            *target = Value::Object(Map::new());
            return Ok(());
        }
        _ => {}
    }
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return Ok(()) };
    for (name, value) in patch {
        if let Some(list) = name.strip_prefix("$deleteFromPrimitiveList/") {
            let gone = value.as_array().cloned().unwrap_or_default();
            if let Some(Value::Array(items)) = fields.get_mut(list) {
                items.retain(|item| !gone.contains(item));
            }
        } else if name == "$retainKeys" {
            let kept: Vec<_> = value.as_array().cloned().unwrap_or_default();
            fields.retain(|name, _| kept.iter().any(|kept| kept == name));
        } else if name.starts_with('$') {
        } else if value.is_null() {
            fields.remove(name);
        } else {
            let before = fields.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
            merge_node(fields.entry(name.clone()).or_insert(Value::Null), value, field, name)?;
            let wish = patch.get(&format!("$setElementOrder/{name}")).unwrap_or(value);
            if let (Some(key), Some(Value::Array(items)), Some(wish)) =
                (merge_key(field, name), fields.get_mut(name), wish.as_array())
            {
                *items = in_order(std::mem::take(items), wish, &before, key);
            }
        }
    }
    // An order for a list that the patch does not change otherwise.
    for (name, wish) in patch {
        if let Some(list) = name.strip_prefix("$setElementOrder/")
            && !patch.contains_key(list)
            && let (Some(key), Some(Value::Array(items)), Some(wish)) =
                (merge_key(field, list), fields.get_mut(list), wish.as_array())
        {
            let before = items.clone();
            *items = in_order(std::mem::take(items), wish, &before, key);
        }
    }
    Ok(())
}

/// Items that the patch names come in its order, the others in the order they had. Where the two meet, what was in front
/// stays in front, and what is new comes first.
fn in_order(items: Vec<Value>, wish: &[Value], before: &[Value], key: &str) -> Vec<Value> {
    let is = |one: &Value, other: &Value| {
        if key.is_empty() { one == other } else { one[key] == other[key] }
    };
    let place = |list: &[Value], item: &Value| list.iter().position(|known| is(known, item));
    let (mut named, mut others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| place(wish, item).is_some());
    named.sort_by_key(|item| place(wish, item));
    others.sort_by_key(|item| place(before, item));
    let mut sorted = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        match (named.peek(), others.peek()) {
            (Some(one), Some(other)) => {
                if place(before, one) < place(before, other) {
                    sorted.extend(named.next());
                } else {
                    sorted.extend(others.next());
                }
            }
            (Some(_), None) => sorted.extend(named.next()),
            (None, Some(_)) => sorted.extend(others.next()),
            (None, None) => return sorted,
        }
    }
}

fn merge_list(target: &mut Value, patch: &[Value], key: &str, field: &str) -> Result<(), ApiError> {
    if !target.is_array() {
        *target = Value::Array(Vec::new());
    }
    let Value::Array(items) = target else { return Ok(()) };
    if patch.iter().any(|item| {
        item["$patch"] == "replace" && item.as_object().is_some_and(|item| item.len() == 1)
    }) {
        items.clear();
    }
    for item in patch {
        if key.is_empty() {
            if !items.contains(item) {
                items.push(item.clone());
            }
            continue;
        }
        if item.as_object().is_some_and(|item| item.len() == 1 && item.contains_key("$patch")) {
            continue;
        }
        let id = &item[key];
        if id.is_null() {
            return Err(ApiError::new(
                http::StatusCode::INTERNAL_SERVER_ERROR,
                "",
                format!("map: {item} does not contain declared merge key: {key}"),
            ));
        }
        let at = items.iter().position(|known| known[key] == *id);
        match (at, item["$patch"].as_str()) {
            (Some(at), Some("delete")) => {
                items.remove(at);
            }
            (None, Some("delete")) => {}
            (Some(at), _) => merge_node(&mut items[at], item, "", field)?,
            (None, _) => {
                let mut fresh = Value::Null;
                merge_node(&mut fresh, item, "", field)?;
                items.push(fresh);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_merge_by_their_keys() {
        let mut pod = json!({
            "metadata": {"finalizers": ["a"]},
            "spec": {"containers": [
                {"name": "web", "image": "1", "env": [{"name": "A", "value": "1"}]},
                {"name": "side", "image": "1"}
            ], "tolerations": [{"key": "x"}]},
            "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}]}
        });
        let patch = json!({
            "metadata": {"finalizers": ["b"]},
            "spec": {
                "containers": [
                    {"name": "web", "image": "2", "env": [{"name": "B", "value": "2"}]},
                    {"name": "side", "$patch": "delete"}, {"name": "new", "image": "1"}
                ],
                "$setElementOrder/containers": [{"name": "new"}, {"name": "web"}],
                "tolerations": [{"key": "y"}]
            },
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}
        });
        merge(&mut pod, &patch).unwrap();
        assert_eq!(
            pod,
            json!({
                "metadata": {"finalizers": ["b", "a"]},
                "spec": {"containers": [
                    {"name": "new", "image": "1"},
                    {"name": "web", "image": "2", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}
                ], "tolerations": [{"key": "y"}]},
                "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "True"}]}
            })
        );
    }

    #[test]
    fn directives_delete_and_replace() {
        let mut value =
            json!({"metadata": {"finalizers": ["a", "b"]}, "data": {"x": "1", "y": "2"}});
        let patch = json!({
            "metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]},
            "data": {"$patch": "replace", "z": "3"}
        });
        merge(&mut value, &patch).unwrap();
        assert_eq!(value, json!({"metadata": {"finalizers": ["b"]}, "data": {"z": "3"}}));
    }
}
