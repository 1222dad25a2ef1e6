//! Categories, tags, and which objects carry them.

use std::collections::{BTreeMap, BTreeSet};

use http::{Method, StatusCode};
use roost_vim_wire::{MoRef, MoType};
use serde_json::{Value, json};

use super::{Ask, INVALID, NOT_FOUND, Outcome};
use crate::world::World;

#[derive(Debug, Default)]
pub(super) struct Tags {
    categories: BTreeMap<String, Category>,
    tags: BTreeMap<String, Tag>,
}

#[derive(Debug)]
struct Category {
    name: String,
    description: String,
    /// `SINGLE` or `MULTIPLE`: how many of its tags an object may carry.
    cardinality: String,
    associable_types: Vec<String>,
}

#[derive(Debug)]
struct Tag {
    name: String,
    description: String,
    category: String,
    attached: BTreeSet<MoRef>,
}

const ALREADY_EXISTS: Outcome =
    Outcome::Error(StatusCode::BAD_REQUEST, "com.vmware.vapi.std.errors.already_exists");

/// `path` is what follows `tagging/`.
pub(super) fn carry_out(world: &mut World, ask: &Ask<'_>, path: &[&str]) -> Outcome {
    match path {
        ["category"] => {
            list_or_create(world, ask, create_category, |tags| tags.categories.keys().collect())
        }
        ["tag"] => list_or_create(world, ask, create_tag, |tags| tags.tags.keys().collect()),
        ["category", id] => one_category(world, ask, plain(id)),
        ["tag", id] => one_tag(world, ask, plain(id)),
        ["tag-association", id] => association(world, ask, plain(id)),
        ["tag-association"] if ask.action.as_deref() == Some("list-attached-tags") => {
            attached_tags(world, ask)
        }
        _ => NOT_FOUND,
    }
}

/// The older spelling writes `id:` before an id.
fn plain(id: &str) -> &str {
    id.strip_prefix("id:").unwrap_or(id)
}

fn list_or_create(
    world: &mut World,
    ask: &Ask<'_>,
    create: fn(&mut World, &Value) -> Outcome,
    list: fn(&Tags) -> Vec<&String>,
) -> Outcome {
    match *ask.method {
        Method::GET => Outcome::Value(json!(list(&world.rest.tags))),
        Method::POST => create(world, ask.body.get("create_spec").unwrap_or(&ask.body)),
        _ => NOT_FOUND,
    }
}

fn text(spec: &Value, field: &str) -> String {
    spec.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn create_category(world: &mut World, spec: &Value) -> Outcome {
    let name = text(spec, "name");
    if name.is_empty() {
        return INVALID;
    }
    if world.rest.tags.categories.values().any(|category| category.name == name) {
        return ALREADY_EXISTS;
    }
    let types = spec.get("associable_types").and_then(Value::as_array).cloned().unwrap_or_default();
    let category = Category {
        name,
        description: text(spec, "description"),
        cardinality: Some(text(spec, "cardinality"))
            .filter(|text| !text.is_empty())
            .unwrap_or("SINGLE".into()),
        associable_types: types.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
    };
    let id = format!("urn:vmomi:InventoryServiceCategory:{}:GLOBAL", world.rest.random.uuid());
    world.rest.tags.categories.insert(id.clone(), category);
    Outcome::Value(json!(id))
}

fn create_tag(world: &mut World, spec: &Value) -> Outcome {
    let (name, category) = (text(spec, "name"), text(spec, "category_id"));
    let tags = &world.rest.tags;
    if name.is_empty() {
        return INVALID;
    }
    if !tags.categories.contains_key(&category) {
        return NOT_FOUND;
    }
    if tags.tags.values().any(|tag| tag.name == name && tag.category == category) {
        return ALREADY_EXISTS;
    }
    let id = format!("urn:vmomi:InventoryServiceTag:{}:GLOBAL", world.rest.random.uuid());
    let tag =
        Tag { name, description: text(spec, "description"), category, attached: BTreeSet::new() };
    world.rest.tags.tags.insert(id.clone(), tag);
    Outcome::Value(json!(id))
}

fn one_category(world: &mut World, ask: &Ask<'_>, id: &str) -> Outcome {
    let tags = &mut world.rest.tags;
    let Some(category) = tags.categories.get(id) else { return NOT_FOUND };
    match *ask.method {
        Method::GET => Outcome::Value(json!({
            "id": id,
            "name": category.name,
            "description": category.description,
            "cardinality": category.cardinality,
            "associable_types": category.associable_types,
            "used_by": [],
        })),
        Method::DELETE => {
            tags.categories.remove(id);
            tags.tags.retain(|_, tag| tag.category != id);
            Outcome::Nothing
        }
        _ => NOT_FOUND,
    }
}

fn one_tag(world: &mut World, ask: &Ask<'_>, id: &str) -> Outcome {
    let tags = &mut world.rest.tags;
    if ask.action.as_deref() == Some("list-tags-for-category") {
        let of_category =
            tags.tags.iter().filter(|(_, tag)| tag.category == id).map(|(tag, _)| tag);
        return Outcome::Value(json!(of_category.collect::<Vec<_>>()));
    }
    let Some(tag) = tags.tags.get(id) else { return NOT_FOUND };
    match *ask.method {
        Method::GET => Outcome::Value(json!({
            "id": id,
            "name": tag.name,
            "description": tag.description,
            "category_id": tag.category,
            "used_by": [],
        })),
        Method::DELETE => {
            tags.tags.remove(id);
            Outcome::Nothing
        }
        _ => NOT_FOUND,
    }
}

fn object(ask: &Ask<'_>) -> Option<MoRef> {
    let object = ask.body.get("object_id")?;
    let part = |name| object.get(name).and_then(Value::as_str);
    Some(MoRef::new(MoType::from(part("type")?), part("id")?))
}

/// Attaching twice and detaching what is not attached are both success.
fn association(world: &mut World, ask: &Ask<'_>, id: &str) -> Outcome {
    let exists = |world: &World, obj: &MoRef| world.inventory.contains(obj);
    let found = object(ask).filter(|obj| exists(world, obj));
    let Some(tag) = world.rest.tags.tags.get_mut(id) else { return NOT_FOUND };
    match (ask.action.as_deref(), found) {
        (Some("attach"), Some(obj)) => {
            tag.attached.insert(obj);
            Outcome::Nothing
        }
        (Some("detach"), _) => {
            object(ask).map(|obj| tag.attached.remove(&obj));
            Outcome::Nothing
        }
        (Some("list-attached-objects"), _) => {
            let all =
                tag.attached.iter().map(|obj| json!({ "id": &*obj.id, "type": obj.kind.as_str() }));
            Outcome::Value(json!(all.collect::<Vec<_>>()))
        }
        _ => NOT_FOUND,
    }
}

fn attached_tags(world: &World, ask: &Ask<'_>) -> Outcome {
    let Some(obj) = object(ask) else { return INVALID };
    let carried = world
        .rest
        .tags
        .tags
        .iter()
        .filter(|(_, tag)| tag.attached.contains(&obj))
        .map(|(id, _)| id);
    Outcome::Value(json!(carried.collect::<Vec<_>>()))
}
