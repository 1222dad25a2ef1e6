use serde_json::json;

use super::*;

fn widget() -> Schema {
    Schema::read(&json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 10},
                    "mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"},
                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                    "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                    "limits": {"type": "object", "default": {}, "properties": {"cpu": {"type": "integer", "default": 2}}},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}}
                }
            }
        }
    }))
}

#[test]
fn defaults_reach_into_defaults() {
    let mut object = json!({"spec": {"size": 1, "mode": null}});
    widget().set_defaults(&mut object);
    assert_eq!(object, json!({"spec": {"size": 1, "mode": "fast", "limits": {"cpu": 2}}}));
}

#[test]
fn unknown_fields_are_dropped_but_for_metadata_and_open_objects() {
    let mut object = json!({
        "metadata": {"name": "a"}, "extra": 1,
        "spec": {"size": 1, "colour": "red", "free": {"anything": {"goes": 1}}, "labels": {"any": "key"}}
    });
    assert_eq!(widget().prune(&mut object), ["extra", "spec.colour"]);
    assert_eq!(
        object,
        json!({"metadata": {"name": "a"}, "spec": {"size": 1, "free": {"anything": {"goes": 1}}, "labels": {"any": "key"}}})
    );
}

#[test]
fn every_fault_is_said_with_its_path() {
    let faults = |spec: Value| -> Vec<String> {
        let causes = widget().validate(&json!({"spec": spec}));
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    };
    assert_eq!(faults(json!({"size": 3, "port": "http"})), [""; 0]);
    for (spec, want) in [
        (json!({}), "spec.size: Required value"),
        (
            json!({"size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            json!({"size": "x"}),
            "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
        ),
        (
            json!({"size": 1, "mode": "odd"}),
            "spec.mode: Unsupported value: \"odd\": supported values: \"fast\", \"slow\"",
        ),
        (
            json!({"size": 1, "name": "A1"}),
            "spec.name: Invalid value: \"A1\": spec.name in body should match '^[a-z]+$'",
        ),
        (json!({"size": 1, "name": "abcdef"}), "spec.name: Too long: may not be more than 5 bytes"),
        (json!({"size": 1, "tags": ["a", "a"]}), "spec.tags[1]: Duplicate value: \"a\""),
        (
            json!({"size": 1, "labels": {"k": 1}}),
            "spec.labels.k: Invalid value: \"integer\": spec.labels.k in body must be of type string: \"integer\"",
        ),
    ] {
        assert_eq!(faults(spec), [want]);
    }
}
