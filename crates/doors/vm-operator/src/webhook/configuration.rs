//! The objects that make the API server ask the webhooks.

use serde_json::{Value, json};

use super::{GUARDED, guard_path, path};
use crate::api::{GROUP, OLDER_VERSION, VERSION};

/// The mutating and the validating configuration, for a Service of this name. The certificate's authority is written into them later.
pub fn configurations(name: &str, namespace: &str, service: &str) -> Vec<Value> {
    let hook = |path: &str, verb: &str, resource: &str| {
        json!({
            "name": format!("default.{verb}.{resource}.{VERSION}.{GROUP}"),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            // Without an answer nothing is admitted: the rules guard marks that ordinary users may not set.
            "failurePolicy": "Fail",
            // The API server converts, so that objects of both versions are judged by the same rules.
            "matchPolicy": "Equivalent",
            "timeoutSeconds": 10,
            "clientConfig": {"service": {"namespace": namespace, "name": service, "path": path, "port": 443}},
            "rules": [{
                "apiGroups": [GROUP],
                "apiVersions": [VERSION, OLDER_VERSION],
                "operations": ["CREATE", "UPDATE"],
                "resources": [resource],
                "scope": "*",
            }],
        })
    };
    let configuration = |kind: &str, webhooks: Vec<Value>| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name},
            "webhooks": webhooks,
        })
    };
    let mut validating = vec![
        hook(path::VALIDATE_VM, "validating", "virtualmachines"),
        hook(path::VALIDATE_CLASS, "validating", "virtualmachineclasses"),
        hook(path::VALIDATE_SNAPSHOT, "validating", "virtualmachinesnapshots"),
        hook(path::VALIDATE_WEB_CONSOLE_REQUEST, "validating", "virtualmachinewebconsolerequests"),
    ];
    validating
        .extend(GUARDED.iter().map(|(kind, plural)| hook(&guard_path(kind), "validating", plural)));
    vec![
        configuration(
            "MutatingWebhookConfiguration",
            vec![hook(path::MUTATE_VM, "mutating", "virtualmachines")],
        ),
        configuration("ValidatingWebhookConfiguration", validating),
    ]
}
