//! Libraries: made, found, changed, published, subscribed to, deleted.

use std::collections::BTreeMap;

use http::Method;
use roost_vim_wire::{MoRef, MoType};
use serde_json::{Value, json};

use super::{Ask, NOT_FOUND, Outcome, invalid, library_session, not_allowed, text};
use crate::call::CallContext;
use crate::library::{self, Library, Subscriber};
use crate::world::World;

/// `path` is what follows `content/`; what is below `item` goes elsewhere.
pub(super) fn carry_out(
    world: &mut World,
    cx: &CallContext<'_>,
    ask: &Ask<'_>,
    path: &[&str],
) -> Outcome {
    match path {
        ["library"] if ask.is("find") => find(world, ask.spec("spec")),
        ["library"] if ask.method == Method::GET => {
            Outcome::Value(json!(world.libraries.libraries().map(|(id, _)| id).collect::<Vec<_>>()))
        }
        ["library", "subscriptions", rest @ ..] => subscriptions(world, ask, rest),
        ["library", "subscribed-item", id] => subscribed_item(world, cx, ask, id),
        ["library", id, "subscriptions", rest @ ..] => {
            let path: Vec<&str> = std::iter::once(*id).chain(rest.iter().copied()).collect();
            subscriptions(world, ask, &path)
        }
        [kind @ ("local-library" | "subscribed-library")] => match *ask.method {
            Method::POST => create(world, cx, ask, *kind == "subscribed-library"),
            Method::GET => {
                let wants_local = *kind == "local-library";
                let fits =
                    |(_, row): &(&String, &Library)| row.subscription.is_none() == wants_local;
                let ids = world.libraries.libraries().filter(fits).map(|(id, _)| id);
                Outcome::Value(json!(ids.collect::<Vec<_>>()))
            }
            _ => NOT_FOUND,
        },
        ["library" | "local-library" | "subscribed-library", id] => one(world, cx, ask, id),
        ["security-policies"] => Outcome::Value(json!([{
            "policy": OVF_POLICY,
            "name": "OVF default policy",
            "item_type_rules": { "ovf": "OVF_STRICT_VERIFICATION" },
        }])),
        ["trusted-certificates", rest @ ..] => certificates(world, ask, rest),
        // `/api/content/library/item` is routed before; this is the spelling without a library in between.
        ["item", rest @ ..] => library_session::carry_out(world, cx, ask, rest),
        _ => NOT_FOUND,
    }
}

/// The one security policy: items must be signed by somebody who is trusted.
const OVF_POLICY: &str = "fdc9f24f-4b1b-4f5e-9a0e-3b1d0a6a2f11";

/// The certificates whose signatures are trusted.
fn certificates(world: &mut World, ask: &Ask<'_>, path: &[&str]) -> Outcome {
    let all = &mut world.libraries.certificates;
    match (ask.method, path) {
        (&Method::GET, []) => {
            let shown =
                all.iter().map(|(id, text)| json!({ "certificate": id, "cert_text": text }));
            Outcome::Value(json!({ "certificates": shown.collect::<Vec<_>>() }))
        }
        (&Method::POST, []) => {
            let pem = text(&ask.body, "cert_text");
            if !pem.trim_start().starts_with("-----BEGIN CERTIFICATE-----") {
                return invalid("The text is not a certificate.");
            }
            let id = world.libraries.new_id();
            world.libraries.certificates.insert(id.clone(), pem);
            Outcome::Value(json!(id))
        }
        (&Method::GET, [id]) => {
            all.get(*id).map_or(NOT_FOUND, |pem| Outcome::Value(json!({ "cert_text": pem })))
        }
        (&Method::DELETE, [id]) => all.remove(*id).map_or(NOT_FOUND, |_| Outcome::Nothing),
        _ => NOT_FOUND,
    }
}

fn find(world: &World, spec: &Value) -> Outcome {
    let (name, kind) = (text(spec, "name"), text(spec, "type"));
    let fits = |(_, row): &(&String, &Library)| {
        (name.is_empty() || row.name.eq_ignore_ascii_case(&name))
            && (kind.is_empty() || kind == kind_of(row))
    };
    let ids = world.libraries.libraries().filter(fits).map(|(id, _)| id);
    Outcome::Value(json!(ids.collect::<Vec<_>>()))
}

fn kind_of(library: &Library) -> &'static str {
    if library.subscription.is_some() { "SUBSCRIBED" } else { "LOCAL" }
}

fn create(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>, is_subscribed: bool) -> Outcome {
    let spec = ask.spec("create_spec");
    let name = text(spec, "name");
    if name.is_empty() {
        return invalid("A library needs a name.");
    }
    let asked = spec
        .get("storage_backings")
        .and_then(|backings| backings.get(0))
        .map(|backing| MoRef::new(MoType::Datastore, text(backing, "datastore_id")));
    let datastore = match asked {
        Some(asked) if world.inventory.datastores.contains(&asked) => asked,
        Some(_) => return NOT_FOUND,
        None => match world.inventory.datastores.refs().next() {
            Some(first) => first.clone(),
            None => return NOT_FOUND,
        },
    };
    let subscription = spec.get("subscription_info").filter(|_| is_subscribed).cloned();
    if is_subscribed
        && subscription.as_ref().is_none_or(|info| text(info, "subscription_url").is_empty())
    {
        return invalid("A subscribed library needs the address of its source.");
    }
    let new = Library {
        name,
        description: text(spec, "description"),
        datastore,
        created: cx.now,
        modified: cx.now,
        version: 1,
        publication: spec.get("publish_info").cloned(),
        subscription,
        synced: None,
        security_policy: spec
            .get("security_policy_id")
            .and_then(Value::as_str)
            .map(ToOwned::to_owned),
        subscribers: BTreeMap::new(),
    };
    if let Some(source) = new.source()
        && world.libraries.library(&source).is_none_or(|source| !source.is_published())
    {
        return invalid("The address is not that of a published library.");
    }
    if new.security_policy.as_deref().is_some_and(|policy| policy != OVF_POLICY) {
        return invalid("There is no such security policy.");
    }
    let id = world.libraries.add_library(new);
    library::sync(world, &id, cx.now);
    Outcome::Value(json!(id))
}

fn one(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>, id: &str) -> Outcome {
    let Some(row) = world.libraries.library(id) else { return NOT_FOUND };
    match (ask.method.as_str(), ask.action.as_deref()) {
        ("GET", _) => Outcome::Value(shown(id, row, ask)),
        ("PATCH", _) => patch(world, cx, ask.spec("update_spec"), id),
        ("DELETE", _) => {
            library::delete_library(world, id, cx.now);
            Outcome::Nothing
        }
        ("POST", Some("sync")) if row.subscription.is_some() => {
            library::sync(world, id, cx.now);
            Outcome::Nothing
        }
        ("POST", Some("evict")) if row.subscription.is_some() => {
            library::evict_library(world, id);
            Outcome::Nothing
        }
        ("POST", Some("publish")) => publish(world, cx, id),
        ("POST", Some("sync" | "evict")) => not_allowed("The library is not a subscribed one."),
        _ => NOT_FOUND,
    }
}

/// Everybody who subscribed looks again.
fn publish(world: &mut World, cx: &CallContext<'_>, id: &str) -> Outcome {
    let by_address =
        world.libraries.libraries().filter(|(_, row)| row.source().as_deref() == Some(id));
    let all: Vec<String> = by_address.map(|(id, _)| id.clone()).collect();
    for subscriber in all {
        library::sync(world, &subscriber, cx.now);
    }
    Outcome::Nothing
}

fn patch(world: &mut World, cx: &CallContext<'_>, spec: &Value, id: &str) -> Outcome {
    let Some(row) = world.libraries.library_mut(id) else { return NOT_FOUND };
    let name = text(spec, "name");
    if !name.is_empty() {
        row.name = name;
    }
    if let Some(description) = spec.get("description").and_then(Value::as_str) {
        description.clone_into(&mut row.description);
    }
    if let Some(info) = spec.get("publish_info") {
        row.publication = Some(info.clone());
    }
    if let Some(info) = spec.get("subscription_info") {
        row.subscription = Some(info.clone());
    }
    world.libraries.touch_library(id, cx.now);
    Outcome::Nothing
}

fn shown(id: &str, row: &Library, ask: &Ask<'_>) -> Value {
    let mut shown = json!({
        "id": id,
        "name": row.name,
        "description": row.description,
        "type": kind_of(row),
        "creation_time": row.created.to_string(),
        "last_modified_time": row.modified.to_string(),
        "storage_backings": [{ "type": "DATASTORE", "datastore_id": &*row.datastore.id }],
        "version": row.version.to_string(),
        "state_info": { "state": "ACTIVE" },
    });
    if let Some(info) = &row.publication {
        let mut info = without_secrets(info);
        info["publish_url"] = json!(format!("{}/cls/vcsp/lib/{id}/lib.json", ask.base));
        shown["publish_info"] = info;
    }
    if let Some(info) = &row.subscription {
        shown["subscription_info"] = without_secrets(info);
    }
    if let Some(synced) = row.synced {
        shown["last_sync_time"] = json!(synced.to_string());
    }
    if let Some(policy) = &row.security_policy {
        shown["security_policy_id"] = json!(policy);
    }
    shown
}

fn without_secrets(info: &Value) -> Value {
    let mut info = info.clone();
    if let Some(fields) = info.as_object_mut() {
        fields.remove("password");
        fields.remove("current_password");
    }
    info
}

/// Libraries that a published one is pushed to: `[]` with `?library=`, `[library]`, or one of them by the body's `subscription`.
fn subscriptions(world: &mut World, ask: &Ask<'_>, path: &[&str]) -> Outcome {
    let library = match path {
        [] => ask.parameter("library"),
        [library, ..] => Some((*library).to_owned()),
    };
    let Some(library) = library.filter(|id| world.libraries.library(id).is_some()) else {
        return NOT_FOUND;
    };
    if ask.method == Method::POST && ask.action.is_none() {
        let spec = ask.spec("spec");
        let target = spec.get("subscribed_library").unwrap_or(spec);
        let id = match target.as_str() {
            Some(id) => id.to_owned(),
            None => text(target, "subscribed_library"),
        };
        if world.libraries.library(&id).is_none_or(|row| row.subscription.is_none()) {
            return NOT_FOUND;
        }
        let placement = target.get("placement").or_else(|| spec.get("placement"));
        let new = Subscriber { library: id, placement: placement.cloned().unwrap_or_default() };
        let key = world.libraries.new_id();
        if let Some(row) = world.libraries.library_mut(&library) {
            row.subscribers.insert(key.clone(), new);
        }
        return Outcome::Value(json!(key));
    }
    let name_of =
        |id: &str| world.libraries.library(id).map(|row| row.name.clone()).unwrap_or_default();
    let Some(row) = world.libraries.library(&library) else { return NOT_FOUND };
    let key = match path {
        [_, key] => (*key).to_owned(),
        _ => text(&ask.body, "subscription"),
    };
    let found = row.subscribers.get(&key);
    match (ask.method.as_str(), ask.action.as_deref(), found) {
        ("GET", None, None) if key.is_empty() => {
            let shown = |(key, subscriber): (&String, &Subscriber)| {
                json!({
                    "subscription": key,
                    "subscribed_library": subscriber.library,
                    "subscribed_library_name": name_of(&subscriber.library),
                })
            };
            Outcome::Value(json!(row.subscribers.iter().map(shown).collect::<Vec<_>>()))
        }
        ("GET", None, Some(found)) | ("POST", Some("get"), Some(found)) => Outcome::Value(json!({
            "subscribed_library": found.library,
            "subscribed_library_name": name_of(&found.library),
            "subscribed_library_location": "LOCAL",
            "subscribed_library_placement": found.placement,
        })),
        ("DELETE", None, Some(_)) | ("POST", Some("delete"), Some(_)) => {
            if let Some(row) = world.libraries.library_mut(&library) {
                row.subscribers.remove(&key);
            }
            Outcome::Nothing
        }
        _ => NOT_FOUND,
    }
}

fn subscribed_item(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>, id: &str) -> Outcome {
    let Some(library) = world.libraries.item(id).map(|item| item.library.clone()) else {
        return NOT_FOUND;
    };
    match ask.action.as_deref() {
        Some("sync") => {
            library::sync(world, &library, cx.now);
            library::set_cached(world, id, true);
            Outcome::Nothing
        }
        Some("evict") => {
            library::set_cached(world, id, false);
            Outcome::Nothing
        }
        _ => NOT_FOUND,
    }
}
