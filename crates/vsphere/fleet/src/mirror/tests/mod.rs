mod order;
mod rows;
mod waits;
mod writes;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use roost_vim::wire::types::{GuestNicInfo, OptionValue, PropertyChange, PropertyChangeOp};
use roost_vim::wire::{Array, MoRef, MoType, Value};
use roost_vim::{Change, Properties, Update};

use super::core::Core;
use super::*;
use crate::DoorName;
use crate::time::later;

/// `owner/job/address`, each of which may be empty; a name `ip-10-0-0-1` holds an address.
#[derive(Debug)]
struct Slashes;

const LAB: DoorName = DoorName::new("lab");

static LENGTHS: Notes<usize> = Notes::new();

impl Recognise for Slashes {
    fn needs(&self) -> &[Need] {
        &[Need::InstanceUuid, Need::ExtraConfig("lab.owner")]
    }

    fn recognise(&self, vm: &Marks<'_>) -> Option<Claim> {
        if let Some(owner) = vm.extra_config("lab.owner") {
            let request = vm.instance_uuid.map(Into::into);
            return Some(Claim { request, ..Claim::of(LAB, owner) });
        }
        let annotation = vm.annotation?;
        let mut parts = annotation.strip_prefix("test:")?.split('/');
        Some(Claim {
            door: LAB,
            owner: parts.next()?.into(),
            request: parts.next().filter(|request| !request.is_empty()).map(Into::into),
            address: parts.next().and_then(|address| address.parse().ok()),
            note: Some(LENGTHS.keep(annotation.len())),
        })
    }

    fn address_in_name(&self, name: &str) -> Option<IpAddr> {
        name.strip_prefix("ip-")?.replace('-', ".").parse().ok()
    }
}

fn at(millis: u64) -> Timestamp {
    later(Timestamp::UNIX_EPOCH, Duration::from_millis(millis))
}

/// One whose stream is up.
fn core() -> Core {
    let mut core = Core::new(vec![Arc::new(Slashes)]);
    core.stream.synced = true;
    core
}

fn vm_id(number: u32) -> VmId {
    VmId::new(format!("vm-{number}"))
}

fn set(path: &str, value: Value) -> PropertyChange {
    PropertyChange { name: path.into(), op: PropertyChangeOp::Assign, val: Some(value) }
}

fn unset(path: &str) -> PropertyChange {
    PropertyChange { name: path.into(), op: PropertyChangeOp::Assign, val: None }
}

fn text(path: &str, text: &str) -> PropertyChange {
    set(path, Value::string(text))
}

fn power(state: &str) -> PropertyChange {
    let value = Value::Enum("VirtualMachinePowerState".into(), state.into());
    set("runtime.powerState", value)
}

fn guest_net(addresses: &[&str]) -> PropertyChange {
    let nic = GuestNicInfo {
        ip_address: addresses.iter().map(|address| (*address).into()).collect(),
        mac_address: Some("00:50:56:00:00:01".into()),
        connected: true,
        device_config_id: 4000,
        ..GuestNicInfo::default()
    };
    set("guest.net", Value::Array(Array::new("GuestNicInfo", vec![Value::data(nic)])))
}

/// A powered-off VM of `hv1` with two CPUs.
fn usual(number: u32) -> Vec<PropertyChange> {
    vec![
        text("name", &format!("worker-{number}")),
        text("config.annotation", "test:hv1"),
        set("config.template", Value::Bool(false)),
        text("config.changeVersion", "1"),
        set("summary.config.numCpu", Value::Int(2)),
        set("summary.config.memorySizeMB", Value::Int(2048)),
        power("poweredOff"),
    ]
}

fn properties(changes: Vec<PropertyChange>) -> Properties {
    let mut properties = Properties::default();
    for change in changes {
        properties.apply(change);
    }
    properties
}

fn enter(number: u32, changes: Vec<PropertyChange>) -> Update {
    let obj = MoRef::new(MoType::VirtualMachine, vm_id(number).as_str());
    Update { obj, change: Change::Enter(properties(changes)) }
}

fn modify(number: u32, changes: Vec<PropertyChange>) -> Update {
    Update { obj: vm_id(number).moref(), change: Change::Modify(changes) }
}

fn leave(number: u32) -> Update {
    Update { obj: vm_id(number).moref(), change: Change::Leave }
}

impl Core {
    fn hear(&mut self, updates: &[Update]) {
        self.apply(0, updates, true, false, at(0));
    }

    fn row(&self, number: u32) -> Arc<Vm> {
        Arc::clone(self.tables.vm(&vm_id(number)).expect("the VM is known"))
    }

    fn has(&self, number: u32) -> bool {
        self.tables.vm(&vm_id(number)).is_some()
    }
}

fn ids<'a>(vms: impl Iterator<Item = &'a Arc<Vm>>) -> Vec<&'a str> {
    vms.map(|vm| vm.id.as_str()).collect()
}
