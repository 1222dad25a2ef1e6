//! Finding objects: by name, by path, by what belongs to them.

use std::sync::Arc;

use roost_vim_wire::types::VirtualDeviceBackingInfo;
use roost_vim_wire::{MoRef, MoType};

use crate::call::Failure;
use crate::inventory::{Inventory, stored_name};
use crate::vm::hardware;

impl Inventory {
    pub(crate) fn name(&self, obj: &MoRef) -> Option<&str> {
        self.shared_name(obj).map(AsRef::as_ref)
    }

    pub(crate) fn shared_name(&self, obj: &MoRef) -> Option<&Arc<str>> {
        match &obj.kind {
            MoType::VirtualMachine => self.vms.get(obj).map(|row| &row.name),
            MoType::Folder | MoType::StoragePod => self.folders.get(obj).map(|row| &row.name),
            MoType::Datacenter => self.datacenters.get(obj).map(|row| &row.name),
            MoType::ClusterComputeResource | MoType::ComputeResource => {
                self.computes.get(obj).map(|row| &row.name)
            }
            MoType::HostSystem => self.hosts.get(obj).map(|row| &row.name),
            MoType::ResourcePool | MoType::VirtualApp => self.pools.get(obj).map(|row| &row.name),
            MoType::Datastore => self.datastores.get(obj).map(|row| &row.name),
            MoType::Network | MoType::DistributedVirtualPortgroup => {
                self.networks.get(obj).map(|row| &row.name)
            }
            MoType::VmwareDistributedVirtualSwitch => self.switches.get(obj).map(|row| &row.name),
            _ => None,
        }
    }

    /// The parent in the inventory tree, as the property `parent` shows it.
    pub(crate) fn parent(&self, obj: &MoRef) -> Option<MoRef> {
        match &obj.kind {
            MoType::VirtualMachine => self.vms.get(obj).map(|row| row.folder.clone()),
            MoType::Folder | MoType::StoragePod => {
                self.folders.get(obj).and_then(|row| row.parent.clone())
            }
            MoType::Datacenter => self.datacenters.get(obj).map(|row| row.parent.clone()),
            MoType::ClusterComputeResource | MoType::ComputeResource => {
                self.computes.get(obj).map(|row| row.parent.clone())
            }
            MoType::HostSystem => self.hosts.get(obj).map(|row| row.parent.clone()),
            MoType::ResourcePool | MoType::VirtualApp => {
                self.pools.get(obj).map(|row| row.parent.clone())
            }
            MoType::Datastore => self.datastores.get(obj).map(|row| row.parent.clone()),
            MoType::Network | MoType::DistributedVirtualPortgroup => {
                self.networks.get(obj).map(|row| row.parent.clone())
            }
            MoType::VmwareDistributedVirtualSwitch => {
                self.switches.get(obj).map(|row| row.parent.clone())
            }
            _ => None,
        }
    }

    /// The object and what it is in, up to the root.
    pub(crate) fn lineage(&self, obj: &MoRef) -> impl Iterator<Item = MoRef> {
        std::iter::successors(Some(obj.clone()), |at| self.parent(at))
    }

    pub(crate) fn datacenter_of(&self, obj: &MoRef) -> Option<MoRef> {
        self.lineage(obj).find(|at| at.kind == MoType::Datacenter)
    }

    /// What a container view sees directly below an object: the children of a folder, the four folders of a datacenter, hosts
    /// and root pool of a compute resource, VMs and pools of a pool, VMs of a host.
    pub(crate) fn children(&self, obj: &MoRef) -> Vec<MoRef> {
        let tree = self.tree_children(obj);
        match obj.kind {
            MoType::ResourcePool | MoType::VirtualApp | MoType::HostSystem => {
                tree.into_iter().chain(self.vms_of(obj).cloned()).collect()
            }
            _ => tree,
        }
    }

    /// What has this object as its parent.
    pub(crate) fn tree_children(&self, obj: &MoRef) -> Vec<MoRef> {
        match &obj.kind {
            MoType::Folder | MoType::StoragePod => self
                .folders
                .get(obj)
                .map(|row| row.children.iter().cloned().collect())
                .unwrap_or_default(),
            MoType::Datacenter => self
                .datacenters
                .get(obj)
                .map(|row| {
                    [&row.vm_folder, &row.host_folder, &row.datastore_folder, &row.network_folder]
                        .map(Clone::clone)
                        .into()
                })
                .unwrap_or_default(),
            MoType::ClusterComputeResource | MoType::ComputeResource => self
                .computes
                .get(obj)
                .map(|row| row.hosts.iter().chain([&row.pool]).cloned().collect())
                .unwrap_or_default(),
            MoType::ResourcePool | MoType::VirtualApp => {
                self.pools.get(obj).map(|row| row.pools.clone()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The objects whose [`children`](Self::children) hold this one: the parent, and for a VM also its pool and its host.
    pub(crate) fn containers(&self, obj: &MoRef) -> Vec<MoRef> {
        let mut containers: Vec<MoRef> = self.parent(obj).into_iter().collect();
        if let Some(vm) = self.vms.get(obj) {
            containers.extend(vm.pool.clone());
            containers.push(vm.host.clone());
        }
        containers
    }

    /// All objects of exactly this kind, in the order they were made.
    pub(crate) fn of_kind(&self, kind: &MoType) -> Vec<MoRef> {
        let of = |refs: &mut dyn Iterator<Item = &MoRef>| {
            refs.filter(|moref| moref.kind == *kind).cloned().collect()
        };
        match kind {
            MoType::VirtualMachine => of(&mut self.vms.refs()),
            MoType::Folder | MoType::StoragePod => of(&mut self.folders.refs()),
            MoType::Datacenter => of(&mut self.datacenters.refs()),
            MoType::ClusterComputeResource | MoType::ComputeResource => {
                of(&mut self.computes.refs())
            }
            MoType::HostSystem => of(&mut self.hosts.refs()),
            MoType::ResourcePool | MoType::VirtualApp => of(&mut self.pools.refs()),
            MoType::Datastore => of(&mut self.datastores.refs()),
            MoType::Network | MoType::DistributedVirtualPortgroup => of(&mut self.networks.refs()),
            MoType::VmwareDistributedVirtualSwitch => of(&mut self.switches.refs()),
            _ => Vec::new(),
        }
    }

    /// The child of this name in the tree. A folder finds it at once, whatever its size.
    pub(crate) fn child_named(&self, parent: &MoRef, name: &str) -> Option<MoRef> {
        let name = stored_name(name);
        if let Some(folder) = self.folders.get(parent) {
            folder.children.named(&name).cloned()
        } else {
            let mut children = self.children(parent).into_iter();
            children.find(|child| self.name(child).is_some_and(|found| *found == name))
        }
    }

    /// The object at a path such as `/DC0/vm/worker-1`; the root folder is not part of it.
    pub(crate) fn by_path(&self, path: &str) -> Option<MoRef> {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.into_iter().try_fold(self.root.clone(), |at, part| self.child_named(&at, part))
    }

    /// The path that [`by_path`](Self::by_path) takes.
    pub(crate) fn path_of(&self, obj: &MoRef) -> String {
        let mut names: Vec<_> = self.lineage(obj).filter(|at| *at != self.root).collect();
        names.reverse();
        names
            .iter()
            .filter_map(|at| self.name(at))
            .fold(String::new(), |path, name| path + "/" + name)
    }

    /// The datastore of this name in a datacenter, or anywhere if none is given.
    pub(crate) fn datastore_named(&self, name: &str, datacenter: Option<&MoRef>) -> Option<MoRef> {
        let mut all = self.datastores.iter();
        all.find(|(_, row)| {
            *row.name == *name && datacenter.is_none_or(|wanted| row.datacenter == *wanted)
        })
        .map(|(moref, _)| moref.clone())
    }

    pub(crate) fn datastore_of_browser(&self, browser: &MoRef) -> Option<MoRef> {
        self.datastores
            .iter()
            .find(|(_, row)| row.browser == *browser)
            .map(|(moref, _)| moref.clone())
    }

    pub(crate) fn compute_of_environment(&self, environment: &MoRef) -> Option<MoRef> {
        self.computes
            .iter()
            .find(|(_, row)| row.environment == *environment)
            .map(|(moref, _)| moref.clone())
    }

    pub(crate) fn compute_of_host(&self, host: &MoRef) -> Option<&MoRef> {
        self.hosts.get(host).map(|row| &row.parent)
    }

    /// What a card on this network has behind it.
    pub(crate) fn nic_backing(&self, network: &MoRef) -> Option<VirtualDeviceBackingInfo> {
        let row = self.networks.get(network)?;
        match &row.port_group {
            Some(group) => {
                Some(hardware::port_backing(&self.switches.get(&group.switch)?.uuid, network))
            }
            None => Some(hardware::network_backing(&row.name, network)),
        }
    }

    /// `[LocalDS_0] dir/file`
    pub(crate) fn datastore_path(&self, file: &crate::vm::FilePath) -> String {
        let name = self.datastores.get(&file.datastore).map_or("", |row| &row.name);
        if file.path.is_empty() { format!("[{name}]") } else { format!("[{name}] {}", file.path) }
    }

    /// Refuses a name that is taken in a folder, or will be when a clone that is running ends.
    pub(crate) fn refuse_duplicate(&self, folder: &MoRef, name: &Arc<str>) -> Result<(), Failure> {
        let reserved = || self.reserved_names.get(&(folder.clone(), Arc::clone(name))).cloned();
        match self.child_named(folder, name).or_else(reserved) {
            Some(object) => Err(duplicate_name(name, &object)),
            None => Ok(()),
        }
    }
}

pub(crate) fn duplicate_name(name: &str, object: &MoRef) -> Failure {
    Failure::of("DuplicateName", format!("The name '{name}' already exists."))
        .with("name", &name.to_owned())
        .with("object", object)
}
