//! OpenAPI v3, as far as `kubectl explain`, `apply` and their checks of fields read it.

use std::collections::BTreeSet;

use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::builtin;
use crate::kind::{Kind, Version};
use crate::request::Answer;
use crate::status::ApiError;
use crate::world::World;

const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// `/openapi/v3`: where the document of each group and version is.
pub(crate) fn index(world: &World) -> Answer {
    let mut paths = Map::new();
    for kind in world.kinds() {
        for version in kind.versions.iter().filter(|version| version.is_served) {
            let path = if kind.group.is_empty() {
                format!("api/{}", version.name)
            } else {
                format!("apis/{}/{}", kind.group, version.name)
            };
            // The hash changes with the definitions, so that nobody keeps an old document.
            let url = format!("/openapi/v3/{path}?hash={}", world.definitions_revision());
            paths.insert(path, json!({"serverRelativeURL": url}));
        }
    }
    Answer::json(StatusCode::OK, &json!({"paths": paths}))
}

/// The document of one group and version.
pub(crate) fn document(world: &World, group: &str, version: &str) -> Result<Answer, ApiError> {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    let mut wanted = BTreeSet::new();
    for kind in world.kinds().filter(|kind| kind.group == group) {
        let Some(version) = kind.version(version).filter(|version| version.is_served) else {
            continue;
        };
        add_paths(&mut paths, kind, version);
        let name = schema_name(kind, version);
        let schema = match kind.built_in() {
            Some(_) => builtin::definitions().get(&name).cloned().unwrap_or_default(),
            None => custom_schema(version),
        };
        collect_references(&schema, &mut wanted);
        schemas.insert(name, marked(schema, kind, version));
    }
    if paths.is_empty() {
        return Err(ApiError::no_such_resource());
    }
    while let Some(name) = wanted.pop_first() {
        if schemas.contains_key(&name) {
            continue;
        }
        let Some(schema) = builtin::definitions().get(&name) else { continue };
        collect_references(schema, &mut wanted);
        schemas.insert(name, schema.clone());
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Roost kube-sim", "version": "v1.37.1"},
        "paths": paths,
        "components": {"schemas": schemas},
    });
    Ok(Answer::json(StatusCode::OK, &document))
}

fn identity(kind: &Kind, version: &Version) -> Value {
    json!({"group": kind.group, "version": version.name, "kind": kind.kind})
}

fn marked(mut schema: Value, kind: &Kind, version: &Version) -> Value {
    schema["x-kubernetes-group-version-kind"] = json!([identity(kind, version)]);
    schema
}

/// `io.k8s.api.core.v1.Pod`, `com.example.v1.Widget`.
fn schema_name(kind: &Kind, version: &Version) -> String {
    if let Some(built_in) = kind.built_in() {
        return (built_in.definition_name)();
    }
    let reversed: Vec<_> = kind.group.split('.').rev().collect();
    format!("{}.{}.{}", reversed.join("."), version.name, kind.kind)
}

fn custom_schema(version: &Version) -> Value {
    let mut schema = version.openapi.clone().unwrap_or_else(|| json!({"type": "object"}));
    let text = |about: &str| json!({"type": "string", "description": about});
    if !schema["properties"].is_object() {
        schema["properties"] = json!({});
    }
    schema["properties"]["apiVersion"] =
        text("APIVersion defines the versioned schema of this representation of an object.");
    schema["properties"]["kind"] =
        text("Kind is a string value representing the REST resource this object represents.");
    schema["properties"]["metadata"] = json!({
        "description": "Standard object's metadata.",
        "allOf": [{"$ref": format!("#/components/schemas/{METADATA}")}],
    });
    schema
}

fn collect_references(schema: &Value, found: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(name) = fields.get("$ref").and_then(Value::as_str) {
                found.insert(name.trim_start_matches("#/components/schemas/").to_owned());
            }
            fields.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

fn add_paths(paths: &mut Map<String, Value>, kind: &Kind, version: &Version) {
    let root = if kind.group.is_empty() {
        format!("/api/{}", version.name)
    } else {
        format!("/apis/{}/{}", kind.group, version.name)
    };
    let place = if kind.is_namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("{root}{place}/{}", kind.plural);
    let one = format!("{collection}/{{name}}");
    let reference = format!("#/components/schemas/{}", schema_name(kind, version));
    let parameter = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let writes: Vec<_> = ["dryRun", "fieldManager", "fieldValidation", "pretty"]
        .into_iter()
        .map(parameter)
        .collect();
    let operation = |action: &str, parameters: &[Value]| {
        json!({
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": identity(kind, version),
            "parameters": parameters,
            "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": {"$ref": reference}}}}},
        })
    };
    paths.insert(
        collection,
        json!({"get": operation("list", &[]), "post": operation("post", &writes), "delete": operation("deletecollection", &[])}),
    );
    paths.insert(
        one,
        json!({
            "get": operation("get", &[]),
            "put": operation("put", &writes),
            "patch": operation("patch", &writes),
            "delete": operation("delete", &writes),
        }),
    );
}
