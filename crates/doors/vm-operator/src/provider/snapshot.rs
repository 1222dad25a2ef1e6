//! Snapshots on vSphere.

use std::sync::Arc;

use kube::ResourceExt as _;
use roost_controller::Key;
use roost_fleet::{Phase, Wrote};
use roost_vim::NewSnapshot;
use roost_vim::wire::methods::CreateSnapshotExTask;
use roost_vim::wire::types::{OptionValue, VirtualMachineSnapshotInfo};
use roost_vim::wire::{Element, MoRef, Value};

use super::{Provider, Seen, decode_backup, walk};
use crate::api::names::extra_config;
use crate::api::{GoDuration, VirtualMachine, VirtualMachineSnapshot};
use crate::flow::{Done, Flow, Halt};

/// How long a guest may take to come to rest: whole minutes, within what vSphere takes.
fn quiesce_minutes(timeout: &GoDuration) -> Option<i32> {
    let minutes = timeout.parse().ok()?.as_secs().div_ceil(60);
    i32::try_from(minutes.clamp(5, 240)).ok()
}

impl Provider {
    /// The copy of the object that is frozen in a snapshot. One call.
    pub(crate) async fn copy_in_snapshot(&self, snapshot: &MoRef) -> Flow<Option<VirtualMachine>> {
        let path = "config.extraConfig";
        let read = self.fleet.observer().properties(snapshot, &[path]).await;
        let read = read.map_err(Halt::because("reading the snapshot"))?;
        let options = read.get(path).into_iter().flat_map(Value::data_items::<OptionValue>);
        let mut found = options.filter(|option| option.key == extra_config::BACKUP_VM_YAML);
        let text =
            found.next().and_then(|option| option.value.as_ref()?.as_str().map(str::to_owned));
        Ok(text.as_deref().and_then(decode_backup))
    }

    /// Names are not unique, so a snapshot whose answer was lost would be taken twice. Asked anew, because what the close-up shows may be older than the
    /// request: the tree, and whether the server still works at this VM.
    pub(crate) async fn check_not_taken(&self, seen: &Seen, name: &str) -> Flow {
        let failed = |source| Halt::because("looking for the snapshot")(source);
        let (observer, vm) = (self.fleet.observer(), seen.id().moref());
        let read = observer.properties(&vm, &["snapshot", "recentTask"]).await;
        let read = read.map_err(Halt::because("looking for the snapshot"))?;
        let tree = read.data::<VirtualMachineSnapshotInfo>("snapshot");
        let roots = tree.map_or(&[][..], |info| &info.root_snapshot_list);
        let is_there = walk(roots).into_iter().any(|tree| tree.name == name);
        let tasks = read.refs("recentTask");
        if is_there || self.places.is_any_running(&tasks).await.map_err(failed)? {
            return Err(Halt::Requeue(std::time::Duration::from_secs(2)));
        }
        Ok(())
    }

    pub(crate) fn take_snapshot(
        &self,
        key: &Key,
        seen: &Seen,
        wanted: &Arc<VirtualMachineSnapshot>,
    ) -> Flow {
        self.steps.may_begin(key, Done::SnapshotStarted, self.now())?;
        let hold = self.hold(&seen.row)?;
        let told = self.steps.begin(key, Done::SnapshotStarted, self.now()).into_told();
        let machines = self.fleet.machines().clone();
        let spec = &wanted.spec;
        let minutes = spec.quiesce.as_ref().and_then(|of| quiesce_minutes(of.timeout.as_ref()?));
        let new = NewSnapshot {
            description: spec.description.clone(),
            memory: spec.memory,
            quiesce: spec.quiesce.is_some(),
            ..NewSnapshot::new(wanted.name_any())
        };
        let vm = seen.id().moref();
        let work = async move {
            let Some(minutes) = minutes else {
                return machines.create_snapshot(&hold, &new).await.map(drop);
            };
            let quiesce = Element::new("quiesceSpec")
                .typed("VirtualMachineGuestQuiesceSpec")
                .with_field("timeout", &minutes);
            let call = CreateSnapshotExTask {
                this: vm,
                name: new.name,
                description: Some(new.description),
                memory: new.memory,
                quiesce_spec: Some(quiesce),
            };
            let taken = machines.run_task(&hold, Phase::SNAPSHOTTING, &call, Wrote::new()).await;
            taken.map(drop)
        };
        self.fleet.machines().start(work, told);
        Err(Halt::Done(Done::SnapshotStarted))
    }

    pub(crate) fn revert(&self, key: &Key, seen: &Seen, snapshot: &MoRef) -> Flow {
        self.steps.may_begin(key, Done::RevertStarted, self.now())?;
        let hold = self.hold(&seen.row)?;
        let told = self.steps.begin(key, Done::RevertStarted, self.now()).into_told();
        let (machines, snapshot) = (self.fleet.machines().clone(), snapshot.clone());
        let work = async move { machines.revert_to_snapshot(&hold, &snapshot).await };
        self.fleet.machines().start(work, told);
        Err(Halt::Done(Done::RevertStarted))
    }

    /// Starts the removal of a snapshot; its end brings the snapshot's own key back, by the VM's.
    pub(crate) fn remove_snapshot(&self, key: &Key, seen: &Seen, snapshot: &MoRef) -> Flow {
        let hold = self.hold(&seen.row)?;
        let told = self.steps.begin(key, Done::SnapshotStarted, self.now()).into_told();
        let (machines, snapshot) = (self.fleet.machines().clone(), snapshot.clone());
        let work = async move { machines.remove_snapshot(&hold, &snapshot, false).await };
        self.fleet.machines().start(work, told);
        Err(Halt::Done(Done::SnapshotStarted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_comes_to_rest_within_whole_minutes_that_vsphere_takes() {
        for (timeout, want) in
            [("15m", Some(15)), ("7m30s", Some(8)), ("10s", Some(5)), ("12h", Some(240))]
        {
            assert_eq!(quiesce_minutes(&GoDuration::new(timeout)), want, "{timeout}");
        }
        assert_eq!(quiesce_minutes(&GoDuration::new("soon")), None);
    }
}
