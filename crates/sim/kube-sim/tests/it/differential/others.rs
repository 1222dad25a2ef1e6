use serde_json::{Value, json};

use super::step::{Step, step};
use super::{PODS, config};

/// Built-in kinds that doors write, for their defaults and their own rules.
pub(super) fn on_others() -> Vec<Step> {
    let pods = PODS;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let namespaces = "/api/v1/namespaces";
    let pod = |name: &str, spec: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec});
    let one = json!({"containers": [{"name": "c", "image": "i:1", "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": "1"}]}]});
    let bound = json!({"nodeName": "n", "containers": [{"name": "c", "image": "i"}]});
    vec![
        step("pod", "POST", pods, pod("p", one)),
        step("pod without containers", "POST", pods, pod("q", json!({}))),
        Step::patch(
            "pod image",
            &format!("{pods}/p"),
            "strategic",
            json!({"spec": {"containers": [{"name": "c", "image": "i:2"}]}}),
        ),
        Step::patch(
            "pod status",
            &format!("{pods}/p/status"),
            "strategic",
            json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        Step::patch(
            "pod status again",
            &format!("{pods}/p/status"),
            "strategic",
            json!({"status": {"conditions": [{"type": "Other", "status": "True"}]}}),
        ),
        step(
            "pod binding",
            "POST",
            &format!("{pods}/p/binding"),
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}),
        ),
        step(
            "pod binding again",
            "POST",
            &format!("{pods}/p/binding"),
            json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"kind": "Node", "name": "m"}}),
        ),
        step("pod delete", "DELETE", &format!("{pods}/p"), Value::Null),
        step(
            "pod delete at once",
            "DELETE",
            &format!("{pods}/p"),
            json!({"gracePeriodSeconds": 0}),
        ),
        step("bound pod", "POST", pods, pod("b", bound)),
        step("bound pod delete", "DELETE", &format!("{pods}/b?gracePeriodSeconds=5"), Value::Null),
        step("bound pods", "GET", &format!("{pods}?fieldSelector=spec.nodeName%3Dn"), Value::Null),
        step(
            "lease",
            "POST",
            leases,
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}}),
        ),
        step(
            "lease without a version",
            "PUT",
            &format!("{leases}/l"),
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {"holderIdentity": "b"}}),
        ),
        step(
            "lease that is new",
            "PUT",
            &format!("{leases}/m"),
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "m"}, "spec": {"holderIdentity": "b"}}),
        ),
        step(
            "lease of no time",
            "POST",
            leases,
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "z"}, "spec": {"leaseDurationSeconds": 0}}),
        ),
        step(
            "namespace",
            "POST",
            namespaces,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n1"}}),
        ),
        step("namespace delete", "DELETE", &format!("{namespaces}/n1"), Value::Null),
        step(
            "in a namespace that ends",
            "POST",
            "/api/v1/namespaces/n1/configmaps",
            config("late", &json!({})),
        ),
        step("namespace default", "DELETE", &format!("{namespaces}/default"), Value::Null),
        step(
            "secret",
            "POST",
            "/api/v1/namespaces/default/secrets",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}),
        ),
        step(
            "node",
            "POST",
            "/api/v1/nodes",
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
        ),
        Step::patch(
            "node status",
            "/api/v1/nodes/n/status",
            "strategic",
            json!({"status": {"addresses": [{"type": "InternalIP", "address": "10.1.1.1"}]}}),
        ),
        step(
            "event",
            "POST",
            "/api/v1/namespaces/default/events",
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "Made", "message": "m", "type": "Normal", "count": 1}),
        ),
        step(
            "event as new",
            "GET",
            "/apis/events.k8s.io/v1/namespaces/default/events/e",
            Value::Null,
        ),
        step(
            "new event",
            "POST",
            "/apis/events.k8s.io/v1/namespaces/default/events",
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "f"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "Made", "note": "m", "type": "Normal", "action": "Make", "reportingController": "example.com/c", "reportingInstance": "c-0", "eventTime": "2026-01-01T00:00:00.000000Z"}),
        ),
        step("new event as old", "GET", "/api/v1/namespaces/default/events/f", Value::Null),
        step(
            "class",
            "POST",
            "/apis/storage.k8s.io/v1/storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"}, "provisioner": "example.com/p"}),
        ),
        step(
            "account",
            "POST",
            "/api/v1/namespaces/default/serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "a"}}),
        ),
        step(
            "role",
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}),
        ),
        step(
            "claim",
            "POST",
            "/api/v1/namespaces/default/persistentvolumeclaims",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        step(
            "access",
            "POST",
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        step("versions", "GET", "/apis/coordination.k8s.io", Value::Null),
    ]
}
