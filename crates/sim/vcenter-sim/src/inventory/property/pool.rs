use roost_vim_wire::types::{ResourceConfigSpec, ResourcePoolQuickStats, ResourcePoolSummary};
use roost_vim_wire::{Array, Field, MoRef, Value};

use super::entity::entity_properties;
use super::{Answer, known, reference, refs, text};
use crate::inventory::Inventory;
use crate::pool::Pool;
use crate::world::World;

pub(super) const ALL: &[&str] = entity_properties! { "childConfiguration" "config" "owner" "resourcePool" "runtime" "summary" "vm" };

pub(super) fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let inventory = &world.inventory;
    let row = inventory.pools.get(obj)?;
    match path {
        "name" => text(&row.name),
        "runtime" => known(&inventory.pool_runtime(obj)),
        "config" => known(&config(inventory, row)),
        "summary" => known(&summary(inventory, obj, row)),
        "owner" => reference(&row.owner),
        "resourcePool" => refs(&row.pools),
        "vm" => refs(inventory.vms_of(obj)),
        "childConfiguration" => {
            let pools = row
                .pools
                .iter()
                .filter_map(|pool| inventory.pools.get(pool))
                .map(|pool| pool.config.clone());
            let items = pools.filter_map(|config| config.to_value()).collect();
            Some(Some(Value::Array(Array::new("ResourceConfigSpec", items))))
        }
        "namespace" => Some(None),
        _ => None,
    }
}

/// A root pool reserves what its hosts have.
fn config(inventory: &Inventory, row: &Pool) -> ResourceConfigSpec {
    let mut config = row.config.clone();
    if row.parent == row.owner {
        let capacity = inventory.capacity(&row.owner);
        for (allocation, amount) in [
            (&mut config.cpu_allocation, capacity.mhz),
            (&mut config.memory_allocation, capacity.memory >> 20),
        ] {
            allocation.reservation = Some(amount);
            allocation.limit = Some(amount);
            allocation.expandable_reservation = Some(false);
        }
    }
    config
}

pub(super) fn summary(inventory: &Inventory, obj: &MoRef, row: &Pool) -> ResourcePoolSummary {
    let runtime = inventory.pool_runtime(obj);
    let memory_mb = runtime.memory.overall_usage >> 20;
    ResourcePoolSummary {
        name: row.name.as_ref().into(),
        config: config(inventory, row),
        quick_stats: Some(ResourcePoolQuickStats {
            overall_cpu_usage: Some(runtime.cpu.overall_usage),
            guest_memory_usage: Some(memory_mb),
            host_memory_usage: Some(memory_mb),
        }),
        configured_memory_mb: i32::try_from(memory_mb).ok(),
        runtime,
    }
}
