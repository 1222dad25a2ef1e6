use std::net::IpAddr;
use std::sync::Arc;

use super::pool::Pool;
use super::tables::{Tables, VmChange};
use super::vm::Vm;
use crate::{DoorName, Freshness, PoolId, RequestId, VmId};

/// The datacenter at one moment. It costs a few reference counts and does not change.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    pub(super) tables: Tables,
    pub(super) generation: u64,
    pub(super) freshness: Freshness,
}

impl Snapshot {
    /// Grows with every change that can be seen.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    pub fn freshness(&self) -> &Freshness {
        &self.freshness
    }

    pub fn vm(&self, id: &VmId) -> Option<&Arc<Vm>> {
        self.tables.vm(id)
    }

    /// All VMs and templates, by id.
    pub fn vms(&self) -> impl Iterator<Item = &Arc<Vm>> {
        self.tables.vms()
    }

    pub fn len(&self) -> usize {
        self.tables.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tables.len() == 0
    }

    /// Names are unique within a folder only.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Arc<Vm>> {
        self.tables.named(name)
    }

    /// VMs and templates that this door has recognised, whichever instance of it owns them.
    pub fn claimed_by(&self, door: DoorName) -> impl Iterator<Item = &Arc<Vm>> {
        self.tables.claimed_by(door)
    }

    /// VMs and templates of this owner.
    pub fn owned_by<'a>(
        &'a self,
        door: DoorName,
        owner: &'a str,
    ) -> impl Iterator<Item = &'a Arc<Vm>> {
        self.tables.owned_by(door, owner)
    }

    /// VMs of this request; more than one is a fault.
    pub fn serving<'a>(&'a self, request: &'a RequestId) -> impl Iterator<Item = &'a Arc<Vm>> {
        self.tables.serving(request)
    }

    /// VMs that have the address, by claim, by name, or because the guest reports it.
    pub fn using(&self, address: IpAddr) -> impl Iterator<Item = &Arc<Vm>> {
        self.tables.using(address)
    }

    pub fn template<'a>(&'a self, name: &'a str) -> Option<&'a Arc<Vm>> {
        self.named(name).find(|vm| vm.template)
    }

    pub fn pool(&self, id: &PoolId) -> Option<&Arc<Pool>> {
        self.tables.pool(id)
    }

    pub fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.tables.pools()
    }

    /// What differs from an older snapshot, in the time of what differs.
    pub fn since<'a>(&'a self, older: &'a Self) -> impl Iterator<Item = VmChange<'a>> {
        self.tables.since(&older.tables)
    }
}
