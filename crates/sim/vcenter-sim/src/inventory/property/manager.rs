//! Tasks, the collectors of history, and the managers that have properties.

use roost_vim_wire::{Array, MoRef, MoType, Value};

use super::{Answer, known, reference, refs};
use crate::event;
use crate::service::manager;
use crate::task;
use crate::world::World;

/// What a client may open of a kind at once, as a vCenter reports it.
const MAX_COLLECTORS: i32 = 32;

pub(super) fn all(kind: &MoType) -> &'static [&'static str] {
    match kind {
        MoType::Task => &["availableField", "info", "value"],
        MoType::TaskManager => &["description", "maxCollector", "recentTask"],
        MoType::EventManager => &["description", "latestEvent", "maxCollector"],
        MoType::EventHistoryCollector | MoType::TaskHistoryCollector => &["filter", "latestPage"],
        MoType::CustomFieldsManager => &["field"],
        MoType::GuestOperationsManager => &[
            "aliasManager",
            "authManager",
            "fileManager",
            "guestWindowsRegistryManager",
            "processManager",
        ],
        MoType::HostDatastoreBrowser => &["datastore", "supportedType"],
        MoType::EnvironmentBrowser => &["datastoreBrowser"],
        _ => &[],
    }
}

pub(super) fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let inventory = &world.inventory;
    match (&obj.kind, path) {
        (MoType::Task, "value" | "availableField")
        | (MoType::EnvironmentBrowser, "datastoreBrowser")
        | (MoType::HostDatastoreBrowser, "supportedType") => Some(None),
        (MoType::Task, _) => world.tasks.property(obj, path),
        (MoType::TaskManager, "recentTask") => refs(world.tasks.recent()),
        (MoType::TaskManager | MoType::EventManager, "maxCollector") => known(&MAX_COLLECTORS),
        (MoType::TaskManager, "description") => Some(Some(task::description())),
        (MoType::EventManager, "description") => Some(Some(event::description())),
        (MoType::EventManager, "latestEvent") => Some(world.events.latest()),
        (MoType::EventHistoryCollector, _) => world.events.collector_property(obj, path),
        (MoType::TaskHistoryCollector, _) => world.tasks.collector_property(world, obj, path),
        (MoType::CustomFieldsManager, "field") => {
            let items =
                inventory.custom_fields.definitions.iter().cloned().map(Value::data).collect();
            Some(Some(Value::Array(Array::new("CustomFieldDef", items))))
        }
        (MoType::GuestOperationsManager, _) => {
            let kind = match path {
                "processManager" => "GuestProcessManager",
                "fileManager" => "GuestFileManager",
                "authManager" => "GuestAuthManager",
                "aliasManager" => "GuestAliasManager",
                "guestWindowsRegistryManager" => "GuestWindowsRegistryManager",
                _ => return None,
            };
            reference(&manager(inventory.product, kind))
        }
        (MoType::HostDatastoreBrowser, "datastore") => {
            refs(inventory.datastore_of_browser(obj).as_ref())
        }
        _ => None,
    }
}
