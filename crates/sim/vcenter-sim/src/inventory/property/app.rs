//! vApps: what they have beyond pools.

use roost_vim_wire::{Element, Field, MoRef, MoType, Value};

use super::entity::entity_properties;
use super::{Answer, empty_array, enumeration, known, pool, reference, refs};
use crate::inventory::{Inventory, Record, app_ops};
use crate::pool::App;
use crate::vm::Power;
use crate::world::World;

pub(super) const ALL: &[&str] = entity_properties! {
    "childConfiguration" "childLink" "config" "datastore" "network" "owner" "parentFolder" "parentVApp" "resourcePool"
    "runtime" "summary" "vAppConfig" "vm"
};

pub(super) fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let inventory = &world.inventory;
    let row = inventory.pools.get(obj)?;
    let app = row.app.as_deref()?;
    let used = |places: fn(&crate::vm::Vm) -> Vec<MoRef>| {
        let mut all = Vec::new();
        for place in inventory.vms_of(obj).filter_map(|vm| inventory.vms.get(vm)).flat_map(places) {
            if !all.contains(&place) {
                all.push(place);
            }
        }
        refs(&all)
    };
    match path {
        "parentFolder" => reference(&app.folder),
        "parentVApp" => known(&Some(row.parent.clone()).filter(|at| at.kind == MoType::VirtualApp)),
        "childLink" => empty_array("VirtualAppLinkInfo"),
        "datastore" => used(crate::vm::Vm::datastores),
        "network" => used(crate::vm::Vm::networks),
        "vAppConfig" => Some(config(inventory, obj, app).to_value()),
        "summary" => Some(Some(summary(inventory, obj, app)?.value())),
        _ => pool::answer(world, obj, path),
    }
}

fn summary(inventory: &Inventory, obj: &MoRef, app: &App) -> Option<Record> {
    let pool = pool::summary(inventory, obj, inventory.pools.get(obj)?);
    let power = app_ops::state(inventory, obj);
    let state = if power == Power::On { "started" } else { "stopped" };
    let mut record = Record::of("VirtualAppSummary")
        .set("name", &pool.name)
        .set("config", &pool.config)
        .set("runtime", &pool.runtime)
        .set("quickStats", &pool.quick_stats)
        .set("configuredMemoryMB", &pool.configured_memory_mb);
    if let Some(product) = app.config.child("product") {
        let product = product.clone().typed("VAppProductInfo");
        record = record.put("product", Value::Other(Box::new(product)));
    }
    let record = record.put("vAppState", enumeration("VirtualAppVAppState", state));
    Some(
        record
            .set("suspended", &(power == Power::Suspended))
            .set("installBootRequired", &false)
            .set("instanceUuid", &app.uuid),
    )
}

/// The parts that a request gave, and what every vApp has: each VM in the order in which it starts.
fn config(inventory: &Inventory, obj: &MoRef, app: &App) -> Element {
    let mut whole = app.config.clone().typed("VAppConfigInfo");
    let missing = |whole: &Element, name: &str| whole.child(name).is_none();
    if missing(&whole, "ipAssignment") {
        whole = whole.with(Element::new("ipAssignment"));
    }
    if missing(&whole, "installBootRequired") {
        whole = whole.with_field("installBootRequired", &false);
    }
    if missing(&whole, "installBootStopDelay") {
        whole = whole.with_field("installBootStopDelay", &0_i32);
    }
    for (order, vm) in (1_i32..).zip(inventory.vms_of(obj)) {
        let entity = Element::new("entityConfig")
            .with_field("key", vm)
            .with_field("tag", &inventory.name(vm).map(ToOwned::to_owned))
            .with_field("startOrder", &order)
            .with_field("startDelay", &120_i32)
            .with_field("waitingForGuest", &false)
            .with_field("startAction", &"powerOn".to_owned())
            .with_field("stopDelay", &120_i32)
            .with_field("stopAction", &"powerOff".to_owned());
        whole = whole.with(entity);
    }
    whole.with_field("annotation", &app.annotation).with_field("instanceUuid", &app.uuid)
}
