//! Who may do what, reviews, admission.

use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use roost_kube_sim::{Action, Grant, KubeSim, Rule, User, WebhookHandler};
use serde_json::{Value, json};

use crate::world::{refusal, sim};

fn config(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_user_may_do_what_roles_say() {
    let sim = sim();
    sim.apply_manifest(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: default}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects: [{kind: ServiceAccount, name: robot}]
",
    )
    .await
    .unwrap();
    let robot = sim.client_as(User::service_account("default", "robot"));
    let api: Api<ConfigMap> = Api::default_namespaced(robot.clone());
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 0);
    let refused = refusal(api.create(&PostParams::default(), &config("a")).await);
    assert_eq!(
        refused.message,
        "configmaps is forbidden: User \"system:serviceaccount:default:robot\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"default\""
    );
    let elsewhere: Api<ConfigMap> = Api::namespaced(robot.clone(), "kube-system");
    assert_eq!(refusal(elsewhere.list(&ListParams::default()).await).code, 403);
    let pods: Api<Pod> = Api::default_namespaced(robot);
    assert_eq!(refusal(pods.list(&ListParams::default()).await).code, 403);

    let request = http::Request::get("/api/v1/namespaces/default/pods")
        .header("impersonate-user", "system:serviceaccount:default:robot")
        .body(Vec::new())
        .unwrap();
    assert_eq!(refusal(sim.client().request::<Value>(request).await).code, 403);
}

#[tokio::test(start_paused = true)]
async fn reviews_answer_from_the_tables() {
    let sim = sim();
    sim.add_token("t0ken", User::named("ada").in_group("devs"));
    sim.add_grant(Grant {
        who: "devs".into(),
        verb: "get".into(),
        group: String::new(),
        what: "/metrics".into(),
    });
    let tokens: Api<TokenReview> = Api::all(sim.client());
    for (token, want) in [("t0ken", Some("ada".to_owned())), ("other", None)] {
        let review =
            serde_json::from_value(json!({"metadata": {}, "spec": {"token": token}})).unwrap();
        let answer = tokens.create(&PostParams::default(), &review).await.unwrap().status.unwrap();
        assert_eq!(
            (answer.authenticated.unwrap_or(false), answer.user.and_then(|user| user.username)),
            (want.is_some(), want)
        );
    }
    let accesses: Api<SubjectAccessReview> = Api::all(sim.client());
    for (path, want) in [("/metrics", true), ("/other", false)] {
        let spec = json!({"user": "ada", "groups": ["devs"], "nonResourceAttributes": {"verb": "get", "path": path}});
        let review = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        assert_eq!(
            accesses.create(&PostParams::default(), &review).await.unwrap().status.unwrap().allowed,
            want
        );
    }
}

async fn with_hooks(sim: &KubeSim) {
    sim.apply_manifest(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: labels}
webhooks:
- name: labels.example.com
  clientConfig: {service: {namespace: default, name: hooks, path: /label}}
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: checks}
webhooks:
- name: checks.example.com
  clientConfig: {service: {namespace: default, name: hooks, path: /check}}
  rules: [{apiGroups: [''], apiVersions: [v1], resources: [configmaps], operations: [CREATE, DELETE]}]
  sideEffects: None
  admissionReviewVersions: [v1]
",
    )
    .await
    .unwrap();
    let label = WebhookHandler::new(|review: Value| async move {
        use base64::Engine as _;
        let patch =
            json!([{"op": "add", "path": "/metadata/labels", "value": {"by": "hook"}}]).to_string();
        let patch = base64::engine::general_purpose::STANDARD.encode(patch);
        json!({"response": {"uid": review["request"]["uid"], "allowed": true, "patchType": "JSONPatch", "patch": patch}})
    });
    let check = WebhookHandler::new(|review: Value| async move {
        let request = &review["request"];
        let is_bad = request["name"].as_str().is_some_and(|name| name.starts_with("bad"));
        let is_kept = request["operation"] == "DELETE"
            && request["oldObject"]["metadata"]["labels"]["by"] == "hook";
        json!({"response": {"uid": request["uid"], "allowed": !is_bad && !is_kept, "status": {"message": "no"}}})
    });
    sim.serve_webhook("default/hooks/label", label);
    sim.serve_webhook("default/hooks/check", check);
}

#[tokio::test(start_paused = true)]
async fn webhooks_change_and_refuse() {
    let sim = sim();
    with_hooks(&sim).await;
    let api: Api<ConfigMap> = Api::default_namespaced(sim.client());
    let made = api.create(&PostParams::default(), &config("good")).await.unwrap();
    assert_eq!(made.metadata.labels.unwrap()["by"], "hook");
    let refused = refusal(api.create(&PostParams::default(), &config("bad")).await);
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (403, "admission webhook \"checks.example.com\" denied the request: no")
    );
    assert_eq!(refusal(api.delete("good", &DeleteParams::default()).await).code, 403);
    sim.add_rule(Rule { action: Action::WebhookDown, ..Rule::default() });
    let refused = refusal(api.create(&PostParams::default(), &config("more")).await);
    assert_eq!(refused.code, 500);
    assert!(
        refused.message.contains("failed calling webhook \"labels.example.com\""),
        "{}",
        refused.message
    );
}
