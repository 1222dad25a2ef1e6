//! Items of a library, and their files.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{ALREADY_EXISTS, Ask, NOT_FOUND, Outcome, invalid, library_session, text};
use crate::call::CallContext;
use crate::library::{self, Item, ItemFile};
use crate::world::World;

/// `path` is what follows `content/library/item`.
pub(super) fn carry_out(
    world: &mut World,
    cx: &CallContext<'_>,
    ask: &Ask<'_>,
    path: &[&str],
) -> Outcome {
    match path {
        [] if ask.is("find") => find(world, ask.spec("spec")),
        [] if ask.method == Method::POST => create(world, cx, ask.spec("create_spec")),
        [] => {
            let library = ask.parameter("library_id").unwrap_or_default();
            if world.libraries.library(&library).is_none() {
                return NOT_FOUND;
            }
            let ids = world.libraries.items_of(&library).map(|(id, _)| id);
            Outcome::Value(json!(ids.collect::<Vec<_>>()))
        }
        ["file"] => files(world, &ask.parameter("library_item_id").unwrap_or_default()),
        ["file", id] if ask.is("get") => file(world, id, &text(&ask.body, "name")),
        ["storage"] => storage(world, &ask.parameter("library_item_id").unwrap_or_default(), ""),
        ["storage", id] if ask.is("get") => storage(world, id, &text(&ask.body, "file_name")),
        ["update-session" | "updatesession" | "download-session" | "downloadsession", ..] => {
            library_session::carry_out(world, cx, ask, path)
        }
        [id, "file"] => match ask.parameter("name") {
            Some(name) => file(world, id, &name),
            None => files(world, id),
        },
        [id, "storage"] => storage(world, id, &ask.parameter("file_name").unwrap_or_default()),
        [id] => one(world, cx, ask, id),
        _ => NOT_FOUND,
    }
}

fn find(world: &World, spec: &Value) -> Outcome {
    let (name, library, kind) = (text(spec, "name"), text(spec, "library_id"), text(spec, "type"));
    let fits = |(_, item): &(&String, &Item)| {
        (name.is_empty() || item.name.eq_ignore_ascii_case(&name))
            && (library.is_empty() || item.library == library)
            && (kind.is_empty() || item.kind == kind)
    };
    let ids = world.libraries.items().filter(fits).map(|(id, _)| id);
    Outcome::Value(json!(ids.collect::<Vec<_>>()))
}

/// Items of a subscribed library come from its source only.
pub(super) const SUBSCRIBED: Outcome =
    Outcome::Error(StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.invalid_element_type");

fn create(world: &mut World, cx: &CallContext<'_>, spec: &Value) -> Outcome {
    let (name, library) = (text(spec, "name"), text(spec, "library_id"));
    if name.is_empty() {
        return invalid("An item needs a name.");
    }
    match world.libraries.library(&library) {
        None => return NOT_FOUND,
        Some(row) if row.subscription.is_some() => return SUBSCRIBED,
        Some(_) => {}
    }
    if world.libraries.item_named(&library, &name).is_some() {
        return ALREADY_EXISTS;
    }
    let item = Item {
        library,
        name,
        description: text(spec, "description"),
        kind: text(spec, "type"),
        created: cx.now,
        modified: cx.now,
        version: 1,
        content_version: 1,
        files: BTreeMap::new(),
        template: None,
        source: None,
        is_cached: true,
    };
    Outcome::Value(json!(world.libraries.add_item(item)))
}

fn one(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>, id: &str) -> Outcome {
    let Some(item) = world.libraries.item(id) else { return NOT_FOUND };
    match (ask.method.as_str(), ask.action.as_deref()) {
        ("GET", _) => {
            let library = world.libraries.library(&item.library);
            let is_secured = library.is_some_and(|row| row.security_policy.is_some());
            Outcome::Value(shown(id, item, is_secured))
        }
        ("DELETE", _) => {
            library::delete_item(world, id, cx.now);
            Outcome::Nothing
        }
        ("PATCH", _) => patch(world, cx, ask.spec("update_spec"), id),
        ("POST", Some("copy")) => {
            let spec = ask.spec("destination_create_spec");
            let (into, name) = (text(spec, "library_id"), text(spec, "name"));
            let name = if name.is_empty() { item.name.clone() } else { name };
            if world.libraries.item_named(&into, &name).is_some() {
                return ALREADY_EXISTS;
            }
            let copied = library::copy_item(world, id, &into, &name, cx.now);
            copied.map_or(NOT_FOUND, |id| Outcome::Value(json!(id)))
        }
        ("POST", Some("publish")) => Outcome::Nothing,
        _ => NOT_FOUND,
    }
}

fn patch(world: &mut World, cx: &CallContext<'_>, spec: &Value, id: &str) -> Outcome {
    let Some(library) = world.libraries.item(id).map(|item| item.library.clone()) else {
        return NOT_FOUND;
    };
    let name = text(spec, "name");
    if !name.is_empty()
        && world.libraries.item_named(&library, &name).is_some_and(|other| other != id)
    {
        return ALREADY_EXISTS;
    }
    let Some(item) = world.libraries.item_mut(id) else { return NOT_FOUND };
    if !name.is_empty() {
        item.name = name;
    }
    if let Some(description) = spec.get("description").and_then(Value::as_str) {
        description.clone_into(&mut item.description);
    }
    let kind = text(spec, "type");
    if !kind.is_empty() {
        item.kind = kind;
    }
    item.version += 1;
    item.modified = cx.now;
    Outcome::Nothing
}

fn shown(id: &str, item: &Item, is_secured: bool) -> Value {
    let mut shown = json!({
        "id": id,
        "library_id": item.library,
        "name": item.name,
        "description": item.description,
        "type": item.kind,
        "creation_time": item.created.to_string(),
        "last_modified_time": item.modified.to_string(),
        "version": item.version.to_string(),
        "content_version": item.content_version.to_string(),
        "metadata_version": "1",
        "size": item.size(),
        "cached": item.is_cached,
        // Nothing here is signed, so no item is what a policy asks for.
        "security_compliance": !is_secured,
    });
    if is_secured {
        shown["certificate_verification_info"] = json!({ "status": "NOT_AVAILABLE" });
    }
    if let Some(source) = &item.source {
        shown["source_id"] = json!(source);
        shown["last_sync_time"] = json!(item.modified.to_string());
    }
    shown
}

fn shown_file(name: &str, file: &ItemFile, is_cached: bool) -> Value {
    let mut shown = json!({
        "name": name,
        "size": file.size,
        "cached": is_cached,
        "version": file.version.to_string(),
    });
    if let Some(checksum) = &file.checksum {
        shown["checksum_info"] = checksum.clone();
    }
    shown
}

fn files(world: &World, id: &str) -> Outcome {
    let Some(item) = world.libraries.item(id) else { return NOT_FOUND };
    let all = item.files.iter().map(|(name, file)| shown_file(name, file, item.is_cached));
    Outcome::Value(json!(all.collect::<Vec<_>>()))
}

fn file(world: &World, id: &str, name: &str) -> Outcome {
    let Some(item) = world.libraries.item(id) else { return NOT_FOUND };
    let found = item.files.get(name);
    found.map_or(NOT_FOUND, |file| Outcome::Value(shown_file(name, file, item.is_cached)))
}

/// Where the files are, as addresses of the datastore: all of them, or the one of this name.
fn storage(world: &World, id: &str, name: &str) -> Outcome {
    let Some(item) = world.libraries.item(id) else { return NOT_FOUND };
    let row = |(name, file): (&String, &ItemFile)| {
        let mut shown = shown_file(name, file, item.is_cached);
        let url = world.inventory.datastores.get(&file.path.datastore).map(|row| row.url.clone());
        let url = url.unwrap_or_default();
        let uri = format!("{}/{}", url.trim_end_matches('/'), file.path.path);
        shown["storage_backing"] =
            json!({ "type": "DATASTORE", "datastore_id": &*file.path.datastore.id });
        shown["storage_uris"] = json!([uri]);
        shown
    };
    let wanted = item.files.iter().filter(|(own, _)| name.is_empty() || *own == name);
    Outcome::Value(json!(wanted.map(row).collect::<Vec<_>>()))
}
