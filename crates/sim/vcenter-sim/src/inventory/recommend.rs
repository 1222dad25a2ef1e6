//! Recommendations: the datastore of a datastore cluster, the host of a cluster.

use roost_vim_wire::types::{
    ClusterRecommendation, StoragePlacementAction, StoragePlacementResult, StoragePlacementSpec,
    VirtualMachineRelocateSpec,
};
use roost_vim_wire::{Element, Fault, MoRef};

use crate::call::{CallContext, Failure};
use crate::pool::Demand;
use crate::vm::placement::{choose_host, roomiest};
use crate::world::World;

pub(super) fn datastores(
    world: &World,
    cx: &CallContext<'_>,
    spec: &StoragePlacementSpec,
) -> Result<StoragePlacementResult, Failure> {
    let selection = &spec.pod_selection_spec;
    let named = selection.storage_pod.as_ref();
    let pod =
        named.or_else(|| selection.initial_vm_config.first().map(|config| &config.storage_pod));
    let Some(pod) = pod.filter(|pod| !pod.is_null()) else {
        return Err(Failure::invalid_argument("storageSpec.podSelectionSpec.storagePod"));
    };
    if !world.inventory.contains(pod) {
        return Err(Failure::not_found(pod));
    }
    let Some(datastore) = roomiest(world, pod) else {
        let fault = Fault::of("StorageDrsCannotMoveManuallyPlacedVm");
        return Err(Failure::new(
            fault,
            "The datastore cluster has no datastore that could be used.",
        ));
    };
    let relocate =
        VirtualMachineRelocateSpec { datastore: Some(datastore.clone()), ..Default::default() };
    let action = StoragePlacementAction {
        kind: "StoragePlacementV1".into(),
        target: Some(pod.clone()),
        vm: spec.vm.clone(),
        relocate_spec: Some(relocate),
        destination: Some(datastore.clone()),
        ..StoragePlacementAction::of("StoragePlacementAction")
    };
    let recommendation = ClusterRecommendation {
        key: "1".into(),
        kind: "V1".into(),
        time: cx.now,
        rating: 1,
        reason: "storagePlacement".into(),
        reason_text: "Satisfy storage initial placement requests".into(),
        action: vec![action],
        target: Some(pod.clone()),
    };
    Ok(StoragePlacementResult {
        recommendations: vec![recommendation],
        drs_fault: None,
        task: None,
    })
}

/// One recommendation: the host with the most room, and the roomiest datastore that the request allows.
pub(super) fn place_vm(
    world: &World,
    cx: &CallContext<'_>,
    cluster: &MoRef,
    spec: &Element,
) -> Result<Element, Failure> {
    let Some(row) = world.inventory.computes.get(cluster) else {
        return Err(Failure::not_found(cluster));
    };
    let vm = spec.child("vm").and_then(Element::moref);
    let demand = vm
        .as_ref()
        .and_then(|vm| world.inventory.vms.get(vm))
        .map_or(Demand::default(), crate::vm::Vm::demand);
    let host = choose_host(&world.inventory, &row.pool, None, demand)?;
    let asked: Vec<MoRef> = spec.children_named("datastores").filter_map(Element::moref).collect();
    let free = |moref: &MoRef| {
        let capacity = world.inventory.datastores.get(moref).map_or(0, |row| row.capacity);
        world.store.free(moref, capacity)
    };
    let visible =
        world.inventory.datastores.iter().filter(|(_, store)| store.hosts.contains(&host));
    let allowed =
        visible.map(|(moref, _)| moref).filter(|moref| asked.is_empty() || asked.contains(moref));
    let datastore = allowed.max_by_key(|moref| free(moref)).cloned();
    let relocate = VirtualMachineRelocateSpec {
        datastore,
        pool: Some(row.pool.clone()),
        host: Some(host.clone()),
        ..Default::default()
    };
    let action = Element::new("action")
        .typed("PlacementAction")
        .with_field("type", &"PlacementV1".to_owned())
        .with_field("vm", &vm)
        .with_field("targetHost", &host)
        .with_field("relocateSpec", &relocate);
    let recommendation = Element::new("recommendations")
        .with_field("key", &"1".to_owned())
        .with_field("type", &"V1".to_owned())
        .with_field("time", &cx.now)
        .with_field("rating", &1)
        .with_field("reason", &"xvmotionPlacement".to_owned())
        .with_field("reasonText", &"Satisfy placement requests".to_owned())
        .with(action)
        .with_field("target", cluster);
    Ok(Element::new("returnval").typed("PlacementResult").with(recommendation))
}

/// For every VM that is asked for, the pool of those named that has the most memory left, and a host of it.
pub(super) fn place_across(
    world: &World,
    cx: &CallContext<'_>,
    spec: &Element,
) -> Result<Element, Failure> {
    let pools: Vec<MoRef> =
        spec.children_named("resourcePools").filter_map(Element::moref).collect();
    let left = |pool: &&MoRef| world.inventory.pool_runtime(pool).memory.unreserved_for_vm;
    let Some(pool) =
        pools.iter().filter(|pool| world.inventory.pools.contains(pool)).max_by_key(left)
    else {
        return Err(Failure::invalid_argument("placementSpec.resourcePools"));
    };
    let mut result = Element::new("returnval").typed("PlaceVmsXClusterResult");
    for (index, asked) in spec.children_named("vmPlacementSpecs").enumerate() {
        let config = asked.child("configSpec");
        let name = config.and_then(|config| config.text_of("name")).unwrap_or_default().to_owned();
        let host = choose_host(&world.inventory, pool, None, Demand::default())?;
        let mut action = Element::new("action")
            .typed("ClusterClusterInitialPlacementAction")
            .with_field("type", &"ClusterInitialPlacement".to_owned())
            .with_field("targetHost", &host)
            .with_field("pool", pool);
        action.children.extend(config.cloned());
        let recommendation = Element::new("recommendation")
            .with_field("key", &(index + 1).to_string())
            .with_field("type", &"V1".to_owned())
            .with_field("time", &cx.now)
            .with_field("rating", &1)
            .with_field("reason", &"xClusterPlacement".to_owned())
            .with_field("reasonText", &"Satisfy placement requests".to_owned())
            .with(action);
        let info = Element::new("placementInfos").with_field("vmName", &name).with(recommendation);
        result = result.with(info);
    }
    Ok(result)
}
