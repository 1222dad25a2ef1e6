//! Recommendations: the datastore of a datastore cluster, the host of a cluster.

use roost_vim_wire::types::{
    ClusterRecommendation, StoragePlacementAction, StoragePlacementResult, StoragePlacementSpec,
    VirtualMachineRelocateSpec,
};
use roost_vim_wire::{Element, Fault, MoRef, MoType};

use crate::call::{CallContext, Failure};
use crate::pool::Demand;
use crate::vm::placement::{choose_host, least_loaded, roomiest_for};
use crate::vm::{Settings, initial_bytes};
use crate::world::World;

/// One recommendation per datastore that has room, the roomiest first.
pub(super) fn datastores(
    world: &mut World,
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
    let needed = needed_bytes(world, spec);
    let policy = spec.config_spec.as_ref().and_then(|config| {
        let id = config.vm_profile.first()?.text_of("profileId")?;
        Some(id).filter(|id| !id.is_empty())
    });
    let allowed = allowed_by(world, policy)?;
    let mut found: Vec<(i64, MoRef)> = members(world, pod)
        .into_iter()
        .filter_map(|moref| {
            let row = world.inventory.datastores.get(&moref)?;
            let free = world.store.free(&moref, row.capacity);
            let fits = allowed.as_ref().is_none_or(|allowed| allowed.contains(&moref));
            (row.accessible && !row.maintenance && fits && free >= needed).then_some((free, moref))
        })
        .collect();
    found.sort_by_key(|(free, _)| std::cmp::Reverse(*free));
    if found.is_empty() {
        let fault = Fault::of("StorageDrsCannotMoveManuallyPlacedVm");
        return Err(Failure::new(
            fault,
            "The datastore cluster has no datastore that could be used.",
        ));
    }
    let mut recommendations = Vec::new();
    for (index, (_, datastore)) in found.into_iter().enumerate() {
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
        recommendations.push(ClusterRecommendation {
            key: world.recommendations.keep(spec, &datastore),
            kind: "V1".into(),
            time: cx.now,
            rating: 5 - i32::try_from(index).unwrap_or(4).min(4),
            reason: "storagePlacement".into(),
            reason_text: "Satisfy storage initial placement requests".into(),
            action: vec![action],
            target: Some(pod.clone()),
        });
    }
    Ok(StoragePlacementResult { recommendations, drs_fault: None, task: None })
}

/// The datastores of a cluster, or the one that is named in its place.
fn members(world: &World, pod: &MoRef) -> Vec<MoRef> {
    if pod.kind == MoType::Datastore {
        return vec![pod.clone()];
    }
    let folder = world.inventory.folders.get(pod);
    folder.map(|folder| folder.children.iter().cloned().collect()).unwrap_or_default()
}

/// What the disks of a request take at once.
fn needed_bytes(world: &World, spec: &StoragePlacementSpec) -> i64 {
    let of_config = spec.config_spec.iter().flat_map(|config| &config.device_change);
    let new: i64 = of_config
        .filter(|change| change.device.is_disk())
        .map(|change| {
            let device = &change.device;
            let kb = device.capacity_in_kb.or(device.capacity_in_bytes.map(|bytes| bytes / 1024));
            let thin = device.backing.as_ref().and_then(|backing| backing.thin_provisioned);
            initial_bytes(kb.unwrap_or(0), thin.unwrap_or(false))
        })
        .sum();
    let source = spec.vm.as_ref().and_then(|vm| world.inventory.vms.get(vm));
    let copied: i64 = source.map_or(0, |vm| {
        vm.config.disks().map(|disk| initial_bytes(disk.capacity_kb, disk.file.thin)).sum()
    });
    new + copied
}

/// What a VM takes that does not exist yet.
fn demand_of(config: Option<&Element>) -> Demand {
    let Some(config) = config else { return Demand::default() };
    let number = |name: &str| {
        config.number_of(name).and_then(|number| i32::try_from(number).ok()).unwrap_or(0)
    };
    Demand::of(number("numCPUs"), number("memoryMB"), &Settings::default())
}

/// The storage policy of a configuration.
fn profile_of(config: Option<&Element>) -> Option<String> {
    let profile = config?.child("vmProfile")?.text_of("profileId")?;
    Some(profile.to_owned()).filter(|id| !id.is_empty())
}

fn allowed_by(world: &World, profile: Option<&str>) -> Result<Option<Vec<MoRef>>, Failure> {
    profile.map(|id| crate::policy::compatible(world, id)).transpose()
}

/// One recommendation: the host with the most room, and the roomiest datastore that request and storage policy allow.
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
    let config = spec.child("configSpec");
    let demand = vm
        .as_ref()
        .and_then(|vm| world.inventory.vms.get(vm))
        .map_or_else(|| demand_of(config), crate::vm::Vm::demand);
    let hosts: Vec<MoRef> = spec.children_named("hosts").filter_map(Element::moref).collect();
    if hosts.iter().any(|host| !row.hosts.contains(host)) {
        return Err(Failure::invalid_argument("placementSpec.hosts"));
    }
    let host = if hosts.is_empty() {
        choose_host(&world.inventory, &row.pool, None, demand)?
    } else {
        least_loaded(&world.inventory, &hosts, demand)?
    };
    let asked: Vec<MoRef> = spec.children_named("datastores").filter_map(Element::moref).collect();
    let by_policy = allowed_by(world, profile_of(config).as_deref())?;
    let allowed = match (asked.is_empty(), by_policy) {
        (true, by_policy) => by_policy,
        (false, None) => Some(asked),
        (false, Some(policy)) => Some(asked.into_iter().filter(|at| policy.contains(at)).collect()),
    };
    let datastore = roomiest_for(world, &row.pool, allowed.as_deref());
    if datastore.is_none() {
        let fault = Fault::of("NoCompatibleDatastore");
        return Err(Failure::new(fault, "No datastore is compatible with the virtual machine."));
    }
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

/// For every VM that is asked for, the pool of those named whose hosts have the most memory left after the VMs before it, a host
/// of it, and a datastore if one is wanted. A VM that fits nowhere comes back with the reason per pool.
pub(super) fn place_across(
    world: &World,
    cx: &CallContext<'_>,
    spec: &Element,
) -> Result<Element, Failure> {
    let pools: Vec<MoRef> =
        spec.children_named("resourcePools").filter_map(Element::moref).collect();
    if pools.is_empty() || !pools.iter().all(|pool| world.inventory.pools.contains(pool)) {
        return Err(Failure::invalid_argument("placementSpec.resourcePools"));
    }
    let wants = |name: &str| spec.text_of(name) == Some("true");
    let mut given: Vec<(MoRef, i64)> = Vec::new();
    let mut result = Element::new("returnval").typed("PlaceVmsXClusterResult");
    let mut faults = Vec::new();
    for (index, asked) in spec.children_named("vmPlacementSpecs").enumerate() {
        let config = asked.child("configSpec");
        let name = config.and_then(|config| config.text_of("name")).unwrap_or_default().to_owned();
        let demand = demand_of(config);
        let allowed = allowed_by(world, profile_of(config).as_deref())?;
        let mut best: Option<(i64, &MoRef, MoRef, MoRef)> = None;
        let mut refusals = Vec::new();
        for pool in &pools {
            let taken: i64 = given.iter().filter(|(at, _)| at == pool).map(|(_, sum)| sum).sum();
            let own = Demand { memory: demand.memory + taken, ..demand };
            let host = match choose_host(&world.inventory, pool, None, own) {
                Ok(host) => host,
                Err(failure) => {
                    refusals.push((pool, failure));
                    continue;
                }
            };
            let Some(datastore) = roomiest_for(world, pool, allowed.as_deref()) else {
                let words = "No datastore is compatible with the virtual machine.";
                refusals.push((pool, Failure::of("NoCompatibleDatastore", words)));
                continue;
            };
            let left = world.inventory.pool_runtime(pool).memory.unreserved_for_vm - taken;
            if best.as_ref().is_none_or(|(most, ..)| left > *most) {
                best = Some((left, pool, host, datastore));
            }
        }
        let Some((_, pool, host, datastore)) = best else {
            for (pool, failure) in refusals {
                let row = Element::new("faults")
                    .with_field("resourcePool", pool)
                    .with_field("vmName", &name)
                    .with_field("faults", &failure.localized());
                faults.push(row);
            }
            continue;
        };
        given.push((pool.clone(), demand.memory));
        let mut action = Element::new("action")
            .typed("ClusterClusterInitialPlacementAction")
            .with_field("type", &"ClusterInitialPlacement".to_owned());
        if wants("hostRecommRequired") {
            action = action.with_field("targetHost", &host);
        }
        action = action.with_field("pool", pool);
        let config = config.cloned().map(|config| {
            if wants("datastoreRecommRequired") {
                put_on(world, config, &datastore)
            } else {
                config
            }
        });
        action.children.extend(config);
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
    Ok(faults.into_iter().fold(result, Element::with))
}

/// The configuration with its home and its disks on a datastore.
fn put_on(world: &World, mut config: Element, datastore: &MoRef) -> Element {
    let path = format!("[{}]", world.inventory.name(datastore).unwrap_or_default());
    let home = Element::new("files").with_field("vmPathName", &path);
    match config.child_mut("files") {
        Some(files) => *files = home,
        // Clients read by name, so the place among its siblings does not matter.
        None => config.children.push(home),
    }
    for change in config.children.iter_mut().filter(|child| child.name == "deviceChange") {
        let Some(device) = change.child_mut("device") else { continue };
        if device.xsi_type.as_deref() != Some("VirtualDisk") {
            continue;
        }
        if let Some(backing) = device.child_mut("backing") {
            backing.children.retain(|child| child.name != "datastore");
            backing.children.extend(Element::of_field("datastore", datastore));
        }
    }
    config
}
