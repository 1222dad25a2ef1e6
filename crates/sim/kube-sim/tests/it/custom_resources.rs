//! Kinds that are applied at run time.

use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::{definitions, dynamic, refusal, sim, widget, widget_definition, widgets};

#[tokio::test(start_paused = true)]
async fn a_definition_is_served_with_defaults_pruning_and_validation() {
    let sim = sim();
    let api = widgets(&sim).await;
    let made = definitions(&sim).get("widgets.example.com").await.unwrap();
    assert_eq!(made.data["status"]["conditions"][1]["type"], "Established");

    let made = api
        .create(&PostParams::default(), &widget("a", &json!({"size": 3, "colour": "red"})))
        .await
        .unwrap();
    assert_eq!(
        made.data["spec"],
        json!({"size": 3, "mode": "fast", "replicas": 1, "limits": {"cpu": 2}})
    );
    assert_eq!(made.metadata.generation, Some(1));
    for (spec, want) in [
        (json!({}), "spec.size: Required value"),
        (
            json!({"size": 11}),
            "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
        ),
        (
            json!({"size": 1, "mode": "odd"}),
            "spec.mode: Unsupported value: \"odd\": supported values: \"fast\", \"slow\"",
        ),
    ] {
        let refused = refusal(api.create(&PostParams::default(), &widget("b", &spec)).await);
        assert!(refused.message.contains(want), "{}", refused.message);
    }
    let refused = refusal(
        api.create(&PostParams::default(), &widget("b", &json!({"size": 6, "mode": "slow"}))).await,
    );
    assert!(refused.message.ends_with("slow widgets are small"), "{}", refused.message);
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn rules_see_the_old_object() {
    let sim = sim();
    let api = widgets(&sim).await;
    api.create(&PostParams::default(), &widget("a", &json!({"size": 1, "disk": "d1"})))
        .await
        .unwrap();
    let patch = |spec: Value| Patch::Merge(json!({"spec": spec}));
    api.patch("a", &PatchParams::default(), &patch(json!({"size": 2}))).await.unwrap();
    let refused =
        refusal(api.patch("a", &PatchParams::default(), &patch(json!({"disk": "d2"}))).await);
    assert_eq!(
        refused.message,
        "Widget.example.com \"a\" is invalid: spec.disk: Invalid value: \"d2\": disk is immutable"
    );
}

#[tokio::test(start_paused = true)]
async fn status_and_spec_are_written_apart_and_only_the_spec_counts_generations() {
    let sim = sim();
    let api = widgets(&sim).await;
    let params = PatchParams::default();
    api.create(&PostParams::default(), &widget("a", &json!({"size": 1}))).await.unwrap();
    let both = json!({"spec": {"size": 2}, "status": {"phase": "Up"}});
    let seen = api.patch("a", &params, &Patch::Merge(&both)).await.unwrap();
    assert_eq!((seen.metadata.generation, seen.data.get("status")), (Some(2), None));
    let both =
        json!({"spec": {"size": 3}, "status": {"phase": "Up"}, "metadata": {"labels": {"a": "b"}}});
    let seen = api.patch_status("a", &params, &Patch::Merge(&both)).await.unwrap();
    assert_eq!(
        (seen.metadata.generation, &seen.data["spec"]["size"], &seen.data["status"]["phase"]),
        (Some(2), &json!(2), &json!("Up"))
    );
    assert_eq!(seen.metadata.labels, None);
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    let seen = api.patch("a", &params, &Patch::Merge(&labels)).await.unwrap();
    assert_eq!(seen.metadata.generation, Some(2));

    let scale = api.get_scale("a").await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(1));
    api.patch_scale("a", &params, &Patch::Merge(json!({"spec": {"replicas": 4}}))).await.unwrap();
    let seen = api.get("a").await.unwrap();
    assert_eq!((seen.metadata.generation, &seen.data["spec"]["replicas"]), (Some(3), &json!(4)));
}

#[tokio::test(start_paused = true)]
async fn a_definition_with_a_rule_that_cannot_be_read_is_refused() {
    let sim = sim();
    let mut definition = widget_definition();
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] =
        json!([{"rule": "quantity(self.x) > 1"}]);
    let refused =
        refusal(definitions(&sim).create(&PostParams::default(), &dynamic(&definition)).await);
    assert!(refused.message.contains("undeclared reference to 'quantity'"), "{}", refused.message);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_field_is_refused_when_the_client_is_strict() {
    let sim = sim();
    let api = widgets(&sim).await;
    let params = PostParams { ..PostParams::default() };
    api.create(&params, &widget("a", &json!({"size": 1, "colour": 1}))).await.unwrap();
    let strict = PatchParams {
        field_validation: Some(kube::api::ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let refused =
        refusal(api.patch("a", &strict, &Patch::Merge(json!({"spec": {"colour": 1}}))).await);
    assert!(refused.message.contains("unknown field \"spec.colour\""), "{}", refused.message);
}
