//! Finalizers, owners, namespaces, grace.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use roost_kube_sim::KubeSim;
use serde_json::{Value, json};

use crate::world::{definitions, refusal, sim, widget, widgets};

async fn create(sim: &KubeSim, namespace: &str, metadata: Value) -> ConfigMap {
    let api: Api<ConfigMap> = Api::namespaced(sim.client(), namespace);
    api.create(
        &PostParams::default(),
        &serde_json::from_value(json!({"metadata": metadata})).unwrap(),
    )
    .await
    .unwrap()
}

fn owned_by(owner: &ConfigMap, name: &str) -> Value {
    let (owner, uid) = (owner.metadata.name.clone(), owner.metadata.uid.clone());
    json!({"name": name, "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid, "blockOwnerDeletion": true}
    ]})
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    create(&sim, "default", json!({"name": "held", "finalizers": ["example.com/hold"]})).await;
    let answer = api.delete("held", &DeleteParams::default()).await.unwrap();
    let marked = answer.left().unwrap();
    assert!(marked.metadata.deletion_timestamp.is_some());
    let added = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let refused = refusal(api.patch("held", &PatchParams::default(), &Patch::Merge(added)).await);
    assert_eq!(refused.code, 422);
    let freed = json!({"metadata": {"finalizers": null}});
    api.patch("held", &PatchParams::default(), &Patch::Merge(freed)).await.unwrap();
    assert_eq!(refusal(api.get("held").await).code, 404);
}

#[tokio::test(start_paused = true)]
async fn what_is_owned_follows_its_owner() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let left = |sim: &KubeSim| sim.count("", "configmaps");
    let owner = create(&sim, "default", json!({"name": "owner"})).await;
    let child = create(&sim, "default", owned_by(&owner, "child")).await;
    create(&sim, "default", owned_by(&child, "grandchild")).await;
    api.delete("owner", &DeleteParams::default()).await.unwrap();
    assert_eq!(left(&sim), 0);

    let owner = create(&sim, "default", json!({"name": "owner"})).await;
    create(&sim, "default", owned_by(&owner, "child")).await;
    api.delete("owner", &DeleteParams::orphan()).await.unwrap();
    let orphan = api.get("child").await.unwrap();
    assert_eq!(orphan.metadata.owner_references, None);
    api.delete("child", &DeleteParams::default()).await.unwrap();

    let owner = create(&sim, "default", json!({"name": "owner"})).await;
    let mut held = owned_by(&owner, "child");
    held["finalizers"] = json!(["example.com/hold"]);
    create(&sim, "default", held).await;
    api.delete("owner", &DeleteParams::foreground()).await.unwrap();
    assert!(
        api.get("owner").await.unwrap().metadata.deletion_timestamp.is_some(),
        "it waits for what it owns"
    );
    let freed = json!({"metadata": {"finalizers": null}});
    api.patch("child", &PatchParams::default(), &Patch::Merge(freed)).await.unwrap();
    assert_eq!(left(&sim), 0);

    create(&sim, "default", owned_by(&owner, "late")).await;
    assert_eq!(left(&sim), 0, "an owner that is gone owns nothing");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_takes_its_objects_along_and_waits_for_them() {
    let sim = sim();
    let namespaces: Api<Namespace> = Api::all(sim.client());
    namespaces
        .create(
            &PostParams::default(),
            &serde_json::from_value(json!({"metadata": {"name": "n"}})).unwrap(),
        )
        .await
        .unwrap();
    create(&sim, "n", json!({"name": "free"})).await;
    create(&sim, "n", json!({"name": "held", "finalizers": ["example.com/hold"]})).await;
    namespaces.delete("n", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        namespaces.get("n").await.unwrap().status.unwrap().phase.as_deref(),
        Some("Terminating")
    );
    let api: Api<ConfigMap> = Api::namespaced(sim.client(), "n");
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let late = serde_json::from_value(json!({"metadata": {"name": "late"}})).unwrap();
    assert_eq!(refusal(api.create(&PostParams::default(), &late).await).code, 403);
    api.patch(
        "held",
        &PatchParams::default(),
        &Patch::Merge(json!({"metadata": {"finalizers": null}})),
    )
    .await
    .unwrap();
    assert_eq!(refusal(namespaces.get("n").await).code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_bound_pod_ends_when_its_kubelet_says_so() {
    let sim = sim();
    let pods: Api<Pod> = Api::default_namespaced(sim.client());
    for (name, node) in [("free", Value::Null), ("bound", json!("node-1"))] {
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        pods.delete(name, &DeleteParams::default()).await.unwrap();
    }
    assert_eq!(refusal(pods.get("free").await).code, 404);
    assert_eq!(pods.get("bound").await.unwrap().metadata.deletion_grace_period_seconds, Some(30));
    pods.delete("bound", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(refusal(pods.get("bound").await).code, 404);
}

#[tokio::test(start_paused = true)]
async fn a_definition_takes_its_objects_along() {
    let sim = sim();
    let api = widgets(&sim).await;
    api.create(&PostParams::default(), &widget("a", &json!({"size": 1}))).await.unwrap();
    definitions(&sim).delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(api.list(&ListParams::default()).await).code, 404);
    assert_eq!(sim.count("apiextensions.k8s.io", "customresourcedefinitions"), 0);
}
