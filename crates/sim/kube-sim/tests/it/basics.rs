//! The verbs on built-in kinds.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use serde_json::json;

use crate::world::{refusal, sim};

fn config(name: &str, value: &str) -> ConfigMap {
    serde_json::from_value(
        json!({"metadata": {"name": name, "labels": {"app": value}}, "data": {"key": value}}),
    )
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_object_lives_through_create_update_patch_and_delete() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let made = api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    assert_eq!(made.metadata.namespace.as_deref(), Some("default"));
    assert!(made.metadata.uid.is_some() && made.metadata.creation_timestamp.is_some());
    let again = refusal(api.create(&PostParams::default(), &config("a", "1")).await);
    assert_eq!(
        (again.code, again.reason.as_str(), again.message.as_str()),
        (409, "AlreadyExists", "configmaps \"a\" already exists")
    );

    let mut changed = made.clone();
    changed.data.as_mut().unwrap().insert("key".into(), "2".into());
    let updated = api.replace("a", &PostParams::default(), &changed).await.unwrap();
    assert_ne!(updated.metadata.resource_version, made.metadata.resource_version);
    let stale = refusal(api.replace("a", &PostParams::default(), &changed).await);
    assert_eq!((stale.code, stale.reason.as_str()), (409, "Conflict"));

    let patch = json!({"data": {"key": null, "other": "3"}});
    let patched = api.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(
        patched.data.unwrap().into_iter().collect::<Vec<_>>(),
        [("other".to_owned(), "3".to_owned())]
    );
    let same = api.patch("a", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert_eq!(
        same.metadata.resource_version, patched.metadata.resource_version,
        "nothing changed, nothing is written"
    );

    let wrong = DeleteParams {
        preconditions: Some(Preconditions { uid: Some("other".into()), resource_version: None }),
        ..DeleteParams::default()
    };
    assert_eq!(refusal(api.delete("a", &wrong).await).code, 409);
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(refusal(api.get("a").await).message, "configmaps \"a\" not found");
}

#[tokio::test(start_paused = true)]
async fn lists_select_and_go_page_by_page() {
    let sim = sim();
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    for index in 0..25 {
        let mut one = config(&format!("c{index:02}"), if index % 2 == 0 { "even" } else { "odd" });
        one.metadata.annotations = None;
        api.create(&PostParams::default(), &one).await.unwrap();
    }
    let even = api.list(&ListParams::default().labels("app=even")).await.unwrap();
    assert_eq!(even.items.len(), 13);
    let one = api.list(&ListParams::default().fields("metadata.name=c07")).await.unwrap();
    assert_eq!(one.items.len(), 1);

    let first = api.list(&ListParams::default().limit(10)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(15));
    // What comes and goes between pages does not show: the list is of one moment.
    api.create(&PostParams::default(), &config("c99", "late")).await.unwrap();
    api.delete("c15", &DeleteParams::default()).await.unwrap();
    let mut names: Vec<_> = first.items.into_iter().filter_map(|one| one.metadata.name).collect();
    let mut token = first.metadata.continue_;
    while let Some(next) = token.filter(|token| !token.is_empty()) {
        let page = api.list(&ListParams::default().limit(10).continue_token(&next)).await.unwrap();
        assert_eq!(page.metadata.resource_version, first.metadata.resource_version);
        names.extend(page.items.into_iter().filter_map(|one| one.metadata.name));
        token = page.metadata.continue_;
    }
    assert_eq!(names, (0..25).map(|index| format!("c{index:02}")).collect::<Vec<_>>());

    let first = api.list(&ListParams::default().limit(10)).await.unwrap();
    api.delete("c16", &DeleteParams::default()).await.unwrap();
    sim.compact();
    let token = first.metadata.continue_.unwrap();
    let late = refusal(api.list(&ListParams::default().limit(10).continue_token(&token)).await);
    assert_eq!((late.code, late.reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn names_namespaces_and_secrets_follow_the_rules() {
    let sim = sim();
    let secrets: Api<Secret> = Api::default_namespaced(sim.client());
    let secret = json!({"metadata": {"generateName": "s-"}, "stringData": {"a": "b"}});
    let made = secrets
        .create(&PostParams::default(), &serde_json::from_value(secret).unwrap())
        .await
        .unwrap();
    assert!(made.metadata.name.unwrap().starts_with("s-"));
    assert_eq!(made.data.unwrap()["a"].0, b"b");
    assert_eq!(made.type_.as_deref(), Some("Opaque"));

    let missing: Api<ConfigMap> = Api::namespaced(sim.client(), "missing");
    let refused = refusal(missing.create(&PostParams::default(), &config("a", "1")).await);
    assert_eq!((refused.code, refused.message.as_str()), (404, "namespaces \"missing\" not found"));
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let refused = refusal(api.create(&PostParams::default(), &config("Upper", "1")).await);
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    let namespaces: Api<Namespace> = Api::all(sim.client());
    assert_eq!(namespaces.list(&ListParams::default()).await.unwrap().items.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_pod_gets_defaults_and_a_status_of_its_own() {
    let sim = sim();
    let pods: Api<Pod> = Api::default_namespaced(sim.client());
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}, "status": {"phase": "Running"}});
    let made =
        pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    assert_eq!(
        made.status.unwrap().phase.as_deref(),
        Some("Pending"),
        "only the server and the kubelet write it"
    );
    assert_eq!(made.spec.unwrap().restart_policy.as_deref(), Some("Always"));
    let patch = json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    pods.patch_status("p", &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
    let patch = json!({"status": {"conditions": [{"type": "Other", "status": "True"}]}});
    let pod =
        pods.patch_status("p", &PatchParams::default(), &Patch::Strategic(&patch)).await.unwrap();
    let status = pod.status.unwrap();
    assert_eq!((status.phase.as_deref(), status.conditions.unwrap().len()), (Some("Running"), 2));
    let pod = pods
        .patch("p", &PatchParams::default(), &Patch::Merge(json!({"status": {"phase": "Failed"}})))
        .await
        .unwrap();
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Running"));
    let empty = json!({"metadata": {"name": "q"}, "spec": {}});
    let refused = sim
        .client()
        .request::<Pod>(
            http::Request::post("/api/v1/namespaces/default/pods")
                .body(empty.to_string().into_bytes())
                .unwrap(),
        )
        .await;
    assert_eq!(refusal(refused).message, "Pod \"q\" is invalid: spec.containers: Required value");
}
