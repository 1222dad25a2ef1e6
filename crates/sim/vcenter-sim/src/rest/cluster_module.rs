//! Cluster modules: groups of VMs of a cluster that its scheduler keeps on hosts of their own.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use roost_vim_wire::{MoRef, MoType};
use serde_json::{Value, json};

use super::{Ask, INVALID, NOT_FOUND, Outcome, strings, text};
use crate::world::World;

#[derive(Debug, Default)]
pub(super) struct ClusterModules(BTreeMap<String, Module>);

#[derive(Debug)]
struct Module {
    cluster: String,
    vms: BTreeSet<String>,
}

/// `path` is what follows `vcenter/cluster/modules`.
pub(super) fn carry_out(world: &mut World, ask: &Ask<'_>, path: &[&str]) -> Outcome {
    match (ask.method, path) {
        (&Method::GET, []) => {
            let all = world.rest.cluster_modules.0.iter();
            let shown = all.map(|(id, row)| json!({ "module": id, "cluster": row.cluster }));
            Outcome::Value(json!({ "summaries": shown.collect::<Vec<_>>() }))
        }
        (&Method::POST, []) => {
            let cluster = text(ask.spec("spec"), "cluster");
            if !world.inventory.contains(&MoRef::new(MoType::ClusterComputeResource, &*cluster)) {
                return NOT_FOUND;
            }
            let id = world.rest.random.uuid();
            let module = Module { cluster, vms: BTreeSet::new() };
            world.rest.cluster_modules.0.insert(id.clone(), module);
            Outcome::Value(json!(id))
        }
        (&Method::DELETE, [id]) => match world.rest.cluster_modules.0.remove(*id) {
            Some(_) => Outcome::Nothing,
            None => NOT_FOUND,
        },
        (_, ["vm", id, "members"]) => members(world, ask, id),
        _ => NOT_FOUND,
    }
}

/// Success is that every VM that was named has changed sides.
fn members(world: &mut World, ask: &Ask<'_>, id: &str) -> Outcome {
    let World { rest, inventory, .. } = world;
    let Some(module) = rest.cluster_modules.0.get_mut(id) else { return NOT_FOUND };
    if *ask.method == Method::GET {
        return Outcome::Value(json!({ "vms": module.vms }));
    }
    let named = strings(&ask.body, "vms").into_iter();
    let known: Vec<String> = named.filter(|vm| inventory.contains(&MoRef::vm(&**vm))).collect();
    let is_done = match ask.action.as_deref() {
        Some("add") => known.into_iter().map(|vm| module.vms.insert(vm)).fold(true, |a, b| a & b),
        Some("remove") => known.iter().map(|vm| module.vms.remove(vm)).fold(true, |a, b| a & b),
        _ => return INVALID,
    };
    Outcome::Value(Value::from(serde_json::Map::from_iter([("success".into(), is_done.into())])))
}
