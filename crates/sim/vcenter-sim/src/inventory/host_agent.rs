//! The inventory of a standalone ESXi host, with the fixed ids that one has.

use roost_vim_wire::{MoRef, MoType};

use crate::inventory::build::Builder;
use crate::inventory::{DatastoreKind, Folder, FolderKind};

impl Builder<'_> {
    pub(super) fn host_agent(&mut self) {
        let root = self.inventory.root.clone();
        self.inventory
            .folders
            .insert(&root, Folder::new("ha-folder-root", None, FolderKind::Datacenter));
        let datacenter = MoRef::new(MoType::Datacenter, "ha-datacenter");
        let places = self.datacenter_folders("ha-datacenter", &datacenter, &root);
        let network = MoRef::new(MoType::Network, "HaNetwork-VM Network");
        self.network("VM Network", &network, None, &places);
        for store in 0..self.options.datastores {
            self.datastore(&format!("LocalDS_{store}"), DatastoreKind::Vmfs, &places);
        }
        let compute = MoRef::new(MoType::ComputeResource, "ha-compute-res");
        self.compute("localhost.localdomain", &compute, &places, &["localhost.localdomain".into()]);
        self.connect(&datacenter);
        let (computes, networks) = ([compute], [network]);
        self.model_vms("ha", &places, &computes, &networks);
        self.templates(&places, &computes, &networks);
    }
}
