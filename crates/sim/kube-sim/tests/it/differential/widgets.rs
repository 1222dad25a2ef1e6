//! Every verb and every patch on a custom kind with defaults, validation and rules.

use serde_json::{Value, json};

use super::WIDGETS;
use super::step::{Step, step};

pub(super) fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

pub(super) fn on_widgets() -> Vec<Step> {
    let one = format!("{WIDGETS}/w");
    let status = format!("{one}/status");
    vec![
        step(
            "w create",
            "POST",
            WIDGETS,
            widget("w", &json!({"size": 3, "disk": "d1", "unknown": 1})),
        ),
        step(
            "w create strictly",
            "POST",
            &format!("{WIDGETS}?fieldValidation=Strict"),
            widget("x", &json!({"size": 3, "unknown": 1})),
        ),
        Step::patch(
            "w patch strictly",
            &format!("{one}?fieldValidation=Strict"),
            "merge",
            json!({"spec": {"unknown": 1}}),
        ),
        step("w required", "POST", WIDGETS, widget("x", &json!({}))),
        step("w minimum", "POST", WIDGETS, widget("x", &json!({"size": 0}))),
        step("w maximum", "POST", WIDGETS, widget("x", &json!({"size": 11}))),
        step("w type", "POST", WIDGETS, widget("x", &json!({"size": "large"}))),
        step("w enum", "POST", WIDGETS, widget("x", &json!({"size": 1, "mode": "odd"}))),
        step("w pattern", "POST", WIDGETS, widget("x", &json!({"size": 1, "name": "A1"}))),
        step(
            "w too long",
            "POST",
            WIDGETS,
            widget("x", &json!({"size": 1, "name": "abcdefghijk"})),
        ),
        step("w two faults", "POST", WIDGETS, widget("x", &json!({"size": 0, "mode": "odd"}))),
        step(
            "w duplicate key",
            "POST",
            WIDGETS,
            widget("x", &json!({"size": 1, "ports": [{"name": "a"}, {"name": "a"}]})),
        ),
        step(
            "w duplicate in a set",
            "POST",
            WIDGETS,
            widget("x", &json!({"size": 1, "tags": ["a", "a"]})),
        ),
        step("w rule", "POST", WIDGETS, widget("x", &json!({"size": 6, "mode": "slow"}))),
        Step::patch("w transition rule", &one, "merge", json!({"spec": {"disk": "d2"}})),
        Step::patch(
            "w merge patch",
            &one,
            "merge",
            json!({"spec": {"size": 4, "limits": {"cpu": 3}}}),
        ),
        Step::patch(
            "w json patch",
            &one,
            "json",
            json!([{"op": "replace", "path": "/spec/size", "value": 5}]),
        ),
        Step::patch("w strategic patch", &one, "strategic", json!({"spec": {"size": 5}})),
        Step::patch("w status by the main path", &one, "merge", json!({"status": {"phase": "Up"}})),
        Step::patch(
            "w status",
            &status,
            "merge",
            json!({"spec": {"size": 9}, "status": {"phase": "Up"}, "metadata": {"labels": {"a": "b"}}}),
        ),
        Step::patch(
            "w conditions",
            &status,
            "merge",
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}], "replicas": 1, "selector": "a=b"}}),
        ),
        step("w scale", "GET", &format!("{one}/scale"), Value::Null),
        Step::patch(
            "w scale patch",
            &format!("{one}/scale"),
            "merge",
            json!({"spec": {"replicas": 3}}),
        ),
        step("w get", "GET", &one, Value::Null),
        step("w update without a version", "PUT", &one, widget("w", &json!({"size": 1}))),
        step(
            "w update missing",
            "PUT",
            &format!("{WIDGETS}/none"),
            widget("none", &json!({"size": 1})),
        ),
        Step::patch(
            "w apply ports",
            &format!("{one}?fieldManager=one"),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"ports": [{"name": "a", "port": 1}]}}),
        ),
        Step::patch(
            "w apply more ports",
            &format!("{one}?fieldManager=two"),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"ports": [{"name": "b", "port": 2}]}}),
        ),
        Step::patch(
            "w apply fewer ports",
            &format!("{one}?fieldManager=one"),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {}}),
        ),
        step("w list", "GET", WIDGETS, Value::Null),
        step(
            "w select by a field",
            "GET",
            &format!("{WIDGETS}?fieldSelector=spec.size%3D5"),
            Value::Null,
        ),
        step("w delete", "DELETE", &one, Value::Null),
        step("w delete again", "DELETE", &one, Value::Null),
    ]
}
