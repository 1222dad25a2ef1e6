use roost_clock::SimClock;
use serde_json::{Value, json};

use super::*;
use crate::api::names::annotation;

/// Through the door that the API server uses.
#[tokio::test]
async fn the_webhooks_answer_reviews() {
    let hooks = webhooks(
        AdmissionSettings::default(),
        Arc::new(Images),
        Arc::new(SimClock::new()),
        Random::from_seed(1),
    );
    let review = |operation: &str, object: Value, old: Value, user: &str| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u1", "operation": operation, "name": "web-0", "namespace": "team-a",
                "kind": {"group": "vmoperator.vmware.com", "version": "v1alpha6", "kind": "VirtualMachine"},
                "resource": {"group": "vmoperator.vmware.com", "version": "v1alpha6", "resource": "virtualmachines"},
                "userInfo": {"username": user, "groups": []},
                "object": object, "oldObject": old, "dryRun": false,
            }
        })
    };
    let new = json!({"metadata": {"name": "web-0"}, "spec": {"className": "small", "imageName": "ubuntu", "surprise": 1}});
    let answer =
        hooks.answer(path::MUTATE_VM, review("CREATE", new, Value::Null, "jane")).await.unwrap();
    assert_eq!(answer["response"]["allowed"], true, "{answer}");
    assert_eq!(answer["response"]["patchType"], "JSONPatch");

    let fine =
        serde_json::to_value(vm(json!({"spec": {"groupName": "g", "affinity": {}}}))).unwrap();
    let mut marked = fine.clone();
    marked["metadata"]["annotations"] = json!({annotation::RECONCILE_PRIORITY: "500"});
    let ask = async |object: &Value, old: &Value, user| {
        let operation = if old.is_null() { "CREATE" } else { "UPDATE" };
        let body = review(operation, object.clone(), old.clone(), user);
        hooks.answer(path::VALIDATE_VM, body).await.unwrap()["response"].clone()
    };
    let answer = ask(&fine, &Value::Null, "jane").await;
    assert_eq!(answer["warnings"], json!(["spec.affinity: is kept but has no effect"]));
    let answer = ask(&marked, &fine, "jane").await;
    assert_eq!(answer["allowed"], false);
    assert!(
        answer["status"]["message"].as_str().unwrap().contains("reconcile-priority"),
        "{answer}"
    );
    assert_eq!(ask(&marked, &fine, "kubernetes-admin").await["allowed"], true);

    // What is being deleted passes, whatever it looks like.
    let mut dying = marked.clone();
    dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    assert_eq!(ask(&dying, &fine, "jane").await["allowed"], true);
    // Who is exempt by an annotation that is there already, passes.
    let mut exempt = fine.clone();
    exempt["metadata"]["annotations"] = json!({annotation::SKIP_VALIDATION: ""});
    let mut odd = exempt.clone();
    odd["spec"]["storageClass"] = "other".into();
    assert_eq!(ask(&odd, &exempt, "jane").await["allowed"], true);
    odd["metadata"]["annotations"][annotation::RECONCILE_PRIORITY] = "500".into();
    assert_eq!(ask(&odd, &exempt, "jane").await["allowed"], false);
    assert_eq!(ask(&exempt, &Value::Null, "jane").await["allowed"], false);
}

/// The objects that are shipped make a server ask these webhooks.
#[tokio::test]
async fn a_server_asks_the_webhooks_that_the_configurations_name() {
    use kube::Api;
    use kube::api::{Patch, PatchParams, PostParams};
    use roost_controller::crd::{install_crds, to_yaml};
    use roost_kube_sim::{KubeSim, Options};

    let sim = KubeSim::start(Options::default(), Arc::new(SimClock::new()));
    install_crds(&sim.client(), &crate::api::definitions().unwrap(), "roost").await.unwrap();
    let hooks = webhooks(
        AdmissionSettings::default(),
        Arc::new(Images),
        Arc::new(SimClock::new()),
        Random::from_seed(1),
    );
    for path in hooks.paths() {
        let (hooks, name) = (hooks.clone(), path.to_owned());
        let handler = roost_kube_sim::WebhookHandler::new(move |review: Value| {
            let (hooks, name) = (hooks.clone(), name.clone());
            async move { hooks.answer(&name, review).await.unwrap() }
        });
        sim.serve_webhook(&format!("system/roost{path}"), handler);
    }
    sim.apply_manifest(&to_yaml(&configurations("roost", "system", "roost"))).await.unwrap();
    let rights = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: dev}
rules: [{apiGroups: [vmoperator.vmware.com], resources: ['*'], verbs: ['*']}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: dev}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: dev}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}]
";
    sim.apply_manifest(rights).await.unwrap();
    let vms: Api<VirtualMachine> =
        Api::namespaced(sim.client_as(roost_kube_sim::User::named("jane")), "default");
    let new = json!({"metadata": {"name": "web-0"}, "spec": {"className": "small", "imageName": "ubuntu", "storageClass": "gold"}});
    let made =
        vms.create(&PostParams::default(), &serde_json::from_value(new).unwrap()).await.unwrap();
    assert_eq!(made.spec.image.unwrap().name, "vmi-1");
    assert_eq!(made.spec.instance_uuid.len(), 36);
    let mark =
        json!({"metadata": {"annotations": {annotation::SKIP_DELETE_PLATFORM_RESOURCE: ""}}});
    let error = vms.patch("web-0", &PatchParams::default(), &Patch::Merge(mark)).await.unwrap_err();
    assert!(error.to_string().contains("skip-delete-platform-resource"), "{error}");

    // Every kind is guarded, also those without rules of their own.
    let hooked: Vec<Value> = configurations("roost", "system", "roost");
    let resources = hooked.iter().flat_map(|of| of["webhooks"].as_array().unwrap());
    let mut resources: Vec<_> = resources
        .map(|hook| hook["rules"][0]["resources"][0].as_str().unwrap().to_owned())
        .collect();
    resources.sort();
    resources.dedup();
    let mut kinds: Vec<_> =
        crate::api::definitions().unwrap().into_iter().map(|crd| crd.spec.names.plural).collect();
    kinds.sort();
    assert_eq!(resources, kinds);
    let groups: Api<VirtualMachineGroup> =
        Api::namespaced(sim.client_as(roost_kube_sim::User::named("jane")), "default");
    let key = annotation::LAST_UPDATED_POWER_STATE_TIME;
    let group = json!({"metadata": {"name": "shop", "annotations": {key: "t"}}});
    let group: VirtualMachineGroup = serde_json::from_value(group).unwrap();
    let error = groups.create(&PostParams::default(), &group).await.unwrap_err();
    assert!(error.to_string().contains(key), "{error}");
    let admin: Api<VirtualMachineGroup> = Api::namespaced(sim.client(), "default");
    admin.create(&PostParams::default(), &group).await.unwrap();
}
