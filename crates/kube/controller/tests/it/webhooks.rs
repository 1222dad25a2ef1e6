//! A door's webhooks as an API server asks them, over HTTPS with a certificate that makes itself: the real server and the embedded
//! one must be served alike.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use roost_clock::SystemClock;
use roost_controller::crd::install_crds;
use roost_controller::serve::serve;
use roost_controller::webhook::{Denial, Review, SelfMade, Verdict, Webhooks};
use roost_kube_sim::{KubeSim, Options};
use roost_oracle::{Cluster, ClusterOptions};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// `v1` says `spec.size`, `v2`, which is stored, says `spec.width`.
fn definition(port: u16) -> CustomResourceDefinition {
    let version = |name: &str, field: &str| {
        let properties = json!({field: {"type": "integer"}, "owner": {"type": "string"}});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
        json!({"name": name, "served": true, "storage": name == "v2", "schema": {"openAPIV3Schema": schema}})
    };
    serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Box", "plural": "boxes"},
            "versions": [version("v1", "size"), version("v2", "width")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"url": format!("https://127.0.0.1:{port}/convert")},
            }},
        },
    }))
    .unwrap()
}

fn configuration(kind: &str, port: u16) -> Value {
    let path = if kind.starts_with('M') { "mutate" } else { "validate" };
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "boxes"},
        "webhooks": [{
            "name": "boxes.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": format!("https://127.0.0.1:{port}/{path}")},
            "rules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["boxes"], "scope": "*"}],
        }],
    })
}

/// A webhook's view of a box.
type Seen = DynamicObject;

fn size(object: &Seen) -> i64 {
    object.data["spec"]["size"].as_i64().unwrap_or_default()
}

fn hooks() -> Webhooks {
    Webhooks::default()
        .mutate("/mutate", async |mut review: Review<Seen>| {
            let mut object = review.object.take().unwrap_or_else(|| panic!("no object"));
            object.data["spec"]["owner"] = json!(review.key.name());
            Ok((object, Verdict::allow()))
        })
        .validate("/validate", async |review: Review<Seen>| {
            let is_large = review.object.as_ref().is_some_and(|object| size(object) > 10);
            let reason = is_large.then(|| "spec.size: at most 10".to_owned());
            Denial::unless_empty(reason.into_iter().collect())
        })
        .convert("/convert", |mut object, to| {
            let (from, into) =
                if to.ends_with("/v2") { ("size", "width") } else { ("width", "size") };
            if object["spec"][from] == 13 {
                return Err("13 cannot be converted".to_owned());
            }
            object["spec"][into] = object["spec"][from].take();
            object["spec"].as_object_mut().unwrap().remove(from);
            object["apiVersion"] = json!(to);
            Ok(object)
        })
}

fn api(client: &Client, version: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("example.com", version, "Box");
    Api::namespaced_with(
        client.clone(),
        "default",
        &ApiResource::from_gvk_with_plural(&gvk, "boxes"),
    )
}

fn a_box(name: &str, version: &str, spec: &Value) -> DynamicObject {
    let object = json!({"apiVersion": format!("example.com/{version}"), "kind": "Box", "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(object).unwrap()
}

fn said(outcome: Result<DynamicObject, kube::Error>) -> Value {
    match outcome {
        Ok(object) => object.data["spec"].clone(),
        Err(kube::Error::Api(status)) => json!([status.code, status.message]),
        Err(error) => panic!("{error}"),
    }
}

/// What a server answers to the same requests, with webhooks that it reaches over HTTPS.
async fn answers(client: Client) -> Vec<Value> {
    let certificate =
        SelfMade::new(client.clone(), "default", "boxes", "boxes-webhook", Arc::new(SystemClock))
            .for_configuration("boxes")
            .for_crd("boxes.example.com");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(serve(listener, certificate.tls(), hooks().router(), std::future::pending()));
    install_crds(&client, &[definition(port)], "boxes").await.unwrap();
    let params = PostParams::default();
    let hook = serde_json::from_value(configuration("MutatingWebhookConfiguration", port)).unwrap();
    Api::<MutatingWebhookConfiguration>::all(client.clone()).create(&params, &hook).await.unwrap();
    let hook =
        serde_json::from_value(configuration("ValidatingWebhookConfiguration", port)).unwrap();
    let validating = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    validating.create(&params, &hook).await.unwrap();
    certificate.refresh().await.unwrap();

    // A real server takes a moment until it asks, and until it believes the certificate.
    let probe = async || {
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let made =
            api(&client, "v1").create(&dry, &a_box("probe", "v1", &json!({"size": 1}))).await;
        made.is_ok_and(|made| made.data["spec"]["owner"].is_string())
    };
    while !probe().await {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let (v1, v2) = (api(&client, "v1"), api(&client, "v2"));
    let patch = async |api: &Api<DynamicObject>, spec: Value| {
        said(api.patch("a", &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await)
    };
    let listed = async |api: &Api<DynamicObject>| {
        let list = api.list(&ListParams::default()).await.unwrap();
        json!(
            list.items
                .iter()
                .map(|one| json!([one.name_any(), one.data["spec"]]))
                .collect::<Vec<_>>()
        )
    };
    vec![
        said(v1.create(&params, &a_box("a", "v1", &json!({"size": 3}))).await),
        said(v1.create(&params, &a_box("large", "v1", &json!({"size": 11}))).await),
        said(v2.get("a").await),
        patch(&v2, json!({"width": 5})).await,
        said(v1.get("a").await),
        patch(&v1, json!({"size": 6})).await,
        patch(&v2, json!({"width": 12})).await,
        said(v2.create(&params, &a_box("b", "v2", &json!({"width": 2}))).await),
        listed(&v1).await,
        listed(&v2).await,
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_servers_ask_webhooks_over_https_and_convert_versions() {
    let sim = KubeSim::start(Options::default(), Arc::new(SystemClock));
    let ours = answers(sim.client()).await;
    assert_eq!(ours[2]["width"], 3);
    assert_eq!(ours[4]["size"], 5);
    assert!(ours[1].to_string().contains("spec.size: at most 10"), "{}", ours[1]);
    let started = tokio::task::spawn_blocking(|| Cluster::start(&ClusterOptions::default())).await;
    let Some(cluster) = started.unwrap() else { return };
    let real = answers(cluster.client().await).await;
    for (number, (real, ours)) in real.iter().zip(&ours).enumerate() {
        assert_eq!(real, ours, "answer {number}");
    }
}
