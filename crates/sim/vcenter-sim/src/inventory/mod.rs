//! What the datacenter holds: the tree of objects, the references between them, and the record of what changed.

mod app_ops;
mod build;
mod call;
mod change;
mod cluster_config;
mod cluster_ops;
mod compute;
mod custom_field;
mod custom_field_ops;
mod environment;
mod folder;
mod folder_ops;
pub(crate) mod foreign;
mod host_agent;
pub(crate) mod host_ops;
mod id;
mod lookup;
mod membership;
mod model_vms;
mod name;
mod pool_ops;
pub(crate) mod property;
mod recommend;
mod record;
mod storage;
mod storage_pod;
mod switch_ops;
mod table;
mod uuid;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use roost_vim_wire::{Array, MoRef, MoType, Value};

pub(crate) use call::call;
pub(crate) use change::{Change, Changed, Changes};
pub use compute::HostConnection;
pub(crate) use compute::{Compute, Datacenter, Host};
pub(crate) use custom_field::CustomFields;
pub(crate) use folder::{Folder, FolderKind};
pub(crate) use id::Ids;
pub(crate) use lookup::duplicate_name;
pub(crate) use name::{checked_name, stored_name};
pub(crate) use record::Record;
pub(crate) use storage::{
    Datastore, DatastoreKind, Network, PortGroup, PortGroupConfig, Switch, SwitchConfig,
};
pub(crate) use storage_pod::Recommendations;
pub(crate) use table::Table;
pub(crate) use uuid::{draw_uuid, parse_uuid, uuid_text};

use crate::guest::Dhcp;
use crate::options::Product;
use crate::pool::Pool;
use crate::vm::Vm;

/// A list of texts.
pub(crate) fn strings<const N: usize>(texts: [&str; N]) -> Value {
    Value::Array(Array::new("string", texts.into_iter().map(Value::string).collect()))
}

/// A path that objects of this kind do not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NoSuchProperty {
    pub path: String,
}

/// Cloned only to freeze the state that a stale read answers with.
#[derive(Debug, Clone)]
pub(crate) struct Inventory {
    pub product: Product,
    pub root: MoRef,
    pub changes: Changes,
    pub ids: Ids,
    pub folders: Table<Folder>,
    pub datacenters: Table<Datacenter>,
    pub computes: Table<Compute>,
    pub hosts: Table<Host>,
    pub pools: Table<Pool>,
    pub datastores: Table<Datastore>,
    pub networks: Table<Network>,
    pub switches: Table<Switch>,
    pub vms: Table<Vm>,
    /// The VM of each snapshot.
    pub snapshots: Table<MoRef>,
    pub custom_fields: CustomFields,
    pub dhcp: Dhcp,
    /// The VMs of each pool, host, datastore and network, by their serial numbers.
    vms_of: HashMap<MoRef, BTreeSet<u32>>,
    /// Names that a running clone or creation has taken in a folder, and the VM that will bear them.
    pub reserved_names: HashMap<(MoRef, Arc<str>), MoRef>,
    /// Tasks and event collectors: objects whose rows are kept elsewhere.
    others: HashSet<MoRef>,
    /// VMs that left the inventory and whose files stayed, by their datastore and path.
    pub unregistered: HashMap<(MoRef, Arc<str>), Box<Vm>>,
    macs: u32,
    /// Of the certificate that hosts show, once the server has one.
    pub host_thumbprint: Option<String>,
}

impl Inventory {
    /// Whether the model has this object: inventory, snapshots, tasks, event collectors, managers of the model.
    pub(crate) fn contains(&self, obj: &MoRef) -> bool {
        match &obj.kind {
            MoType::VirtualMachine => self.vms.contains(obj),
            MoType::Folder | MoType::StoragePod => self.folders.contains(obj),
            MoType::Datacenter => self.datacenters.contains(obj),
            MoType::ClusterComputeResource | MoType::ComputeResource => self.computes.contains(obj),
            MoType::HostSystem => self.hosts.contains(obj),
            MoType::ResourcePool | MoType::VirtualApp => self.pools.contains(obj),
            MoType::Datastore => self.datastores.contains(obj),
            MoType::Network | MoType::DistributedVirtualPortgroup => self.networks.contains(obj),
            MoType::VmwareDistributedVirtualSwitch => self.switches.contains(obj),
            MoType::VirtualMachineSnapshot => self.snapshots.contains(obj),
            MoType::HostDatastoreBrowser => self.datastore_of_browser(obj).is_some(),
            MoType::EnvironmentBrowser => self.compute_of_environment(obj).is_some(),
            _ => {
                self.others.contains(obj)
                    || crate::service::is_manager(self.product, obj)
                    || crate::host_config::host_of(self, obj).is_some()
            }
        }
    }

    /// Makes an object known whose row is kept elsewhere.
    pub(crate) fn enter_other(&mut self, obj: &MoRef) {
        self.others.insert(obj.clone());
        self.changes.entered(obj);
    }

    pub(crate) fn leave_other(&mut self, obj: &MoRef) {
        if self.others.remove(obj) {
            self.changes.left(obj);
        }
    }

    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        self.changes.take()
    }

    /// A card address that no VM has.
    pub(crate) fn next_mac(&mut self) -> crate::vm::Mac {
        loop {
            self.macs += 1;
            let mac = crate::vm::Mac::generated(self.macs);
            // Only after four million cards, or when a client chose an address in this range, can it be taken.
            if self.macs < 1 << 22
                || !self
                    .vms
                    .iter()
                    .any(|(_, vm)| vm.config.nics().any(|nic| nic.mac() == Some(mac)))
            {
                return mac;
            }
        }
    }
}
