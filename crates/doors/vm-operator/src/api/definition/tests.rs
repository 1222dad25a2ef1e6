use roost_controller::crd::{crds_to_yaml, parse_crds, schema_of};

use super::*;

#[test]
fn the_files_are_definitions() {
    let all = definitions().unwrap();
    assert_eq!(all.len(), KINDS.len());
    for (crd, (kind, _)) in all.iter().zip(KINDS) {
        assert_eq!(crd.spec.names.kind, *kind);
        let versions: Vec<_> = crd
            .spec
            .versions
            .iter()
            .map(|version| (version.name.as_str(), version.storage))
            .collect();
        assert_eq!(versions, [("v1alpha5", false), ("v1alpha6", true)], "{kind}");
    }
    assert_eq!(parse_crds(&crds_to_yaml(&all)).unwrap(), all);
}

#[test]
fn the_notation_says_versions_defaults_and_rules() {
    let all = definitions().unwrap();
    let vm = |version| serde_json::to_value(schema_of(&all[0], version).unwrap()).unwrap();
    let (older, newer) = (vm("v1alpha5"), vm("v1alpha6"));
    let spec =
        |schema: &Value, field: &str| schema["properties"]["spec"]["properties"][field].clone();
    assert_eq!(spec(&older, "resources"), Value::Null);
    assert_eq!(spec(&newer, "resources")["type"], "object");
    for schema in [&older, &newer] {
        let mode = spec(schema, "powerOffMode");
        assert_eq!(mode["default"], "TrySoft");
        assert_eq!(mode["enum"], json!(["Hard", "Soft", "TrySoft"]));
        let volumes = spec(schema, "volumes");
        assert_eq!(volumes["x-kubernetes-list-map-keys"], json!(["name"]));
        assert_eq!(volumes["items"]["required"], json!(["name"]));
        assert_eq!(volumes["items"]["properties"]["removable"]["default"], true);
    }
    let interfaces = |schema: &Value| spec(schema, "network")["properties"]["interfaces"].clone();
    assert_eq!(interfaces(&newer)["maxItems"], 10);
    assert!(interfaces(&newer)["items"]["x-kubernetes-validations"].is_array());
    assert!(interfaces(&older)["items"].get("x-kubernetes-validations").is_none());
}

#[test]
fn a_mistake_is_told_with_its_place() {
    let types = json!({"Loop": {"x": "Missing"}});
    let types = Types { types: &types, is_older: false };
    let (place, problem) = types.schema(&json!({"a": {"b": "Loop"}}), "spec").unwrap_err();
    assert_eq!(
        (place.as_str(), problem.as_str()),
        ("spec.a.b (Loop).x", "has the unknown type Missing")
    );
    let (place, problem) = types.schema(&json!({"a": {"$wrong": 1}}), "spec").unwrap_err();
    assert_eq!((place.as_str(), problem.as_str()), ("spec.a", "has the unknown word $wrong"));
}
