use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use roost_vim_wire::{MoRef, MoType};

/// A folder of any kind; a datastore cluster is one, too, with the kind of its reference saying so.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    pub name: Arc<str>,
    pub parent: Option<MoRef>,
    pub kind: FolderKind,
    pub children: Children,
}

/// What a folder may hold beside folders of its own kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderKind {
    Datacenter,
    Vm,
    Host,
    Datastore,
    Network,
    Pod,
}

impl FolderKind {
    pub(crate) fn letter(self) -> char {
        match self {
            Self::Datacenter => 'd',
            Self::Vm => 'v',
            Self::Host => 'h',
            Self::Datastore => 's',
            Self::Network => 'n',
            Self::Pod => 'p',
        }
    }

    pub(crate) fn child_types(self) -> &'static [&'static str] {
        match self {
            Self::Datacenter => &["Folder", "Datacenter"],
            Self::Vm => &["Folder", "VirtualMachine", "VirtualApp"],
            Self::Host => &["Folder", "ComputeResource"],
            Self::Datastore => &["Folder", "Datastore", "StoragePod"],
            Self::Network => &["Folder", "Network", "DistributedVirtualSwitch"],
            Self::Pod => &["Datastore"],
        }
    }

    pub(crate) fn accepts(self, kind: &MoType) -> bool {
        self.child_types().iter().any(|base| kind.is_a(base))
    }
}

impl Folder {
    pub(crate) fn new(name: &str, parent: Option<&MoRef>, kind: FolderKind) -> Self {
        Self { name: name.into(), parent: parent.cloned(), kind, children: Children::default() }
    }
}

/// The children of a folder, in the order they came and by name. Names are unique in a folder.
#[derive(Debug, Clone, Default)]
pub(crate) struct Children {
    order: BTreeMap<u32, MoRef>,
    names: HashMap<Arc<str>, u32>,
    next: u32,
}

impl Children {
    pub(crate) fn insert(&mut self, name: &Arc<str>, child: &MoRef) {
        self.order.insert(self.next, child.clone());
        self.names.insert(Arc::clone(name), self.next);
        self.next += 1;
    }

    pub(crate) fn remove(&mut self, name: &str) {
        if let Some(at) = self.names.remove(name) {
            self.order.remove(&at);
        }
    }

    pub(crate) fn rename(&mut self, from: &str, to: &Arc<str>) {
        if let Some(at) = self.names.remove(from) {
            self.names.insert(Arc::clone(to), at);
        }
    }

    pub(crate) fn named(&self, name: &str) -> Option<&MoRef> {
        self.order.get(self.names.get(name)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &MoRef> {
        self.order.values()
    }
}
