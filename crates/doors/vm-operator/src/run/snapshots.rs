//! `VirtualMachineSnapshot` objects: what vSphere has of them, and their end. They are taken in the flow of their VM, one after the other.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::ResourceExt as _;
use roost_controller::{Draft, Key, Next, Pass, Reconciler, Store};

use crate::api::condition::{ConditionType, Reason, mark_false, mark_true, sort};
use crate::api::names::{annotation, finalizer, label};
use crate::api::vm::{VolumeStatus, VolumeType};
use crate::api::{SnapshotReference, VirtualMachine, VirtualMachineSnapshot};
use crate::flow::{Context, Delays, Flow, Halt, PassError, named_snapshot, result_of};
use crate::provider::{Seen, find};

pub(crate) struct Snapshots {
    pub(crate) cx: Arc<Context>,
    pub(crate) vms: Store<VirtualMachine>,
}

impl Reconciler for Snapshots {
    type Object = VirtualMachineSnapshot;
    type Error = PassError;

    async fn reconcile(&self, pass: &Pass<VirtualMachineSnapshot>) -> Result<Next, PassError> {
        let Some(mut snapshot) = pass.draft() else { return Ok(Next::AwaitChange) };
        let ended = if snapshot.is_being_deleted() {
            self.reconcile_delete(&mut snapshot)
        } else {
            self.reconcile_normal(&mut snapshot)
        };
        if let Some(status) = &mut snapshot.status {
            sort(&mut status.conditions);
        }
        self.cx.writer.save(&mut snapshot).await?;
        let create_requeue = self.cx.settings.create_requeue;
        result_of(ended, &Delays { create_requeue, has_signals: self.cx.has_signals() })
    }
}

impl Snapshots {
    fn vm_key(snapshot: &VirtualMachineSnapshot) -> Key {
        Key::new(&snapshot.namespace().unwrap_or_default(), &snapshot.spec.vm_name)
    }

    /// The VM as it is seen; `None` if there is no object or no VM.
    fn see(&self, snapshot: &VirtualMachineSnapshot) -> Flow<Option<Seen>> {
        let Some(vm) = self.vms.get(&Self::vm_key(snapshot)) else { return Ok(None) };
        let provider = &self.cx.provider;
        let row = find(&vm, &provider.fleet.mirror().snapshot());
        match row.map_err(Halt::because("looking for the VM"))? {
            Some(row) => provider.see(&row).map(Some),
            None => Ok(None),
        }
    }

    fn reconcile_normal(&self, snapshot: &mut Draft<VirtualMachineSnapshot>) -> Flow<Next> {
        let now = self.cx.now();
        // What a process does not see that has just begun is not gone.
        self.cx.provider.check_view()?;
        snapshot.add_finalizer(finalizer::SNAPSHOT);
        let vm_name = snapshot.spec.vm_name.clone();
        if snapshot.labels().get(label::SNAPSHOT_VM_NAME) != Some(&vm_name) {
            snapshot.labels_mut().insert(label::SNAPSHOT_VM_NAME.to_owned(), vm_name);
        }
        if let Some(vm) = self.vms.get(&Self::vm_key(snapshot)) {
            own(snapshot, &vm);
        }
        let seen = self.see(snapshot)?;
        let tree = match &seen {
            Some(seen) => named_snapshot(seen, snapshot)?,
            None => None,
        };
        let Some(tree) = tree else {
            let conditions = &mut snapshot.status_mut().conditions;
            let (created, ready) = (ConditionType::SnapshotCreated, ConditionType::SnapshotReady);
            mark_false(conditions, created, Reason::SnapshotCreationInProgress, "", now);
            mark_false(conditions, ready, Reason::SnapshotWaitingForCreation, "", now);
            return Ok(Next::AwaitChange);
        };
        let namespace = snapshot.namespace().unwrap_or_default();
        let children = tree.child_snapshot_list.iter().map(|child| {
            let key = Key::new(&namespace, &child.name);
            let is_ours = self.cx.stores.snapshots.get(&key).is_some();
            if is_ours {
                SnapshotReference::managed(&child.name)
            } else {
                SnapshotReference::unmanaged()
            }
        });
        let children: Vec<SnapshotReference> = children.collect();
        let status = snapshot.status_mut();
        status.unique_id = tree.snapshot.id.to_string();
        status.quiesced = tree.quiesced;
        status.power_state =
            Some(crate::provider::power_state(roost_fleet::Power::from(tree.state.as_str())));
        status.children = children;
        mark_true(&mut status.conditions, ConditionType::SnapshotCreated, now);
        let vm = self.vms.get(&Self::vm_key(snapshot));
        mark_synced(snapshot, vm.as_deref(), now);
        Ok(Next::AwaitChange)
    }

    fn reconcile_delete(&self, snapshot: &mut Draft<VirtualMachineSnapshot>) -> Flow<Next> {
        if !snapshot.has_finalizer(finalizer::SNAPSHOT) {
            return Ok(Next::AwaitChange);
        }
        self.cx.provider.check_view()?;
        let key = Self::vm_key(snapshot);
        if let Some(seen) = self.see(snapshot)?
            && let Some(tree) = named_snapshot(&seen, snapshot)?
        {
            if self.cx.provider.is_busy(&key, seen.id()) {
                return Ok(Next::After(std::time::Duration::from_secs(5)));
            }
            // The end of it calls the VM's key; this one looks again by itself.
            let _ = self.cx.provider.remove_snapshot(&key, &seen, &tree.snapshot);
            return Ok(Next::After(std::time::Duration::from_secs(2)));
        }
        snapshot.remove_finalizer(finalizer::SNAPSHOT);
        Ok(Next::AwaitChange)
    }
}

/// A CSI driver that has attached disks of claims has to hear of the snapshot, and says when it has. Without such disks, or without a driver, there is
/// nobody to tell.
fn mark_synced(snapshot: &mut VirtualMachineSnapshot, vm: Option<&VirtualMachine>, now: Timestamp) {
    let volumes = vm.and_then(|vm| vm.status.as_ref()).map(|status| &status.volumes);
    let is_attached =
        |volume: &VolumeStatus| volume.type_ == VolumeType::Managed && volume.attached;
    let has_claims = volumes.is_some_and(|volumes| volumes.iter().any(is_attached));
    let sync = annotation::CSI_VOLUME_SYNC;
    let said = snapshot.annotations().get(sync).map(String::as_str);
    let waits = (has_claims || said.is_some()) && said != Some(SYNCED);
    if waits && said.is_none() {
        snapshot.annotations_mut().insert(sync.to_owned(), SYNC_REQUESTED.to_owned());
    }
    let (synced, ready) = (ConditionType::SnapshotCsiSynced, ConditionType::SnapshotReady);
    let conditions = &mut snapshot.status_mut().conditions;
    if waits {
        let why = "the CSI driver has not taken note of it yet";
        mark_false(conditions, synced, Reason::SnapshotCsiSyncInProgress, why, now);
        mark_false(conditions, ready, Reason::SnapshotWaitingForCsiSync, why, now);
    } else {
        mark_true(conditions, synced, now);
        mark_true(conditions, ready, now);
    }
}

/// What we write into the annotation, and what the driver answers there.
const SYNC_REQUESTED: &str = "requested";
const SYNCED: &str = "completed";

/// The snapshot's object goes with its VM's.
fn own(snapshot: &mut VirtualMachineSnapshot, vm: &VirtualMachine) {
    let uid = vm.uid().unwrap_or_default();
    if snapshot.owner_references().iter().any(|owner| owner.uid == uid) {
        return;
    }
    snapshot.owner_references_mut().push(OwnerReference {
        api_version: vm.api_version.clone(),
        kind: VirtualMachine::KIND.to_owned(),
        name: vm.name_any(),
        uid,
        ..OwnerReference::default()
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_snapshot_with_disks_of_claims_is_ready_when_the_driver_has_heard_of_it() {
        let now = Timestamp::UNIX_EPOCH;
        let vm = |volumes: serde_json::Value| -> VirtualMachine {
            let vm = json!({ "metadata": { "name": "web-0" }, "status": { "volumes": volumes } });
            serde_json::from_value(vm).unwrap()
        };
        let classic = vm(json!([{ "name": "boot", "type": "Classic", "attached": true }]));
        let claimed = vm(json!([{ "name": "data", "type": "Managed", "attached": true }]));
        let mut plain = VirtualMachineSnapshot::default();
        mark_synced(&mut plain, Some(&classic), now);
        assert!(plain.is_csi_synced() && plain.is_ready());
        assert!(plain.annotations().is_empty(), "nobody is asked");
        let mut waiting = VirtualMachineSnapshot::default();
        for _ in 0..2 {
            mark_synced(&mut waiting, Some(&claimed), now);
            assert!(!waiting.is_csi_synced() && !waiting.is_ready());
            assert_eq!(waiting.annotations()[annotation::CSI_VOLUME_SYNC], "requested");
        }
        waiting.annotations_mut().insert(annotation::CSI_VOLUME_SYNC.into(), "completed".into());
        mark_synced(&mut waiting, Some(&claimed), now);
        assert!(waiting.is_csi_synced() && waiting.is_ready());
    }
}
