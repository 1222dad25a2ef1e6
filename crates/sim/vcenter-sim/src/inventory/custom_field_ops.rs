use roost_vim_wire::MoRef;
use roost_vim_wire::types::CustomFieldDef;

use crate::call::Failure;
use crate::inventory::{checked_name, duplicate_name};
use crate::service::manager;
use crate::world::World;

pub(super) fn define(
    world: &mut World,
    name: &str,
    kind: Option<&str>,
) -> Result<CustomFieldDef, Failure> {
    let name = checked_name(name)?;
    let fields = manager(world.product, "CustomFieldsManager");
    if world.inventory.custom_fields.named(&name).is_some() {
        return Err(duplicate_name(&name, &fields));
    }
    let definition = world.inventory.custom_fields.define(&name, kind);
    world.inventory.changes.modified(&fields, ["field"]);
    Ok(definition)
}

pub(super) fn rename(world: &mut World, key: i32, name: &str) -> Result<(), Failure> {
    let name = checked_name(name)?;
    let fields = manager(world.product, "CustomFieldsManager");
    if world.inventory.custom_fields.named(&name).is_some_and(|other| other.key != key) {
        return Err(duplicate_name(&name, &fields));
    }
    let definitions = &mut world.inventory.custom_fields.definitions;
    let Some(definition) = definitions.iter_mut().find(|definition| definition.key == key) else {
        return Err(Failure::invalid_argument("key"));
    };
    definition.name = name;
    world.inventory.changes.modified(&fields, ["field"]);
    Ok(())
}

/// Takes the values along that objects have for it.
pub(super) fn remove(world: &mut World, key: i32) -> Result<(), Failure> {
    if world.inventory.custom_fields.get(key).is_none() {
        return Err(Failure::invalid_argument("key"));
    }
    for obj in world.inventory.custom_fields.remove(key) {
        world.inventory.changes.modified(&obj, ["customValue", "value", "summary.customValue"]);
    }
    let fields = manager(world.product, "CustomFieldsManager");
    world.inventory.changes.modified(&fields, ["field"]);
    Ok(())
}

pub(super) fn set(world: &mut World, entity: &MoRef, key: i32, value: &str) -> Result<(), Failure> {
    if !world.inventory.contains(entity) {
        return Err(Failure::not_found(entity));
    }
    let Some(definition) = world.inventory.custom_fields.get(key) else {
        return Err(Failure::invalid_argument("key"));
    };
    if definition.managed_object_type.as_deref().is_some_and(|base| !entity.kind.is_a(base)) {
        return Err(Failure::invalid_argument("entity"));
    }
    world.inventory.custom_fields.set(entity, key, value);
    world.inventory.changes.modified(entity, ["customValue", "value", "summary.customValue"]);
    Ok(())
}
