//! Every verb and every patch on a built-in kind.

use serde_json::{Value, json};

use super::step::{Step, step};
use super::{CONFIGS, config};

pub(super) fn on_config_maps() -> Vec<Step> {
    let one = format!("{CONFIGS}/a");
    vec![
        step("create", "POST", CONFIGS, config("a", &json!({"k": "1"}))),
        step("create again", "POST", CONFIGS, config("a", &json!({"k": "1"}))),
        step("create with a bad name", "POST", CONFIGS, config("Bad_Name", &json!({}))),
        step(
            "create without a name",
            "POST",
            CONFIGS,
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
        ),
        step(
            "create with a bad label",
            "POST",
            CONFIGS,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "l", "labels": {"a": "-"}}}),
        ),
        step(
            "create in another namespace",
            "POST",
            "/api/v1/namespaces/missing/configmaps",
            config("a", &json!({})),
        ),
        step(
            "create for the wrong namespace",
            "POST",
            CONFIGS,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "namespace": "other"}}),
        ),
        step(
            "create of another version",
            "POST",
            CONFIGS,
            json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "w"}}),
        ),
        step(
            "dry run",
            "POST",
            &format!("{CONFIGS}?dryRun=All"),
            config("dry", &json!({"k": "1"})),
        ),
        step("get", "GET", &one, Value::Null),
        step("get missing", "GET", &format!("{CONFIGS}/missing"), Value::Null),
        step("unconditional update", "PUT", &one, config("a", &json!({"k": "2"}))),
        step(
            "stale update",
            "PUT",
            &one,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1"}, "data": {"k": "3"}}),
        ),
        step(
            "update of another uid",
            "PUT",
            &one,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "other"}, "data": {"k": "3"}}),
        ),
        step("update of another name", "PUT", &one, config("b", &json!({}))),
        step("update missing", "PUT", &format!("{CONFIGS}/missing"), config("missing", &json!({}))),
        Step::patch(
            "merge patch",
            &one,
            "merge",
            json!({"data": {"k": null, "m": "1"}, "metadata": {"annotations": {"n": "1"}}}),
        ),
        Step::patch(
            "json patch",
            &one,
            "json",
            json!([{"op": "replace", "path": "/data/m", "value": "2"}, {"op": "add", "path": "/data/j", "value": "1"}]),
        ),
        Step::patch(
            "json patch of nothing",
            &one,
            "json",
            json!([{"op": "remove", "path": "/data/none"}]),
        ),
        Step::patch(
            "json patch with a failed test",
            &one,
            "json",
            json!([{"op": "test", "path": "/data/m", "value": "9"}]),
        ),
        Step::patch(
            "strategic patch",
            &one,
            "strategic",
            json!({"metadata": {"finalizers": ["example.com/a"]}, "data": {"s": "1"}}),
        ),
        Step::patch(
            "strategic patch adds to a list",
            &one,
            "strategic",
            json!({"metadata": {"finalizers": ["example.com/b"]}}),
        ),
        Step::patch("patch that changes nothing", &one, "merge", json!({"data": {"s": "1"}})),
        Step::patch(
            "patch missing",
            &format!("{CONFIGS}/missing"),
            "merge",
            json!({"data": {"s": "1"}}),
        ),
        Step::patch(
            "patch with a stale version",
            &one,
            "merge",
            json!({"metadata": {"resourceVersion": "1"}, "data": {"z": "1"}}),
        ),
        Step::patch("patch of the name", &one, "merge", json!({"metadata": {"name": "z"}})),
        step("list", "GET", &format!("{CONFIGS}?labelSelector=app%3Dx"), Value::Null),
        step(
            "list by name",
            "GET",
            &format!("{CONFIGS}?fieldSelector=metadata.name%3Da"),
            Value::Null,
        ),
        step("list of nothing", "GET", &format!("{CONFIGS}?labelSelector=app%3Dnone"), Value::Null),
        step("delete with finalizers", "DELETE", &one, Value::Null),
        Step::patch(
            "add a finalizer while deleting",
            &one,
            "merge",
            json!({"metadata": {"finalizers": ["example.com/c"]}}),
        ),
        Step::patch(
            "drop the finalizers",
            &one,
            "merge",
            json!({"metadata": {"finalizers": null}}),
        ),
        step("get deleted", "GET", &one, Value::Null),
        step("delete missing", "DELETE", &one, Value::Null),
        Step::patch(
            "apply creates",
            &format!("{CONFIGS}/s?fieldManager=one"),
            "apply",
            config("s", &json!({"a": "1", "b": "1"})),
        ),
        Step::patch(
            "apply conflicts",
            &format!("{CONFIGS}/s?fieldManager=two"),
            "apply",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"a": "2"}}),
        ),
        Step::patch(
            "apply by force",
            &format!("{CONFIGS}/s?fieldManager=two&force=true"),
            "apply",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {"a": "2"}}),
        ),
        Step::patch(
            "apply lets go",
            &format!("{CONFIGS}/s?fieldManager=one"),
            "apply",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {}}),
        ),
        Step::patch(
            "apply without a manager",
            &format!("{CONFIGS}/s"),
            "apply",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "s"}, "data": {}}),
        ),
        step(
            "delete with a wrong uid",
            "DELETE",
            &format!("{CONFIGS}/s"),
            json!({"preconditions": {"uid": "other"}}),
        ),
        step("delete dry", "DELETE", &format!("{CONFIGS}/s?dryRun=All"), Value::Null),
        step("delete", "DELETE", &format!("{CONFIGS}/s"), Value::Null),
        step("an unknown resource", "GET", "/apis/example.org/v1/things", Value::Null),
        step("a method that is not allowed", "POST", "/api/v1/configmaps", config("a", &json!({}))),
    ]
}
