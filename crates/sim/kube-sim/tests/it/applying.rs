//! Server-side apply: owners of fields, conflicts, what is let go.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::{refusal, sim, widgets};

fn config(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

#[tokio::test(start_paused = true)]
async fn a_field_of_another_is_a_conflict_unless_forced() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let one = PatchParams::apply("one");
    let made =
        api.patch("a", &one, &Patch::Apply(config(&json!({"x": "1", "y": "1"})))).await.unwrap();
    let again =
        api.patch("a", &one, &Patch::Apply(config(&json!({"x": "1", "y": "1"})))).await.unwrap();
    assert_eq!(made.metadata.resource_version, again.metadata.resource_version, "nothing changed");

    let two = PatchParams::apply("two");
    let refused = refusal(api.patch("a", &two, &Patch::Apply(config(&json!({"x": "2"})))).await);
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (409, "Apply failed with 1 conflict: conflict with \"one\": .data.x")
    );
    // The same value is shared, not a conflict.
    api.patch("a", &two, &Patch::Apply(config(&json!({"x": "1"})))).await.unwrap();
    let forced = api
        .patch("a", &two.clone().force(), &Patch::Apply(config(&json!({"x": "2"}))))
        .await
        .unwrap();
    assert_eq!(forced.data.unwrap()["x"], "2");
    // One lets go of what it still owns; what two took stays.
    let left = api.patch("a", &one, &Patch::Apply(config(&json!({})))).await.unwrap();
    assert_eq!(json!(left.data), json!({"x": "2"}));
}

#[tokio::test(start_paused = true)]
async fn an_update_takes_ownership_of_what_it_changes() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    api.patch("a", &PatchParams::apply("one"), &Patch::Apply(config(&json!({"x": "1", "y": "1"}))))
        .await
        .unwrap();
    let edit = PatchParams { field_manager: Some("editor".into()), ..PatchParams::default() };
    let seen = api.patch("a", &edit, &Patch::Merge(json!({"data": {"x": "3"}}))).await.unwrap();
    let managers: Vec<_> = seen
        .metadata
        .managed_fields
        .unwrap()
        .into_iter()
        .filter_map(|entry| entry.manager)
        .collect();
    assert_eq!(managers, ["one", "editor"]);
    let refused = refusal(
        api.patch(
            "a",
            &PatchParams::apply("one"),
            &Patch::Apply(config(&json!({"x": "1", "y": "1"}))),
        )
        .await,
    );
    assert!(refused.message.contains("conflict with \"editor\" using v1"), "{}", refused.message);
}

#[tokio::test(start_paused = true)]
async fn lists_with_keys_have_many_owners_and_status_is_applied_apart() {
    let sim = sim();
    let api = widgets(&sim).await;
    let widget = |spec: Value, status: Value| {
        Patch::Apply(
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": spec, "status": status}),
        )
    };
    let one = PatchParams::apply("one");
    let two = PatchParams::apply("two");
    api.patch(
        "w",
        &one,
        &widget(json!({"size": 1, "ports": [{"name": "a", "port": 1}]}), Value::Null),
    )
    .await
    .unwrap();
    let seen = api
        .patch(
            "w",
            &two,
            &widget(json!({"size": 1, "ports": [{"name": "b", "port": 2}]}), Value::Null),
        )
        .await
        .unwrap();
    assert_eq!(
        seen.data["spec"]["ports"],
        json!([{"name": "a", "port": 1}, {"name": "b", "port": 2}])
    );
    let seen = api.patch("w", &one, &widget(json!({"size": 1}), Value::Null)).await.unwrap();
    assert_eq!(seen.data["spec"]["ports"], json!([{"name": "b", "port": 2}]));
    let seen =
        api.patch_status("w", &one, &widget(Value::Null, json!({"phase": "Up"}))).await.unwrap();
    assert_eq!(
        (&seen.data["status"]["phase"], &seen.data["spec"]["size"]),
        (&json!("Up"), &json!(1))
    );
    let seen = api
        .patch_status(
            "w",
            &two,
            &widget(Value::Null, json!({"conditions": [{"type": "Ready", "status": "True"}]})),
        )
        .await
        .unwrap();
    assert_eq!(seen.data["status"]["phase"], "Up");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let object: ConfigMap = serde_json::from_value(config(&json!({"x": "1"}))).unwrap();
    let shown = api.create(&dry, &object).await.unwrap();
    assert!(shown.metadata.uid.is_some());
    assert_eq!(sim.count("", "configmaps"), 0);
}
