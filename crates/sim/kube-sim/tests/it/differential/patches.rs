//! Every patch of a custom kind in the ways in which it can fail, and server-side apply from create to conflict.

use serde_json::{Value, json};

use super::WIDGETS;
use super::scales::on_scale;
use super::step::{Step, bare};

pub(super) fn on_patches() -> Vec<Step> {
    let one = format!("{WIDGETS}/p");
    let status = format!("{one}/status");
    let by = |manager: &str, more: &str| format!("{one}?fieldManager={manager}{more}");
    let applied = |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "p"}, "spec": spec});
    let mut steps = vec![
        Step::patch("p apply a wrong one", &by("one", ""), "apply", applied(json!({"size": 0}))),
        Step::patch(
            "p apply that breaks a rule",
            &by("one", ""),
            "apply",
            applied(json!({"size": 6, "mode": "slow"})),
        ),
        Step::patch("p apply dry", &by("one", "&dryRun=All"), "apply", applied(json!({"size": 2}))),
        Step::patch(
            "p apply creates",
            &by("one", ""),
            "apply",
            applied(json!({"size": 2, "disk": "d1", "tags": ["a"]})),
        ),
        Step::patch(
            "p apply again",
            &by("one", ""),
            "apply",
            applied(json!({"size": 2, "disk": "d1", "tags": ["a"]})),
        ),
        Step::patch("p apply conflicts", &by("two", ""), "apply", applied(json!({"size": 3}))),
        Step::patch(
            "p apply by force",
            &by("two", "&force=true"),
            "apply",
            applied(json!({"size": 3, "tags": ["b"]})),
        ),
        Step::patch("p apply lets go", &by("one", ""), "apply", applied(json!({"disk": "d1"}))),
        Step::patch("p apply without a manager", &one, "apply", applied(json!({"size": 3}))),
        Step::patch(
            "p apply of an unknown field",
            &by("one", ""),
            "apply",
            applied(json!({"odd": 1})),
        ),
        Step::patch(
            "p apply of another name",
            &by("one", ""),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "q"}, "spec": {"size": 3}}),
        ),
        Step::patch(
            "p apply of another kind",
            &by("one", ""),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "p"}, "spec": {"size": 3}}),
        ),
        Step::patch(
            "p apply the status",
            &format!("{status}?fieldManager=one"),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "p"}, "status": {"phase": "Up", "conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        Step::patch(
            "p apply the status of two",
            &format!("{status}?fieldManager=two"),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "p"}, "status": {"conditions": [{"type": "Other", "status": "True"}]}}),
        ),
        Step::patch(
            "p apply a status in conflict",
            &format!("{status}?fieldManager=two"),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "p"}, "status": {"phase": "Down"}}),
        ),
        Step::patch(
            "p apply the status missing",
            &format!("{WIDGETS}/none/status?fieldManager=one"),
            "apply",
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "none"}, "status": {"phase": "Down"}}),
        ),
        Step::patch("p merge takes over", &one, "merge", json!({"spec": {"size": 4}})),
        Step::patch(
            "p apply conflicts with it",
            &by("two", ""),
            "apply",
            applied(json!({"size": 3})),
        ),
        Step::patch("p merge of nothing", &one, "merge", json!({"spec": {"size": 4}})),
        Step::patch(
            "p merge missing",
            &format!("{WIDGETS}/none"),
            "merge",
            json!({"spec": {"size": 4}}),
        ),
        Step::patch(
            "p merge with a stale version",
            &one,
            "merge",
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"size": 4}}),
        ),
        Step::patch(
            "p merge with a version",
            &one,
            "merge",
            json!({"metadata": {"resourceVersion": "$version"}, "spec": {"size": 5}}),
        ),
        Step::patch("p merge of the name", &one, "merge", json!({"metadata": {"name": "z"}})),
        Step::patch("p merge of the kind", &one, "merge", json!({"kind": "Gadget"})),
        Step::patch(
            "p merge that removes a default",
            &one,
            "merge",
            json!({"spec": {"mode": null, "limits": null}}),
        ),
        Step::patch(
            "p merge that removes what is required",
            &one,
            "merge",
            json!({"spec": {"size": null}}),
        ),
        Step::patch(
            "p merge that breaks a rule",
            &one,
            "merge",
            json!({"spec": {"size": 6, "mode": "slow"}}),
        ),
        Step::patch(
            "p merge dry",
            &format!("{one}?dryRun=All"),
            "merge",
            json!({"spec": {"size": 6}}),
        ),
        Step::patch(
            "p json",
            &one,
            "json",
            json!([
                {"op": "test", "path": "/spec/size", "value": 5},
                {"op": "add", "path": "/spec/ports", "value": [{"name": "a", "port": 1}]},
                {"op": "add", "path": "/spec/ports/-", "value": {"name": "b", "port": 2}},
                {"op": "copy", "from": "/spec/ports/0/port", "path": "/spec/ports/1/port"},
                {"op": "move", "from": "/spec/disk", "path": "/spec/name"},
            ]),
        ),
        Step::patch(
            "p json that is right",
            &one,
            "json",
            json!([
                {"op": "add", "path": "/spec/ports", "value": [{"name": "a", "port": 1}]},
                {"op": "add", "path": "/spec/ports/-", "value": {"name": "b", "port": 2}},
                {"op": "copy", "from": "/spec/ports/0/port", "path": "/spec/ports/1/port"},
            ]),
        ),
        Step::patch(
            "p json with a failed test",
            &one,
            "json",
            json!([{"op": "test", "path": "/spec/size", "value": 9}]),
        ),
        Step::patch(
            "p json of nothing",
            &one,
            "json",
            json!([{"op": "remove", "path": "/spec/none"}]),
        ),
        Step::patch(
            "p json of an unknown operation",
            &one,
            "json",
            json!([{"op": "turn", "path": "/spec/size"}]),
        ),
        Step::patch("p json that is no list", &one, "json", json!({"spec": {"size": 4}})),
        Step::patch(
            "p json that breaks the schema",
            &one,
            "json",
            json!([{"op": "replace", "path": "/spec/size", "value": 99}]),
        ),
        Step::patch(
            "p json of the status",
            &status,
            "json",
            json!([{"op": "replace", "path": "/status/phase", "value": "Down"}]),
        ),
        Step::patch("p strategic", &one, "strategic", json!({"spec": {"size": 5}})),
        Step::patch(
            "p of an unknown type",
            &one,
            "application/odd-patch+json",
            json!({"spec": {"size": 5}}),
        ),
        Step::patch(
            "p finalizers",
            &one,
            "merge",
            json!({"metadata": {"finalizers": ["example.com/a"]}}),
        ),
        Step::patch(
            "p a bad finalizer",
            &one,
            "merge",
            json!({"metadata": {"finalizers": ["example.com/a", "nobody"]}}),
        ),
        Step::patch(
            "p owner without a kind",
            &one,
            "merge",
            json!({"metadata": {"ownerReferences": [{"name": "x", "uid": "y"}]}}),
        ),
        Step::patch(
            "p label that enters a selection",
            &one,
            "merge",
            json!({"metadata": {"labels": {"app": "x"}}}),
        ),
        Step::patch("p in the selection", &one, "merge", json!({"spec": {"size": 7}})),
        Step::patch(
            "p label that leaves it",
            &one,
            "merge",
            json!({"metadata": {"labels": {"app": "y"}}}),
        ),
    ];
    steps.extend(on_scale(WIDGETS, "p"));
    steps.extend([
        bare("p delete", "DELETE", &one),
        Step::patch("p let go", &one, "merge", json!({"metadata": {"finalizers": []}})),
    ]);
    steps
}
