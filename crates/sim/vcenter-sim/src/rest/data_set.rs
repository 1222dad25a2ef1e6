//! Data sets: small tables that a VM shares with those who manage it.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use roost_vim_wire::MoRef;
use serde_json::{Value, json};

use super::{ALREADY_EXISTS, Ask, INVALID, NOT_FOUND, Outcome, text};
use crate::model;
use crate::world::World;

/// By VM and name.
#[derive(Debug, Default)]
pub(crate) struct DataSets(BTreeMap<MoRef, BTreeMap<String, DataSet>>);

#[derive(Debug, Clone)]
struct DataSet {
    description: String,
    /// `NONE`, `READ_ONLY` or `READ_WRITE`: what managers may do, and what the guest may.
    host: String,
    guest: String,
    stays_behind: bool,
    entries: BTreeMap<String, String>,
}

impl DataSets {
    /// A clone or a snapshot takes along what is not marked to stay behind.
    pub(crate) fn copy(&mut self, from: &MoRef, to: &MoRef) {
        let taken = self.0.get(from).into_iter().flatten().filter(|(_, set)| !set.stays_behind);
        let taken: BTreeMap<_, _> = taken.map(|(name, set)| (name.clone(), set.clone())).collect();
        if !taken.is_empty() {
            self.0.insert(to.clone(), taken);
        }
    }

    /// Back to what a snapshot took along; what it did not is gone.
    pub(crate) fn revert(&mut self, vm: &MoRef, snapshot: &MoRef) {
        self.0.remove(vm);
        self.copy(snapshot, vm);
    }
}

/// The first hardware version with data sets.
const FIRST_VERSION: u32 = 20;

const UNSUPPORTED: Outcome =
    Outcome::Error(StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.unsupported");
const IN_USE: Outcome =
    Outcome::Error(StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.resource_in_use");
const UNAUTHORIZED: Outcome =
    Outcome::Error(StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.unauthorized");
const WRONG_STATE: Outcome = Outcome::Error(
    StatusCode::BAD_REQUEST,
    "com.vmware.vapi.std.errors.not_allowed_in_current_state",
);

/// `path` is what follows `vcenter/vm/<vm>/data-sets`.
pub(super) fn carry_out(world: &mut World, ask: &Ask<'_>, vm: &str, path: &[&str]) -> Outcome {
    let vm = MoRef::vm(vm);
    let read = |path: &str| {
        let value = model::property(world, &vm, path).ok().flatten();
        value.and_then(|value| value.as_str().map(ToOwned::to_owned)).unwrap_or_default()
    };
    if !world.inventory.contains(&vm) {
        return NOT_FOUND;
    }
    let version = read("config.version");
    if version.trim_start_matches("vmx-").parse().is_ok_and(|version: u32| version < FIRST_VERSION)
    {
        return UNSUPPORTED;
    }
    let is_suspended = read("runtime.powerState") == "suspended";
    let sets = world.rest.data_sets.0.entry(vm).or_default();
    let is_change = !matches!(*ask.method, Method::GET);
    if let [name, ..] = path
        && !sets.contains_key(*name)
    {
        return NOT_FOUND;
    }
    if is_change && is_suspended {
        return WRONG_STATE;
    }
    match path {
        [] => list_or_create(sets, ask),
        [name] => one(sets, ask, name),
        [name, "entries", key @ ..] => match sets.get_mut(*name) {
            Some(set) => entry(set, ask, key),
            None => NOT_FOUND,
        },
        _ => NOT_FOUND,
    }
}

fn list_or_create(sets: &mut BTreeMap<String, DataSet>, ask: &Ask<'_>) -> Outcome {
    match *ask.method {
        Method::GET => {
            let shown = |(name, set): (&String, &DataSet)| json!({ "data_set": name, "name": name, "description": set.description });
            Outcome::Value(json!(sets.iter().map(shown).collect::<Vec<_>>()))
        }
        Method::POST => {
            let name = text(&ask.body, "name");
            if name.is_empty() {
                return INVALID;
            }
            if sets.contains_key(&name) {
                return ALREADY_EXISTS;
            }
            let stays_behind = ask.body.get("omit_from_snapshot_and_clone");
            let set = DataSet {
                description: text(&ask.body, "description"),
                host: text(&ask.body, "host"),
                guest: text(&ask.body, "guest"),
                stays_behind: stays_behind.and_then(Value::as_bool).unwrap_or(false),
                entries: BTreeMap::new(),
            };
            sets.insert(name.clone(), set);
            Outcome::Value(json!(name))
        }
        _ => NOT_FOUND,
    }
}

fn one(sets: &mut BTreeMap<String, DataSet>, ask: &Ask<'_>, name: &str) -> Outcome {
    let Some(set) = sets.get_mut(name) else { return NOT_FOUND };
    match *ask.method {
        Method::GET => Outcome::Value(json!({
            "name": name,
            "description": set.description,
            "host": set.host,
            "guest": set.guest,
            "used": set.entries.iter().map(|(key, value)| key.len() + value.len()).sum::<usize>(),
            "omit_from_snapshot_and_clone": set.stays_behind,
        })),
        Method::PATCH => {
            for (field, kept) in [
                ("description", &mut set.description),
                ("host", &mut set.host),
                ("guest", &mut set.guest),
            ] {
                if let Some(given) = ask.body.get(field).and_then(Value::as_str) {
                    given.clone_into(kept);
                }
            }
            let behind = ask.body.get("omit_from_snapshot_and_clone").and_then(Value::as_bool);
            set.stays_behind = behind.unwrap_or(set.stays_behind);
            Outcome::Nothing
        }
        Method::DELETE => {
            if !set.entries.is_empty() && ask.parameter("force").as_deref() != Some("true") {
                return IN_USE;
            }
            sets.remove(name);
            Outcome::Nothing
        }
        _ => NOT_FOUND,
    }
}

fn entry(set: &mut DataSet, ask: &Ask<'_>, key: &[&str]) -> Outcome {
    let is_read = *ask.method == Method::GET;
    if set.host == "NONE" || (set.host == "READ_ONLY" && !is_read) {
        return UNAUTHORIZED;
    }
    match (ask.method, key) {
        (&Method::GET, []) => Outcome::Value(json!(set.entries.keys().collect::<Vec<_>>())),
        (&Method::GET, [key]) => {
            set.entries.get(*key).map_or(NOT_FOUND, |value| Outcome::Value(json!(value)))
        }
        (&Method::PUT, [key]) => match ask.body.as_str() {
            Some(value) => {
                set.entries.insert((*key).to_owned(), value.to_owned());
                Outcome::Nothing
            }
            None => INVALID,
        },
        (&Method::DELETE, [key]) => match set.entries.remove(*key) {
            Some(_) => Outcome::Nothing,
            None => NOT_FOUND,
        },
        _ => NOT_FOUND,
    }
}
