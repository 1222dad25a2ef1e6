//! Differences between two states of an object, as JSON.

use serde_json::{Map, Value};

/// The merge patch that makes `wanted` of `seen`; `None` if nothing differs.
pub(crate) fn merge_patch(seen: &Value, wanted: &Value) -> Option<Value> {
    let (Value::Object(seen), Value::Object(wanted)) = (seen, wanted) else {
        return (seen != wanted).then(|| wanted.clone());
    };
    let mut patch = Map::new();
    for name in seen.keys().filter(|name| !wanted.contains_key(*name)) {
        // A null that is removed is no difference for the server.
        if !seen[name].is_null() {
            patch.insert(name.clone(), Value::Null);
        }
    }
    for (name, wanted) in wanted {
        let difference = match seen.get(name) {
            Some(seen) => merge_patch(seen, wanted),
            None if wanted.is_null() => None,
            None => Some(wanted.clone()),
        };
        if let Some(difference) = difference {
            patch.insert(name.clone(), difference);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// A patch with a list replaces all of it, so it must not be sent on top of somebody else's change.
pub(crate) fn replaces_a_list(patch: &Value) -> bool {
    match patch {
        Value::Array(_) => true,
        Value::Object(fields) => fields.values().any(replaces_a_list),
        _ => false,
    }
}

/// What a server makes of `target` with a merge patch.
pub(crate) fn apply(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Value::Object(target) = target else { return };
    for (name, field) in fields {
        if field.is_null() {
            target.remove(name);
        } else {
            apply(target.entry(name.clone()).or_insert(Value::Null), field);
        }
    }
    // A patch that empties a map leaves the map.
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_patch_holds_what_differs_and_nothing_else() {
        for (seen, wanted, patch) in [
            (json!({"a": 1}), json!({"a": 1}), None),
            (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
            (json!({"a": 1, "b": 2}), json!({"b": 2}), Some(json!({"a": null}))),
            (
                json!({"a": {"x": 1, "y": 2}}),
                json!({"a": {"x": 1}}),
                Some(json!({"a": {"y": null}})),
            ),
            (json!({"a": [1, 2]}), json!({"a": [2]}), Some(json!({"a": [2]}))),
            (json!({}), json!({"a": null}), None),
            (json!({"a": null}), json!({}), None),
        ] {
            assert_eq!(merge_patch(&seen, &wanted), patch, "{seen} {wanted}");
        }
    }

    #[test]
    fn lists_are_found_wherever_they_are() {
        assert!(!replaces_a_list(&json!({"a": {"b": 1}, "c": null})));
        assert!(replaces_a_list(&json!({"a": {"b": []}})));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            (0..3).prop_map(Value::from),
            "[ab]".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 20, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-d]", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_patch_makes_the_one_of_the_other(seen in value(), wanted in value()) {
            let mut patched = seen.clone();
            if let Some(patch) = merge_patch(&seen, &wanted) {
                apply(&mut patched, &patch);
            }
            prop_assert_eq!(patched, wanted);
        }
    }
}
