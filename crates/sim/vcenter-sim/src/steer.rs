//! Moving the world from a test or a demo, past the API: what other people, other programs and bad luck do to a datacenter.

use std::sync::Arc;

use bytes::Bytes;
use roost_vim_wire::MoRef;

use crate::door::Vcenter;
use crate::event::{self, Scene};
use crate::guest::{self, GuestBehaviour, GuestScript};
use crate::inspect::find_vm;
use crate::inventory::host_ops::connect_host;
use crate::inventory::{HostConnection, foreign};
use crate::options::TemplateOptions;
use crate::store::{self, Content};
use crate::vm::{self, Power, power};
use crate::world::World;

/// Why the world could not be moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SteerError {
    #[error("there is no VM called {0}")]
    NoSuchVm(String),
    #[error("there is no host called {0}")]
    NoSuchHost(String),
    #[error("there is no datastore called {0}")]
    NoSuchDatastore(String),
    #[error("{0} is no datastore path")]
    NotADatastorePath(String),
    #[error("{0} is taken already")]
    NameTaken(String),
    #[error("the inventory has no place for {0}")]
    NoPlace(String),
}

impl Vcenter {
    /// How a VM's guest behaves from its next boot on; clones of it behave the same.
    pub fn set_guest_behaviour(
        &self,
        vm: &str,
        behaviour: GuestBehaviour,
    ) -> Result<(), SteerError> {
        self.on_vm(vm, |world, vm| {
            world.inventory.change_vm(vm, |row| row.behaviour = Arc::new(behaviour));
        })
    }

    /// Decides from now on what programs in guests do.
    pub fn script_guests(&self, script: impl GuestScript + 'static) {
        self.handle.with(|world| world.guests.set_script(Arc::new(script)));
    }

    /// Somebody else makes a VM, in the first datacenter.
    pub fn add_vm(&self, name: &str, power: Power) -> Result<MoRef, SteerError> {
        let (options, now) = (&self.handle.options, self.handle.now());
        self.handle.with(|world| {
            let moref = foreign::add_vm(world, options, now, name)?;
            if power == Power::On {
                power::set_power(world, &moref, Power::On, now);
                guest::boot(world, &self.handle, &moref);
            }
            Ok(moref)
        })
    }

    /// Somebody else makes a template, in the first datacenter.
    pub fn add_template(&self, template: &TemplateOptions) -> Result<MoRef, SteerError> {
        let (options, now) = (&self.handle.options, self.handle.now());
        self.handle.with(|world| foreign::add_template(world, options, now, template))
    }

    /// Somebody else powers a VM on or off, or suspends it, at once.
    pub fn set_power(&self, vm: &str, power: Power) -> Result<(), SteerError> {
        let now = self.handle.now();
        self.on_vm(vm, |world, vm| {
            let scene = Scene::of("somebody-else", now);
            match power {
                Power::On => {
                    power::set_power(world, vm, Power::On, now);
                    event::post_vm(
                        world,
                        &scene,
                        "VmPoweredOnEvent",
                        vm,
                        "{vm} on {host} in {dc} is powered on",
                    );
                    guest::boot(world, &self.handle, vm);
                }
                Power::Off => power::finish_power_off(world, &scene, vm),
                Power::Suspended => {
                    power::set_power(world, vm, Power::Suspended, now);
                    guest::stop(world, vm);
                }
            }
        })
    }

    /// Somebody else destroys a VM, running or not.
    pub fn kill_vm(&self, vm: &str) -> Result<(), SteerError> {
        let now = self.handle.now();
        self.on_vm(vm, |world, vm| vm::remove_vm(world, &Scene::of("somebody-else", now), vm, true))
    }

    /// Puts a file such as `[LocalDS_0] iso/boot.iso` on its datastore, with the directories above it.
    pub fn put_file(&self, path: &str, content: impl Into<Bytes>) -> Result<(), SteerError> {
        let (now, content) = (self.handle.now(), content.into());
        self.handle.with(|world| {
            let (name, _) = store::parse_datastore_path(path)
                .ok_or_else(|| SteerError::NotADatastorePath(path.into()))?;
            let no_such = || SteerError::NoSuchDatastore(name.into());
            let file = store::locate(world, path, None).map_err(|_| no_such())?;
            store::put_file(world, &file, content, now)
                .map_err(|_| SteerError::NotADatastorePath(path.into()))
        })
    }

    /// Leaves only so many bytes free on a datastore.
    pub fn fill_datastore(&self, name: &str, leave_free: i64) -> Result<(), SteerError> {
        let now = self.handle.now();
        self.handle.with(|world| {
            let no_such = || SteerError::NoSuchDatastore(name.into());
            let moref = world.inventory.datastore_named(name, None).ok_or_else(no_such)?;
            let capacity = world.inventory.datastores.get(&moref).ok_or_else(no_such)?.capacity;
            if let Some(shelf) = world.store.shelf_mut(&moref) {
                // What an earlier call put there does not count.
                let _ = shelf.remove(FILLER);
                let free = capacity - shelf.taken();
                shelf.put(FILLER, Content::Hollow((free - leave_free).max(0)), now);
            }
            store::announce_space(world, &moref);
            Ok(())
        })
    }

    /// Cuts a host off from the server, or brings it back; its VMs with it.
    pub fn set_host_connection(
        &self,
        host: &str,
        connection: HostConnection,
    ) -> Result<(), SteerError> {
        let now = self.handle.now();
        self.handle.with(|world| {
            let found = world.inventory.hosts.iter().find(|(_, row)| *row.name == *host);
            let moref = found
                .map(|(moref, _)| moref.clone())
                .ok_or_else(|| SteerError::NoSuchHost(host.into()))?;
            connect_host(world, &Scene::system(now), &moref, connection);
            Ok(())
        })
    }

    fn on_vm<R>(
        &self,
        name: &str,
        f: impl FnOnce(&mut World, &MoRef) -> R,
    ) -> Result<R, SteerError> {
        self.handle.with(|world| {
            let vm = find_vm(world, name).ok_or_else(|| SteerError::NoSuchVm(name.into()))?;
            Ok(f(world, &vm))
        })
    }
}

const FILLER: &str = "somebody-elses-backup.tar";
