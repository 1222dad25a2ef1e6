//! Datastores and datastore clusters.

use roost_vim_wire::types::DatastoreSummary;
use roost_vim_wire::{Array, MoRef, Value};

use super::entity::{self, entity_properties};
use super::{Answer, known, reference, refs, text};
use crate::inventory::Record;
use crate::inventory::{Datastore, DatastoreKind};
use crate::world::World;

pub(super) const ALL_DATASTORE: &[&str] =
    entity_properties! { "browser" "capability" "host" "info" "iormConfiguration" "summary" "vm" };

pub(super) const ALL_POD: &[&str] =
    entity_properties! { "childEntity" "childType" "podStorageDrsEntry" "summary" };

pub(super) fn datastore(world: &World, obj: &MoRef, path: &str) -> Answer {
    let row = world.inventory.datastores.get(obj)?;
    match path {
        "name" | "summary.name" | "info.name" => text(&row.name),
        "summary" => known(&summary(world, obj, row)),
        "summary.freeSpace" | "info.freeSpace" => known(&world.store.free(obj, row.capacity)),
        "summary.capacity" => known(&row.capacity),
        "summary.accessible" => known(&row.accessible),
        "info" => Some(Some(
            Record::of("VmfsDatastoreInfo")
                .text("name", &row.name)
                .text("url", &row.url)
                .set("freeSpace", &world.store.free(obj, row.capacity))
                .set("maxFileSize", &(62_i64 << 40))
                .value(),
        )),
        "host" => {
            let mount = |host: &MoRef| {
                let info = Record::of("HostMountInfo")
                    .text("path", &row.url)
                    .text("accessMode", "readWrite")
                    .set("mounted", &true)
                    .set("accessible", &row.accessible);
                Record::of("DatastoreHostMount").set("key", host).record("mountInfo", info).value()
            };
            Some(Some(Value::Array(Array::new(
                "DatastoreHostMount",
                row.hosts.iter().map(mount).collect(),
            ))))
        }
        "vm" => refs(world.inventory.vms_of(obj)),
        "browser" => reference(&row.browser),
        "capability" => Some(Some(
            Record::of("DatastoreCapability")
                .set("directoryHierarchySupported", &true)
                .set("rawDiskMappingsSupported", &true)
                .set("perFileThinProvisioningSupported", &true)
                .set("topLevelDirectoryCreateSupported", &(row.kind == DatastoreKind::Vmfs))
                .value(),
        )),
        "iormConfiguration" => Some(None),
        _ => None,
    }
}

fn summary(world: &World, obj: &MoRef, row: &Datastore) -> DatastoreSummary {
    DatastoreSummary {
        datastore: Some(obj.clone()),
        name: row.name.as_ref().into(),
        url: row.url.clone(),
        capacity: row.capacity,
        free_space: world.store.free(obj, row.capacity),
        uncommitted: Some(0),
        accessible: row.accessible,
        multiple_host_access: Some(row.hosts.len() > 1),
        kind: row.kind.name().into(),
        maintenance_mode: Some(if row.maintenance { "inMaintenance" } else { "normal" }.into()),
    }
}

/// A datastore cluster is a folder with a sum over its members.
pub(super) fn pod(world: &World, obj: &MoRef, path: &str) -> Answer {
    let folder = world.inventory.folders.get(obj)?;
    match path {
        "summary" => {
            let members = || {
                let rows = folder
                    .children
                    .iter()
                    .filter_map(|moref| Some((moref, world.inventory.datastores.get(moref)?)));
                rows.collect::<Vec<_>>()
            };
            let capacity: i64 = members().iter().map(|(_, row)| row.capacity).sum();
            let free: i64 =
                members().iter().map(|(moref, row)| world.store.free(moref, row.capacity)).sum();
            let summary = Record::of("StoragePodSummary").text("name", &folder.name);
            Some(Some(summary.set("capacity", &capacity).set("freeSpace", &free).value()))
        }
        "podStorageDrsEntry" => {
            let config = Record::of("StorageDrsPodConfigInfo")
                .set("enabled", &true)
                .set("ioLoadBalanceEnabled", &false);
            let config = Record::of("StorageDrsConfigInfo").record("podConfig", config);
            Some(Some(Record::of("PodStorageDrsEntry").record("storageDrsConfig", config).value()))
        }
        _ => entity::folder(world, obj, path),
    }
}
