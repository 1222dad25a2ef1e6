//! The kinds of object that can be looked for: where they live, how to get there, and which of what is there counts.

use std::fmt;

use roost_vim_wire::types::{ObjectSpec, PropertyFilterSpec, PropertySpec, SelectionSpec};
use roost_vim_wire::{MoRef, MoType};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Datacenter,
    /// A folder that can hold VMs.
    VmFolder,
    /// Any VM, template or not.
    VirtualMachine,
    Template,
    ResourcePool,
    /// A network that a card can be put on: standard, distributed port group (no uplink) or opaque.
    Network,
    Datastore,
    DatastoreCluster,
    Host,
    /// A cluster, or the compute resource of a host that stands alone.
    ComputeResource,
}

impl Kind {
    /// The property of a datacenter that holds the folder for this kind, and the folder's fixed name.
    pub(crate) fn folder(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Datacenter => None,
            Self::VmFolder | Self::VirtualMachine | Self::Template => Some(("vmFolder", "vm")),
            Self::ResourcePool | Self::Host | Self::ComputeResource => Some(("hostFolder", "host")),
            Self::Network => Some(("networkFolder", "network")),
            Self::Datastore | Self::DatastoreCluster => Some(("datastoreFolder", "datastore")),
        }
    }

    /// Whether an object of this type can be what is looked for. A switch is no network, but is looked at so that the answer
    /// can say so.
    pub(crate) fn includes(self, object: &MoType) -> bool {
        match self {
            Self::Datacenter => *object == MoType::Datacenter,
            Self::VmFolder => *object == MoType::Folder,
            Self::VirtualMachine | Self::Template => *object == MoType::VirtualMachine,
            Self::ResourcePool => object.is_a("ResourcePool"),
            Self::Network => object.is_a("Network") || object.is_a("DistributedVirtualSwitch"),
            Self::Datastore => *object == MoType::Datastore,
            Self::DatastoreCluster => *object == MoType::StoragePod,
            Self::Host => *object == MoType::HostSystem,
            Self::ComputeResource => object.is_a("ComputeResource"),
        }
    }

    /// A compute resource stands for what it holds where that is looked for: its root pool, its hosts.
    pub(crate) fn stands_for_content(self, object: &MoType) -> bool {
        matches!(self, Self::ResourcePool | Self::Host) && object.is_a("ComputeResource")
    }

    /// Reads, from `start` down, what this kind's names and paths are made of. One call, whatever the depth.
    pub(crate) fn below(self, start: &MoRef) -> PropertyFilterSpec {
        let mut prop_set = vec![named("Folder", &[]), named("Datacenter", &[])];
        let mut steps = vec![step("Folder", "childEntity")];
        if let Some((folder, _)) = self.folder() {
            steps.push(step("Datacenter", folder));
        }
        match self {
            Self::Datacenter | Self::VmFolder => {}
            Self::VirtualMachine => prop_set.push(named("VirtualMachine", &[])),
            Self::Template => prop_set.push(named("VirtualMachine", &["config.template"])),
            Self::ComputeResource => prop_set.push(named("ComputeResource", &[])),
            Self::Host => {
                prop_set.extend([named("ComputeResource", &[]), named("HostSystem", &[])]);
                steps.push(step("ComputeResource", "host"));
            }
            Self::ResourcePool => {
                prop_set.extend([named("ComputeResource", &[]), named("ResourcePool", &[])]);
                steps.extend([
                    step("ComputeResource", "resourcePool"),
                    step("ResourcePool", "resourcePool"),
                ]);
            }
            Self::Network => prop_set.extend([
                named("Network", &[]),
                named("DistributedVirtualPortgroup", &["config.uplink"]),
                named("DistributedVirtualSwitch", &[]),
            ]),
            Self::Datastore => prop_set.extend([named("StoragePod", &[]), named("Datastore", &[])]),
            Self::DatastoreCluster => prop_set.push(named("StoragePod", &[])),
        }
        PropertyFilterSpec {
            prop_set,
            object_set: vec![ObjectSpec {
                obj: start.clone(),
                skip: None,
                select_set: every_step_again(steps),
            }],
            report_missing_objects_in_results: None,
        }
    }
}

/// Reads `object` and everything above it.
pub(crate) fn above(object: &MoRef, paths: &[&str]) -> PropertyFilterSpec {
    let mut prop_set = vec![named("ManagedEntity", &[])];
    if !paths.is_empty() {
        prop_set.push(named(object.kind.as_str(), paths));
    }
    let select_set = every_step_again(vec![step("ManagedEntity", "parent")]);
    let object_set = vec![ObjectSpec { obj: object.clone(), skip: None, select_set }];
    PropertyFilterSpec { prop_set, object_set, report_missing_objects_in_results: None }
}

fn named(kind: &str, more: &[&str]) -> PropertySpec {
    PropertySpec::new(kind, &[&["name", "parent"], more].concat())
}

fn step(kind: &str, path: &str) -> SelectionSpec {
    SelectionSpec { name: Some(format!("{kind}.{path}")), ..SelectionSpec::traverse(kind, path) }
}

/// Lets each step be followed by any of them: a folder in a folder in a datacenter in a folder.
fn every_step_again(mut steps: Vec<SelectionSpec>) -> Vec<SelectionSpec> {
    let all: Vec<_> =
        steps.iter().filter_map(|step| step.name.as_deref()).map(SelectionSpec::named).collect();
    for step in &mut steps {
        step.select_set.clone_from(&all);
    }
    steps
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Datacenter => "datacenter",
            Self::VmFolder => "VM folder",
            Self::VirtualMachine => "virtual machine",
            Self::Template => "template",
            Self::ResourcePool => "resource pool",
            Self::Network => "network",
            Self::Datastore => "datastore",
            Self::DatastoreCluster => "datastore cluster",
            Self::Host => "host",
            Self::ComputeResource => "compute resource",
        })
    }
}
