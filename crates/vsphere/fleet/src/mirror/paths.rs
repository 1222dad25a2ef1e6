//! Which properties are watched, and how they become rows.
//!
//! The set is narrow on purpose: 10,000 VMs are some megabytes of answer, and nothing in it changes while a VM just runs.
//! Left out are `summary.quickStats`, `summary.storage`, whole `guest` and `config`, which change all the time or weigh
//! kilobytes per VM, and so are disk sizes (`config.hardware.device`): whoever makes a VM knows what it asked for, and a
//! template's devices are read when it is cloned. Of a pool only what reservations move is watched, not its usage.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roost_vim::Properties;
use roost_vim::wire::types::{
    GuestNicInfo, OptionValue, PropertyChange, PropertyChangeOp, PropertySpec,
};
use roost_vim::wire::{MoRef, MoType, Value};
use roost_vim::{WatchSpec, Watched};

use super::pool::Pool;
use super::vm::{Guest, GuestNic, Power, Tools, Vm};
use super::{Marks, Need, Recognise};
use crate::{PoolId, VmId};

pub(crate) const VM_PATHS: [&str; 17] = [
    "name",
    "parent",
    "resourcePool",
    "config.annotation",
    "config.template",
    "config.uuid",
    "config.changeVersion",
    "config.createDate",
    "summary.config.numCpu",
    "summary.config.memorySizeMB",
    "runtime.powerState",
    "runtime.connectionState",
    "guest.guestOperationsReady",
    "guest.toolsRunningStatus",
    "guest.ipAddress",
    "guest.net",
    "guest.hostName",
];

pub(crate) const POOL_PATHS: [&str; 6] = [
    "name",
    "owner",
    "runtime.cpu.maxUsage",
    "runtime.cpu.unreservedForVm",
    "runtime.memory.maxUsage",
    "runtime.memory.unreservedForVm",
];

/// The VMs and resource pools below a datacenter, or below any other container.
pub(crate) fn watch_spec(container: &MoRef, vm_paths: &[String]) -> WatchSpec {
    let kinds = vec![MoType::VirtualMachine, MoType::ResourcePool];
    let vm_paths: Vec<&str> = vm_paths.iter().map(String::as_str).collect();
    WatchSpec {
        objects: Watched::Container { container: container.clone(), kinds, recursive: true },
        properties: vec![
            PropertySpec::new(MoType::VirtualMachine.as_str(), &vm_paths),
            PropertySpec::new(MoType::ResourcePool.as_str(), &POOL_PATHS),
        ],
    }
}

/// Facts from a guest that end with its boot, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BootFacts(u8);

impl BootFacts {
    const READY: Self = Self(1);
    const TOOLS: Self = Self(2);
    const ADDRESS: Self = Self(4);
    const NICS: Self = Self(8);

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// What an update did to what is known of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BootNews {
    /// The server told these.
    pub(crate) told: BootFacts,
    /// These were dropped because the VM is not on. A server that keeps them does not tell them again at the next boot.
    pub(crate) dropped: BootFacts,
}

/// Drops what ends with a boot.
pub(crate) fn forget_boot(guest: &mut Guest) -> BootFacts {
    let mut dropped = BootFacts::default();
    if std::mem::take(&mut guest.operations_ready) {
        dropped = dropped.and(BootFacts::READY);
    }
    if guest.tools != Tools::Unknown {
        if guest.tools != Tools::NotRunning {
            dropped = dropped.and(BootFacts::TOOLS);
        }
        guest.tools = Tools::NotRunning;
    }
    if guest.address.take().is_some() {
        dropped = dropped.and(BootFacts::ADDRESS);
    }
    if !std::mem::take(&mut guest.nics).is_empty() {
        dropped = dropped.and(BootFacts::NICS);
    }
    dropped
}

fn forget_old_boot(vm: &mut Vm) -> BootFacts {
    if vm.power == Power::On { BootFacts::default() } else { forget_boot(&mut vm.guest) }
}

/// Turns properties into rows.
#[derive(Debug)]
pub(crate) struct Reading {
    doors: Vec<Arc<dyn Recognise>>,
    /// Keys of `extraConfig` by the path that they are read at.
    extra_config: BTreeMap<String, &'static str>,
    vm_paths: Arc<[String]>,
    /// Texts that many rows have, kept once.
    shared: BTreeSet<Arc<str>>,
    /// Something that a VM is recognised by has changed since its claim was read.
    has_new_marks: bool,
}

impl Reading {
    pub(crate) fn new(doors: Vec<Arc<dyn Recognise>>) -> Self {
        let needs: BTreeSet<Need> =
            doors.iter().flat_map(|door| door.needs().iter().copied()).collect();
        let vm_paths = VM_PATHS.map(str::to_owned).into_iter();
        let extra_config = needs.iter().filter_map(|need| match need {
            Need::ExtraConfig(key) => Some((need.path(), *key)),
            Need::InstanceUuid => None,
        });
        Self {
            extra_config: extra_config.collect(),
            vm_paths: vm_paths.chain(needs.iter().map(|need| need.path())).collect(),
            doors,
            shared: BTreeSet::new(),
            has_new_marks: false,
        }
    }

    /// What is read of a VM.
    pub(crate) fn vm_paths(&self) -> Arc<[String]> {
        Arc::clone(&self.vm_paths)
    }

    pub(crate) fn extra_config_key(&self, key: &str) -> Option<&'static str> {
        self.extra_config.values().find(|known| **known == key).copied()
    }

    /// Sees anew whose the VM is.
    pub(crate) fn recognise(&self, vm: &mut Vm) {
        let marks = Marks {
            name: &vm.name,
            annotation: vm.annotation.as_deref(),
            folder: vm.parent.as_deref(),
            uuid: vm.uuid.as_deref(),
            instance_uuid: vm.instance_uuid.as_deref(),
            template: vm.template,
            extra_config: vm.extra_config.as_deref(),
        };
        let claim = self.doors.iter().find_map(|door| door.recognise(&marks));
        vm.name_address = self.doors.iter().find_map(|door| door.address_in_name(&vm.name));
        vm.claim = claim.map(Arc::new);
        if vm.claim.is_none() {
            vm.annotation = None;
        }
    }

    fn recognise_news(&mut self, vm: &mut Vm) {
        if std::mem::take(&mut self.has_new_marks) {
            self.recognise(vm);
        }
    }

    fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.shared.get(text) {
            return Arc::clone(known);
        }
        let text: Arc<str> = text.into();
        self.shared.insert(Arc::clone(&text));
        text
    }

    /// A whole row. `before` is what was known of the VM.
    pub(crate) fn vm(
        &mut self,
        id: &VmId,
        properties: &Properties,
        before: Option<&Vm>,
    ) -> (Vm, BootNews) {
        let mut vm = Vm::unknown(id.clone());
        let mut told = BootFacts::default();
        for (path, value) in properties.iter() {
            told = told.and(self.set(&mut vm, path, Some(value)));
        }
        if vm.change_version.is_none()
            && let Some(before) = before
        {
            keep_config(&mut vm, before);
        }
        self.recognise_news(&mut vm);
        let dropped = forget_old_boot(&mut vm);
        (vm, BootNews { told, dropped })
    }

    pub(crate) fn change_vm(&mut self, vm: &mut Vm, changes: &[PropertyChange]) -> BootNews {
        let before = vm.clone();
        let mut told = BootFacts::default();
        for change in changes {
            let value = match change.op {
                PropertyChangeOp::Remove | PropertyChangeOp::IndirectRemove => None,
                _ => change.val.as_ref(),
            };
            told = told.and(self.set(vm, &change.name, value));
        }
        if vm.change_version.is_none() {
            keep_config(vm, &before);
        }
        self.recognise_news(vm);
        BootNews { told, dropped: forget_old_boot(vm) }
    }

    fn set(&mut self, vm: &mut Vm, path: &str, value: Option<&Value>) -> BootFacts {
        let text = value.and_then(Value::as_str);
        match path {
            "name" => {
                vm.name = unescape(text.unwrap_or_default()).into();
                self.has_new_marks = true;
            }
            "parent" => {
                self.has_new_marks = true;
                vm.parent = value.and_then(Value::as_ref).map(|folder| self.share(&folder.id));
            }
            "resourcePool" => {
                vm.pool =
                    value.and_then(Value::as_ref).map(|pool| PoolId::new(self.share(&pool.id)));
            }
            "config.annotation" => {
                vm.annotation = text.map(Into::into);
                self.has_new_marks = true;
            }
            "config.template" => {
                vm.template = value.and_then(Value::as_bool).unwrap_or_default();
                self.has_new_marks = true;
            }
            "config.uuid" => {
                vm.uuid = text.map(Into::into);
                self.has_new_marks = true;
            }
            "config.instanceUuid" => {
                vm.instance_uuid = text.map(Into::into);
                self.has_new_marks = true;
            }
            "config.changeVersion" => vm.change_version = text.map(Into::into),
            "config.createDate" => vm.created = value.and_then(Value::as_time),
            "summary.config.numCpu" => vm.cpus = number(value),
            "summary.config.memorySizeMB" => vm.memory_mb = number(value),
            "runtime.powerState" => vm.power = text.unwrap_or_default().into(),
            "runtime.connectionState" => vm.connection = text.unwrap_or_default().into(),
            "guest.hostName" => vm.guest.host_name = text.map(Into::into),
            "guest.guestOperationsReady" => {
                vm.guest.operations_ready = value.and_then(Value::as_bool).unwrap_or_default();
                return BootFacts::READY;
            }
            "guest.toolsRunningStatus" => {
                vm.guest.tools = text.unwrap_or_default().into();
                return BootFacts::TOOLS;
            }
            "guest.ipAddress" => {
                vm.guest.address = text.and_then(|text| text.parse().ok());
                return BootFacts::ADDRESS;
            }
            "guest.net" => {
                vm.guest.nics = value.map(nics).unwrap_or_default();
                return BootFacts::NICS;
            }
            path => {
                if let Some(key) = self.extra_config.get(path) {
                    let option = value.and_then(Value::as_data::<OptionValue>);
                    let text = option.and_then(|option| option.value.as_ref()?.as_str());
                    set_extra_config(vm, key, text);
                    self.has_new_marks = true;
                }
            }
        }
        BootFacts::default()
    }

    pub(crate) fn pool(&mut self, id: &PoolId, properties: &Properties) -> Pool {
        let mut pool = Pool::unknown(id.clone());
        for (path, value) in properties.iter() {
            self.set_pool(&mut pool, path, Some(value));
        }
        pool
    }

    pub(crate) fn change_pool(&mut self, pool: &mut Pool, changes: &[PropertyChange]) {
        for change in changes {
            self.set_pool(pool, &change.name, change.val.as_ref());
        }
    }

    fn set_pool(&mut self, pool: &mut Pool, path: &str, value: Option<&Value>) {
        let amount = value.and_then(Value::as_i64).map(|amount| u64::try_from(amount).unwrap_or(0));
        match path {
            "name" => {
                pool.name = unescape(value.and_then(Value::as_str).unwrap_or_default()).into();
            }
            "owner" => {
                pool.owner = value.and_then(Value::as_ref).map(|owner| self.share(&owner.id));
            }
            "runtime.cpu.maxUsage" => pool.cpu_mhz.max = amount,
            "runtime.cpu.unreservedForVm" => pool.cpu_mhz.unreserved = amount,
            "runtime.memory.maxUsage" => pool.memory_bytes.max = amount,
            "runtime.memory.unreservedForVm" => pool.memory_bytes.unreserved = amount,
            _ => {}
        }
    }
}

/// A host that is out of reach takes a VM's configuration with it. Whose VM it is does not change by that.
fn keep_config(vm: &mut Vm, before: &Vm) {
    if vm.annotation.is_none() {
        vm.annotation.clone_from(&before.annotation);
    }
    if vm.instance_uuid.is_none() {
        vm.instance_uuid.clone_from(&before.instance_uuid);
    }
    if vm.extra_config.is_none() {
        vm.extra_config.clone_from(&before.extra_config);
    }
    vm.template |= before.template;
    if vm.created.is_none() {
        vm.created = before.created;
    }
    if vm.uuid.is_none() {
        vm.uuid.clone_from(&before.uuid);
    }
}

/// `None` takes it away. Rows share the map until one of them differs.
pub(crate) fn set_extra_config(vm: &mut Vm, key: &'static str, value: Option<&str>) {
    if vm.extra_config.as_ref().and_then(|known| known.get(key)).map(|known| &**known) == value {
        return;
    }
    let mut known = vm.extra_config.take().map(|known| (*known).clone()).unwrap_or_default();
    match value {
        Some(value) => drop(known.insert(key, value.into())),
        None => drop(known.remove(key)),
    }
    vm.extra_config = (!known.is_empty()).then(|| Arc::new(known));
}

fn number<T: TryFrom<i64> + Default>(value: Option<&Value>) -> T {
    value.and_then(Value::as_i64).and_then(|number| number.try_into().ok()).unwrap_or_default()
}

fn nics(value: &Value) -> Box<[GuestNic]> {
    let nic = |info: &GuestNicInfo| GuestNic {
        device: info.device_config_id,
        mac: info.mac_address.clone().unwrap_or_default().into(),
        connected: info.connected,
        addresses: info.ip_address.iter().filter_map(|text| text.parse().ok()).collect(),
    };
    value.data_items::<GuestNicInfo>().map(nic).collect()
}

/// The server stores `%`, `/` and `\` of a name escaped.
fn unescape(name: &str) -> String {
    let slashes = name.replace("%2f", "/").replace("%2F", "/");
    slashes.replace("%5c", "\\").replace("%5C", "\\").replace("%25", "%")
}
