//! The scale subresource of a custom kind and of a built-in one.

use serde_json::{Value, json};

use super::step::{Step, bare, step};

pub(super) const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";

fn scale(name: &str, version: Option<&str>, replicas: i64) -> Value {
    let mut metadata = json!({"name": name, "namespace": "default"});
    if let Some(version) = version {
        metadata["resourceVersion"] = json!(version);
    }
    json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}})
}

/// Every verb and every patch on the scale of the object `name`, which is there.
pub(super) fn on_scale(path: &str, name: &str) -> Vec<Step> {
    let one = format!("{path}/{name}");
    let part = format!("{one}/scale");
    vec![
        bare("scale: get", "GET", &part),
        bare("scale: get missing", "GET", &format!("{path}/none/scale")),
        step("scale: update", "PUT", &part, scale(name, Some("$version"), 4)),
        step("scale: update of nothing", "PUT", &part, scale(name, Some("$version"), 4)),
        bare("scale: the object", "GET", &one),
        step("scale: update without a version", "PUT", &part, scale(name, None, 5)),
        step("scale: stale update", "PUT", &part, scale(name, Some("1"), 6)),
        step("scale: update to less than none", "PUT", &part, scale(name, None, -1)),
        step("scale: update of another name", "PUT", &part, scale("other", None, 6)),
        step("scale: update missing", "PUT", &format!("{path}/none/scale"), scale("none", None, 6)),
        step(
            "scale: update by another kind",
            "PUT",
            &part,
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}),
        ),
        step(
            "scale: update dry",
            "PUT",
            &format!("{part}?dryRun=All"),
            scale(name, Some("$version"), 9),
        ),
        bare("scale: get after", "GET", &part),
        Step::patch("scale: merge patch", &part, "merge", json!({"spec": {"replicas": 2}})),
        Step::patch(
            "scale: json patch",
            &part,
            "json",
            json!([{"op": "replace", "path": "/spec/replicas", "value": 3}]),
        ),
        Step::patch("scale: strategic patch", &part, "strategic", json!({"spec": {"replicas": 4}})),
        Step::patch(
            "scale: merge patch with a stale version",
            &part,
            "merge",
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 2}}),
        ),
        Step::patch(
            "scale: merge patch to less than none",
            &part,
            "merge",
            json!({"spec": {"replicas": -2}}),
        ),
        Step::patch(
            "scale: patch missing",
            &format!("{path}/none/scale"),
            "merge",
            json!({"spec": {"replicas": 2}}),
        ),
        Step::patch(
            "scale: apply",
            &format!("{part}?fieldManager=scaler&force=true"),
            "apply",
            json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": name}, "spec": {"replicas": 1}}),
        ),
        bare("scale: who owns it", "GET", &one),
        bare("scale: delete is not allowed", "DELETE", &part),
    ]
}

/// The life of a replica set around its scale.
pub(super) fn on_replica_sets() -> Vec<Step> {
    let set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "r", "labels": {"app": "x"}},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "c", "image": "i:1"}]},
            },
        },
    });
    let one = format!("{REPLICA_SETS}/r");
    let mut steps = vec![step("set: create", "POST", REPLICA_SETS, set)];
    steps.extend(on_scale(REPLICA_SETS, "r"));
    steps.extend([
        Step::patch(
            "set: status",
            &format!("{one}/status"),
            "merge",
            json!({"status": {"replicas": 1}}),
        ),
        bare("set: scale with a status", "GET", &format!("{one}/scale")),
        bare("set: delete", "DELETE", &one),
    ]);
    steps
}
