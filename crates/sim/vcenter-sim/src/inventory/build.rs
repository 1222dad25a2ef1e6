//! The inventory that a simulator starts with, under vcsim's names, so that one test runs against both.

use std::sync::Arc;

use jiff::Timestamp;
use roost_clock::Random;
use roost_vim_wire::types::ResourceConfigSpec;
use roost_vim_wire::{Element, MoRef, MoType};

use crate::guest::Dhcp;
use crate::inventory::cluster_config::ClusterConfig;
use crate::inventory::{
    Compute, CustomFields, Datacenter, Datastore, DatastoreKind, Folder, FolderKind, Host,
    HostConnection, Ids, Inventory, Network, PortGroup, PortGroupConfig, Switch, SwitchConfig,
    Table, draw_uuid, uuid_text,
};
use crate::options::{Options, Product};
use crate::pool::{App, Demand, Pool, unlimited};

/// MHz of a host's core.
const CORE_MHZ: i32 = 2_400;

impl Inventory {
    pub(crate) fn build(options: &Options, random: &mut Random, now: Timestamp) -> Self {
        let mut inventory = Self::empty(options);
        match options.product {
            Product::VirtualCenter => {
                let root = Folder::new("Datacenters", None, FolderKind::Datacenter);
                inventory.folders.insert(&inventory.root.clone(), root);
                for index in 0..options.datacenters {
                    Builder { inventory: &mut inventory, options, random, now }.datacenter(index);
                }
            }
            Product::HostAgent => {
                Builder { inventory: &mut inventory, options, random, now }.host_agent();
            }
        }
        let owners: Vec<MoRef> = inventory.computes.refs().cloned().collect();
        for owner in owners {
            inventory.announce_pools(&owner);
        }
        inventory.changes.take();
        inventory
    }

    fn empty(options: &Options) -> Self {
        let root = match options.product {
            Product::VirtualCenter => "group-d1",
            Product::HostAgent => "ha-folder-root",
        };
        Self {
            product: options.product,
            root: MoRef::new(MoType::Folder, root),
            changes: super::Changes::default(),
            ids: Ids::new(options.product),
            folders: Table::default(),
            datacenters: Table::default(),
            computes: Table::default(),
            hosts: Table::default(),
            pools: Table::default(),
            datastores: Table::default(),
            networks: Table::default(),
            switches: Table::default(),
            vms: Table::default(),
            snapshots: Table::default(),
            custom_fields: CustomFields::default(),
            dhcp: Dhcp::new(options.dhcp),
            vms_of: std::collections::HashMap::new(),
            reserved_names: std::collections::HashMap::new(),
            others: std::collections::HashSet::new(),
            unregistered: std::collections::HashMap::new(),
            macs: 0,
            host_thumbprint: None,
        }
    }

    /// Adds a child to a folder that exists.
    pub(crate) fn hang(&mut self, parent: &MoRef, name: &str, child: &MoRef) {
        if let Some(folder) = self.folders.get_mut(parent) {
            folder.children.insert(&Arc::from(name), child);
        }
    }

    pub(crate) fn new_folder(&mut self, name: &str, parent: &MoRef, kind: FolderKind) -> MoRef {
        let moref = self.ids.folder(kind);
        self.folders.insert(&moref, Folder::new(name, Some(parent), kind));
        self.hang(parent, name, &moref);
        moref
    }
}

/// The hands that build: the inventory so far, and what it is built from.
pub(super) struct Builder<'a> {
    pub inventory: &'a mut Inventory,
    pub options: &'a Options,
    pub random: &'a mut Random,
    pub now: Timestamp,
}

/// The four folders that things go into; below `F0` where the options ask for folders.
#[derive(Clone)]
pub(super) struct Places {
    pub datacenter: MoRef,
    pub vm: MoRef,
    pub host: MoRef,
    pub datastore: MoRef,
    pub network: MoRef,
}

impl Builder<'_> {
    fn datacenter(&mut self, index: usize) {
        let name = format!("DC{index}");
        // The last `folders` datacenters sit in a folder of their own.
        let folder = (index + self.options.folders).checked_sub(self.options.datacenters);
        let folder_name = folder.map(|folder| format!("F{folder}"));
        let root = self.inventory.root.clone();
        let parent = match &folder_name {
            Some(folder) => self.inventory.new_folder(folder, &root, FolderKind::Datacenter),
            None => root,
        };
        let datacenter = self.inventory.ids.next(MoType::Datacenter, "datacenter-");
        let mut places = self.datacenter_folders(&name, &datacenter, &parent);
        // As vcsim does it: beside the folder that all else goes into.
        for pod in 0..self.options.pods {
            let (moref, name) = (
                self.inventory.ids.next(MoType::StoragePod, "group-p"),
                format!("{name}_POD{pod}"),
            );
            self.inventory
                .folders
                .insert(&moref, Folder::new(&name, Some(&places.datastore), FolderKind::Pod));
            self.inventory.hang(&places.datastore, &name, &moref);
        }
        if let Some(folder) = &folder_name {
            for (place, kind) in [
                (&mut places.vm, FolderKind::Vm),
                (&mut places.host, FolderKind::Host),
                (&mut places.datastore, FolderKind::Datastore),
                (&mut places.network, FolderKind::Network),
            ] {
                *place = self.inventory.new_folder(folder, place, kind);
            }
        }
        let networks = self.networks(&name, &places);
        for store in 0..self.options.datastores {
            self.datastore(&format!("LocalDS_{store}"), DatastoreKind::Vmfs, &places);
        }
        for store in 0..self.options.vsan_datastores {
            self.datastore(&format!("vsanDatastore_{store}"), DatastoreKind::Vsan, &places);
        }
        let computes = self.computes(&name, &places);
        self.connect(&datacenter);
        self.model_vms(&name, &places, &computes, &networks);
        if index == 0 {
            self.templates(&places, &computes, &networks);
        }
    }

    pub(super) fn datacenter_folders(
        &mut self,
        name: &str,
        datacenter: &MoRef,
        parent: &MoRef,
    ) -> Places {
        let kinds = [
            ("vm", FolderKind::Vm),
            ("host", FolderKind::Host),
            ("datastore", FolderKind::Datastore),
            ("network", FolderKind::Network),
        ];
        let [vm, host, datastore, network] = kinds.map(|(folder, kind)| {
            let moref = match self.options.product {
                Product::VirtualCenter => self.inventory.ids.folder(kind),
                Product::HostAgent => MoRef::new(MoType::Folder, format!("ha-folder-{folder}")),
            };
            self.inventory.folders.insert(&moref, Folder::new(folder, Some(datacenter), kind));
            moref
        });
        let row = Datacenter {
            name: name.into(),
            parent: parent.clone(),
            vm_folder: vm.clone(),
            host_folder: host.clone(),
            datastore_folder: datastore.clone(),
            network_folder: network.clone(),
            datastores: Vec::new(),
            networks: Vec::new(),
        };
        self.inventory.datacenters.insert(datacenter, row);
        self.inventory.hang(parent, name, datacenter);
        Places { datacenter: datacenter.clone(), vm, host, datastore, network }
    }

    /// The networks that VMs can be on, the one that model VMs get first.
    fn networks(&mut self, datacenter: &str, places: &Places) -> Vec<MoRef> {
        let standard = self.inventory.ids.next(MoType::Network, "network-");
        self.network("VM Network", &standard, None, places);
        if self.options.portgroups == 0 {
            return vec![standard];
        }
        let number = self.inventory.ids.number();
        let switch = MoRef::new(MoType::VmwareDistributedVirtualSwitch, format!("dvs-{number}"));
        let row = Switch {
            name: "DVS0".into(),
            parent: places.network.clone(),
            uuid: uuid_text(draw_uuid(self.random)),
            port_groups: Vec::new(),
            hosts: Vec::new(),
            config: SwitchConfig::default(),
        };
        self.inventory.switches.insert(&switch, row);
        self.inventory.hang(&places.network, "DVS0", &switch);
        let uplink = (format!("DVS0-DVUplinks-{number}"), true);
        let groups =
            (0..self.options.portgroups).map(|index| (format!("{datacenter}_DVPG{index}"), false));
        let mut usable = Vec::new();
        for (name, is_uplink) in [uplink].into_iter().chain(groups) {
            let moref =
                self.inventory.ids.next(MoType::DistributedVirtualPortgroup, "dvportgroup-");
            self.network(
                &name,
                &moref,
                Some(PortGroup {
                    switch: switch.clone(),
                    is_uplink,
                    config: PortGroupConfig::default(),
                }),
                places,
            );
            if let Some(row) = self.inventory.switches.get_mut(&switch) {
                row.port_groups.push(moref.clone());
            }
            if !is_uplink {
                usable.push(moref);
            }
        }
        usable.push(standard);
        usable
    }

    pub(super) fn network(
        &mut self,
        name: &str,
        moref: &MoRef,
        port_group: Option<PortGroup>,
        places: &Places,
    ) {
        let row = Network {
            name: name.into(),
            parent: places.network.clone(),
            hosts: Vec::new(),
            port_group,
        };
        self.inventory.networks.insert(moref, row);
        self.inventory.hang(&places.network, name, moref);
        if let Some(row) = self.inventory.datacenters.get_mut(&places.datacenter) {
            row.networks.push(moref.clone());
        }
    }

    pub(super) fn datastore(&mut self, name: &str, kind: DatastoreKind, places: &Places) {
        let moref = self.inventory.ids.next(MoType::Datastore, "datastore-");
        let row = Datastore {
            name: name.into(),
            parent: places.datastore.clone(),
            datacenter: places.datacenter.clone(),
            browser: MoRef::new(
                MoType::HostDatastoreBrowser,
                format!("datastoreBrowser-{}", moref.id),
            ),
            url: format!("ds:///vmfs/volumes/{}/", uuid_text(draw_uuid(self.random))),
            capacity: self.datastore_capacity(),
            accessible: true,
            maintenance: false,
            kind,
            hosts: Vec::new(),
        };
        self.inventory.datastores.insert(&moref, row);
        self.inventory.hang(&places.datastore, name, &moref);
        if let Some(row) = self.inventory.datacenters.get_mut(&places.datacenter) {
            row.datastores.push(moref);
        }
    }

    /// The clusters and standalone hosts of a datacenter.
    fn computes(&mut self, datacenter: &str, places: &Places) -> Vec<MoRef> {
        let mut computes = Vec::new();
        for index in 0..self.options.standalone_hosts {
            let name = format!("{datacenter}_H{index}");
            let compute = self.inventory.ids.next(MoType::ComputeResource, "domain-s");
            self.compute(&name, &compute, places, std::slice::from_ref(&name));
            computes.push(compute);
        }
        for index in 0..self.options.clusters {
            let name = format!("{datacenter}_C{index}");
            let compute = self.inventory.ids.next(MoType::ClusterComputeResource, "domain-c");
            let hosts: Vec<_> =
                (0..self.options.hosts).map(|host| format!("{name}_H{host}")).collect();
            self.compute(&name, &compute, places, &hosts);
            for pool in 1..=self.options.pools {
                self.child_pool(&compute, &format!("{name}_RP{pool}"));
            }
            for app in 0..self.options.apps {
                self.app(&compute, &format!("{name}_APP{app}"), &places.vm);
            }
            computes.push(compute);
        }
        computes
    }

    pub(super) fn compute(
        &mut self,
        name: &str,
        compute: &MoRef,
        places: &Places,
        host_names: &[String],
    ) {
        let is_agent = self.options.product == Product::HostAgent;
        let pool = if is_agent {
            MoRef::new(MoType::ResourcePool, "ha-root-pool")
        } else {
            self.inventory.ids.next(MoType::ResourcePool, "resgroup-")
        };
        let hosts = host_names.iter().map(|host| self.host(host, compute, is_agent)).collect();
        let row = Compute {
            name: name.into(),
            parent: places.host.clone(),
            hosts,
            pool: pool.clone(),
            environment: MoRef::new(
                MoType::EnvironmentBrowser,
                format!("envbrowser-{}", compute.id),
            ),
            config: ClusterConfig::default(),
        };
        self.inventory.computes.insert(compute, row);
        self.inventory.hang(&places.host, name, compute);
        // What a root pool reserves is what its hosts have; that is answered when it is read.
        let row = Pool::new("Resources", compute, compute, pool_config(), &pool);
        self.inventory.pools.insert(&pool, row);
    }

    pub(super) fn host(&mut self, name: &str, compute: &MoRef, is_agent: bool) -> MoRef {
        let moref = if is_agent {
            MoRef::new(MoType::HostSystem, "ha-host")
        } else {
            self.inventory.ids.next(MoType::HostSystem, "host-")
        };
        let (cores, memory) = self.host_size();
        let row = Host {
            name: name.into(),
            parent: compute.clone(),
            uuid: uuid_text(draw_uuid(self.random)),
            cores,
            mhz: CORE_MHZ,
            memory,
            connection: HostConnection::Connected,
            maintenance: false,
            boot_time: self.now,
            demand: Demand::default(),
        };
        self.inventory.hosts.insert(&moref, row);
        moref
    }

    fn child_pool(&mut self, compute: &MoRef, name: &str) {
        let Some(root) = self.inventory.computes.get(compute).map(|row| row.pool.clone()) else {
            return;
        };
        let pool = self.inventory.ids.next(MoType::ResourcePool, "resgroup-");
        let row = Pool::new(name, &root, compute, pool_config(), &pool);
        self.inventory.pools.insert(&pool, row);
        if let Some(root) = self.inventory.pools.get_mut(&root) {
            root.pools.push(pool);
        }
    }

    fn app(&mut self, compute: &MoRef, name: &str, folder: &MoRef) {
        let Some(root) = self.inventory.computes.get(compute).map(|row| row.pool.clone()) else {
            return;
        };
        let app = App {
            folder: folder.clone(),
            config: Element::new("vAppConfig").typed("VmConfigInfo"),
            annotation: String::new(),
            uuid: uuid_text(draw_uuid(self.random)),
        };
        self.inventory.enter_app(&root, name, pool_config(), app);
    }

    /// Every host of a datacenter sees every datastore and network of it.
    pub(super) fn connect(&mut self, datacenter: &MoRef) {
        let Some(row) = self.inventory.datacenters.get(datacenter).cloned() else { return };
        let computes = self.inventory.computes.iter().filter(|(compute, _)| {
            self.inventory.datacenter_of(compute).as_ref() == Some(datacenter)
        });
        let hosts: Vec<MoRef> = computes.flat_map(|(_, compute)| compute.hosts.clone()).collect();
        for datastore in &row.datastores {
            if let Some(row) = self.inventory.datastores.get_mut(datastore) {
                row.hosts.clone_from(&hosts);
            }
        }
        for network in &row.networks {
            let Some(row) = self.inventory.networks.get_mut(network) else { continue };
            row.hosts.clone_from(&hosts);
            let switch = row.port_group.as_ref().map(|group| group.switch.clone());
            if let Some(switch) = switch.and_then(|switch| self.inventory.switches.get_mut(&switch))
            {
                switch.hosts.clone_from(&hosts);
            }
        }
    }
}

pub(crate) fn pool_config() -> ResourceConfigSpec {
    ResourceConfigSpec {
        entity: None,
        change_version: None,
        last_modified: None,
        cpu_allocation: unlimited(4000),
        memory_allocation: unlimited(163_840),
    }
}
