use roost_vim::wire::MoRef;
use roost_vim::{NewSnapshot, Snapshots};

use super::retry::Again;
use super::{Hold, MachineError, Machines};
use crate::{Phase, Wrote};

impl Machines {
    pub async fn snapshots(&self, hold: &Hold) -> Result<Snapshots, MachineError> {
        let read = self.client().snapshots(&hold.vm().moref()).await;
        read.map_err(MachineError::vm(Phase::SNAPSHOTTING, &self.name_of(hold.vm())))
    }

    /// Sent once: a second one after a lost answer would be a second snapshot.
    pub async fn create_snapshot(
        &self,
        hold: &Hold,
        snapshot: &NewSnapshot,
    ) -> Result<MoRef, MachineError> {
        let machine = self.name_of(hold.vm());
        let phase = Phase::SNAPSHOTTING;
        let taking = async {
            let taken = self.client().create_snapshot(&hold.vm().moref(), snapshot).await;
            taken.map_err(MachineError::vm(phase, &machine))
        };
        self.phase(&machine, phase, taking).await
    }

    /// Goes back to a snapshot. Its power and its guest are what they were then, so the stream tells them.
    pub async fn revert_to_snapshot(
        &self,
        hold: &Hold,
        snapshot: &MoRef,
    ) -> Result<(), MachineError> {
        let attempt = || self.client().revert_to_snapshot(snapshot, false);
        self.change(hold, Phase::REVERTING, Wrote::new(), Again::Never, attempt).await
    }

    pub async fn remove_snapshot(
        &self,
        hold: &Hold,
        snapshot: &MoRef,
        with_children: bool,
    ) -> Result<(), MachineError> {
        let attempt = || self.client().remove_snapshot(snapshot, with_children);
        self.change(hold, Phase::REMOVING_SNAPSHOT, Wrote::new(), Again::Never, attempt).await
    }
}
