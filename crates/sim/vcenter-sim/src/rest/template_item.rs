//! VM templates of a library: templates of the inventory that a library item stands for.

use std::collections::BTreeMap;

use http::StatusCode;
use roost_vim_wire::types::{
    TaskInfo, TaskInfoState, VirtualMachineCloneSpec, VirtualMachineRelocateSpec,
};
use roost_vim_wire::{MoRef, MoType};
use serde_json::{Value, json};

use super::{ALREADY_EXISTS, Ask, NOT_FOUND, Outcome, refused, text};
use crate::call::{CallContext, Failure};
use crate::library::Item;
use crate::permission::Need;
use crate::vm::{Own, clone_vm};
use crate::world::{Handle, World};

/// `path` is what follows `vcenter/vm-template/library-items`.
pub(super) fn carry_out(
    world: &mut World,
    cx: &CallContext<'_>,
    ask: &Ask<'_>,
    path: &[&str],
) -> Outcome {
    let spec = ask.spec("spec");
    match (ask.method.as_str(), path, ask.action.as_deref()) {
        ("POST", [], None) => create(world, cx, spec),
        ("GET", [id], None) => shown(world, id),
        ("POST", [id], Some("deploy")) | ("POST", [id, "check-outs"], Some("check-out")) => {
            copy(world, cx, id, spec)
        }
        ("POST", [id, "check-outs", vm], Some("check-in")) => check_in(world, cx, id, vm),
        _ => NOT_FOUND,
    }
}

/// Where a placement says that a VM goes.
fn location(world: &World, spec: &Value, source: &MoRef) -> (MoRef, VirtualMachineRelocateSpec) {
    let placement = spec.get("placement").cloned().unwrap_or_default();
    let field = |name: &str| Some(text(&placement, name)).filter(|id| !id.is_empty());
    let row = world.inventory.vms.get(source);
    let datacenter = world.inventory.datacenter_of(source);
    let default = datacenter.and_then(|at| world.inventory.datacenters.get(&at));
    let folder = field("folder").map(|id| MoRef::new(MoType::Folder, id));
    let folder = folder.or_else(|| default.map(|row| row.vm_folder.clone())).unwrap_or_default();
    let by_cluster = field("cluster").and_then(|id| {
        let compute = MoRef::new(MoType::ClusterComputeResource, id);
        world.inventory.computes.get(&compute).map(|row| row.pool.clone())
    });
    let host = field("host").map(|id| MoRef::new(MoType::HostSystem, id));
    let of_host = |host: &MoRef| {
        let compute = world.inventory.compute_of_host(host)?;
        world.inventory.computes.get(compute).map(|row| row.pool.clone())
    };
    let pool = field("resource_pool")
        .map(|id| MoRef::new(MoType::ResourcePool, id))
        .or(by_cluster)
        .or_else(|| host.as_ref().and_then(of_host))
        .or_else(|| row.and_then(|row| row.pool.clone().or_else(|| of_host(&row.host))));
    let storage = spec.get("vm_home_storage").or_else(|| spec.get("disk_storage"));
    let datastore = storage.map(|storage| text(storage, "datastore")).filter(|id| !id.is_empty());
    let datastore = datastore.map(|id| MoRef::new(MoType::Datastore, id));
    (folder, VirtualMachineRelocateSpec { pool, host, datastore, ..Default::default() })
}

type Made = Box<dyn FnOnce(&mut World, &MoRef) -> Outcome + Send>;

/// Clones, and answers when the clone is there.
fn clone(
    world: &mut World,
    cx: &CallContext<'_>,
    source: &MoRef,
    (folder, name, spec): (MoRef, String, VirtualMachineCloneSpec),
    made: Made,
) -> Outcome {
    if let Err(failure) = may_clone(world, cx, source, (&folder, &spec)) {
        return refused(&failure);
    }
    let task = match clone_vm(world, cx, source, (folder, name, spec)) {
        Ok(task) => task,
        Err(failure) => return refused(&failure),
    };
    let finish = move |world: &mut World, _: &Handle, ended: Option<TaskInfo>| match ended {
        Some(info) if info.state == TaskInfoState::Success => {
            let vm = info.result.as_ref().and_then(roost_vim_wire::Value::as_ref).cloned();
            vm.map_or(NOT_FOUND, |vm| made(world, &vm))
        }
        Some(TaskInfo { error: Some(error), .. }) => {
            refused(&Failure::new(error.fault, error.localized_message.unwrap_or_default()))
        }
        _ => Outcome::Error(
            StatusCode::SERVICE_UNAVAILABLE,
            "com.vmware.vapi.std.errors.service_unavailable",
        ),
    };
    Outcome::Pending(task, Box::new(finish))
}

/// As a clone by the SOAP interface; a template that names no datastore goes where its source is.
fn may_clone(
    world: &World,
    cx: &CallContext<'_>,
    source: &MoRef,
    (folder, spec): (&MoRef, &VirtualMachineCloneSpec),
) -> Result<(), Failure> {
    let row = world.inventory.vms.get(source);
    let copies = if row.is_some_and(|row| row.template) {
        "VirtualMachine.Provisioning.DeployTemplate"
    } else {
        "VirtualMachine.Provisioning.Clone"
    };
    let mut needs = vec![
        Need::from((copies, source)),
        Need::from(("VirtualMachine.Inventory.CreateFromExisting", folder)),
    ];
    let pool = spec.location.pool.as_ref();
    needs.extend(pool.map(|pool| Need::from(("Resource.AssignVMToPool", pool))));
    let datastore = spec.location.datastore.as_ref().or(row.map(|row| &row.home.datastore));
    needs.extend(datastore.map(|at| Need::from(("Datastore.AllocateSpace", at))));
    world.permissions.check(Some(cx.user), &needs, &world.inventory)
}

/// A template is cloned of a VM, and the item stands for it.
fn create(world: &mut World, cx: &CallContext<'_>, spec: &Value) -> Outcome {
    let (source, library, name) =
        (MoRef::vm(text(spec, "source_vm").as_str()), text(spec, "library"), text(spec, "name"));
    if !world.inventory.vms.contains(&source) || world.libraries.library(&library).is_none() {
        return NOT_FOUND;
    }
    if world.libraries.item_named(&library, &name).is_some() {
        return ALREADY_EXISTS;
    }
    let (folder, location) = location(world, spec, &source);
    let asked = VirtualMachineCloneSpec { location, template: true, ..Default::default() };
    let (now, description, title) = (cx.now, text(spec, "description"), name.clone());
    let made = move |world: &mut World, vm: &MoRef| {
        let item = Item {
            library,
            name: title,
            description,
            kind: "vm-template".into(),
            created: now,
            modified: now,
            version: 1,
            content_version: 1,
            files: BTreeMap::new(),
            template: Some(vm.clone()),
            source: None,
            is_cached: true,
        };
        Outcome::Value(json!(world.libraries.add_item(item)))
    };
    clone(world, cx, &source, (folder, name, asked), Box::new(made))
}

fn template(world: &World, id: &str) -> Option<MoRef> {
    world.libraries.item(id)?.template.clone()
}

fn shown(world: &World, id: &str) -> Outcome {
    let Some((vm, row)) = template(world, id).and_then(|vm| {
        let row = world.inventory.vms.get(&vm)?;
        Some((vm, row))
    }) else {
        return NOT_FOUND;
    };
    let home = json!({ "datastore": &*row.home.datastore.id });
    let disks: Vec<Value> = row
        .config
        .devices
        .iter()
        .filter_map(|device| match &device.own {
            Own::Disk(disk) => Some(json!({
                "key": device.key().to_string(),
                "value": {
                    "capacity": disk.capacity_kb.saturating_mul(1024),
                    "disk_storage": { "datastore": &*disk.file.path.datastore.id },
                },
            })),
            Own::Nothing | Own::Nic(_) => None,
        })
        .collect();
    let nics: Vec<Value> = row
        .config
        .nics()
        .map(|nic| {
            let network = nic.network().map(|network| network.id.to_string());
            json!({ "key": nic.key().to_string(), "value": { "network": network, "mac_type": "ASSIGNED" } })
        })
        .collect();
    Outcome::Value(json!({
        "vm_template": &*vm.id,
        "guest_OS": row.config.settings.guest_id,
        "cpu": { "count": row.config.cpus, "cores_per_socket": row.config.cores_per_socket },
        "memory": { "size_mib": row.config.memory_mb },
        "disks": disks,
        "nics": nics,
        "vm_home_storage": home,
    }))
}

/// A VM of the template: deployed, or checked out to be changed and given back.
fn copy(world: &mut World, cx: &CallContext<'_>, id: &str, spec: &Value) -> Outcome {
    let Some(source) = template(world, id) else { return NOT_FOUND };
    let (folder, location) = location(world, spec, &source);
    let asked = VirtualMachineCloneSpec {
        location,
        power_on: spec.get("powered_on").and_then(Value::as_bool).unwrap_or(false),
        ..Default::default()
    };
    let made = |_: &mut World, vm: &MoRef| Outcome::Value(json!(&*vm.id));
    clone(world, cx, &source, (folder, text(spec, "name"), asked), Box::new(made))
}

/// The VM becomes the template, under the item's name; the old template goes.
fn check_in(world: &mut World, cx: &CallContext<'_>, id: &str, vm: &str) -> Outcome {
    let Some(old) = template(world, id) else { return NOT_FOUND };
    let vm = MoRef::vm(vm);
    let Some(row) = world.inventory.vms.get(&vm) else { return NOT_FOUND };
    if row.power != crate::vm::Power::Off {
        return super::not_allowed("The virtual machine is not powered off.");
    }
    let Some(item) = world.libraries.item(id).cloned() else { return NOT_FOUND };
    // The item must not follow the old template out of the library.
    if let Some(row) = world.libraries.item_mut(id) {
        row.template = Some(vm.clone());
        row.version += 1;
        row.content_version += 1;
        row.modified = cx.now;
    }
    crate::vm::remove_vm(world, &crate::event::Scene::from(cx), &old, true);
    world.inventory.rename(&vm, &item.name);
    world.inventory.change_vm(&vm, |row| {
        row.template = true;
        row.pool = None;
    });
    let paths = [
        "name",
        "config.name",
        "summary.config.name",
        "config.template",
        "summary.config.template",
        "resourcePool",
    ];
    world.inventory.changes.modified(&vm, paths);
    Outcome::Value(json!(item.content_version.to_string()))
}
