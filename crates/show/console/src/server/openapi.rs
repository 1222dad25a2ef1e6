//! `openapi.json`: made from the routes and the types of what they show, and held against what is answered.

use roost_views::{
    AddressView, DecisionView, DeletionsDetail, HistoryView, LinkDetail, Overview, PoolView,
    RequestDetail, RequestView, SteeringView, VmDetail, VmView,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::actions::{Done, Said};
use super::app::ROUTES;
use crate::page::Hit;

/// What a route answers with.
enum Shows {
    Json(Value),
    Text(&'static str),
    /// A page for people: no part of the API.
    Page,
}

/// Every route has an entry, in the order of the routes.
fn shows(path: &str, generator: &mut SchemaGenerator) -> Option<(&'static str, Shows)> {
    fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Shows {
        Shows::Json(generator.subschema_for::<T>().to_value())
    }
    Some(match path {
        "/metrics" => ("Metrics for Prometheus", Shows::Text("text/plain")),
        "/livez" => ("Whether the loops make progress", Shows::Text("text/plain")),
        "/readyz" => ("Whether the views are good enough to act on", Shows::Text("text/plain")),
        "/api/v1/overview" => ("The whole picture", of::<Overview>(generator)),
        "/api/v1/requests" => ("Requests of all doors", of::<Vec<RequestView>>(generator)),
        "/api/v1/requests/{door}/{id}" => (
            "A request by its door, or by `-` for whichever knows it",
            of::<RequestDetail>(generator),
        ),
        "/api/v1/{nouns}" => {
            ("Requests of a door, those that wait longest first", of::<Vec<RequestView>>(generator))
        }
        "/api/v1/{nouns}/{id}" => (
            "A request, every decision on it, and the phases of its VM; also under the door's noun",
            of::<RequestDetail>(generator),
        ),
        "/api/v1/{nouns}/{id}/recheck" | "/api/v1/requests/{door}/{id}/recheck" => {
            ("Look at a request anew and weigh it now", of::<Done>(generator))
        }
        "/api/v1/{nouns}/{id}/pause" | "/api/v1/requests/{door}/{id}/pause" => {
            ("Leave a request and its VM as they are", of::<Done>(generator))
        }
        "/api/v1/{nouns}/{id}/resume" | "/api/v1/requests/{door}/{id}/resume" => {
            ("Work at a paused request again", of::<Done>(generator))
        }
        "/api/v1/vms" => ("Our own VMs", of::<Vec<VmView>>(generator)),
        "/api/v1/vms/{id}" => ("A VM by name or id", of::<VmDetail>(generator)),
        "/api/v1/vms/{id}/delete" => {
            ("Mark a VM so that the guarded clean-up deletes it", of::<Done>(generator))
        }
        "/api/v1/pools" => ("Warm pools", of::<Vec<PoolView>>(generator)),
        "/api/v1/pools/{id}/refill" => {
            ("Make what is missing of a pool now", of::<Done>(generator))
        }
        "/api/v1/addresses" => ("Every address and who has it", of::<Vec<AddressView>>(generator)),
        "/api/v1/deletions" => {
            ("Deletions, their evidence and the guard's budgets", of::<DeletionsDetail>(generator))
        }
        "/api/v1/link" => ("The vCenter link and how it was lately", of::<LinkDetail>(generator)),
        "/api/v1/steering" => ("What persons have told the service", of::<SteeringView>(generator)),
        "/api/v1/actions/{id}" => {
            ("pause, resume, drain, freeze or thaw the whole service", of::<Done>(generator))
        }
        "/api/v1/config" => {
            ("The running configuration, without secrets", Shows::Json(json!({"type": "object"})))
        }
        "/api/v1/decisions" => ("The journal, oldest first", of::<Vec<DecisionView>>(generator)),
        "/api/v1/events" => (
            "Server-sent events: `overview` whenever it says something new, `decision` for each one",
            Shows::Text("text/event-stream"),
        ),
        "/api/v1/history" => (
            "The last day, minute by minute, as far as memory goes back",
            of::<HistoryView>(generator),
        ),
        "/api/v1/search" => (
            "Requests, VMs, addresses and pools by a part of their names",
            of::<Vec<Hit>>(generator),
        ),
        "/api/v1/demo/{id}" => ("Break something in a demo", of::<Done>(generator)),
        "/api/v1/openapi.json" => ("This description", Shows::Json(json!({"type": "object"}))),
        "/" | "/{nouns}" | "/{nouns}/{id}" | "/vms" | "/vms/{id}" | "/decisions" | "/deletions"
        | "/link" | "/search" | "/assets/roost.css" | "/assets/roost.js" => {
            ("The web page", Shows::Page)
        }
        live if live.starts_with("/live/") => ("What changes on a page", Shows::Page),
        _ => return None,
    })
}

fn description() -> Value {
    let settings = SchemaSettings::openapi3();
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    let said = generator.subschema_for::<Said>().to_value();
    for route in ROUTES {
        let shown = shows(route.path, &mut generator);
        let (summary, shown) = shown.unwrap_or_else(|| panic!("{} is not described", route.path));
        let content = match shown {
            Shows::Json(schema) => json!({"application/json": {"schema": schema}}),
            Shows::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
            Shows::Page => continue,
        };
        let fault = json!({"$ref": "#/components/responses/fault"});
        let mut operation = json!({
            "summary": summary,
            "responses": {"200": {"description": summary, "content": content}, "default": fault},
        });
        let mut parameters = Vec::new();
        if route.path.contains("{id}") {
            let name =
                json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
            parameters.push(name);
        }
        if route.path.contains("{nouns}") {
            parameters.push(json!({
                "name": "nouns", "in": "path", "required": true, "schema": {"type": "string"},
                "description": "Where the requests of a door are: `doors[].path` of the overview",
            }));
        }
        if route.path.contains("{door}") {
            let door = json!({"name": "door", "in": "path", "required": true, "schema": {"type": "string"}});
            parameters.push(door);
        }
        let asks: &[&str] = match route.path {
            "/api/v1/decisions" => &["subject", "verdict", "bound_by", "events", "after", "limit"],
            "/api/v1/history" => &["minutes"],
            "/api/v1/search" => &["q"],
            "/api/v1/{nouns}" if route.method == "get" => &["q", "state", "sort", "format"],
            "/api/v1/vms" => &["q", "kind", "phase", "sort", "format"],
            _ => &[],
        };
        for name in asks {
            parameters.push(json!({"name": name, "in": "query", "schema": {"type": "string"}}));
        }
        if !parameters.is_empty() {
            operation["parameters"] = parameters.into();
        }
        if route.method == "post" {
            let body = json!({"content": {"application/json": {"schema": said}}});
            operation["requestBody"] = body;
            operation["security"] = json!([{"token": []}]);
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method] = operation;
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.0.3",
        "info": {
            "title": "Roost",
            "description": "What a running Roost shows and takes. Reading is free on its own machine; from elsewhere, and for every action, a bearer token is needed.",
            "version": "1",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "responses": {"fault": {
                "description": "Why not",
                "content": {"application/json": {"schema": {
                    "type": "object",
                    "required": ["error"],
                    "properties": {"error": {"type": "string"}},
                }}},
            }},
        },
    })
}

/// Where `value` is not what `schema` says. Knows the words that our schemas use.
fn misfits(all: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    let wrong = |why: &str| vec![format!("{at}: {why}: {value}")];
    if let Some(name) = schema["$ref"].as_str() {
        let found = all.pointer(name.trim_start_matches('#'));
        return found.map_or_else(|| wrong(name), |schema| misfits(all, schema, value, at));
    }
    if value.is_null() && schema["nullable"] == true {
        return Vec::new();
    }
    for word in ["oneOf", "anyOf", "allOf"] {
        if let Some(choices) = schema[word].as_array() {
            let fits = |choice: &Value| misfits(all, choice, value, at).is_empty();
            return if choices.iter().any(fits) { Vec::new() } else { wrong(word) };
        }
    }
    if let Some(words) = schema["enum"].as_array() {
        return if words.contains(value) { Vec::new() } else { wrong("not of the set") };
    }
    match schema["type"].as_str() {
        Some("object") => {
            let Some(object) = value.as_object() else { return wrong("no object") };
            let required = schema["required"].as_array().into_iter().flatten();
            let missing =
                required.filter_map(Value::as_str).filter(|key| !object.contains_key(*key));
            let mut found: Vec<_> = missing.map(|key| format!("{at}: lacks {key}")).collect();
            if let Some(known) = schema["properties"].as_object() {
                for (key, value) in object {
                    let at = format!("{at}.{key}");
                    match known.get(key) {
                        Some(schema) => found.extend(misfits(all, schema, value, &at)),
                        None if schema["additionalProperties"] == true => {}
                        None => found.push(format!("{at}: is not described")),
                    }
                }
            }
            found
        }
        Some("array") => match value.as_array() {
            Some(items) if schema.get("items").is_some() => items
                .iter()
                .flat_map(|item| misfits(all, &schema["items"], item, &format!("{at}[]")))
                .collect(),
            Some(_) => Vec::new(),
            None => wrong("no array"),
        },
        Some("string") if !value.is_string() => wrong("no string"),
        Some("integer") if !value.is_u64() && !value.is_i64() => wrong("no integer"),
        Some("boolean") if !value.is_boolean() => wrong("no boolean"),
        _ => Vec::new(),
    }
}

#[test]
fn the_file_is_what_the_routes_and_types_say() {
    let want = format!("{:#}\n", description());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    if std::env::var_os("ROOST_WRITE_DOCS").is_some() {
        std::fs::write(path, &want).unwrap();
    }
    let is = std::fs::read_to_string(path).unwrap();
    assert!(
        is == want,
        "run the tests of this crate with ROOST_WRITE_DOCS=1 to bring {path} up to date"
    );
}

#[tokio::test]
async fn every_route_answers_with_what_it_says() {
    let lab = super::tests::lab_with_token().await;
    lab.fake.decides(crate::fake::decision(7));
    let description = description();
    let mut asked = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let content = &operation["responses"]["200"]["content"]["application/json"];
            let Some(schema) = content.get("schema") else { continue };
            let id = match path.as_str() {
                "/api/v1/{nouns}/{id}" | "/api/v1/requests/{door}/{id}" => "42",
                "/api/v1/actions/{id}" => "drain",
                // Only a demo has the first; the fake refuses the second.
                "/api/v1/demo/{id}" | "/api/v1/pools/{id}/refill" => continue,
                _ => "vm-7",
            };
            let place = path.replace("{id}", id).replace("{nouns}", "jobs").replace("{door}", "-");
            let answer = lab.ask(method, &place).await;
            let found = misfits(&description, schema, &answer, path);
            assert!(found.is_empty(), "{found:#?}");
            asked += 1;
        }
    }
    assert!(asked > 15, "{asked}");
}

#[test]
fn the_checker_finds_what_does_not_fit() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {
        "a": {"type": "integer"}, "b": {"type": "string", "nullable": true},
    }});
    let found = |value: Value| misfits(&json!({}), &schema, &value, "it").len();
    assert_eq!(found(json!({"a": 1, "b": null})), 0);
    for wrong in
        [json!({}), json!({"a": "1"}), json!({"a": 1, "c": 2}), json!([]), json!({"a": null})]
    {
        assert!(found(wrong.clone()) > 0, "{wrong}");
    }
}
