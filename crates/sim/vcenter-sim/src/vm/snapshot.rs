use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::MoRef;
use roost_vim_wire::types::{VirtualMachineSnapshotInfo, VirtualMachineSnapshotTree};

use crate::vm::{Config, Power};

/// The snapshots of one VM, oldest first, so a child always stands behind its parent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshots {
    pub list: Vec<Snapshot>,
    pub current: Option<MoRef>,
    /// Numbers snapshots for people and child disks for files; never reused.
    pub made: i32,
}

#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub moref: MoRef,
    pub parent: Option<MoRef>,
    pub name: Arc<str>,
    pub description: String,
    pub number: i32,
    pub time: Timestamp,
    pub quiesced: bool,
    /// The power state that a revert goes back to: on only if memory was taken.
    pub power: Power,
    pub config: Config,
}

impl Snapshots {
    pub(crate) fn get(&self, moref: &MoRef) -> Option<&Snapshot> {
        self.list.iter().find(|snapshot| snapshot.moref == *moref)
    }

    pub(crate) fn children<'a>(
        &'a self,
        parent: Option<&'a MoRef>,
    ) -> impl Iterator<Item = &'a Snapshot> {
        self.list.iter().filter(move |snapshot| snapshot.parent.as_ref() == parent)
    }

    /// A snapshot and everything that stands on it.
    pub(crate) fn subtree(&self, root: &MoRef) -> Vec<MoRef> {
        let mut found = vec![root.clone()];
        for snapshot in &self.list {
            if snapshot.parent.as_ref().is_some_and(|parent| found.contains(parent)) {
                found.push(snapshot.moref.clone());
            }
        }
        found
    }

    /// Takes snapshots away; what stood on one of them then stands on its nearest ancestor that is left.
    pub(crate) fn remove(&mut self, gone: &[MoRef]) {
        let parent_of = |moref: &MoRef, list: &[Snapshot]| {
            let mut at = list.iter().find(|snapshot| snapshot.moref == *moref)?.parent.clone();
            while let Some(parent) = at.as_ref().filter(|parent| gone.contains(parent)) {
                at = list.iter().find(|snapshot| snapshot.moref == *parent)?.parent.clone();
            }
            at
        };
        let parents: Vec<_> =
            self.list.iter().map(|snapshot| parent_of(&snapshot.moref, &self.list)).collect();
        if let Some(current) = self.current.clone().filter(|current| gone.contains(current)) {
            self.current = parent_of(&current, &self.list);
        }
        for (snapshot, parent) in self.list.iter_mut().zip(parents) {
            snapshot.parent = parent;
        }
        self.list.retain(|snapshot| !gone.contains(&snapshot.moref));
    }

    pub(crate) fn wire(&self, vm: &MoRef) -> VirtualMachineSnapshotInfo {
        VirtualMachineSnapshotInfo {
            current_snapshot: self.current.clone(),
            root_snapshot_list: self.trees(vm, None),
        }
    }

    fn trees(&self, vm: &MoRef, parent: Option<&MoRef>) -> Vec<VirtualMachineSnapshotTree> {
        self.children(parent).map(|snapshot| self.tree(vm, snapshot)).collect()
    }

    pub(crate) fn tree(&self, vm: &MoRef, snapshot: &Snapshot) -> VirtualMachineSnapshotTree {
        VirtualMachineSnapshotTree {
            snapshot: snapshot.moref.clone(),
            vm: vm.clone(),
            name: snapshot.name.as_ref().into(),
            description: snapshot.description.clone(),
            id: snapshot.number,
            create_time: snapshot.time,
            state: snapshot.power.wire(),
            quiesced: snapshot.quiesced,
            child_snapshot_list: self.trees(vm, Some(&snapshot.moref)),
        }
    }
}
