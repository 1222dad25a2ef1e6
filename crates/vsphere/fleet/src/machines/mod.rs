//! The verbs on VMs. Each is a phase with a deadline, needs the [`Hold`] that proves that nobody else is at this VM, and tells the mirror what it did.
//!
//! There is one retry policy: what may pass (a server that is away, a full host, a task in the way) is tried again with growing pauses for as
//! long as the phase lasts; everything else ends the verb at once. A verb whose second try is the caller's business (destroying, shutting down,
//! snapshots) is tried once. So the answer to "how long can this take" is [`Machines::longest`], whatever
//! happens on the way.

mod by_spec;
mod change;
mod error;
mod from_disks;
mod guest;
mod hold;
mod linked_test;
mod make;
mod outfit;
mod power;
mod ready;
mod retry;
mod snapshot;
mod start;
mod templates;

use std::sync::Arc;
use std::time::Duration;

use roost_vim::wire::{Method, Value};
use roost_vim::{
    CallError, Client, Datastore, FileError, Found, GuestOperations, Observer, RestError, VmError,
};
use tokio::sync::OnceCell;

pub use self::by_spec::{MakeBy, NewMachine};
pub use self::change::{Label, Rewrite};
pub use self::error::MachineError;
pub use self::from_disks::{DiskPlace, DiskSource, FromDisks};
pub use self::hold::Hold;
pub use self::linked_test::LinkedTrial;
pub use self::make::{NotMade, Owner};
pub use self::outfit::Identity;
pub use self::retry::Pauses;
pub use self::start::Started;

use self::hold::Holds;
use self::retry::Again;
use self::templates::Templates;
use crate::{DoorName, Mirror, Phase, PhaseDeadlines, PhaseError, Timelines, VmId, Wrote};

/// What can be done to VMs. A handle; clones share everything.
#[derive(Debug, Clone)]
pub struct Machines {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    mirror: Mirror,
    timelines: Timelines,
    deadlines: PhaseDeadlines,
    guests: OnceCell<GuestOperations>,
    holds: Arc<Holds>,
    templates: Templates,
}

impl Machines {
    pub fn new(
        client: Client,
        mirror: Mirror,
        timelines: Timelines,
        deadlines: PhaseDeadlines,
    ) -> Self {
        let shared = Shared {
            client,
            mirror,
            timelines,
            deadlines,
            guests: OnceCell::new(),
            holds: Arc::default(),
            templates: Templates::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Makes a VM one's own for some steps; `None` if somebody else is at it.
    pub fn hold(&self, door: DoorName, vm: &VmId) -> Option<Hold> {
        Hold::take(&self.shared.holds, door, vm)
    }

    pub fn is_held(&self, vm: &VmId) -> bool {
        self.shared.holds.is_held(vm)
    }

    /// Whether whoever holds the VM is deleting it.
    pub fn is_leaving(&self, vm: &VmId) -> bool {
        self.shared.holds.is_leaving(vm)
    }

    /// VMs of which a hold of this door has begun, ended or changed since the last time it asked.
    pub fn take_hold_changes(&self, door: DoorName) -> Vec<VmId> {
        self.shared.holds.take_changes(door)
    }

    /// How long a phase may take at most.
    pub fn longest(&self, phase: Phase) -> Duration {
        self.shared.deadlines.of(phase)
    }

    pub fn timelines(&self) -> &Timelines {
        &self.shared.timelines
    }

    /// Reads only.
    pub fn observer(&self) -> Observer {
        self.shared.client.observer()
    }

    /// The files of a datastore, to be looked at and changed.
    pub async fn files(
        &self,
        datacenter: &Found,
        datastore: &Found,
    ) -> Result<Datastore, FileError> {
        self.client().datastore(datacenter, datastore).await
    }

    /// Asks the server to bring the files of a library item here, which a library on demand has not done.
    pub async fn fetch_library_item(&self, item: &str) -> Result<(), RestError> {
        self.client().sync_library_item(item).await
    }

    /// Asks the server to give up a task. One that has ended, or cannot be given up, goes its way.
    pub async fn cancel(&self, task: &roost_vim::wire::MoRef) {
        if let Err(error) = roost_vim::Task::cancel_by_ref(self.client(), task).await {
            tracing::debug!("{task} is not cancelled: {}", roost_supervise::Chain(&error));
        }
    }

    fn client(&self) -> &Client {
        &self.shared.client
    }

    fn mirror(&self) -> &Mirror {
        &self.shared.mirror
    }

    /// What the VM is called at present, for records; its id if nobody knows.
    fn name_of(&self, vm: &VmId) -> Arc<str> {
        self.mirror().vm(vm).map_or_else(|| vm.as_str().into(), |row| Arc::clone(&row.name))
    }

    /// Whether something failed because the server could not be reached, or just came back. What it was asked is not to blame then.
    pub fn is_of_link(&self, error: &MachineError) -> bool {
        error.is_of_link() || self.mirror().freshness().trouble.is_some()
    }

    /// Does `work` as a phase of a machine, within the phase's deadline.
    pub async fn phase<T>(
        &self,
        machine: &str,
        phase: Phase,
        work: impl Future<Output = Result<T, MachineError>>,
    ) -> Result<T, MachineError> {
        match self.shared.timelines.run(machine, phase, self.longest(phase), work).await {
            Ok(done) => Ok(done),
            Err(PhaseError::Failed { source, .. }) => Err(source),
            Err(PhaseError::Overdue { phase, after }) => Err(MachineError::Overdue {
                phase,
                machine: machine.to_owned(),
                after,
                seen: String::new(),
            }),
        }
    }

    /// A phase that is one change, told to the mirror when it has succeeded.
    async fn change<T, F>(
        &self,
        hold: &Hold,
        phase: Phase,
        wrote: Wrote,
        again: Again,
        mut attempt: impl FnMut() -> F,
    ) -> Result<T, MachineError>
    where
        F: Future<Output = Result<T, VmError>>,
    {
        let machine = self.name_of(hold.vm());
        let mut pauses = Pauses::within(self.longest(phase));
        let work = async {
            loop {
                match attempt().await {
                    Ok(done) => return Ok(done),
                    Err(error) => {
                        let error = MachineError::vm(phase, &machine)(error);
                        let is_over = again == Again::Never || !error.may_pass();
                        if is_over || !pauses.pause().await {
                            return Err(error);
                        }
                    }
                }
            }
        };
        let done = self.phase(&machine, phase, work).await?;
        if wrote != Wrote::new() {
            self.mirror().changed(hold.vm(), wrote);
        }
        Ok(done)
    }

    /// Any task on the VM, as a phase: for what has no verb here. It is sent once; whether an answer that was lost matters is the caller's to find out.
    pub async fn run_task<M: Method<Output = roost_vim::wire::MoRef>>(
        &self,
        hold: &Hold,
        phase: Phase,
        call: &M,
        wrote: Wrote,
    ) -> Result<Option<Value>, MachineError> {
        let machine = self.name_of(hold.vm());
        let work = async {
            let task = self.client().submit(call).await;
            let task = task.map_err(MachineError::call(phase, &machine))?;
            let waiting = task.with_deadline(self.longest(phase)).wait().await;
            waiting.map_err(MachineError::task(phase, &machine))
        };
        let done = self.phase(&machine, phase, work).await?;
        self.mirror().changed(hold.vm(), wrote);
        Ok(done)
    }

    /// How programs in guests are started, read once.
    pub async fn guest_operations(&self) -> Result<&GuestOperations, CallError> {
        self.shared.guests.get_or_try_init(|| self.shared.client.guest_operations()).await
    }
}
