use serde_json::{Map, Value};

/// JSON merge patch: objects merge, null removes, everything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(fields) = target else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_merge_and_null_removes() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "list": [1, 2], "gone": 1});
        merge(
            &mut value,
            &json!({"a": {"c": 3, "d": {"e": null, "f": 4}}, "list": [3], "gone": null}),
        );
        assert_eq!(value, json!({"a": {"b": 1, "c": 3, "d": {"f": 4}}, "list": [3]}));
    }
}
