//! Categories, tags, and which objects carry them.

use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use roost_vim_wire::{MoRef, MoType};
use serde_json::{Value, json};

use super::{ALREADY_EXISTS, Ask, INVALID, NOT_FOUND, Outcome, strings, text};
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

impl Category {
    /// Whether its tags can be on this object; a category without types is for all.
    fn takes(&self, obj: &MoRef) -> bool {
        let fits = |kind: &String| {
            let kind = kind.rsplit(':').next().unwrap_or(kind);
            kind == "All" || obj.kind.is_a(kind)
        };
        self.associable_types.is_empty() || self.associable_types.iter().any(fits)
    }
}

#[derive(Debug)]
struct Tag {
    name: String,
    description: String,
    category: String,
    attached: BTreeSet<MoRef>,
}

/// `path` is what follows `tagging/`.
pub(super) fn carry_out(world: &mut World, ask: &Ask<'_>, path: &[&str]) -> Outcome {
    match path {
        ["category"] => {
            list_or_create(world, ask, create_category, |tags| tags.categories.keys().collect())
        }
        ["tag"] => list_or_create(world, ask, create_tag, |tags| tags.tags.keys().collect()),
        ["category", id] => one_category(world, ask, id),
        ["tag", id] => one_tag(world, ask, id),
        ["tag-association", id] => association(world, ask, id),
        ["tag-association"] => many(world, ask),
        _ => NOT_FOUND,
    }
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
        Method::PATCH => patch_category(tags, id, ask.spec("update_spec")),
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
    if ask.is("list-tags-for-category") {
        let of_category =
            tags.tags.iter().filter(|(_, tag)| tag.category == id).map(|(tag, _)| tag);
        return Outcome::Value(json!(of_category.collect::<Vec<_>>()));
    }
    let Some(tag) = tags.tags.get(id) else { return NOT_FOUND };
    match *ask.method {
        Method::PATCH => patch_tag(tags, id, ask.spec("update_spec")),
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

/// What a `PATCH` leaves out or sends empty stays.
fn given(spec: &Value, field: &str) -> Option<String> {
    Some(text(spec, field)).filter(|text| !text.is_empty())
}

/// A category can be renamed, described and widened: from one tag to several, from some types to more.
fn patch_category(tags: &mut Tags, id: &str, spec: &Value) -> Outcome {
    let name = given(spec, "name");
    let is_taken = |(other, row): (&String, &Category)| {
        *other != id && name.as_ref().is_some_and(|name| row.name == *name)
    };
    if tags.categories.iter().any(is_taken) {
        return ALREADY_EXISTS;
    }
    let Some(row) = tags.categories.get_mut(id) else { return NOT_FOUND };
    let cardinality = given(spec, "cardinality");
    if cardinality.as_deref() == Some("SINGLE") && row.cardinality == "MULTIPLE" {
        return INVALID;
    }
    row.name = name.unwrap_or_else(|| std::mem::take(&mut row.name));
    row.cardinality = cardinality.unwrap_or_else(|| std::mem::take(&mut row.cardinality));
    if let Some(description) = given(spec, "description") {
        row.description = description;
    }
    for kind in strings(spec, "associable_types") {
        if !row.associable_types.contains(&kind) {
            row.associable_types.push(kind);
        }
    }
    Outcome::Nothing
}

fn patch_tag(tags: &mut Tags, id: &str, spec: &Value) -> Outcome {
    let (name, category) = (given(spec, "name"), tags.tags.get(id).map(|tag| tag.category.clone()));
    let is_taken = |(other, row): (&String, &Tag)| {
        *other != id
            && Some(&row.category) == category.as_ref()
            && name.as_ref().is_some_and(|name| row.name == *name)
    };
    if tags.tags.iter().any(is_taken) {
        return ALREADY_EXISTS;
    }
    let Some(row) = tags.tags.get_mut(id) else { return NOT_FOUND };
    row.name = name.unwrap_or_else(|| std::mem::take(&mut row.name));
    if let Some(description) = given(spec, "description") {
        row.description = description;
    }
    Outcome::Nothing
}

pub(super) fn object(ask: &Ask<'_>) -> Option<MoRef> {
    as_object(ask.body.get("object_id")?)
}

fn as_object(object: &Value) -> Option<MoRef> {
    let part = |name| object.get(name).and_then(Value::as_str);
    Some(MoRef::new(MoType::from(part("type")?), part("id")?))
}

pub(super) fn objects(ask: &Ask<'_>) -> Vec<MoRef> {
    let all = ask.body.get("object_ids").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(as_object).collect()
}

fn shown(obj: &MoRef) -> Value {
    json!({ "id": &*obj.id, "type": obj.kind.as_str() })
}

/// Whether something that a tag can be on exists: an object of the inventory, a library or one of its items.
fn exists(world: &World, obj: &MoRef) -> bool {
    match obj.kind.as_str() {
        "com.vmware.content.Library" => world.libraries.library(&obj.id).is_some(),
        "com.vmware.content.library.Item" => world.libraries.item(&obj.id).is_some(),
        _ => world.inventory.contains(obj),
    }
}

/// Puts a tag on an object. An object carries one tag of a category at most, unless the category allows several.
fn attach(world: &mut World, id: &str, obj: &MoRef) -> Result<(), &'static str> {
    if !exists(world, obj) {
        return Err("The object does not exist.");
    }
    let tags = &mut world.rest.tags;
    let Some(tag) = tags.tags.get(id) else { return Err("The tag does not exist.") };
    let category = tags.categories.get(&tag.category);
    if category.is_some_and(|category| !category.takes(obj)) {
        return Err("The category is not for objects of this type.");
    }
    let is_single = category.is_some_and(|category| category.cardinality == "SINGLE");
    let carries_other = |(other, row): (&String, &Tag)| {
        other != id && row.category == tag.category && row.attached.contains(obj)
    };
    if is_single && tags.tags.iter().any(carries_other) {
        return Err("The object has another tag of this category already.");
    }
    if let Some(tag) = tags.tags.get_mut(id) {
        tag.attached.insert(obj.clone());
    }
    Ok(())
}

/// The calls about many tags or many objects.
fn many(world: &mut World, ask: &Ask<'_>) -> Outcome {
    match ask.action.as_deref() {
        Some("list-attached-tags") => attached_tags(world, ask),
        Some(action @ ("attach-multiple-tags-to-object" | "detach-multiple-tags-from-object")) => {
            let Some(obj) = object(ask) else { return INVALID };
            let mut errors = Vec::new();
            for id in strings(&ask.body, "tag_ids") {
                let done = if action.starts_with("attach") {
                    attach(world, &id, &obj)
                } else {
                    detach(world, &id, &obj)
                };
                errors.extend(done.err().map(|words| failed_batch(&id, words)));
            }
            Outcome::Value(json!({ "success": errors.is_empty(), "error_messages": errors }))
        }
        Some("list-attached-objects-on-tags") => {
            let of = |id: String| {
                let tag = world.rest.tags.tags.get(&id)?;
                let objects: Vec<Value> = tag.attached.iter().map(shown).collect();
                Some(json!({ "tag_id": id, "object_ids": objects }))
            };
            let all: Vec<Value> =
                strings(&ask.body, "tag_ids").into_iter().filter_map(of).collect();
            Outcome::Value(json!(all))
        }
        Some("list-attached-tags-on-objects") => {
            let of =
                |obj: MoRef| json!({ "object_id": shown(&obj), "tag_ids": carried(world, &obj) });
            Outcome::Value(json!(objects(ask).into_iter().map(of).collect::<Vec<_>>()))
        }
        _ => NOT_FOUND,
    }
}

fn failed_batch(id: &str, words: &str) -> Value {
    json!({ "id": "com.vmware.vapi.std.errors.error", "default_message": format!("{id}: {words}"), "args": [] })
}

fn detach(world: &mut World, id: &str, obj: &MoRef) -> Result<(), &'static str> {
    let tag = world.rest.tags.tags.get_mut(id).ok_or("The tag does not exist.")?;
    tag.attached.remove(obj);
    Ok(())
}

/// The tags that an object carries, for storage policies that ask for one.
pub(crate) fn tag_names(world: &World, obj: &MoRef) -> Vec<(String, String)> {
    let tags = &world.rest.tags;
    let on_it = tags.tags.values().filter(|tag| tag.attached.contains(obj));
    let named = on_it.filter_map(|tag| {
        Some((tags.categories.get(&tag.category)?.name.clone(), tag.name.clone()))
    });
    named.collect()
}

/// Whether there is a tag of this name in this category.
pub(crate) fn has_tag(world: &World, category: &str, name: &str) -> bool {
    let tags = &world.rest.tags;
    let is_it = |tag: &Tag| {
        tag.name == name
            && tags.categories.get(&tag.category).is_some_and(|row| row.name == category)
    };
    tags.tags.values().any(is_it)
}

fn carried(world: &World, obj: &MoRef) -> Vec<String> {
    let all = world.rest.tags.tags.iter().filter(|(_, tag)| tag.attached.contains(obj));
    all.map(|(id, _)| id.clone()).collect()
}

/// Attaching twice and detaching what is not attached are both success.
fn association(world: &mut World, ask: &Ask<'_>, id: &str) -> Outcome {
    if !world.rest.tags.tags.contains_key(id) {
        return NOT_FOUND;
    }
    match ask.action.as_deref() {
        Some("attach") => {
            let Some(obj) = object(ask).filter(|obj| exists(world, obj)) else { return NOT_FOUND };
            attach(world, id, &obj).map_or_else(super::invalid, |()| Outcome::Nothing)
        }
        Some("attach-tag-to-multiple-objects") => {
            let mut errors = Vec::new();
            for obj in objects(ask) {
                errors.extend(attach(world, id, &obj).err().map(|why| failed_batch(id, why)));
            }
            Outcome::Value(json!({ "success": errors.is_empty(), "error_messages": errors }))
        }
        Some("detach") => {
            let done = object(ask).map_or(Ok(()), |obj| detach(world, id, &obj));
            done.map_or(NOT_FOUND, |()| Outcome::Nothing)
        }
        Some("list-attached-objects") => {
            let all = world.rest.tags.tags.get(id).map(|tag| tag.attached.iter().map(shown));
            Outcome::Value(json!(all.into_iter().flatten().collect::<Vec<_>>()))
        }
        _ => NOT_FOUND,
    }
}

fn attached_tags(world: &World, ask: &Ask<'_>) -> Outcome {
    let Some(obj) = object(ask) else { return INVALID };
    Outcome::Value(json!(carried(world, &obj)))
}
