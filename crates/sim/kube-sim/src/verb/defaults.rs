//! Defaults of built-in kinds.

use serde_json::{Map, Value, json};

use super::{Draft, Operation};
use crate::object;
use crate::world::World;

/// The items of a list; indexing would make one that is not there.
fn list_mut<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Sets a field that nobody set.
fn set_field(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none_or(Value::is_null) {
        object[field] = value;
    }
}

/// Defaults of built-in kinds that clients rely on; not all that the real server has.
pub(super) fn set(world: &mut World, draft: &mut Draft) {
    let kind = draft.subject.kind.clone();
    let is_create = draft.operation == Operation::Create;
    let new = &mut draft.new;
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "namespaces") => {
            let name = object::name(new).to_owned();
            let metadata = object::metadata_mut(new);
            let labels = metadata.entry("labels").or_insert_with(|| json!({}));
            labels["kubernetes.io/metadata.name"] = json!(name);
            if is_create {
                new["spec"] = json!({"finalizers": ["kubernetes"]});
                new["status"] = json!({"phase": "Active"});
            }
        }
        ("", "pods") => pod_defaults(new, is_create),
        // Until its conditions are good, nothing is to be scheduled there.
        ("", "nodes") if is_create => {
            let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
            let taints =
                object::child_object(new, "spec").entry("taints").or_insert_with(|| json!([]));
            if let Some(taints) = taints.as_array_mut()
                && !taints.contains(&taint)
            {
                taints.push(taint);
            }
        }
        ("", "secrets") => {
            set_field(new, "type", json!("Opaque"));
            if let Some(Value::Object(texts)) =
                new.as_object_mut().and_then(|secret| secret.remove("stringData"))
            {
                use base64::Engine as _;
                let data = object::child_object(new, "data");
                for (name, text) in texts {
                    let text = text.as_str().unwrap_or_default();
                    data.insert(
                        name,
                        json!(base64::engine::general_purpose::STANDARD.encode(text)),
                    );
                }
            }
        }
        ("", "services") => service_defaults(world, new, draft.old.as_ref().map(|old| &old.value)),
        ("", "persistentvolumeclaims") => {
            set_field(&mut new["spec"], "volumeMode", json!("Filesystem"));
            if is_create {
                new["status"] = json!({"phase": "Pending"});
            }
        }
        ("", "persistentvolumes") => {
            set_field(&mut new["spec"], "volumeMode", json!("Filesystem"));
            set_field(&mut new["spec"], "persistentVolumeReclaimPolicy", json!("Retain"));
            if is_create {
                new["status"] = json!({"phase": "Pending"});
            }
        }
        ("storage.k8s.io", "storageclasses") => {
            set_field(new, "reclaimPolicy", json!("Delete"));
            set_field(new, "volumeBindingMode", json!("Immediate"));
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => crate::custom::set_defaults(new),
        ("apps", plural) => {
            workload_defaults(&mut new["spec"], plural);
            if is_create && plural == "replicasets" {
                new["status"] = json!({"replicas": 0});
            }
        }
        ("certificates.k8s.io", "certificatesigningrequests") if is_create => {
            let user = &draft.user;
            new["spec"]["username"] = json!(user.name);
            new["spec"]["groups"] = json!(user.groups);
        }
        ("admissionregistration.k8s.io", plural) => {
            for webhook in list_mut(new, "webhooks") {
                webhook_defaults(webhook, plural.starts_with("mutating"));
            }
        }
        _ => {}
    }
}

/// What makes pods: how many, how they are replaced, and the pod that it makes.
fn workload_defaults(spec: &mut Value, plural: &str) {
    if plural != "daemonsets" {
        set_field(spec, "replicas", json!(1));
    }
    if plural != "replicasets" {
        set_field(spec, "revisionHistoryLimit", json!(10));
    }
    match plural {
        "deployments" => {
            set_field(spec, "progressDeadlineSeconds", json!(600));
            set_field(spec, "strategy", json!({}));
            set_field(&mut spec["strategy"], "type", json!("RollingUpdate"));
            if spec["strategy"]["type"] == "RollingUpdate" {
                set_field(&mut spec["strategy"], "rollingUpdate", json!({}));
                let rolling = &mut spec["strategy"]["rollingUpdate"];
                set_field(rolling, "maxUnavailable", json!("25%"));
                set_field(rolling, "maxSurge", json!("25%"));
            }
        }
        "statefulsets" => {
            set_field(spec, "podManagementPolicy", json!("OrderedReady"));
            set_field(
                spec,
                "updateStrategy",
                json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
            );
            set_field(
                spec,
                "persistentVolumeClaimRetentionPolicy",
                json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
            );
        }
        "daemonsets" => {
            set_field(
                spec,
                "updateStrategy",
                json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}),
            );
        }
        _ => {}
    }
    if let Some(pod) = spec.get_mut("template").and_then(|template| template.get_mut("spec")) {
        pod_spec_defaults(pod);
    }
}

/// What every pod has, also one that is only a template.
fn pod_spec_defaults(spec: &mut Value) {
    set_field(spec, "restartPolicy", json!("Always"));
    set_field(spec, "terminationGracePeriodSeconds", json!(30));
    set_field(spec, "dnsPolicy", json!("ClusterFirst"));
    set_field(spec, "securityContext", json!({}));
    set_field(spec, "schedulerName", json!("default-scheduler"));
    for list in ["initContainers", "containers"] {
        for container in list_mut(spec, list) {
            let is_latest = container["image"].as_str().is_none_or(|image| {
                let last = image.rsplit('/').next().unwrap_or_default();
                !last.contains(':') && !last.contains('@') || last.ends_with(":latest")
            });
            let pull = if is_latest { "Always" } else { "IfNotPresent" };
            set_field(container, "imagePullPolicy", json!(pull));
            set_field(container, "terminationMessagePath", json!("/dev/termination-log"));
            set_field(container, "terminationMessagePolicy", json!("File"));
            set_field(container, "resources", json!({}));
            for port in list_mut(container, "ports") {
                set_field(port, "protocol", json!("TCP"));
            }
        }
    }
}

fn pod_defaults(pod: &mut Value, is_create: bool) {
    let spec = &mut pod["spec"];
    pod_spec_defaults(spec);
    set_field(spec, "enableServiceLinks", json!(true));
    set_field(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    set_field(spec, "priority", json!(0));
    let always = [("node.kubernetes.io/not-ready", 300), ("node.kubernetes.io/unreachable", 300)];
    let mut tolerations = spec["tolerations"].as_array().cloned().unwrap_or_default();
    for (key, seconds) in always {
        let is_there = tolerations.iter().any(|known| {
            known["key"] == key || known["operator"] == "Exists" && known["key"].is_null()
        });
        if is_create && !is_there {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}));
        }
    }
    if !tolerations.is_empty() {
        spec["tolerations"] = json!(tolerations);
    }
    let mut is_best_effort = true;
    for list in ["initContainers", "containers"] {
        for container in list_mut(spec, list) {
            is_best_effort &= container["resources"].as_object().is_none_or(Map::is_empty);
        }
    }
    if is_create {
        pod["status"] = json!({"phase": "Pending", "qosClass": if is_best_effort { "BestEffort" } else { "Burstable" }});
    }
}

fn service_defaults(world: &mut World, service: &mut Value, old: Option<&Value>) {
    let spec = &mut service["spec"];
    set_field(spec, "type", json!("ClusterIP"));
    set_field(spec, "sessionAffinity", json!("None"));
    set_field(spec, "internalTrafficPolicy", json!("Cluster"));
    set_field(spec, "ipFamilies", json!(["IPv4"]));
    set_field(spec, "ipFamilyPolicy", json!("SingleStack"));
    if spec["type"] != "ExternalName" {
        let kept = old.and_then(|old| old["spec"]["clusterIP"].as_str()).map(ToOwned::to_owned);
        if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
            spec["clusterIP"] = json!(kept.unwrap_or_else(|| world.cluster_address()));
        }
        let addresses = json!([spec["clusterIP"]]);
        set_field(spec, "clusterIPs", addresses);
    }
    for port in list_mut(spec, "ports") {
        set_field(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        set_field(port, "targetPort", number);
    }
    if service.get("status").is_none_or(Value::is_null) {
        service["status"] = json!({"loadBalancer": {}});
    }
}

fn webhook_defaults(webhook: &mut Value, is_mutating: bool) {
    set_field(webhook, "failurePolicy", json!("Fail"));
    set_field(webhook, "matchPolicy", json!("Equivalent"));
    set_field(webhook, "namespaceSelector", json!({}));
    set_field(webhook, "objectSelector", json!({}));
    set_field(webhook, "timeoutSeconds", json!(10));
    if is_mutating {
        set_field(webhook, "reinvocationPolicy", json!("Never"));
    }
    for rule in list_mut(webhook, "rules") {
        set_field(rule, "scope", json!("*"));
    }
    if let Some(service) =
        webhook.get_mut("clientConfig").and_then(|config| config.get_mut("service"))
    {
        set_field(service, "port", json!(443));
    }
}
