//! What all objects of the tree have, and folders.

use roost_vim_wire::{Array, MoRef, Value};

use super::{Answer, empty_array, enumeration, known, named, refs, text};
use crate::world::World;

macro_rules! entity_properties {
    ($($own:literal)*) => {
        &[
            $($own,)* "alarmActionsEnabled", "availableField", "configIssue", "configStatus", "customValue",
            "declaredAlarmState", "disabledMethod", "effectiveRole", "name", "overallStatus", "parent", "permission",
            "recentTask", "tag", "triggeredAlarmState", "value",
        ]
    };
}
pub(super) use entity_properties;

pub(super) const ALL_FOLDER: &[&str] = entity_properties! { "childEntity" "childType" };

pub(super) fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let inventory = &world.inventory;
    match path {
        "name" => Some(inventory.name(obj).map(Value::string)),
        "parent" => known(&inventory.parent(obj)),
        "overallStatus" | "configStatus" => named("ManagedEntityStatus", "green"),
        "customValue" | "value" => values(world, obj),
        "availableField" => {
            let definitions = inventory.custom_fields.for_kind(obj);
            let items = definitions.into_iter().map(Value::data).collect();
            Some(Some(Value::Array(Array::new("CustomFieldDef", items))))
        }
        "recentTask" => refs(world.tasks.recent_of(obj)),
        // The id of the administrator's role.
        "effectiveRole" => Some(Some(Value::Array(Array::new("xsd:int", vec![Value::Int(-1)])))),
        "alarmActionsEnabled" => known(&true),
        "declaredAlarmState" | "triggeredAlarmState" => empty_array("AlarmState"),
        "permission" => empty_array("Permission"),
        "disabledMethod" => empty_array("xsd:string"),
        "configIssue" => empty_array("Event"),
        "tag" => empty_array("Tag"),
        _ => None,
    }
}

pub(super) fn values(world: &World, obj: &MoRef) -> Answer {
    let items = world.inventory.custom_fields.values(obj).into_iter().map(Value::data).collect();
    Some(Some(Value::Array(Array::new("CustomFieldValue", items))))
}

pub(super) fn folder(world: &World, obj: &MoRef, path: &str) -> Answer {
    let folder = world.inventory.folders.get(obj)?;
    match path {
        "name" => text(&folder.name),
        "childEntity" => refs(folder.children.iter()),
        "childType" => {
            let items = folder.kind.child_types().iter().map(|kind| Value::string(*kind)).collect();
            Some(Some(Value::Array(Array::new("xsd:string", items))))
        }
        "namespace" => Some(None),
        _ => None,
    }
}

/// The status that lights show: whether an object is as it should be.
pub(super) fn status(is_well: bool) -> Value {
    enumeration("ManagedEntityStatus", if is_well { "green" } else { "red" })
}
