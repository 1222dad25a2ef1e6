//! Updates of a custom kind and of its status.

use serde_json::{Value, json};

use super::WIDGETS;
use super::step::{Step, bare, step};
use super::widgets::widget;

fn whole(name: &str, version: &str, spec: &Value) -> Value {
    let mut whole = widget(name, spec);
    whole["metadata"]["resourceVersion"] = json!(version);
    whole
}

pub(super) fn on_updates() -> Vec<Step> {
    let one = format!("{WIDGETS}/u");
    let status = format!("{one}/status");
    let put = |name: &'static str, path: &str, body: Value| step(name, "PUT", path, body);
    let full = json!({"size": 2, "disk": "d1", "mode": "slow", "tags": ["a"], "ports": [{"name": "a", "port": 1}]});
    vec![
        step("u create", "POST", WIDGETS, widget("u", &json!({"size": 1, "disk": "d1"}))),
        put("u update", &one, whole("u", "$version", &full)),
        put("u update of nothing", &one, whole("u", "$version", &full)),
        put(
            "u unknown fields",
            &one,
            whole("u", "$version", &json!({"size": 3, "disk": "d1", "odd": 1})),
        ),
        bare("u get", "GET", &one),
        put(
            "u unknown fields strictly",
            &format!("{one}?fieldValidation=Strict"),
            whole("u", "$version", &json!({"size": 3, "disk": "d1", "odd": 1})),
        ),
        put(
            "u dry run",
            &format!("{one}?dryRun=All"),
            whole("u", "$version", &json!({"size": 9, "disk": "d1"})),
        ),
        put("u dry run that is odd", &format!("{one}?dryRun=Some"), whole("u", "$version", &full)),
        put("u stale", &one, whole("u", "1", &full)),
        put("u a version that is none", &one, whole("u", "new", &full)),
        put("u another name", &one, whole("v", "$version", &full)),
        put(
            "u no name",
            &one,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"resourceVersion": "$version"}, "spec": full}),
        ),
        put(
            "u another uid",
            &one,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version", "uid": "other"}, "spec": full}),
        ),
        put(
            "u another namespace",
            &one,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "namespace": "other", "resourceVersion": "$version"}, "spec": full}),
        ),
        put(
            "u another kind",
            &one,
            json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "u", "resourceVersion": "$version"}, "spec": full}),
        ),
        put(
            "u another group",
            &one,
            json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version"}, "spec": full}),
        ),
        put("u required", &one, whole("u", "$version", &json!({"disk": "d1"}))),
        put("u maximum", &one, whole("u", "$version", &json!({"size": 11, "disk": "d1"}))),
        put("u type", &one, whole("u", "$version", &json!({"size": "large", "disk": "d1"}))),
        put(
            "u enum",
            &one,
            whole("u", "$version", &json!({"size": 1, "disk": "d1", "mode": "odd"})),
        ),
        put(
            "u rule",
            &one,
            whole("u", "$version", &json!({"size": 6, "disk": "d1", "mode": "slow"})),
        ),
        put("u transition rule", &one, whole("u", "$version", &json!({"size": 3, "disk": "d2"}))),
        put(
            "u without what a transition rule holds",
            &one,
            whole("u", "$version", &json!({"size": 3})),
        ),
        put(
            "u duplicate key",
            &one,
            whole("u", "$version", &json!({"size": 3, "ports": [{"name": "a"}, {"name": "a"}]})),
        ),
        put(
            "u status by the main path",
            &one,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version"}, "spec": {"size": 4}, "status": {"phase": "Up"}}),
        ),
        put(
            "u status",
            &status,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version", "labels": {"a": "b"}}, "spec": {"size": 9}, "status": {"phase": "Up", "replicas": 2}}),
        ),
        put(
            "u status of nothing",
            &status,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version"}, "spec": {"size": 9}, "status": {"phase": "Up", "replicas": 2}}),
        ),
        put(
            "u status without a version",
            &status,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u"}, "status": {"phase": "Down"}}),
        ),
        put(
            "u stale status",
            &status,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "1"}, "status": {"phase": "Down"}}),
        ),
        put(
            "u wrong status",
            &status,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version"}, "spec": {"size": 4}, "status": {"replicas": "two"}}),
        ),
        put(
            "u status missing",
            &format!("{WIDGETS}/none/status"),
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "none", "resourceVersion": "$version"}, "status": {"phase": "Down"}}),
        ),
        bare("u get the status", "GET", &status),
        put(
            "u finalizer",
            &one,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version", "finalizers": ["example.com/a"]}, "spec": {"size": 4}}),
        ),
        step(
            "u delete with a stale precondition",
            "DELETE",
            &one,
            json!({"preconditions": {"resourceVersion": "1"}}),
        ),
        step("u delete dry", "DELETE", &format!("{one}?dryRun=All"), Value::Null),
        step("u delete", "DELETE", &one, json!({"preconditions": {"uid": "$uid"}})),
        bare("u get while deleting", "GET", &one),
        put(
            "u update while deleting",
            &one,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version", "finalizers": ["example.com/a", "example.com/b"]}, "spec": {"size": 4}}),
        ),
        put(
            "u last finalizer",
            &one,
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "u", "resourceVersion": "$version"}, "spec": {"size": 4}}),
        ),
        bare("u gone", "GET", &one),
        step("u a list is not updated", "PUT", WIDGETS, json!({})),
    ]
}
