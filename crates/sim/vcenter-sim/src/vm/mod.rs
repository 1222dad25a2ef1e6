//! One virtual machine: what it is, and everything that can be done to it.

mod call;
mod check;
mod clone;
mod clone_disk;
mod config;
mod config_change;
mod console;
pub(crate) mod create;
mod customize;
mod destroy;
mod device;
mod device_change;
mod device_key;
mod disk;
mod disk_change;
mod draft;
pub(crate) mod fault;
pub(crate) mod hardware;
mod identity;
mod instant_clone;
mod nic_change;
pub(crate) mod placement;
pub(crate) mod power;
mod power_state;
mod promote;
mod reconfigure;
pub(crate) mod register;
mod relocate;
mod rename;
mod snapshot;
mod snapshot_ops;
mod template;
mod upgrade;
mod v_app;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use roost_clock::Random;
use roost_vim_wire::{MoRef, MoType};

pub(crate) use call::call;
pub(crate) use check::MAX_VM_MEMORY_MB;
pub(crate) use clone::clone_vm;
pub(crate) use config::{Config, Settings, guest_family, guest_full_name};
pub(crate) use config_change::merge_allocation;
pub(crate) use create::{NewVm, create_as};
pub(crate) use destroy::{destroy as destroy_entity, remove_pool, remove_vm};
pub(crate) use device::{Device, Mac, Own};
pub(crate) use disk::{CHILD_DISK_BYTES, Disk, DiskFile, FilePath, initial_bytes};
pub(crate) use draft::{Draft, Effects};
pub(crate) use hardware::{StandardDevices, keys};
pub(crate) use power::power_on_many;
pub use power_state::Power;
pub(crate) use reconfigure::reconfigure_as;
pub(crate) use relocate::relocate as relocate_vm;
pub(crate) use snapshot::{Snapshot, Snapshots};
pub(crate) use v_app::apply as apply_v_app;

use crate::guest::{Guest, GuestBehaviour, Identity};
use crate::inventory::{draw_uuid, parse_uuid};
use crate::pool::Demand;
use crate::store;
use crate::world::World;

/// Kept small, because there may be ten thousand: what VMs have in common is shared, and wire objects are made when read.
#[derive(Debug, Clone)]
pub(crate) struct Vm {
    pub name: Arc<str>,
    pub folder: MoRef,
    /// Templates have none.
    pub pool: Option<MoRef>,
    pub host: MoRef,
    /// The directory with its files, and the `.vmx` in it.
    pub home: FilePath,
    pub uuid: u128,
    pub instance_uuid: u128,
    pub template: bool,
    pub power: Power,
    pub boot_time: Option<Timestamp>,
    pub suspend_time: Option<Timestamp>,
    pub created: Timestamp,
    pub modified: Timestamp,
    pub is_connected: bool,
    pub config: Config,
    pub snapshots: Option<Box<Snapshots>>,
    pub guest: Guest,
    /// How its guest behaves; clones behave as their source.
    pub behaviour: Arc<GuestBehaviour>,
    /// What customization made of its system; a copy of its disk has it, too.
    pub identity: Option<Arc<Identity>>,
    /// Applied at the next power on.
    pub customization: Option<Arc<roost_vim_wire::types::CustomizationSpec>>,
}

/// Where a VM is: in the tree, in the cluster, on disk.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub folder: MoRef,
    pub pool: Option<MoRef>,
    pub host: MoRef,
    pub home: FilePath,
}

impl Vm {
    /// A VM that is off and has never run.
    pub(crate) fn new(
        name: Arc<str>,
        place: Place,
        config: Config,
        random: &mut Random,
        now: Timestamp,
    ) -> Self {
        Self {
            name,
            folder: place.folder,
            pool: place.pool,
            host: place.host,
            home: place.home,
            uuid: draw_uuid(random),
            instance_uuid: draw_uuid(random),
            template: false,
            power: Power::Off,
            boot_time: None,
            suspend_time: None,
            created: now,
            modified: now,
            is_connected: true,
            config,
            snapshots: None,
            guest: Guest::default(),
            behaviour: Arc::default(),
            identity: None,
            customization: None,
        }
    }

    /// Takes over the identities that a request gives.
    pub(crate) fn identify(&mut self, uuid: Option<&str>, instance_uuid: Option<&str>) {
        self.uuid = uuid.and_then(parse_uuid).unwrap_or(self.uuid);
        self.instance_uuid = instance_uuid.and_then(parse_uuid).unwrap_or(self.instance_uuid);
    }

    /// The images in drives that are connected at power on.
    pub(crate) fn images(&self) -> impl Iterator<Item = &str> {
        let starts = |device: &&Device| {
            let connect = device.base.connectable.as_ref();
            device.base.is_cdrom() && connect.is_some_and(|connect| connect.start_connected)
        };
        let drives = self.config.devices.iter().filter(starts);
        let files = drives.filter_map(|drive| drive.base.backing.as_ref()?.file_name.as_deref());
        files.filter(|file| !file.is_empty())
    }

    /// Whether it finds something to boot: a disk that was not made empty, an image in a drive, or the network. A drive whose image
    /// is not on the datastore is empty.
    pub(crate) fn has_system(&self, world: &World) -> bool {
        self.config.disks().any(|disk| !disk.is_blank)
            || self.behaviour.boots_from_network
            || self.images().any(|file| store::is_there(world, file))
    }

    /// The image that it boots: one in a drive that comes first, or any where no disk has a system.
    pub(crate) fn boot_image(&self, world: &World) -> Option<&str> {
        let first = self.config.settings.boot_options.boot_order.first();
        let is_first = first.is_some_and(|device| device.class.ends_with("CdromDevice"));
        let has_disk = self.config.disks().any(|disk| !disk.is_blank);
        self.images().find(|file| (is_first || !has_disk) && store::is_there(world, file))
    }

    /// Whether the system that it boots has the tools.
    pub(crate) fn has_tools(&self, world: &World) -> bool {
        self.config.has_tools && self.has_system(world)
    }

    /// What it takes of its pool and host while it is powered on.
    pub(crate) fn demand(&self) -> Demand {
        Demand::of(self.config.cpus, self.config.memory_mb, &self.config.settings)
    }

    /// What it takes now.
    pub(crate) fn current_demand(&self) -> Demand {
        if self.power == Power::On { self.demand() } else { Demand::default() }
    }

    /// Marks the configuration as changed. Two changes in one instant still give two versions.
    pub(crate) fn touch(&mut self, now: Timestamp) {
        let next = self.modified.saturating_add(SignedDuration::from_micros(1)).unwrap_or(now);
        self.modified = now.max(next);
    }

    pub(crate) fn change_version(&self) -> String {
        self.modified.to_string()
    }

    /// The networks that its cards are on, each once.
    pub(crate) fn networks(&self) -> Vec<MoRef> {
        let mut networks: Vec<MoRef> = Vec::new();
        for device in &self.config.devices {
            if let Some(network) = device.network()
                && !networks.contains(&network)
            {
                networks.push(network);
            }
        }
        networks
    }

    /// The datastores that hold its files, each once.
    pub(crate) fn datastores(&self) -> Vec<MoRef> {
        let mut datastores = vec![self.home.datastore.clone()];
        for disk in self.config.disks() {
            for file in disk.file.chain() {
                if !datastores.contains(&file.path.datastore) {
                    datastores.push(file.path.datastore.clone());
                }
            }
        }
        for device in &self.config.devices {
            let backing = device.base.backing.as_ref();
            if let Some(datastore) = backing.and_then(|backing| backing.datastore.as_ref())
                && !datastores.contains(datastore)
            {
                datastores.push(datastore.clone());
            }
        }
        datastores
    }

    /// The directory of its files, without the `.vmx`.
    pub(crate) fn directory(&self) -> &str {
        self.home.path.rsplit_once('/').map_or("", |(directory, _)| directory)
    }
}

/// `network-7` and `dvportgroup-12` tell their kind by their id; a card remembers only that.
pub(crate) fn network_ref(id: &str) -> MoRef {
    let kind = if id.starts_with("dvportgroup-") {
        MoType::DistributedVirtualPortgroup
    } else {
        MoType::Network
    };
    MoRef::new(kind, id)
}
