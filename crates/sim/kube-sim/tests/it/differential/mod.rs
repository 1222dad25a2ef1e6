//! The same requests to a real API server and to ours get the same answers and the same events.
//!
//! What differs by nature is left out of the comparison: uids, times, resource versions, fields that hold nothing, and
//! `managedFields`, of which only managers and operations are compared. Every other difference is in `KNOWN`, with its
//! reason.

mod config_maps;
mod definitions;
mod others;
mod plain;
mod step;
mod widgets;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use http_body_util::BodyExt as _;
use kube::Client;
use roost_clock::SystemClock;
use roost_kube_sim::{KubeSim, Options};
use roost_oracle::{Cluster, ClusterOptions};
use serde_json::{Value, json};

use self::config_maps::on_config_maps;
use self::others::on_others;
use self::plain::plain;
use self::step::Step;
use self::widgets::on_widgets;
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

const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

fn config(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"app": "x"}}, "data": data})
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

/// Applies a definition and waits until its objects are served at `path`.
async fn define(client: &Client, definition: &Value, path: &str) {
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let body = definition.to_string().into_bytes();
    let request = http::Request::post(definitions).header("content-type", "application/json");
    let made = client.request::<Value>(request.body(body).unwrap()).await;
    let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
    made.unwrap_or_else(|error| panic!("{name}: {error}"));
    let get = async |path: &str| {
        client.request::<Value>(http::Request::get(path).body(Vec::new()).unwrap()).await
    };
    // A real server needs a moment until it serves a new kind.
    for _ in 0..600 {
        let list = get(path).await;
        let made = get(&format!("{definitions}/{name}")).await.unwrap();
        let is_up = made["status"]["conditions"].as_array().is_some_and(|all| {
            all.iter().any(|one| one["type"] == "Established" && one["status"] == "True")
        });
        if list.is_ok() && is_up {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{name} is not served");
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
    for client in [&real, &ours] {
        define(client, &widget_definition(), WIDGETS).await;
    }
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
    differences.extend(definitions::compare(&real, &ours).await);
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
    drop(tokio::task::spawn_blocking(move || drop(cluster)).await);
}
