//! The same requests to a real API server and to ours get the same answers and the same events.
//!
//! What differs by nature is left out of the comparison: uids, times, resource versions, fields that hold nothing, and
//! `managedFields`, of which only managers and operations are compared. Every other difference is in `KNOWN`, with its
//! reason.

mod collections;
mod config_maps;
mod definitions;
mod others;
mod patches;
mod plain;
mod scales;
mod step;
mod updates;
mod watches;
mod widgets;

use std::collections::BTreeSet;
use std::sync::Arc;

use http_body_util::BodyExt as _;
use kube::Client;
use roost_clock::SystemClock;
use roost_kube_sim::{KubeSim, Options};
use roost_oracle::{Cluster, ClusterOptions};
use serde_json::{Value, json};

use self::collections::on_collections;
use self::config_maps::on_config_maps;
use self::others::on_others;
use self::patches::on_patches;
use self::plain::plain;
use self::scales::{REPLICA_SETS, on_replica_sets};
use self::step::{Seen, Step};
use self::updates::on_updates;
use self::widgets::{on_widgets, widget};
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

/// What a server answers: the code and the body.
async fn send(client: &Client, step: &Step, seen: &Seen) -> (u16, Value) {
    let text = if step.body.is_null() { String::new() } else { step.body.to_string() };
    let request = http::Request::builder()
        .method(step.method)
        .uri(seen.fill(&step.path))
        .header("content-type", step.content_type)
        .header("user-agent", "script/1")
        .body(kube::client::Body::from(seen.fill(&text).into_bytes()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    (code, serde_json::from_slice(&bytes).unwrap_or(Value::String(text)))
}

/// What a server answers, without what differs by nature.
async fn ask(client: &Client, step: &Step) -> (u16, Value) {
    let (code, body) = send(client, step, &Seen::default()).await;
    (code, plain(body))
}

/// A server and what it showed last.
struct Server {
    client: Client,
    seen: Seen,
}

impl Server {
    fn new(client: &Client) -> Self {
        Self { client: client.clone(), seen: Seen::default() }
    }

    async fn ask(&mut self, step: &Step) -> (u16, Value) {
        let (code, body) = send(&self.client, step, &self.seen).await;
        if code < 300 {
            self.seen.remember(&body);
        }
        (code, plain(body))
    }
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

/// Requests, and the kind whose events are compared after them.
fn scripts() -> Vec<(&'static str, Vec<Step>)> {
    let labelled = |mut object: Value, labels: Value| {
        object["metadata"]["labels"] = labels;
        object
    };
    let configs = |name: &str, labels| labelled(config(name, &json!({"k": "1"})), labels);
    let widgets = |name: &str, labels| labelled(widget(name, &json!({"size": 1})), labels);
    vec![
        (CONFIGS, on_config_maps()),
        (CONFIGS, on_collections(CONFIGS, configs, &json!({"data": {"k": "2"}}))),
        (WIDGETS, on_widgets()),
        (WIDGETS, on_updates()),
        (WIDGETS, on_patches()),
        (WIDGETS, on_collections(WIDGETS, widgets, &json!({"spec": {"size": 2}}))),
        (REPLICA_SETS, on_replica_sets()),
        (PODS, on_others()),
    ]
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
    let mut known: BTreeSet<_> = KNOWN.iter().map(|(step, _)| *step).collect();
    let mut differences = Vec::new();
    for (path, script) in scripts() {
        let (from_real, from_ours) = (version_of(&real, path).await, version_of(&ours, path).await);
        let (mut at_real, mut at_ours) = (Server::new(&real), Server::new(&ours));
        for step in &script {
            let (want, got) = (at_real.ask(step).await, at_ours.ask(step).await);
            if want != got {
                known.remove(step.name);
            }
            if want != got && !KNOWN.iter().any(|(name, _)| *name == step.name) {
                differences.push(format!(
                    "{} {path}\n  real {} {}\n  ours {} {}",
                    step.name, want.0, want.1, got.0, got.1
                ));
            }
        }
        differences.extend(watches::compare((&real, &from_real), (&ours, &from_ours), path).await);
    }
    differences.extend(known.iter().map(|step| format!("{step} is known to differ and does not")));
    differences.extend(definitions::compare(&real, &ours).await);
    assert!(
        differences.is_empty(),
        "{} differences:\n{}",
        differences.len(),
        differences.join("\n")
    );
    drop(tokio::task::spawn_blocking(move || drop(cluster)).await);
}
