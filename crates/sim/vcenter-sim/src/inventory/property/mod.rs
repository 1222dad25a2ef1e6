//! Any property of any object, by its dotted path.
//!
//! Each kind of object answers the paths it knows, whole objects and cheap leaves alike. For any other path the longest prefix
//! that is answered is asked for, and the rest is walked down by reflection.
#![expect(
    clippy::unnecessary_wraps,
    reason = "answers are written alike, whether or not this one can be missing"
)]

mod app;
mod compute;
mod documented;
mod entity;
mod host;
mod manager;
mod network;
mod path;
mod pool;
mod storage;
mod vm;
mod vm_config;
mod vm_device;
mod vm_guest;
mod vm_storage;
mod vm_summary;

use roost_vim_wire::{Array, Field, MoRef, MoType, Value};

use crate::inventory::{Inventory, NoSuchProperty};
use crate::world::World;

pub(crate) use documented::is_documented;
pub(crate) use vm_device::wire_device;

/// `None`: not a path that this kind answers directly. `Some(None)`: it is unset.
type Answer = Option<Option<Value>>;

pub(crate) fn property(
    world: &World,
    obj: &MoRef,
    path: &str,
) -> Result<Option<Value>, NoSuchProperty> {
    if let Some(answer) = answer(world, obj, path) {
        return Ok(answer);
    }
    let no_such = || NoSuchProperty { path: path.into() };
    let steps = path::Steps::parse(path).ok_or_else(no_such)?;
    for (prefix, rest) in steps.prefixes() {
        if let Some(answer) = answer(world, obj, prefix) {
            return path::walk(answer, rest).ok_or_else(no_such);
        }
    }
    let head = path.split(['.', '[']).next().unwrap_or_default();
    if documented::is_documented(obj.kind.as_str(), head) {
        return Ok(None);
    }
    Err(no_such())
}

fn answer(world: &World, obj: &MoRef, path: &str) -> Answer {
    let own = match &obj.kind {
        MoType::VirtualMachine => vm::answer(world, obj, path),
        MoType::Folder => entity::folder(world, obj, path),
        MoType::StoragePod => storage::pod(world, obj, path),
        MoType::Datacenter => compute::datacenter(world, obj, path),
        MoType::ComputeResource | MoType::ClusterComputeResource => {
            compute::answer(world, obj, path)
        }
        MoType::HostSystem => host::answer(world, obj, path),
        MoType::ResourcePool => pool::answer(world, obj, path),
        MoType::VirtualApp => app::answer(world, obj, path),
        MoType::Datastore => storage::datastore(world, obj, path),
        MoType::Network | MoType::DistributedVirtualPortgroup => network::answer(world, obj, path),
        MoType::VmwareDistributedVirtualSwitch => network::switch(world, obj, path),
        MoType::VirtualMachineSnapshot => vm::snapshot(world, obj, path),
        _ => return manager::answer(world, obj, path),
    };
    own.or_else(|| entity::answer(world, obj, path))
}

impl Inventory {
    /// The properties that `all = true` reads, top level only.
    pub(crate) fn all_properties(kind: &MoType) -> &'static [&'static str] {
        match kind {
            MoType::VirtualMachine => vm::ALL,
            MoType::Folder => entity::ALL_FOLDER,
            MoType::StoragePod => storage::ALL_POD,
            MoType::Datacenter => compute::ALL_DATACENTER,
            MoType::ComputeResource => compute::ALL_COMPUTE,
            MoType::ClusterComputeResource => compute::ALL_CLUSTER,
            MoType::HostSystem => host::ALL,
            MoType::ResourcePool => pool::ALL,
            MoType::VirtualApp => app::ALL,
            MoType::Datastore => storage::ALL_DATASTORE,
            MoType::Network => network::ALL_NETWORK,
            MoType::DistributedVirtualPortgroup => network::ALL_PORT_GROUP,
            MoType::VmwareDistributedVirtualSwitch => network::ALL_SWITCH,
            MoType::VirtualMachineSnapshot => {
                &["availableField", "childSnapshot", "config", "value", "vm"]
            }
            _ => manager::all(kind),
        }
    }
}

fn known<T: Field>(field: &T) -> Answer {
    Some(field.to_value())
}

fn text(text: &str) -> Answer {
    Some(Some(Value::string(text)))
}

fn reference(obj: &MoRef) -> Answer {
    Some(Some(Value::Ref(obj.clone())))
}

/// An array of references, which is there even when it is empty.
fn refs<'a>(objects: impl IntoIterator<Item = &'a MoRef>) -> Answer {
    Some(Some(ref_array(objects)))
}

fn ref_array<'a>(objects: impl IntoIterator<Item = &'a MoRef>) -> Value {
    Value::Array(Array::new(
        "ManagedObjectReference",
        objects.into_iter().cloned().map(Value::Ref).collect(),
    ))
}

/// A value of an enumeration that has no type in the schema that we write down.
fn named(kind: &str, value: &str) -> Answer {
    Some(Some(enumeration(kind, value)))
}

fn enumeration(kind: &str, value: &str) -> Value {
    Value::Enum(kind.into(), value.into())
}

fn empty_array(item: &str) -> Answer {
    Some(Some(Value::Array(Array::new(item, Vec::new()))))
}
