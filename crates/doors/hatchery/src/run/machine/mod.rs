//! What the hatchery does to a VM beyond the verbs that all doors share: the clone that says whose it is, the claim of a spare, the mark that outlives
//! us, the launch of a worker.

mod claim;
mod clone;
mod guest;
mod mark;
mod past;

use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Hold, MachineError, Machines, Owner, Timelines, VmId};
use roost_vim::Observer;

use super::about::About;
use super::signals::Signals;
use crate::clone_spec::Site;
use crate::door::HATCHERY;

pub(crate) use self::guest::{Launch, LaunchSeen, LoginError, launch_program};

/// A guest that was asked to shut down and is still on after this long loses its power.
const SHUTDOWN_GRACE: Duration = Duration::from_mins(2);

/// The verbs on the VMs of this hatchery. Nobody changes one in any other way.
#[derive(Debug)]
pub(crate) struct WorkerVms {
    pub(crate) machines: Machines,
    pub(crate) timelines: Timelines,
    pub(super) about: Arc<About>,
    /// Reads only.
    pub(super) vcenter: Observer,
    pub(super) site: Site,
    /// For the secrets of V1 models.
    pub(super) cds: roost_cds::Client,
    pub(super) signals: Arc<Signals>,
}

impl WorkerVms {
    /// For whom VMs are made here.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner { door: HATCHERY, name: self.about.hatchery() }
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
