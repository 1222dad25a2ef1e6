//! Versions that a webhook converts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::TryStreamExt as _;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
    WatchEvent, WatchParams,
};
use kube::core::GroupVersionKind;
use roost_kube_sim::{KubeSim, WebhookHandler};
use serde_json::{Value, json};

use crate::world::{definitions, dynamic, refusal, sim};

/// `v1` says `spec.size`, `v2`, which is stored, says `spec.dimensions.width`.
fn definition() -> Value {
    let version = |name: &str, spec: Value| {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}});
        json!({"name": name, "served": true, "storage": name == "v2", "schema": {"openAPIV3Schema": schema}})
    };
    let width = json!({"type": "object", "properties": {"width": {"type": "integer"}, "unit": {"type": "string", "default": "cm"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Box", "plural": "boxes"},
            "versions": [
                version("v1", json!({"size": {"type": "integer", "minimum": 1}})),
                version("v2", json!({"dimensions": width})),
            ],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {"service": {"namespace": "system", "name": "boxes", "path": "/convert"}},
            }},
        },
    })
}

fn converted(mut object: Value, to: &str) -> Value {
    let spec = match to {
        "example.com/v1" => json!({"size": object["spec"]["dimensions"]["width"]}),
        _ => json!({"dimensions": {"width": object["spec"]["size"]}}),
    };
    object["spec"] = spec;
    object["apiVersion"] = json!(to);
    // Only labels and annotations are a conversion's to change.
    object["metadata"]["labels"]["converted-to"] = json!(to.rsplit('/').next());
    object["metadata"]["finalizers"] = json!(["not/yours"]);
    object
}

struct Boxes {
    sim: KubeSim,
    is_down: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
}

impl Boxes {
    async fn new() -> Self {
        let sim = sim();
        let (is_down, calls) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (down, count) = (Arc::clone(&is_down), Arc::clone(&calls));
        let handler = WebhookHandler::new(move |review: Value| {
            count.fetch_add(1, Ordering::Relaxed);
            let request = &review["request"];
            let to = request["desiredAPIVersion"].as_str().unwrap();
            let objects = request["objects"].as_array().unwrap().iter();
            let objects: Vec<_> = objects.map(|object| converted(object.clone(), to)).collect();
            let result = if down.load(Ordering::Relaxed) {
                json!({"status": "Failure", "message": "out of order"})
            } else {
                json!({"status": "Success"})
            };
            let response =
                json!({"uid": request["uid"], "convertedObjects": objects, "result": result});
            async move { json!({"response": response}) }
        });
        sim.serve_webhook("system/boxes/convert", handler);
        definitions(&sim).create(&PostParams::default(), &dynamic(&definition())).await.unwrap();
        Self { sim, is_down, calls }
    }

    fn api(&self, version: &str) -> Api<DynamicObject> {
        let gvk = GroupVersionKind::gvk("example.com", version, "Box");
        let resource = ApiResource::from_gvk_with_plural(&gvk, "boxes");
        Api::namespaced_with(self.sim.client(), "default", &resource)
    }

    async fn create(&self, name: &str, size: i64) -> DynamicObject {
        let object = json!({"apiVersion": "example.com/v1", "kind": "Box", "metadata": {"name": name}, "spec": {"size": size}});
        self.api("v1").create(&PostParams::default(), &dynamic(&object)).await.unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn each_version_shows_what_the_webhook_makes_of_the_stored_one() {
    let boxes = Boxes::new().await;
    let made = boxes.create("a", 3).await;
    assert_eq!(
        made.data["spec"],
        json!({"size": 3}),
        "as it will be read, in the version of the request"
    );
    assert!(made.metadata.finalizers.is_none(), "a conversion changes no finalizers");
    let stored = boxes.sim.object("example.com", "boxes", "default", "a").unwrap();
    assert_eq!(stored["apiVersion"], "example.com/v2");
    assert_eq!(
        stored["spec"],
        json!({"dimensions": {"width": 3, "unit": "cm"}}),
        "with defaults of its version"
    );

    let patch = Patch::Merge(json!({"spec": {"dimensions": {"width": 5}}}));
    boxes.api("v2").patch("a", &PatchParams::default(), &patch).await.unwrap();
    let read = boxes.api("v1").get("a").await.unwrap();
    assert_eq!(read.data["spec"], json!({"size": 5}));
    assert_eq!(read.metadata.labels.unwrap()["converted-to"], "v1");
    let patch = Patch::Merge(json!({"spec": {"size": 0}}));
    let refused = refusal(boxes.api("v1").patch("a", &PatchParams::default(), &patch).await);
    assert!(
        refused.message.contains("spec.size"),
        "checked in the version of the request: {refused:?}"
    );

    boxes.create("b", 7).await;
    let sizes = |list: Vec<DynamicObject>| -> Vec<_> {
        list.iter().map(|one| one.data["spec"]["size"].clone()).collect()
    };
    let list = boxes.api("v1").list(&ListParams::default()).await.unwrap();
    assert_eq!(sizes(list.items), [5, 7]);
    let calls = boxes.calls.load(Ordering::Relaxed);
    boxes.api("v1").list(&ListParams::default()).await.unwrap();
    assert_eq!(boxes.calls.load(Ordering::Relaxed), calls, "a state is converted once");
    boxes.api("v1").delete("b", &DeleteParams::default()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watch_shows_its_version_of_what_others_write_in_another() {
    let boxes = Boxes::new().await;
    boxes.create("a", 1).await;
    let watch = boxes.api("v1").watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = Box::pin(watch);
    let mut next = async || match watch.try_next().await.unwrap() {
        Some(WatchEvent::Added(object)) => json!(["ADDED", object.data["spec"]]),
        Some(WatchEvent::Modified(object)) => json!(["MODIFIED", object.data["spec"]]),
        Some(WatchEvent::Deleted(object)) => json!(["DELETED", object.data["spec"]]),
        Some(WatchEvent::Error(status)) => json!(["ERROR", status.code]),
        other => panic!("{other:?}"),
    };
    assert_eq!(next().await, json!(["ADDED", {"size": 1}]));
    let width = |width: i64| Patch::Merge(json!({"spec": {"dimensions": {"width": width}}}));
    boxes.api("v2").patch("a", &PatchParams::default(), &width(2)).await.unwrap();
    assert_eq!(next().await, json!(["MODIFIED", {"size": 2}]));
    boxes.api("v2").delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(next().await, json!(["DELETED", {"size": 2}]));
}

#[tokio::test(start_paused = true)]
async fn without_the_webhook_only_the_stored_version_can_be_used() {
    let boxes = Boxes::new().await;
    boxes.create("a", 1).await;
    boxes.is_down.store(true, Ordering::Relaxed);
    let width = Patch::Merge(json!({"spec": {"dimensions": {"width": 2}}}));
    boxes.api("v2").patch("a", &PatchParams::default(), &width).await.unwrap();
    let refused = refusal(boxes.api("v1").get("a").await);
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (500, "conversion webhook for example.com/v2, Kind=Box failed: out of order")
    );
    boxes.is_down.store(false, Ordering::Relaxed);
    assert_eq!(boxes.api("v1").get("a").await.unwrap().data["spec"], json!({"size": 2}));
}
