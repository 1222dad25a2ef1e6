//! A server on simulated time, and objects in few words.

use std::sync::Arc;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::core::Status;
use roost_clock::SimClock;
use roost_kube_sim::{KubeSim, Options};
use serde_json::{Value, json};

pub(crate) fn sim() -> KubeSim {
    KubeSim::start(Options::default(), Arc::new(SimClock::new()))
}

/// The status that a refused request got.
pub(crate) fn refusal<T: std::fmt::Debug>(outcome: Result<T, kube::Error>) -> Status {
    match outcome {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

/// A definition with defaults, validation, rules, status and scale.
pub(crate) fn widget_definition() -> Value {
    serde_json::from_str(include_str!("widget.json")).unwrap()
}

pub(crate) fn widget_resource() -> ApiResource {
    ApiResource::from_gvk_with_plural(
        &GroupVersionKind::gvk("example.com", "v1", "Widget"),
        "widgets",
    )
}

/// Applies the definition and returns its objects in the namespace `default`.
pub(crate) async fn widgets(sim: &KubeSim) -> Api<DynamicObject> {
    let definitions = definitions(sim);
    definitions
        .create(&kube::api::PostParams::default(), &dynamic(&widget_definition()))
        .await
        .unwrap();
    Api::namespaced_with(sim.client(), "default", &widget_resource())
}

pub(crate) fn definitions(sim: &KubeSim) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    Api::all_with(sim.client(), &ApiResource::from_gvk(&gvk))
}

pub(crate) fn widget(name: &str, spec: &Value) -> DynamicObject {
    dynamic(
        &json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}),
    )
}

pub(crate) fn dynamic(value: &Value) -> DynamicObject {
    serde_json::from_value(value.clone()).unwrap()
}
