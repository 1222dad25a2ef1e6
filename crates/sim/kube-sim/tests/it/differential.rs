//! The same requests to a real API server and to ours get the same answers and the same events.
//!
//! What differs by nature is left out of the comparison: uids, times, resource versions, fields that hold nothing, and
//! `managedFields`, of which only managers and operations are compared. Every other difference is in `KNOWN`, with its
//! reason.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use kube::Client;
use roost_clock::SystemClock;
use roost_kube_sim::{KubeSim, Options};
use roost_oracle::{Cluster, ClusterOptions};
use serde_json::{Value, json};

use crate::world::widget_definition;

/// Steps whose answers differ, and why that is right.
const KNOWN: [(&str, &str); 5] = [
    (
        "w patch strictly",
        "the message repeats the whole object, with its times and versions as text",
    ),
    ("node", "the real server fills in zeros and writes no managedFields"),
    ("node status", "as above"),
    ("claim", "the real server adds a finalizer that nobody here would remove"),
    ("access", "the real server writes managedFields into a question that it does not store"),
];

/// One request and a name for it.
struct Step {
    name: &'static str,
    method: &'static str,
    path: String,
    content_type: &'static str,
    body: Value,
}

fn step(name: &'static str, method: &'static str, path: &str, body: Value) -> Step {
    let content_type = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    Step { name, method, path: path.to_owned(), content_type, body }
}

impl Step {
    fn patch(name: &'static str, path: &str, kind: &'static str, body: Value) -> Self {
        let content_type = match kind {
            "json" => "application/json-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            _ => "application/merge-patch+json",
        };
        Self { content_type, ..step(name, "PATCH", path, body) }
    }
}

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn config(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "x"}}, "data": data})
}

fn widget(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

fn on_config_maps() -> Vec<Step> {
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
        step("delete", "DELETE", &format!("{CONFIGS}/s"), Value::Null),
        step("an unknown resource", "GET", "/apis/example.org/v1/things", Value::Null),
        step("a method that is not allowed", "POST", "/api/v1/configmaps", config("a", &json!({}))),
    ]
}

fn on_widgets() -> Vec<Step> {
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

/// Built-in kinds that doors write, for their defaults and their own rules.
fn on_others() -> Vec<Step> {
    let pods = PODS;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let namespaces = "/api/v1/namespaces";
    let pod = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    let one = json!({"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}]});
    let bound = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    vec![
        step("pod", "POST", pods, pod("p", one)),
        step("pod without containers", "POST", pods, pod("q", json!({}))),
        Step::patch(
            "pod image",
            &format!("{pods}/p"),
            "strategic",
            json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}}),
        ),
        Step::patch(
            "pod status",
            &format!("{pods}/p/status"),
            "strategic",
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        Step::patch(
            "pod status again",
            &format!("{pods}/p/status"),
            "strategic",
            json!({"status": {"conditions": [{"type": "Other", "status": "True"}]}}),
        ),
        step(
            "pod binding",
            "POST",
            &format!("{pods}/p/binding"),
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
        ),
        step(
            "pod binding again",
            "POST",
            &format!("{pods}/p/binding"),
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "m"}}),
        ),
        step("pod delete", "DELETE", &format!("{pods}/p"), Value::Null),
        step(
            "pod delete at once",
            "DELETE",
            &format!("{pods}/p"),
            json!({"gracePeriodSeconds": 0}),
        ),
        step("bound pod", "POST", pods, pod("b", bound)),
        step("bound pod delete", "DELETE", &format!("{pods}/b?gracePeriodSeconds=5"), Value::Null),
        step("bound pods", "GET", &format!("{pods}?fieldSelector=spec.nodeName%3Dn"), Value::Null),
        step(
            "lease",
            "POST",
            leases,
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}}),
        ),
        step(
            "lease without a version",
            "PUT",
            &format!("{leases}/l"),
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}}),
        ),
        step(
            "lease that is new",
            "PUT",
            &format!("{leases}/m"),
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "m"}, "spec": {"holderIdentity": "b"}}),
        ),
        step(
            "lease of no time",
            "POST",
            leases,
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "z"}, "spec": {"leaseDurationSeconds": 0}}),
        ),
        step(
            "namespace",
            "POST",
            namespaces,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n1"}}),
        ),
        step("namespace delete", "DELETE", &format!("{namespaces}/n1"), Value::Null),
        step(
            "in a namespace that ends",
            "POST",
            "/api/v1/namespaces/n1/configmaps",
            config("late", &json!({})),
        ),
        step("namespace default", "DELETE", &format!("{namespaces}/default"), Value::Null),
        step(
            "secret",
            "POST",
            "/api/v1/namespaces/default/secrets",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}),
        ),
        step(
            "node",
            "POST",
            "/api/v1/nodes",
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        Step::patch(
            "node status",
            "/api/v1/nodes/n/status",
            "strategic",
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.1.1.1"}]}}),
        ),
        step(
            "event",
            "POST",
            "/api/v1/namespaces/default/events",
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "Made", "message": "m", "type": "Normal", "count": 1}),
        ),
        step(
            "event as new",
            "GET",
            "/apis/events.k8s.io/v1/namespaces/default/events/e",
            Value::Null,
        ),
        step(
            "new event",
            "POST",
            "/apis/events.k8s.io/v1/namespaces/default/events",
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "f"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "Made", "note": "m", "type": "Normal", "action": "Make", "reportingController": "example.com/c", "reportingInstance": "c-0", "eventTime": "2026-01-01T00:00:00.000000Z"}),
        ),
        step("new event as old", "GET", "/api/v1/namespaces/default/events/f", Value::Null),
        step(
            "class",
            "POST",
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"}, "provisioner": "example.com/p"}),
        ),
        step(
            "account",
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}),
        ),
        step(
            "role",
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        step(
            "claim",
            "POST",
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        step(
            "access",
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        step("versions", "GET", "/apis/coordination.k8s.io", Value::Null),
    ]
}

/// What a server answers: the code and the body without what differs by nature.
async fn ask(client: &Client, step: &Step) -> (u16, Value) {
    let body = if step.body.is_null() { Vec::new() } else { step.body.to_string().into_bytes() };
    let request = http::Request::builder()
        .method(step.method)
        .uri(&step.path)
        .header("content-type", step.content_type)
        .header("user-agent", "script/1")
        .body(kube::client::Body::from(body))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (code, plain(serde_json::from_slice(&bytes).unwrap_or(Value::String(text))))
}

/// Without what differs by nature.
fn plain(mut value: Value) -> Value {
    strip(&mut value);
    value
}

/// A server with types writes fields that hold nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
        _ => false,
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // The real server names faults in any order, in the causes and in the message made of them.
            let causes = fields.get_mut("details").and_then(|details| details.get_mut("causes"));
            if let Some(causes) =
                causes.and_then(Value::as_array_mut).filter(|causes| causes.len() > 1)
            {
                causes.sort_by_key(ToString::to_string);
                fields.insert("message".to_owned(), json!("of the causes"));
            }
            fields.retain(|_, value| !is_nothing(value));
            for (name, value) in fields.iter_mut() {
                match name.as_str() {
                    "uid" | "resourceVersion" | "creationTimestamp" | "deletionTimestamp"
                    | "time" | "lastTransitionTime"
                        if !value.is_null() =>
                    {
                        *value = json!("-");
                    }
                    "managedFields" => {
                        let entries = value.as_array().cloned().unwrap_or_default();
                        let mut who: Vec<_> = entries
                            .iter()
                            .map(|entry| {
                                format!(
                                    "{} {} {}",
                                    entry["manager"], entry["operation"], entry["subresource"]
                                )
                            })
                            .collect();
                        who.sort();
                        *value = json!(who);
                    }
                    "message" => {
                        if let Some(text) = value.as_str() {
                            *value = json!(without_ids(text));
                        }
                    }
                    _ => strip(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Messages without uids, times and numbers of versions.
fn without_ids(text: &str) -> String {
    text.split(' ')
        .map(|word| {
            let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
            let is_uid = bare.len() == 36 && bare.matches('-').count() == 4;
            let is_time = bare.ends_with('Z') && bare.contains('T') && bare.len() == 20;
            if is_uid || is_time { word.replace(bare, "-") } else { word.to_owned() }
        })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Types and objects of all events of a kind since the script began.
async fn events(client: &Client, path: &str, from: &str) -> Vec<Value> {
    let uri = format!("{path}?watch=true&resourceVersion={from}&timeoutSeconds=2");
    let request = http::Request::get(uri).body(Vec::new()).unwrap();
    let events = client.request_events::<Value>(request).await.unwrap();
    let events: Vec<Result<kube::api::WatchEvent<Value>, kube::Error>> = events.collect().await;
    events
        .into_iter()
        .map(|event| match event.unwrap() {
            kube::api::WatchEvent::Added(object) => json!(["ADDED", plain(object)]),
            kube::api::WatchEvent::Modified(object) => json!(["MODIFIED", plain(object)]),
            kube::api::WatchEvent::Deleted(object) => json!(["DELETED", plain(object)]),
            kube::api::WatchEvent::Bookmark(_) => json!(["BOOKMARK"]),
            kube::api::WatchEvent::Error(status) => json!(["ERROR", status.code]),
        })
        .collect()
}

async fn version_of(client: &Client, path: &str) -> String {
    let list: Value =
        client.request(http::Request::get(path).body(Vec::new()).unwrap()).await.unwrap();
    list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

async fn define(client: &Client) {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let body = widget_definition().to_string().into_bytes();
    let request =
        http::Request::post(path).header("content-type", "application/json").body(body).unwrap();
    client.request::<Value>(request).await.unwrap();
    // A real server needs a moment until it serves a new kind.
    for _ in 0..600 {
        let list =
            client.request::<Value>(http::Request::get(WIDGETS).body(Vec::new()).unwrap()).await;
        let made = client
            .request::<Value>(
                http::Request::get(format!("{path}/widgets.example.com")).body(Vec::new()).unwrap(),
            )
            .await
            .unwrap();
        let is_up = made["status"]["conditions"].as_array().is_some_and(|all| {
            all.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
        });
        if list.is_ok() && is_up {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the kind is not served");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_answers_the_same() {
    let started =
        tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await.unwrap();
    let Some(cluster) = started else { return };
    let real = cluster.client().await;
    let sim =
        KubeSim::start(Options { controllers: false, ..Options::default() }, Arc::new(SystemClock));
    let ours = sim.client();
    define(&real).await;
    define(&ours).await;
    let known: BTreeMap<_, _> = KNOWN.into_iter().collect();
    let mut differences = Vec::new();
    for (path, script) in
        [(CONFIGS, on_config_maps()), (WIDGETS, on_widgets()), (PODS, on_others())]
    {
        let (from_real, from_ours) = (version_of(&real, path).await, version_of(&ours, path).await);
        for step in &script {
            let (want, got) = (ask(&real, step).await, ask(&ours, step).await);
            if want != got && !known.contains_key(step.name) {
                differences.push(format!(
                    "{}\n  real {} {}\n  ours {} {}",
                    step.name, want.0, want.1, got.0, got.1
                ));
            }
        }
        let (want, got) =
            (events(&real, path, &from_real).await, events(&ours, path, &from_ours).await);
        let texts = |events: &[Value]| {
            events.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n    ")
        };
        if want != got {
            differences.push(format!(
                "events of {path}\n  real\n    {}\n  ours\n    {}",
                texts(&want),
                texts(&got)
            ));
        }
    }
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
    drop(tokio::task::spawn_blocking(move || drop(cluster)).await);
}
