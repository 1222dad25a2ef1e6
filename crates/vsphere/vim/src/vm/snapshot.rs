use jiff::Timestamp;
use roost_vim_wire::methods::{
    CreateSnapshotTask, RemoveAllSnapshotsTask, RemoveSnapshotTask, RevertToCurrentSnapshotTask,
    RevertToSnapshotTask,
};
use roost_vim_wire::types::{
    VirtualMachinePowerState as PowerState, VirtualMachineSnapshotInfo, VirtualMachineSnapshotTree,
};
use roost_vim_wire::{MoRef, Value};

use super::error::{Step, VmError};
use super::run::Again;
use crate::{Client, Faulted, Observer};

/// A snapshot to be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSnapshot {
    pub name: String,
    pub description: String,
    /// With the memory of a VM that is on.
    pub memory: bool,
    /// Asks the guest's tools to bring its file systems to rest first.
    pub quiesce: bool,
}

impl NewSnapshot {
    /// Of the disks only.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: String::new(), memory: false, quiesce: false }
    }
}

/// A snapshot that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub moref: MoRef,
    pub parent: Option<MoRef>,
    pub name: String,
    pub description: String,
    pub created: Timestamp,
    pub power_state: PowerState,
}

/// The snapshots of a VM, parents before children.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshots {
    pub all: Vec<Snapshot>,
    /// The one that the present state goes back to.
    pub current: Option<MoRef>,
}

impl Snapshots {
    fn of(info: &VirtualMachineSnapshotInfo) -> Self {
        let mut all = Vec::new();
        // Newest last on the stack, so that siblings come out in their order. Chains can be long: no recursion.
        let mut open: Vec<(Option<&MoRef>, &VirtualMachineSnapshotTree)> =
            info.root_snapshot_list.iter().rev().map(|root| (None, root)).collect();
        while let Some((parent, node)) = open.pop() {
            all.push(Snapshot {
                moref: node.snapshot.clone(),
                parent: parent.cloned(),
                name: node.name.clone(),
                description: node.description.clone(),
                created: node.create_time,
                power_state: node.state.clone(),
            });
            open.extend(
                node.child_snapshot_list.iter().rev().map(|child| (Some(&node.snapshot), child)),
            );
        }
        Self { all, current: info.current_snapshot.clone() }
    }

    /// Those of this name; names of snapshots need not be unique.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Snapshot> {
        self.all.iter().filter(move |snapshot| snapshot.name == name)
    }
}

impl Observer {
    pub async fn snapshots(&self, vm: &MoRef) -> Result<Snapshots, VmError> {
        let read =
            self.properties(vm, &["snapshot"]).await.map_err(VmError::call(Step::Read, vm))?;
        Ok(read
            .data::<VirtualMachineSnapshotInfo>("snapshot")
            .map(Snapshots::of)
            .unwrap_or_default())
    }
}

impl Client {
    /// Takes a snapshot. Not repeated after a lost reply, because a second one of the same name would be made.
    pub async fn create_snapshot(
        &self,
        vm: &MoRef,
        snapshot: &NewSnapshot,
    ) -> Result<MoRef, VmError> {
        let call = CreateSnapshotTask {
            this: vm.clone(),
            name: snapshot.name.clone(),
            description: Some(snapshot.description.clone()),
            memory: snapshot.memory,
            quiesce: snapshot.quiesce,
        };
        match self.run(Step::CreateSnapshot, vm, Again::Unsafe, &call).await? {
            Some(Value::Ref(snapshot)) => Ok(snapshot),
            _ => Err(VmError::NoResult { step: Step::CreateSnapshot, target: vm.to_string() }),
        }
    }

    /// Goes back to a snapshot. `power_on` only matters for one that was taken of a running VM.
    pub async fn revert_to_snapshot(
        &self,
        snapshot: &MoRef,
        power_on: bool,
    ) -> Result<(), VmError> {
        let call = RevertToSnapshotTask {
            this: snapshot.clone(),
            host: None,
            suppress_power_on: Some(!power_on),
        };
        self.run(Step::Revert, snapshot, Again::Safe, &call).await.map(drop)
    }

    /// Goes back to the current snapshot of a VM.
    pub async fn revert_to_current_snapshot(
        &self,
        vm: &MoRef,
        power_on: bool,
    ) -> Result<(), VmError> {
        let call = RevertToCurrentSnapshotTask {
            this: vm.clone(),
            host: None,
            suppress_power_on: Some(!power_on),
        };
        self.run(Step::Revert, vm, Again::Safe, &call).await.map(drop)
    }

    /// Removes a snapshot, and those below it if asked; the present state stays. Succeeds when it is gone.
    pub async fn remove_snapshot(
        &self,
        snapshot: &MoRef,
        with_children: bool,
    ) -> Result<(), VmError> {
        let call = RemoveSnapshotTask {
            this: snapshot.clone(),
            remove_children: with_children,
            consolidate: Some(true),
        };
        match self.run(Step::RemoveSnapshot, snapshot, Again::Safe, &call).await {
            Err(error) if error.is_fault("ManagedObjectNotFound") => Ok(()),
            other => other.map(drop),
        }
    }

    pub async fn remove_all_snapshots(&self, vm: &MoRef) -> Result<(), VmError> {
        let call = RemoveAllSnapshotsTask { this: vm.clone(), consolidate: Some(true) };
        self.run(Step::RemoveSnapshot, vm, Again::Safe, &call).await.map(drop)
    }

    /// Gives a template a snapshot that linked clones can stand on, and returns it. A template that has one keeps it.
    ///
    /// A template takes no snapshot, so that it is a VM in `pool` for as long as it needs; it is made a template again even
    /// if the snapshot fails.
    pub async fn prepare_for_linked_clones(
        &self,
        template: &MoRef,
        pool: &MoRef,
        name: &str,
    ) -> Result<MoRef, VmError> {
        if let Some(current) = self.snapshots(template).await?.current {
            return Ok(current);
        }
        self.mark_as_virtual_machine(template, pool, None).await?;
        let taken = self.create_snapshot(template, &NewSnapshot::new(name)).await;
        let marked = self.mark_as_template(template).await;
        let taken = taken?;
        marked.map(|()| taken)
    }
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::MoType;

    use super::*;

    fn node(id: &str, children: Vec<VirtualMachineSnapshotTree>) -> VirtualMachineSnapshotTree {
        VirtualMachineSnapshotTree {
            snapshot: MoRef::new(MoType::VirtualMachineSnapshot, id),
            name: id.into(),
            child_snapshot_list: children,
            ..Default::default()
        }
    }

    #[test]
    fn a_tree_comes_out_with_parents_before_children() {
        let roots = vec![
            node("a", vec![node("b", vec![node("c", vec![])]), node("d", vec![])]),
            node("e", vec![]),
        ];
        let list = Snapshots::of(&VirtualMachineSnapshotInfo {
            current_snapshot: None,
            root_snapshot_list: roots,
        });
        let names: Vec<_> = list.all.iter().map(|snapshot| snapshot.name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c", "d", "e"]);
        let parents: Vec<_> =
            list.all.iter().map(|snapshot| snapshot.parent.as_ref().map(|it| &*it.id)).collect();
        assert_eq!(parents, [None, Some("a"), Some("b"), Some("a"), None]);
        assert_eq!(list.named("d").count(), 1);
    }

    #[test]
    fn a_long_chain_does_not_run_out_of_stack() {
        let mut chain = node("0", vec![]);
        for id in 1..200 {
            chain = node(&id.to_string(), vec![chain]);
        }
        let info =
            VirtualMachineSnapshotInfo { current_snapshot: None, root_snapshot_list: vec![chain] };
        assert_eq!(Snapshots::of(&info).all.len(), 200);
    }
}
