//! vSphere namespaces: clusters with a supervisor, the namespaces on them, and the classes of VMs.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use roost_vim_wire::{MoRef, MoType};
use serde_json::{Value, json};

use super::{ALREADY_EXISTS, Ask, INVALID, NOT_FOUND, Outcome, not_allowed, strings, text};
use crate::call::CallContext;
use crate::model;
use crate::task::{Job, submit};
use crate::world::World;

#[derive(Debug, Default)]
pub(super) struct Namespaces {
    /// Clusters with a supervisor.
    supervised: BTreeSet<String>,
    all: BTreeMap<String, Namespace>,
    classes: BTreeMap<String, Class>,
}

#[derive(Debug)]
struct Namespace {
    cluster: String,
    libraries: Vec<String>,
    classes: Vec<String>,
    storage: Vec<Value>,
}

#[derive(Debug, Default)]
struct Class {
    cpus: i64,
    memory_mb: i64,
    /// Devices, reservations and the config spec, kept as they came.
    rest: Value,
}

/// `path` is what follows `vcenter/namespaces/instances`.
pub(super) fn instances(
    world: &mut World,
    cx: &CallContext<'_>,
    ask: &Ask<'_>,
    path: &[&str],
) -> Outcome {
    let rows = &mut world.rest.namespaces.all;
    match (ask.method, path) {
        (&Method::GET, []) => {
            let all: Vec<Value> = rows.iter().map(|(name, row)| summary(name, row)).collect();
            Outcome::Value(json!(all))
        }
        (&Method::POST, []) => create(world, ask),
        (_, [name, ..]) if !rows.contains_key(*name) => NOT_FOUND,
        (&Method::GET, [name]) => Outcome::Value(info(&rows[*name])),
        (&Method::PATCH, [name]) => {
            if let Some(row) = rows.get_mut(*name) {
                let vm_service = &ask.body["vm_service_spec"];
                row.libraries = strings(vm_service, "content_libraries");
                row.classes = strings(vm_service, "vm_classes");
                if let Some(storage) = ask.body["storage_specs"].as_array() {
                    row.storage.clone_from(storage);
                }
            }
            Outcome::Nothing
        }
        (&Method::DELETE, [name]) => {
            rows.remove(*name);
            Outcome::Nothing
        }
        (&Method::POST, [_, "registervm"]) => register_vm(world, cx, ask),
        _ => NOT_FOUND,
    }
}

fn create(world: &mut World, ask: &Ask<'_>) -> Outcome {
    let (name, cluster) = (text(&ask.body, "namespace"), text(&ask.body, "cluster"));
    if name.is_empty() {
        return INVALID;
    }
    if !world.inventory.contains(&MoRef::new(MoType::ClusterComputeResource, &*cluster)) {
        return NOT_FOUND;
    }
    let storage = ask.body["storage_specs"].as_array().cloned().unwrap_or_default();
    let vm_service = &ask.body["vm_service_spec"];
    let row = Namespace {
        cluster,
        libraries: strings(vm_service, "content_libraries"),
        classes: strings(vm_service, "vm_classes"),
        storage,
    };
    let rows = &mut world.rest.namespaces.all;
    if rows.contains_key(&name) {
        return ALREADY_EXISTS;
    }
    rows.insert(name, row);
    Outcome::Nothing
}

fn summary(name: &str, row: &Namespace) -> Value {
    let mut shown = info(row);
    shown["namespace"] = json!(name);
    shown
}

fn info(row: &Namespace) -> Value {
    json!({
        "cluster": row.cluster,
        "config_status": "RUNNING",
        "description": "",
        "stats": { "cpu_used": 0, "memory_used": 0, "storage_used": 0 },
        "message": [],
        "vm_service_spec": { "content_libraries": row.libraries, "vm_classes": row.classes },
        "storage_specs": row.storage,
    })
}

/// A VM comes back under its namespace by the description that a backup has left in it.
const DESCRIPTION: &str = "config.extraConfig[\"vmservice.virtualmachine.resource.yaml\"]";

fn register_vm(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>) -> Outcome {
    let vm = MoRef::vm(&*text(&ask.body, "vm"));
    if !world.inventory.contains(&vm) {
        return NOT_FOUND;
    }
    if !matches!(model::property(world, &vm, DESCRIPTION), Ok(Some(_))) {
        return not_allowed("The VM carries no description of its resource.");
    }
    let job = Job::on("com.vmware.wcp.RegisterVM", &vm).without_hold().first(|_, _| Ok(()));
    let task = submit(world, cx, job);
    Outcome::Value(json!(format!("{}:com.vmware.wcp", task.id)))
}

/// `path` is what follows `vcenter/namespace-management`.
pub(super) fn management(world: &mut World, ask: &Ask<'_>, path: &[&str]) -> Outcome {
    match path {
        ["clusters", rest @ ..] => clusters(world, ask, rest),
        ["virtual-machine-classes", rest @ ..] => classes(world, ask, rest),
        ["supervisor-services"] if *ask.method == Method::GET => Outcome::Value(json!([])),
        // Edge clusters are NSX's, which there is none of: one stands for any.
        ["edge-cluster-compatibility"] => Outcome::Value(json!([{
            "compatible": true, "edge_cluster": "edge-cluster-1", "display_name": "Edge-Cluster-1",
        }])),
        ["distributed-switch-compatibility"] => {
            let cluster = ask.parameter("cluster").unwrap_or_default();
            let cluster = MoRef::new(MoType::ClusterComputeResource, &*cluster);
            let Some(row) = world.inventory.computes.get(&cluster) else { return NOT_FOUND };
            // One that all of the cluster's hosts are on; one without hosts carries nothing.
            let all = world.inventory.switches.iter().filter(|(_, switch)| {
                !switch.hosts.is_empty() && row.hosts.iter().all(|host| switch.hosts.contains(host))
            });
            let shown =
                all.map(|(at, _)| json!({ "compatible": true, "distributed_switch": &*at.id }));
            Outcome::Value(json!(shown.collect::<Vec<_>>()))
        }
        _ => NOT_FOUND,
    }
}

fn clusters(world: &mut World, ask: &Ask<'_>, path: &[&str]) -> Outcome {
    if let [id, ..] = path
        && !world.inventory.contains(&MoRef::new(MoType::ClusterComputeResource, *id))
    {
        return NOT_FOUND;
    }
    let supervised = &mut world.rest.namespaces.supervised;
    match (ask.method, path, ask.action.as_deref()) {
        (&Method::GET, [], _) => {
            let all = supervised.clone().into_iter();
            let shown = all.filter_map(|id| {
                let cluster = MoRef::new(MoType::ClusterComputeResource, &*id);
                let name = model::property(world, &cluster, "name").ok()??;
                Some(json!({
                    "cluster": id,
                    "cluster_name": name.as_str(),
                    "kubernetes_status": "READY",
                    "config_status": "RUNNING",
                }))
            });
            Outcome::Value(json!(shown.collect::<Vec<_>>()))
        }
        (&Method::POST, [id], Some("enable")) => {
            supervised.insert((*id).to_owned());
            Outcome::Nothing
        }
        (&Method::POST, [id], Some("disable")) => {
            supervised.remove(*id);
            Outcome::Nothing
        }
        _ => NOT_FOUND,
    }
}

fn classes(world: &mut World, ask: &Ask<'_>, path: &[&str]) -> Outcome {
    let World { rest, .. } = world;
    let (rows, namespaces) = (&mut rest.namespaces.classes, &rest.namespaces.all);
    match (ask.method, path) {
        (&Method::GET, []) => {
            let all: Vec<Value> =
                rows.iter().map(|(id, row)| class_info(id, row, namespaces)).collect();
            Outcome::Value(json!(all))
        }
        (&Method::POST, []) => {
            let id = text(&ask.body, "id");
            if id.is_empty() {
                return INVALID;
            }
            if rows.contains_key(&id) {
                return ALREADY_EXISTS;
            }
            rows.insert(id, change(&Class::default(), &ask.body));
            Outcome::Nothing
        }
        (_, [id]) if !rows.contains_key(*id) => NOT_FOUND,
        (&Method::GET, [id]) => Outcome::Value(class_info(id, &rows[*id], namespaces)),
        (&Method::PATCH, [id]) => {
            let row = rows.entry((*id).to_owned()).or_default();
            *row = change(row, &ask.body);
            Outcome::Nothing
        }
        (&Method::DELETE, [id]) => {
            rows.remove(*id);
            Outcome::Nothing
        }
        _ => NOT_FOUND,
    }
}

/// What a spec leaves out or gives as zero stays.
fn change(row: &Class, spec: &Value) -> Class {
    let given = |field: &str| spec[field].as_i64().filter(|number| *number > 0);
    Class {
        cpus: given("cpu_count").unwrap_or(row.cpus),
        memory_mb: given("memory_MB").unwrap_or(row.memory_mb),
        rest: spec.clone(),
    }
}

fn class_info(id: &str, row: &Class, namespaces: &BTreeMap<String, Namespace>) -> Value {
    let users = namespaces.iter().filter(|(_, one)| one.classes.iter().any(|class| class == id));
    json!({
        "id": id,
        "config_status": "READY",
        "description": "",
        "cpu_count": row.cpus,
        "memory_mb": row.memory_mb,
        "cpu_reservation": row.rest["cpu_reservation"].as_i64().unwrap_or(0),
        "memory_reservation": row.rest["memory_reservation"].as_i64().unwrap_or(0),
        "devices": row.rest.get("devices").cloned().unwrap_or_else(|| json!({})),
        "messages": [],
        "namespaces": users.map(|(name, _)| name).collect::<Vec<_>>(),
        "vms": [],
    })
}
