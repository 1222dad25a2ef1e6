//! OVF templates of a library: deployed as VMs, looked into, and made of VMs.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::{Method, StatusCode};
use roost_vim_wire::types::{
    TaskInfo, TaskInfoState, VirtualMachineConfigSpec, VirtualMachineFileInfo,
};
use roost_vim_wire::{Element, MoRef, MoType};
use serde_json::{Value, json};

use super::{ALREADY_EXISTS, Ask, NOT_FOUND, Outcome, invalid, refused, text};
use crate::call::{CallContext, Failure};
use crate::library::{self, Item, ItemFile};
use crate::ovf::{Choices, DiskRef, Envelope, Property, Provisioning, config_spec, describe};
use crate::permission::Need;
use crate::pool::Demand;
use crate::vm::placement::{choose_host, roomiest_for};
use crate::vm::{FilePath, NewVm, create_as};
use crate::world::World;
use crate::{policy, store};

/// `path` is what follows `vcenter/ovf/library-item`.
pub(super) fn carry_out(
    world: &mut World,
    cx: &CallContext<'_>,
    ask: &Ask<'_>,
    path: &[&str],
) -> Outcome {
    match path {
        [] if ask.method == Method::POST => create(world, cx, ask),
        [id] if ask.is("deploy") => match deploy(world, cx, ask, id) {
            Ok(outcome) => outcome,
            Err(failure) => Outcome::Value(not_deployed(&failure.message)),
        },
        [id] if ask.is("filter") => match envelope_of(world, id) {
            Ok((_, envelope)) => Outcome::Value(filtered(&envelope)),
            Err(failure) => refused(&failure),
        },
        _ => NOT_FOUND,
    }
}

/// The descriptor of an item. Its file may have been deleted past the library.
fn envelope_of(world: &World, id: &str) -> Result<(Item, Envelope), Failure> {
    let missing = |words: String| Failure::of("NotFound", words);
    let item = world.libraries.item(id);
    let item = item.ok_or_else(|| missing(format!("The library item {id} does not exist.")))?;
    if item.kind != "ovf" {
        let words = format!("The library item {} is not an OVF template.", item.name);
        return Err(Failure::of("InvalidArgument", words));
    }
    let content = item.descriptor().and_then(|(_, file)| store::content(world, &file.path));
    let content = content
        .ok_or_else(|| missing(format!("The descriptor of {} cannot be read.", item.name)))?;
    let envelope = Envelope::parse(&content)
        .map_err(|error| Failure::of("InvalidArgument", error.to_string()))?;
    let lacks = envelope.files.iter().find(|file| {
        item.files.get(&file.href).is_some_and(|file| store::size(world, &file.path).is_none())
    });
    match lacks {
        Some(file) => Err(missing(format!("The file {} cannot be read.", file.href))),
        None => Ok((item.clone(), envelope)),
    }
}

fn not_deployed(words: &str) -> Value {
    let message = json!({ "id": "com.vmware.ovfs.ovfs-main.ovfs.deploy_failed", "default_message": words, "args": [] });
    json!({
        "succeeded": false,
        "error": {
            "errors": [{
                "category": "SERVER",
                "error": { "@class": "com.vmware.vapi.std.errors.error", "messages": [message] },
            }],
            "warnings": [],
            "information": [],
        },
    })
}

/// A map, which the older spelling writes as a list of pairs.
fn pairs(spec: &Value, field: &str) -> Vec<(String, Value)> {
    match spec.get(field) {
        Some(Value::Object(map)) => {
            map.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
        }
        Some(Value::Array(list)) => {
            let pair = |pair: &Value| Some((text(pair, "key"), pair.get("value")?.clone()));
            list.iter().filter_map(pair).collect()
        }
        _ => Vec::new(),
    }
}

/// Where a deployment goes.
struct Target {
    pool: MoRef,
    folder: MoRef,
    host: Option<MoRef>,
}

fn target(world: &World, ask: &Ask<'_>) -> Result<Target, Failure> {
    let given = ask.body.get("target").cloned().unwrap_or_default();
    let field = |name: &str| Some(text(&given, name)).filter(|id| !id.is_empty());
    let pool = field("resource_pool_id").unwrap_or_default();
    let pool =
        [MoType::ResourcePool, MoType::VirtualApp].map(|kind| MoRef::new(kind, pool.as_str()));
    let Some(pool) = pool.into_iter().find(|pool| world.inventory.pools.contains(pool)) else {
        return Err(Failure::of("NotFound", "The resource pool does not exist."));
    };
    let default = || {
        let datacenter = world.inventory.datacenter_of(&pool)?;
        world.inventory.datacenters.get(&datacenter).map(|row| row.vm_folder.clone())
    };
    let folder = field("folder_id").map(|id| MoRef::new(MoType::Folder, id));
    let folder = folder.or_else(default).unwrap_or_default();
    if !world.inventory.folders.contains(&folder) {
        return Err(Failure::not_found(&folder));
    }
    Ok(Target { pool, folder, host: field("host_id").map(|id| MoRef::new(MoType::HostSystem, id)) })
}

/// The datastore that a deployment names, one that its storage policy allows, or the roomiest.
fn datastore(world: &World, spec: &Value, pool: &MoRef) -> Result<MoRef, Failure> {
    let of_group = pairs(spec, "storage_mappings").into_iter().map(|(_, group)| group).next();
    let of_group = of_group.unwrap_or_default();
    let named = Some(text(spec, "default_datastore_id"))
        .filter(|id| !id.is_empty())
        .or_else(|| Some(text(&of_group, "datastore_id")).filter(|id| !id.is_empty()));
    if let Some(id) = named {
        let datastore = MoRef::new(MoType::Datastore, id);
        crate::vm::placement::check_datastore(world, &datastore, Some(pool))?;
        return Ok(datastore);
    }
    let profile = profile(spec);
    let allowed = match &profile {
        Some(profile) => Some(policy::compatible(world, profile)?),
        None => None,
    };
    roomiest_for(world, pool, allowed.as_deref()).ok_or_else(|| {
        Failure::of("NotFound", "No datastore is compatible with the storage policy.")
    })
}

fn profile(spec: &Value) -> Option<String> {
    let of_group = pairs(spec, "storage_mappings").into_iter().map(|(_, group)| group).next();
    let of_group = of_group.map(|group| text(&group, "storage_profile_id"));
    let own = text(spec, "storage_profile_id");
    Some(own).filter(|id| !id.is_empty()).or(of_group).filter(|id| !id.is_empty())
}

fn choices(world: &World, spec: &Value, item: &Item, pool: &MoRef) -> Choices {
    let mut choices = Choices {
        name: Some(text(spec, "name"))
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| item.name.clone()),
        annotation: Some(text(spec, "annotation")).filter(|text| !text.is_empty()),
        provisioning: Provisioning::parse(&text(spec, "storage_provisioning")).unwrap_or_default(),
        ..Choices::default()
    };
    for (name, network) in pairs(spec, "network_mappings") {
        let id = network.as_str().unwrap_or_default();
        choices.networks.push((name, crate::vm::network_ref(id)));
    }
    let datacenter = world.inventory.datacenter_of(pool);
    let networks = datacenter.and_then(|at| world.inventory.datacenters.get(&at));
    choices.default_network = networks.and_then(|row| row.networks.first().cloned());
    for parameters in
        spec.get("additional_parameters").and_then(Value::as_array).into_iter().flatten()
    {
        for property in parameters.get("properties").and_then(Value::as_array).into_iter().flatten()
        {
            let named = Property {
                class: text(property, "class_id"),
                instance: text(property, "instance_id"),
                id: text(property, "id"),
                ..Property::default()
            };
            choices.properties.push((named.key(), text(property, "value")));
        }
        let option = text(parameters, "selected_key");
        if !option.is_empty() {
            choices.option = Some(option);
        }
    }
    choices
}

fn deploy(
    world: &mut World,
    cx: &CallContext<'_>,
    ask: &Ask<'_>,
    id: &str,
) -> Result<Outcome, Failure> {
    if world.libraries.item(id).is_none() {
        return Ok(NOT_FOUND);
    }
    let spec = ask.body.get("deployment_spec").cloned().unwrap_or_default();
    let (item, envelope) = envelope_of(world, id)?;
    if !envelope.eulas.is_empty()
        && spec.get("accept_all_EULA").and_then(Value::as_bool) != Some(true)
    {
        return Err(Failure::of("InvalidArgument", "The license agreements were not accepted."));
    }
    let at = target(world, ask)?;
    let datastore = datastore(world, &spec, &at.pool)?;
    let needs = [
        ("VApp.Import", &at.pool),
        ("Resource.AssignVMToPool", &at.pool),
        ("VirtualMachine.Inventory.Create", &at.folder),
        ("Datastore.AllocateSpace", &datastore),
    ];
    if let Err(failure) =
        world.permissions.check(Some(cx.user), &needs.map(Need::from), &world.inventory)
    {
        return Ok(refused(&failure));
    }
    let choices = choices(world, &spec, &item, &at.pool);
    let (mut config, uploads) = config_spec(&world.inventory, &envelope, &choices);
    merge(&mut config, &spec)?;
    let path = world.inventory.datastores.get(&datastore).map(|row| format!("[{}]", row.name));
    config.files = Some(VirtualMachineFileInfo { vm_path_name: path, ..Default::default() });
    let host = match at.host {
        Some(host) => host,
        None => choose_host(&world.inventory, &at.pool, None, Demand::default())?,
    };
    let bytes: i64 = uploads
        .iter()
        .filter_map(|upload| item.files.get(&upload.href))
        .map(|file| file.size)
        .sum();
    let timings = &cx.handle.options.timings;
    let takes: Duration =
        timings.create.draw(&mut world.random) + timings.copying(bytes, &mut world.random);
    let new = NewVm {
        method: "ImportVAppLRO",
        entity: at.pool.clone(),
        takes,
        folder: at.folder,
        pool: at.pool,
        host: Some(host),
        spec: config,
        has_tools: true,
    };
    let (task, vm) = create_as(world, cx, new);
    let profile = profile(&spec);
    let finish =
        move |world: &mut World, _: &crate::world::Handle, ended: Option<TaskInfo>| match ended {
            Some(info) if info.state == TaskInfoState::Success => {
                if let Some(profile) = profile {
                    policy::associate_all(world, &vm, &profile);
                }
                let id = json!({ "type": "VirtualMachine", "id": &*vm.id });
                Outcome::Value(json!({ "succeeded": true, "resource_id": id }))
            }
            Some(info) => {
                let words = info.error.and_then(|error| error.localized_message);
                Outcome::Value(not_deployed(&words.unwrap_or_default()))
            }
            None => Outcome::Error(
                StatusCode::SERVICE_UNAVAILABLE,
                "com.vmware.vapi.std.errors.service_unavailable",
            ),
        };
    Ok(Outcome::Pending(task, Box::new(finish)))
}

/// What the caller's own configuration says goes before the descriptor's; its devices come in addition, and cards in place of
/// the descriptor's.
fn merge(config: &mut VirtualMachineConfigSpec, spec: &Value) -> Result<(), Failure> {
    let Some(given) = spec.get("vm_config_spec").filter(|given| given.is_object()) else {
        return Ok(());
    };
    let bad =
        || Failure::of("InvalidArgument", "The virtual machine configuration cannot be read.");
    let encoded = text(given, "xml");
    let xml =
        base64::engine::general_purpose::STANDARD.decode(encoded.trim()).map_err(|_| bad())?;
    let element = Element::parse(&xml).map_err(|_| bad())?;
    let asked: VirtualMachineConfigSpec =
        Element::new("list").with(Element { name: "spec".into(), ..element }).get("spec");
    macro_rules! take {
        ($($field:ident)+) => {
            $(if asked.$field.is_some() {
                config.$field = asked.$field;
            })+
        };
    }
    take!(version create_date uuid instance_uuid guest_id alternate_guest_name annotation tools flags num_cpus
        num_cores_per_socket memory_mb memory_hot_add_enabled cpu_hot_add_enabled cpu_hot_remove_enabled cpu_allocation
        memory_allocation swap_placement boot_options change_tracking_enabled firmware managed_by
        memory_reservation_locked_to_max nested_hv_enabled);
    for option in asked.extra_config {
        config.extra_config.retain(|known| known.key != option.key);
        config.extra_config.push(option);
    }
    if asked.device_change.iter().any(|change| change.device.is_nic()) {
        config.device_change.retain(|change| !change.device.is_nic());
    }
    // Keys of two sources must not meet.
    let shift = |key: i32| if key < 0 { key - 10_000 } else { key };
    for mut change in asked.device_change {
        change.device.key = shift(change.device.key);
        change.device.controller_key = change.device.controller_key.map(shift);
        config.device_change.push(change);
    }
    Ok(())
}

/// What a deployment has to decide.
fn filtered(envelope: &Envelope) -> Value {
    let networks: Vec<&String> = envelope.networks.iter().map(|(name, _)| name).collect();
    let mut parameters = Vec::new();
    if !envelope.options.is_empty() {
        let options: Vec<Value> = envelope
            .options
            .iter()
            .map(|option| {
                json!({
                    "key": option.id,
                    "label": option.label,
                    "description": option.description,
                    "default_choice": option.is_default,
                })
            })
            .collect();
        parameters.push(json!({
            "@class": "com.vmware.vcenter.ovf.deployment_option_params",
            "type": "DeploymentOptionParams",
            "selected_key": envelope.default_option(),
            "deployment_options": options,
        }));
    }
    let properties: Vec<Value> = envelope
        .properties
        .iter()
        .filter(|property| property.user_configurable)
        .map(|property| {
            json!({
                "class_id": property.class,
                "instance_id": property.instance,
                "id": property.id,
                "category": property.category,
                "label": property.label,
                "description": property.description,
                "type": property.kind,
                "value": property.value,
                "ui_optional": false,
            })
        })
        .collect();
    if !properties.is_empty() {
        parameters.push(json!({
            "@class": "com.vmware.vcenter.ovf.property_params",
            "type": "PropertyParams",
            "properties": properties,
        }));
    }
    if !envelope.extra_config.is_empty() {
        let all: Vec<Value> = envelope
            .extra_config
            .iter()
            .map(|(key, value)| json!({ "key": key, "value": value, "virtual_system_id": envelope.id }))
            .collect();
        parameters.push(json!({
            "@class": "com.vmware.vcenter.ovf.extra_config_params",
            "type": "ExtraConfigParams",
            "extra_configs": all,
        }));
    }
    let flat: i64 = envelope.disks.iter().map(|disk| disk.capacity).sum();
    let download: i64 = envelope.files.iter().map(|file| file.size).sum();
    parameters.push(json!({
        "@class": "com.vmware.vcenter.ovf.size_params",
        "type": "SizeParams",
        "approximate_download_size": download,
        "approximate_flat_deployment_size": flat,
        "approximate_sparse_deployment_size": download,
        "variable_disk_size": false,
    }));
    json!({
        "name": envelope.name,
        "annotation": envelope.annotation,
        "Annotation": envelope.annotation,
        "networks": networks,
        "Networks": networks,
        "EULAs": envelope.eulas,
        "storage_groups": [],
        "additional_params": parameters,
    })
}

/// Makes an item of a VM: a descriptor, and a copy of each disk.
fn create(world: &mut World, cx: &CallContext<'_>, ask: &Ask<'_>) -> Outcome {
    let (source, target) = (ask.body.get("source"), ask.body.get("target"));
    let vm = MoRef::vm(source.map(|source| text(source, "id")).unwrap_or_default().as_str());
    let spec = ask.body.get("create_spec").cloned().unwrap_or_default();
    let target = target.cloned().unwrap_or_default();
    let (into, existing) = (text(&target, "library_id"), text(&target, "library_item_id"));
    let Some(row) = world.inventory.vms.get(&vm) else { return NOT_FOUND };
    let name = Some(text(&spec, "name"))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| row.name.to_string());
    let item = if existing.is_empty() {
        if world.libraries.library(&into).is_none() {
            return NOT_FOUND;
        }
        if world.libraries.item_named(&into, &name).is_some() {
            return ALREADY_EXISTS;
        }
        world.libraries.add_item(Item {
            library: into,
            name: name.clone(),
            description: text(&spec, "description"),
            kind: "ovf".into(),
            created: cx.now,
            modified: cx.now,
            version: 1,
            content_version: 1,
            files: BTreeMap::new(),
            template: None,
            source: None,
            is_cached: true,
        })
    } else {
        existing
    };
    match fill(world, cx, &vm, &item, &name) {
        Ok(()) => Outcome::Value(json!({ "succeeded": true, "ovf_library_item_id": item })),
        Err(failure) => invalid(failure.message),
    }
}

fn fill(
    world: &mut World,
    cx: &CallContext<'_>,
    vm: &MoRef,
    item: &str,
    name: &str,
) -> Result<(), Failure> {
    let gone = || Failure::not_found(vm);
    let library = world.libraries.item(item).map(|row| row.library.clone()).ok_or_else(gone)?;
    library::make_directory(world, &library, item, cx.now);
    let row = world.inventory.vms.get(vm).ok_or_else(gone)?;
    let disks: Vec<(i32, FilePath)> = row
        .config
        .devices
        .iter()
        .filter_map(|device| match &device.own {
            crate::vm::Own::Disk(disk) => Some((device.key(), disk.file.path.clone())),
            _ => None,
        })
        .collect();
    let (mut refs, mut files) = (Vec::new(), BTreeMap::new());
    for (index, (device, from)) in disks.into_iter().enumerate() {
        let href = format!("{name}-{}.vmdk", index + 1);
        let Some(to) = library::file_path(world, &library, item, &href) else { return Err(gone()) };
        store::copy(world, &from, &to, true, cx.now)?;
        let size = store::size(world, &to).unwrap_or(0);
        files.insert(href.clone(), ItemFile { path: to, size, version: 1, checksum: None });
        refs.push(DiskRef { device, href, size });
    }
    let row = world.inventory.vms.get(vm).ok_or_else(gone)?;
    let descriptor = describe(&world.inventory, row, name, &refs);
    let href = format!("{name}.ovf");
    let Some(path) = library::file_path(world, &library, item, &href) else { return Err(gone()) };
    let size = i64::try_from(descriptor.len()).unwrap_or(0);
    let put = store::put_file(world, &path, Bytes::from(descriptor), cx.now);
    put.map_err(|error| store::failure(world, &path, &error))?;
    files.insert(href, ItemFile { path, size, version: 1, checksum: None });
    if let Some(row) = world.libraries.item_mut(item) {
        row.files = files;
        row.content_version += 1;
        row.modified = cx.now;
    }
    world.libraries.touch_library(&library, cx.now);
    Ok(())
}
