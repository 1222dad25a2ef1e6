//! What a write may touch, and what the server writes itself.

use serde_json::{Map, Value, json};

use super::{Draft, Operation};
use crate::builtin::KEEPS_STATUS;
use crate::convert;
use crate::kind::Kind;
use crate::object;
use crate::status::{ApiError, Cause};
use crate::world::World;

/// Metadata that only the server writes.
const SERVER_FIELDS: [&str; 5] =
    ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

/// Metadata that there is; everything else is dropped.
const METADATA_FIELDS: [&str; 15] = [
    "name",
    "generateName",
    "namespace",
    "selfLink",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
];

pub(super) fn prepare(world: &mut World, draft: &mut Draft) -> Result<(), ApiError> {
    clean_metadata(draft);
    match draft.operation {
        Operation::Create => prepare_create(world, draft),
        Operation::Update => prepare_update(draft)?,
    }
    set_built_in_defaults(world, draft);
    Ok(())
}

fn clean_metadata(draft: &mut Draft) {
    let metadata = object::metadata_mut(&mut draft.new);
    metadata.retain(|name, value| METADATA_FIELDS.contains(&name.as_str()) && !is_nothing(value));
    for map in ["labels", "annotations"] {
        if let Some(Value::Object(entries)) = metadata.get_mut(map) {
            entries.retain(|_, value| !value.is_null());
        }
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn prepare_create(world: &mut World, draft: &mut Draft) {
    let kind = draft.subject.kind.clone();
    let (uid, now) = (world.random.uuid(), world.now());
    let metadata = object::metadata_mut(&mut draft.new);
    for field in SERVER_FIELDS {
        metadata.remove(field);
    }
    metadata.remove("resourceVersion");
    metadata.remove("selfLink");
    metadata.insert("uid".into(), json!(uid));
    metadata.insert("creationTimestamp".into(), json!(now));
    let version = kind.version(&draft.version);
    let keeps = kind.built_in().is_some_and(|built_in| built_in.has(KEEPS_STATUS));
    if version.is_some_and(|version| version.has_status)
        && !keeps
        && let Some(fields) = draft.new.as_object_mut()
    {
        fields.remove("status");
    }
}

fn prepare_update(draft: &mut Draft) -> Result<(), ApiError> {
    let kind = draft.subject.kind.clone();
    let Some(old) = draft.old.as_ref().map(|old| convert::from_storage(&kind, &draft.version, old))
    else {
        return Ok(());
    };
    let has_status = kind.version(&draft.version).is_some_and(|version| version.has_status);
    match draft.subresource.as_str() {
        "status" => {
            let status = draft.new.get("status").cloned();
            let metadata = draft.new["metadata"].clone();
            draft.new = old.clone();
            replace(&mut draft.new, "status", status);
            // Of built-in kinds, labels and annotations go along with a status.
            if !kind.is_custom() {
                draft.new["metadata"] = metadata;
            }
        }
        "approval" => {
            let conditions = draft.new["status"].get("conditions").cloned();
            draft.new = old.clone();
            if let Some(conditions) = conditions {
                object::child_object(&mut draft.new, "status")
                    .insert("conditions".into(), conditions);
            }
        }
        "finalize" => {
            let finalizers = draft.new["spec"].get("finalizers").cloned();
            draft.new = old.clone();
            replace(
                &mut draft.new["spec"],
                "finalizers",
                finalizers.filter(|held| !is_nothing(held)),
            );
        }
        _ if has_status => {
            replace(&mut draft.new, "status", old.get("status").cloned());
            if kind.is("", "namespaces") {
                replace(&mut draft.new, "spec", old.get("spec").cloned());
            }
        }
        _ => {}
    }
    keep_server_fields(&mut draft.new, &old);
    check_new_finalizers(&kind, &draft.new, &old)
}

fn replace(value: &mut Value, field: &str, with: Option<Value>) {
    let Some(fields) = value.as_object_mut() else { return };
    match with {
        Some(with) => fields.insert(field.to_owned(), with),
        None => fields.remove(field),
    };
}

fn keep_server_fields(new: &mut Value, old: &Value) {
    let old_metadata = object::metadata(old).clone();
    let metadata = object::metadata_mut(new);
    for field in
        SERVER_FIELDS.into_iter().chain(["resourceVersion", "name", "namespace", "generateName"])
    {
        match old_metadata.get(field) {
            Some(value) => metadata.insert(field.to_owned(), value.clone()),
            None => metadata.remove(field),
        };
    }
}

fn check_new_finalizers(kind: &Kind, new: &Value, old: &Value) -> Result<(), ApiError> {
    if !object::is_being_deleted(old) {
        return Ok(());
    }
    let known = object::finalizers(old);
    let added: Vec<_> =
        object::finalizers(new).into_iter().filter(|name| !known.contains(name)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let added: Vec<_> = added.iter().map(|name| format!("{name:?}")).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.join(", ")
    );
    Err(ApiError::invalid(
        kind,
        object::name(old),
        &[Cause::forbidden("metadata.finalizers", &why)],
    ))
}

/// Counts a change of anything but metadata and status.
pub(super) fn count_generation(kind: &Kind, draft: &mut Draft) {
    if !kind.counts_generations() {
        object::metadata_mut(&mut draft.new).remove("generation");
        return;
    }
    let generation = match &draft.old {
        None => 1,
        Some(old) => {
            let before = object::generation(&old.value);
            let old = convert::from_storage(kind, &draft.version, old);
            let has_status = kind.version(&draft.version).is_some_and(|version| version.has_status);
            let counted = |value: &Value| -> Map<String, Value> {
                let fields = value.as_object().into_iter().flatten();
                fields
                    .filter(|(name, _)| *name != "metadata" && !(has_status && *name == "status"))
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect()
            };
            before + i64::from(counted(&old) != counted(&draft.new))
        }
    };
    object::metadata_mut(&mut draft.new).insert("generation".into(), json!(generation));
}

/// The items of a list; indexing would make one that is not there.
fn list_mut<'a>(object: &'a mut Value, field: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Sets a field that nobody set.
fn set(object: &mut Value, field: &str, value: Value) {
    if object.get(field).is_none_or(Value::is_null) {
        object[field] = value;
    }
}

/// Defaults of built-in kinds that clients rely on; not all that the real server has.
fn set_built_in_defaults(world: &mut World, draft: &mut Draft) {
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
            set(new, "type", json!("Opaque"));
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
            set(&mut new["spec"], "volumeMode", json!("Filesystem"));
            if is_create {
                new["status"] = json!({"phase": "Pending"});
            }
        }
        ("", "persistentvolumes") => {
            set(&mut new["spec"], "volumeMode", json!("Filesystem"));
            set(&mut new["spec"], "persistentVolumeReclaimPolicy", json!("Retain"));
            if is_create {
                new["status"] = json!({"phase": "Pending"});
            }
        }
        ("storage.k8s.io", "storageclasses") => {
            set(new, "reclaimPolicy", json!("Delete"));
            set(new, "volumeBindingMode", json!("Immediate"));
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => crate::custom::set_defaults(new),
        ("apps", "deployments" | "replicasets" | "statefulsets") => {
            set(&mut new["spec"], "replicas", json!(1));
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

fn pod_defaults(pod: &mut Value, is_create: bool) {
    let spec = &mut pod["spec"];
    set(spec, "restartPolicy", json!("Always"));
    set(spec, "terminationGracePeriodSeconds", json!(30));
    set(spec, "dnsPolicy", json!("ClusterFirst"));
    set(spec, "securityContext", json!({}));
    set(spec, "schedulerName", json!("default-scheduler"));
    set(spec, "enableServiceLinks", json!(true));
    set(spec, "preemptionPolicy", json!("PreemptLowerPriority"));
    set(spec, "priority", json!(0));
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
            let is_latest = container["image"].as_str().is_none_or(|image| {
                let last = image.rsplit('/').next().unwrap_or_default();
                !last.contains(':') && !last.contains('@') || last.ends_with(":latest")
            });
            set(
                container,
                "imagePullPolicy",
                json!(if is_latest { "Always" } else { "IfNotPresent" }),
            );
            set(container, "terminationMessagePath", json!("/dev/termination-log"));
            set(container, "terminationMessagePolicy", json!("File"));
            set(container, "resources", json!({}));
            is_best_effort &= container["resources"].as_object().is_none_or(Map::is_empty);
            for port in list_mut(container, "ports") {
                set(port, "protocol", json!("TCP"));
            }
        }
    }
    if is_create {
        pod["status"] = json!({"phase": "Pending", "qosClass": if is_best_effort { "BestEffort" } else { "Burstable" }});
    }
}

fn service_defaults(world: &mut World, service: &mut Value, old: Option<&Value>) {
    let spec = &mut service["spec"];
    set(spec, "type", json!("ClusterIP"));
    set(spec, "sessionAffinity", json!("None"));
    set(spec, "internalTrafficPolicy", json!("Cluster"));
    set(spec, "ipFamilies", json!(["IPv4"]));
    set(spec, "ipFamilyPolicy", json!("SingleStack"));
    if spec["type"] != "ExternalName" {
        let kept = old.and_then(|old| old["spec"]["clusterIP"].as_str()).map(ToOwned::to_owned);
        if spec["clusterIP"].as_str().unwrap_or_default().is_empty() {
            spec["clusterIP"] = json!(kept.unwrap_or_else(|| world.cluster_address()));
        }
        let addresses = json!([spec["clusterIP"]]);
        set(spec, "clusterIPs", addresses);
    }
    for port in list_mut(spec, "ports") {
        set(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        set(port, "targetPort", number);
    }
    if service.get("status").is_none_or(Value::is_null) {
        service["status"] = json!({"loadBalancer": {}});
    }
}

fn webhook_defaults(webhook: &mut Value, is_mutating: bool) {
    set(webhook, "failurePolicy", json!("Fail"));
    set(webhook, "matchPolicy", json!("Equivalent"));
    set(webhook, "namespaceSelector", json!({}));
    set(webhook, "objectSelector", json!({}));
    set(webhook, "timeoutSeconds", json!(10));
    if is_mutating {
        set(webhook, "reinvocationPolicy", json!("Never"));
    }
    for rule in list_mut(webhook, "rules") {
        set(rule, "scope", json!("*"));
    }
    if let Some(service) =
        webhook.get_mut("clientConfig").and_then(|config| config.get_mut("service"))
    {
        set(service, "port", json!(443));
    }
}
