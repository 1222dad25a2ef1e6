//! What the hatchery does to a VM beyond the verbs that all doors share: the clone that says whose it is, the claim of a spare, the mark that outlives
//! us, the launch of a worker.

mod claim;
mod clone;
mod guest;
mod mark;
mod past;

use std::time::Duration;

use roost_fleet::{Hold, MachineError, Owner, VmId};

pub(crate) use self::guest::{Launch, LaunchSeen, LoginError, launch_program};

use super::context::Context;
use crate::door::HATCHERY;

/// A guest that was asked to shut down and is still on after this long loses its power.
const SHUTDOWN_GRACE: Duration = Duration::from_mins(2);

impl Context {
    /// For whom VMs are made here.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner { door: HATCHERY, name: self.hatchery() }
    }

    /// Makes a VM one's own for some steps; `None` if somebody else is at work on it.
    pub(crate) fn at_work(&self, vm: &VmId) -> Option<Hold> {
        self.machines.hold(HATCHERY, vm)
    }

    /// Asks the guest to shut down, so that its file systems are clean; pulls the plug if it does not (D31).
    pub(crate) async fn shut_down(&self, work: &Hold) -> Result<(), MachineError> {
        self.machines.shut_down(work, SHUTDOWN_GRACE).await.map(drop)
    }
}
