//! Looking at the world from a test or a demo, past the API.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use jiff::Timestamp;
use roost_vim_wire::types::{Event, ResourcePoolRuntimeInfo, TaskInfo, VirtualDevice};
use roost_vim_wire::{MoRef, MoType};

use crate::door::Vcenter;
use crate::guest::{GuestProgram, ToolsState, guest_path};
use crate::inventory::property::wire_device;
use crate::inventory::uuid_text;
use crate::vm::{Power, Vm};
use crate::world::World;

/// A VM at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct VmView {
    pub moref: MoRef,
    pub name: String,
    /// In the inventory, such as `/DC0/vm/worker-1`.
    pub path: String,
    pub annotation: Option<String>,
    pub template: bool,
    pub power: Power,
    pub cpus: i32,
    pub memory_mb: i32,
    pub uuid: String,
    pub host: String,
    /// `None` for a template.
    pub pool: Option<String>,
    pub folder: String,
    pub datastore: String,
    pub devices: Vec<VirtualDevice>,
    /// Keys and values that are text.
    pub extra_config: Vec<(String, String)>,
    /// Names, oldest first.
    pub snapshots: Vec<String>,
    pub ip: Option<IpAddr>,
    pub host_name: Option<String>,
    pub tools_running: bool,
    pub guest_operations_ready: bool,
}

/// What is cheap to see of a VM: for tests that look at all of them again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmGlance {
    pub moref: MoRef,
    pub name: Arc<str>,
    pub annotation: Option<Arc<str>>,
    pub template: bool,
    pub power: Power,
    /// Whether it was ever powered on.
    pub has_run: bool,
    pub cpus: i32,
    pub memory_mb: i32,
    pub ip: Option<IpAddr>,
}

/// A program in a guest at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestProcessView {
    pub pid: i64,
    pub program: GuestProgram,
    pub started: Timestamp,
    /// Unset while it runs.
    pub exit_code: Option<i32>,
    pub output: String,
}

/// A resource pool at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolView {
    pub moref: MoRef,
    pub name: String,
    pub path: String,
    pub runtime: ResourcePoolRuntimeInfo,
    /// The names of the VMs directly in it.
    pub vms: Vec<String>,
}

impl Vcenter {
    /// The VM or template of this name; the first made, if several folders have one.
    pub fn vm(&self, name: &str) -> Option<VmView> {
        self.handle.with(|world| {
            let moref = find_vm(world, name)?;
            world.inventory.vms.get(&moref).map(|row| view(world, &moref, row))
        })
    }

    /// All VMs and templates, in the order they were made.
    pub fn vm_names(&self) -> Vec<String> {
        self.handle
            .with(|world| world.inventory.vms.iter().map(|(_, row)| row.name.to_string()).collect())
    }

    /// All VMs and templates, in the order they were made.
    pub fn glance(&self) -> Vec<VmGlance> {
        let glance = |(moref, row): (&MoRef, &Vm)| VmGlance {
            moref: moref.clone(),
            name: Arc::clone(&row.name),
            annotation: row.config.annotation.clone(),
            template: row.template,
            power: row.power,
            has_run: row.guest.boot > 0,
            cpus: row.config.cpus,
            memory_mb: row.config.memory_mb,
            ip: row.guest.primary(),
        };
        self.handle.with(|world| world.inventory.vms.iter().map(glance).collect())
    }

    /// The pool at a path such as `/DC0/host/DC0_C0/Resources`, or the first of this name.
    pub fn pool(&self, name: &str) -> Option<PoolView> {
        self.handle.with(|world| {
            let inventory = &world.inventory;
            let by_name = || {
                inventory
                    .pools
                    .iter()
                    .find(|(_, row)| *row.name == *name)
                    .map(|(moref, _)| moref.clone())
            };
            let by_path = inventory
                .by_path(name)
                .filter(|found| name.contains('/') && found.kind.is_a("ResourcePool"));
            let moref = by_path.or_else(by_name)?;
            let vms = inventory
                .vms_of(&moref)
                .filter_map(|vm| inventory.name(vm))
                .map(Into::into)
                .collect();
            Some(PoolView {
                name: inventory.name(&moref)?.into(),
                path: inventory.path_of(&moref),
                runtime: inventory.pool_runtime(&moref),
                vms,
                moref,
            })
        })
    }

    /// All events that are kept, oldest first.
    pub fn events(&self) -> Vec<Event> {
        self.handle.with(|world| world.events.iter().map(|posted| posted.wire(false)).collect())
    }

    /// The tasks under way and those that finished lately, oldest first.
    pub fn tasks(&self) -> Vec<TaskInfo> {
        self.handle
            .with(|world| world.tasks.recent().filter_map(|task| world.tasks.info(task)).collect())
    }

    /// What is free on a datastore, in bytes.
    pub fn datastore_free(&self, name: &str) -> Option<i64> {
        self.handle.with(|world| {
            let moref = world.inventory.datastore_named(name, None)?;
            let capacity = world.inventory.datastores.get(&moref)?.capacity;
            Some(world.store.free(&moref, capacity))
        })
    }

    /// The names in a directory of a datastore, sorted; `None` if there is no such directory.
    pub fn datastore_directory(&self, name: &str, directory: &str) -> Option<Vec<String>> {
        self.handle.with(|world| {
            let moref = world.inventory.datastore_named(name, None)?;
            let shelf = world.store.shelf(&moref)?;
            if !directory.is_empty() && !shelf.is_folder(directory) {
                return None;
            }
            let mut names: Vec<String> =
                shelf.list(directory).map(|(name, _)| name.to_owned()).collect();
            names.sort();
            Some(names)
        })
    }

    /// What every VM booted, oldest first.
    pub fn guest_boots(&self) -> Vec<crate::guest::GuestBoot> {
        self.handle.with(|world| world.guests.boots().cloned().collect())
    }

    /// Every program that was started in a guest, oldest first.
    pub fn guest_programs(&self) -> Vec<GuestProgram> {
        self.handle.with(|world| world.guests.started().cloned().collect())
    }

    /// The programs of one VM that run or have ended since it was powered on.
    pub fn guest_processes(&self, vm: &str) -> Vec<GuestProcessView> {
        self.handle.with(|world| {
            let machine = find_vm(world, vm).and_then(|vm| world.guests.machine(&vm));
            let view = |process: &crate::guest::Process| GuestProcessView {
                pid: process.pid,
                program: process.program.clone(),
                started: process.started,
                exit_code: process.ended.map(|(_, code)| code),
                output: process.output.clone(),
            };
            machine.into_iter().flat_map(|machine| &machine.processes).map(view).collect()
        })
    }

    /// The content of a file in a guest.
    pub fn read_guest_file(&self, vm: &str, path: &str) -> Option<Bytes> {
        self.handle.with(|world| {
            let vm = find_vm(world, vm)?;
            world.guests.machine(&vm)?.files.read(&guest_path(path)?)
        })
    }
}

pub(crate) fn find_vm(world: &World, name: &str) -> Option<MoRef> {
    // The folder that VMs are in unless somebody made another finds it at once.
    let folders = world.inventory.datacenters.iter().map(|(_, row)| &row.vm_folder);
    let in_folder = |folder: &MoRef| {
        world.inventory.child_named(folder, name).filter(|at| at.kind == MoType::VirtualMachine)
    };
    let mut found = folders.filter_map(in_folder);
    found.next().or_else(|| {
        world
            .inventory
            .vms
            .iter()
            .find(|(_, row)| *row.name == *name)
            .map(|(moref, _)| moref.clone())
    })
}

fn view(world: &World, moref: &MoRef, row: &Vm) -> VmView {
    let name = |obj: &MoRef| world.inventory.name(obj).unwrap_or_default().to_owned();
    let text = |option: &roost_vim_wire::types::OptionValue| {
        let value = option.value.as_ref().and_then(roost_vim_wire::Value::as_str)?;
        Some((option.key.clone(), value.to_owned()))
    };
    VmView {
        moref: moref.clone(),
        name: row.name.to_string(),
        path: world.inventory.path_of(moref),
        annotation: row.config.annotation.as_deref().map(Into::into),
        template: row.template,
        power: row.power,
        cpus: row.config.cpus,
        memory_mb: row.config.memory_mb,
        uuid: uuid_text(row.uuid),
        host: name(&row.host),
        pool: row.pool.as_ref().map(name),
        folder: name(&row.folder),
        datastore: name(&row.home.datastore),
        devices: row
            .config
            .devices
            .iter()
            .map(|device| wire_device(&world.inventory, row, device))
            .collect(),
        extra_config: row.config.extra.iter().filter_map(text).collect(),
        snapshots: row
            .snapshots
            .iter()
            .flat_map(|all| &all.list)
            .map(|snapshot| snapshot.name.to_string())
            .collect(),
        ip: row.guest.primary(),
        host_name: row.guest.host_name.as_deref().map(Into::into),
        tools_running: row.guest.tools == ToolsState::Running,
        guest_operations_ready: row.guest.is_ready,
    }
}
