//! Datacenters, clusters and the compute resources of standalone hosts.

use roost_vim_wire::types::{ComputeResourceConfigInfo, ComputeResourceSummary};
use roost_vim_wire::{MoRef, MoType};

use super::entity::entity_properties;
use super::{Answer, known, reference, refs, text};
use crate::inventory::Record;
use crate::inventory::{Compute, Inventory};
use crate::world::World;

pub(super) const ALL_DATACENTER: &[&str] = entity_properties! { "datastore" "datastoreFolder" "hostFolder" "network" "networkFolder" "vmFolder" };

pub(super) const ALL_COMPUTE: &[&str] = entity_properties! { "configurationEx" "datastore" "environmentBrowser" "host" "network" "resourcePool" "summary" };

pub(super) const ALL_CLUSTER: &[&str] = entity_properties! {
    "configuration" "configurationEx" "datastore" "environmentBrowser" "host" "network" "resourcePool" "summary"
};

pub(super) fn datacenter(world: &World, obj: &MoRef, path: &str) -> Answer {
    let row = world.inventory.datacenters.get(obj)?;
    match path {
        "name" => text(&row.name),
        "vmFolder" => reference(&row.vm_folder),
        "hostFolder" => reference(&row.host_folder),
        "datastoreFolder" => reference(&row.datastore_folder),
        "networkFolder" => reference(&row.network_folder),
        "datastore" => refs(&row.datastores),
        "network" => refs(&row.networks),
        "configuration" => Some(None),
        _ => None,
    }
}

pub(super) fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let inventory = &world.inventory;
    let row = inventory.computes.get(obj)?;
    let is_cluster = obj.kind == MoType::ClusterComputeResource;
    match path {
        "name" => text(&row.name),
        "host" => refs(&row.hosts),
        "resourcePool" => reference(&row.pool),
        "environmentBrowser" => reference(&row.environment),
        "datastore" | "network" => {
            let datacenter = inventory
                .datacenter_of(obj)
                .and_then(|datacenter| inventory.datacenters.get(&datacenter));
            let all = datacenter
                .map(|row| if path == "network" { &row.networks } else { &row.datastores });
            refs(all.into_iter().flatten())
        }
        "summary" => known(&summary(inventory, obj, row)),
        "configurationEx" if !is_cluster => known(&ComputeResourceConfigInfo {
            vm_swap_placement: "vmDirectory".into(),
            spbm_enabled: Some(false),
            default_hardware_version_key: None,
        }),
        "configurationEx" => Some(Some(row.config.info_ex().value())),
        "configuration" if is_cluster => Some(Some(
            Record::of("ClusterConfigInfo")
                .record("dasConfig", row.config.das())
                .record("drsConfig", row.config.drs())
                .value(),
        )),
        "lifecycleManaged" | "configManagerEnabled" => Some(None),
        "recommendation" | "drsRecommendation" | "drsFault" | "actionHistory"
        | "migrationHistory" | "summaryEx" | "hciConfig"
            if is_cluster =>
        {
            Some(None)
        }
        _ => None,
    }
}

fn summary(inventory: &Inventory, obj: &MoRef, row: &Compute) -> ComputeResourceSummary {
    let all: Vec<_> = row.hosts.iter().filter_map(|host| inventory.hosts.get(host)).collect();
    let usable = all.iter().filter(|host| host.is_usable());
    let capacity = inventory.capacity(obj);
    let cores = all.iter().map(|host| i32::from(host.cores)).sum();
    let total_mhz: i64 = all.iter().map(|host| host.capacity().mhz).sum();
    let narrow = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
    ComputeResourceSummary {
        total_cpu: narrow(total_mhz),
        total_memory: all.iter().map(|host| host.memory).sum(),
        num_cpu_cores: cores,
        num_cpu_threads: cores * 2,
        effective_cpu: narrow(capacity.mhz),
        // In MB, alone among its neighbours.
        effective_memory: capacity.memory >> 20,
        num_hosts: i32::try_from(all.len()).unwrap_or(i32::MAX),
        num_effective_hosts: i32::try_from(usable.count()).unwrap_or(i32::MAX),
        overall_status: "green".into(),
        ..ComputeResourceSummary::of(match obj.kind {
            MoType::ClusterComputeResource => "ClusterComputeResourceSummary",
            _ => "ComputeResourceSummary",
        })
    }
}
