//! Where a VM is entered and where it is struck out when it comes, moves or goes.

use std::sync::Arc;

use roost_vim_wire::{MoRef, MoType};

use crate::inventory::Inventory;
use crate::pool::Demand;
use crate::vm::Vm;

/// The places that refer to a VM, and what it takes there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Places {
    pool: Option<MoRef>,
    host: MoRef,
    datastores: Vec<MoRef>,
    networks: Vec<MoRef>,
    demand: Demand,
}

impl Places {
    fn of(vm: &Vm) -> Self {
        Self {
            pool: vm.pool.clone(),
            host: vm.host.clone(),
            datastores: vm.datastores(),
            networks: vm.networks(),
            demand: vm.current_demand(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &MoRef> {
        self.pool.iter().chain([&self.host]).chain(&self.datastores).chain(&self.networks)
    }
}

impl Inventory {
    /// The VMs that a pool, host, datastore or network refers to, in the order they were made.
    pub(crate) fn vms_of(&self, place: &MoRef) -> impl Iterator<Item = &MoRef> {
        self.vms_of.get(place).into_iter().flatten().filter_map(|serial| self.vms.moref_at(*serial))
    }

    /// Puts a VM into the tables without telling anyone, for the inventory at the start.
    pub(crate) fn place_vm(&mut self, moref: &MoRef, vm: Vm) {
        if let Some(folder) = self.folders.get_mut(&vm.folder) {
            folder.children.insert(&vm.name, moref);
        }
        let places = Places::of(&vm);
        let serial = self.vms.insert(moref, vm);
        for place in places.all() {
            self.vms_of.entry(place.clone()).or_default().insert(serial);
        }
        if let Some(pool) = places.pool.as_ref().and_then(|pool| self.pools.get_mut(pool)) {
            pool.demand += places.demand;
        }
        if let Some(host) = self.hosts.get_mut(&places.host) {
            host.demand += places.demand;
        }
    }

    /// A new VM: into the tables, and everyone who refers to it is announced.
    pub(crate) fn enter_vm(&mut self, moref: &MoRef, vm: Vm) {
        let (folder, places) = (vm.folder.clone(), Places::of(&vm));
        self.place_vm(moref, vm);
        self.changes.entered(moref);
        self.changes.modified(&folder, ["childEntity"]);
        for place in places.all() {
            self.changes.modified(place, ["vm"]);
        }
        if let Some(owner) =
            places.pool.and_then(|pool| self.pools.get(&pool)).map(|pool| pool.owner.clone())
        {
            self.announce_pools(&owner);
        }
    }

    /// Takes a VM out of the tables. Its snapshots go with it.
    pub(crate) fn leave_vm(&mut self, moref: &MoRef) -> Option<Vm> {
        let places = Places::of(self.vms.get(moref)?);
        let serial = self.vms.serial(moref)?;
        for place in places.all() {
            if let Some(vms) = self.vms_of.get_mut(place) {
                vms.remove(&serial);
            }
            self.changes.modified(place, ["vm"]);
        }
        let vm = self.vms.remove(moref)?;
        if let Some(folder) = self.folders.get_mut(&vm.folder) {
            folder.children.remove(&vm.name);
        }
        self.changes.modified(&vm.folder, ["childEntity"]);
        for snapshot in vm.snapshots.iter().flat_map(|snapshots| &snapshots.list) {
            self.snapshots.remove(&snapshot.moref);
            self.changes.left(&snapshot.moref);
        }
        for mac in vm.config.nics().filter_map(crate::vm::Device::mac) {
            self.dhcp.release(mac);
        }
        self.custom_fields.forget(moref);
        self.changes.left(moref);
        let nothing = (None, None, Demand::default());
        self.shift_demand((places.pool.as_ref(), Some(&places.host), places.demand), nothing);
        Some(vm)
    }

    /// Changes a VM and carries the consequences to all places that refer to it: pool and host sums, `vm` lists, the VM's own
    /// `resourcePool`, `datastore`, `network` and host. Every other changed path is the caller's to announce.
    pub(crate) fn change_vm<R>(
        &mut self,
        moref: &MoRef,
        change: impl FnOnce(&mut Vm) -> R,
    ) -> Option<R> {
        let vm = self.vms.get_mut(moref)?;
        let before = Places::of(vm);
        let result = change(vm);
        let after = Places::of(vm);
        if before != after {
            self.move_between(moref, &before, &after);
        }
        Some(result)
    }

    fn move_between(&mut self, moref: &MoRef, before: &Places, after: &Places) {
        let Some(serial) = self.vms.serial(moref) else { return };
        for gone in before.all().filter(|place| !after.all().any(|kept| kept == *place)) {
            if let Some(vms) = self.vms_of.get_mut(gone) {
                vms.remove(&serial);
            }
            self.changes.modified(gone, ["vm"]);
        }
        for new in after.all().filter(|place| !before.all().any(|kept| kept == *place)) {
            self.vms_of.entry(new.clone()).or_default().insert(serial);
            self.changes.modified(new, ["vm"]);
        }
        let own = [
            (before.pool != after.pool, "resourcePool"),
            (before.host != after.host, "runtime.host"),
            (before.host != after.host, "summary.runtime.host"),
            (before.datastores != after.datastores, "datastore"),
            (before.networks != after.networks, "network"),
        ];
        let paths: Vec<_> =
            own.into_iter().filter(|(is_changed, _)| *is_changed).map(|(_, path)| path).collect();
        if !paths.is_empty() {
            self.changes.modified(moref, paths);
        }
        self.shift_demand(
            (before.pool.as_ref(), Some(&before.host), before.demand),
            (after.pool.as_ref(), Some(&after.host), after.demand),
        );
    }

    /// Gives an object a new name, wherever names are kept. The paths that show a VM's name are announced, too.
    pub(crate) fn rename(&mut self, obj: &MoRef, name: &str) {
        let name: Arc<str> = name.into();
        let Some(old) = self.shared_name(obj).cloned() else { return };
        if let Some(folder) = self.parent(obj).and_then(|parent| self.folders.get_mut(&parent)) {
            folder.children.rename(&old, &name);
        }
        let slot = match &obj.kind {
            MoType::VirtualMachine => self.vms.get_mut(obj).map(|row| &mut row.name),
            MoType::Folder | MoType::StoragePod => {
                self.folders.get_mut(obj).map(|row| &mut row.name)
            }
            MoType::Datacenter => self.datacenters.get_mut(obj).map(|row| &mut row.name),
            MoType::ClusterComputeResource | MoType::ComputeResource => {
                self.computes.get_mut(obj).map(|row| &mut row.name)
            }
            MoType::HostSystem => self.hosts.get_mut(obj).map(|row| &mut row.name),
            MoType::ResourcePool | MoType::VirtualApp => {
                self.pools.get_mut(obj).map(|row| &mut row.name)
            }
            MoType::Datastore => self.datastores.get_mut(obj).map(|row| &mut row.name),
            MoType::Network | MoType::DistributedVirtualPortgroup => {
                self.networks.get_mut(obj).map(|row| &mut row.name)
            }
            MoType::VmwareDistributedVirtualSwitch => {
                self.switches.get_mut(obj).map(|row| &mut row.name)
            }
            _ => None,
        };
        if let Some(slot) = slot {
            *slot = name;
        }
        let paths: &[&str] = match &obj.kind {
            MoType::VirtualMachine => &["name", "config.name", "summary.config.name"],
            MoType::Folder | MoType::StoragePod | MoType::Datacenter => &["name"],
            MoType::HostSystem => &["name", "summary.config.name"],
            MoType::Datastore => &["name", "summary.name", "info.name"],
            MoType::DistributedVirtualPortgroup | MoType::VmwareDistributedVirtualSwitch => {
                &["name", "summary.name", "config.name"]
            }
            _ => &["name", "summary.name"],
        };
        self.changes.modified(obj, paths.iter().copied());
    }

    /// Hangs an object of the tree into another folder.
    pub(crate) fn move_to_folder(&mut self, obj: &MoRef, folder: &MoRef) {
        if let Some(app) = self.pools.get_mut(obj).and_then(|row| row.app.as_deref_mut()) {
            app.folder = folder.clone();
            self.changes.modified(obj, ["parentFolder"]);
            return;
        }
        let (Some(old), Some(name)) = (self.parent(obj), self.shared_name(obj).cloned()) else {
            return;
        };
        if let Some(row) = self.folders.get_mut(&old) {
            row.children.remove(&name);
        }
        if let Some(row) = self.folders.get_mut(folder) {
            row.children.insert(&name, obj);
        }
        let folder_ref = folder.clone();
        match &obj.kind {
            MoType::VirtualMachine => self.vms.get_mut(obj).map(|row| row.folder = folder_ref),
            MoType::Folder | MoType::StoragePod => {
                self.folders.get_mut(obj).map(|row| row.parent = Some(folder_ref))
            }
            MoType::Datacenter => self.datacenters.get_mut(obj).map(|row| row.parent = folder_ref),
            MoType::ClusterComputeResource | MoType::ComputeResource => {
                self.computes.get_mut(obj).map(|row| row.parent = folder_ref)
            }
            MoType::Datastore => self.datastores.get_mut(obj).map(|row| row.parent = folder_ref),
            MoType::Network | MoType::DistributedVirtualPortgroup => {
                self.networks.get_mut(obj).map(|row| row.parent = folder_ref)
            }
            MoType::VmwareDistributedVirtualSwitch => {
                self.switches.get_mut(obj).map(|row| row.parent = folder_ref)
            }
            _ => None,
        };
        self.changes.modified(&old, ["childEntity"]);
        self.changes.modified(folder, ["childEntity"]);
        self.changes.modified(obj, ["parent"]);
    }
}
