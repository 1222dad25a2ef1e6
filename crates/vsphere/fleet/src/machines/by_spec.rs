//! Making a VM by a spec that the door wrote itself. The VM is known by its instance uuid, which the spec carries.

use roost_vim::wire::methods::{CloneVmTask, CreateVmTask};
use roost_vim::wire::{Method, MoRef, Value};
use roost_vim::{DeployOvf, UuidKind};

use super::from_disks::FromDisks;
use super::make::{NotMade, Owner};
use super::{Hold, MachineError, Machines};
use crate::{Phase, Reservation, VmId, Wrote};

/// A VM to be made, with everything that its door decided.
#[derive(Debug)]
pub struct NewMachine<'a> {
    pub owner: Owner<'a>,
    pub name: &'a str,
    /// Stands in the spec, too. By it the VM of a request is found when an answer was lost.
    pub instance_uuid: &'a str,
    pub by: MakeBy,
    /// What the spec makes of the VM, as far as the mirror shows it.
    pub wrote: Wrote,
}

/// The request that makes a VM.
#[derive(Debug, Clone, PartialEq)]
pub enum MakeBy {
    Create(Box<CreateVmTask>),
    Clone(Box<CloneVmTask>),
    /// Of an OVF template in a content library.
    DeployOvf(Box<DeployOvf>),
    /// Of disks that lie on a datastore.
    FromDisks(Box<FromDisks>),
}

impl MakeBy {
    pub fn phase(&self) -> Phase {
        match self {
            Self::Clone(_) => Phase::CLONING,
            Self::Create(_) | Self::DeployOvf(_) | Self::FromDisks(_) => Phase::CREATING,
        }
    }
}

impl Machines {
    /// Makes a VM, or takes over the one that an earlier attempt of the same request made. The request is sent once: a second try is the caller's, who
    /// looks before. The reservation is submitted before anything is sent and bound to the VM afterwards.
    pub async fn make_vm(
        &self,
        new: NewMachine<'_>,
        reservation: &mut Reservation,
    ) -> Result<Hold, NotMade> {
        let NewMachine { owner, name, instance_uuid, by, wrote } = new;
        let phase = by.phase();
        reservation.submitted_as(name);
        let files = match &by {
            MakeBy::FromDisks(request) => match self.lay_out(name, request).await {
                Ok(laid) => Some(laid),
                // The create was never asked for.
                Err(error) => return Err(NotMade::by(MachineError::NotMade(Box::new(error)))),
            },
            _ => None,
        };
        let work = async {
            match &by {
                MakeBy::Create(call) => self.make_by_task(phase, name, &**call).await,
                MakeBy::Clone(call) => self.make_by_task(phase, name, &**call).await,
                MakeBy::DeployOvf(request) => {
                    let made = self.client().deploy_ovf(request).await;
                    made.map_err(|source| MachineError::Rest {
                        phase,
                        machine: name.to_owned(),
                        source,
                    })
                }
                MakeBy::FromDisks(request) => {
                    let call = files.as_ref().map_or(&request.create, |laid| &laid.create);
                    self.make_by_task(phase, name, call).await
                }
            }
        };
        let made = match self.phase(name, phase, work).await {
            Ok(vm) => VmId::from(&vm),
            Err(error) => match self.made_before(owner, instance_uuid).await {
                Ok(Some(vm)) => vm,
                found => {
                    // Files are taken back only if there surely is no VM that has them, and none will be.
                    if let (Ok(None), false, Some(laid)) = (found, error.outcome_unknown(), files) {
                        laid.take_back().await;
                    }
                    return Err(NotMade::by(error));
                }
            },
        };
        self.mirror().created(&made, wrote.name(name).instance_uuid(instance_uuid));
        reservation.bind(&made);
        let Some(hold) = self.hold(owner.door, &made) else {
            let machine = name.to_owned();
            let error = MachineError::Changed { phase, machine, vm: made };
            return Err(NotMade { error, left: None });
        };
        Ok(hold)
    }

    pub(super) async fn make_by_task<M: Method<Output = MoRef>>(
        &self,
        phase: Phase,
        name: &str,
        call: &M,
    ) -> Result<MoRef, MachineError> {
        let task = self.client().submit(call).await.map_err(MachineError::call(phase, name))?;
        let waiting = task.with_deadline(self.longest(phase)).wait().await;
        let Some(Value::Ref(vm)) = waiting.map_err(MachineError::task(phase, name))? else {
            let (step, target) = (roost_vim::Step::Create, name.to_owned());
            let source = roost_vim::VmError::NoResult { step, target };
            return Err(MachineError::vm(phase, name)(source));
        };
        Ok(vm)
    }

    /// The VM with this identity: an answer may have been lost, or two processes may have asked.
    async fn made_before(
        &self,
        owner: Owner<'_>,
        instance_uuid: &str,
    ) -> Result<Option<VmId>, Unclear> {
        let found = self.observer().find_vms_by_uuid(instance_uuid, UuidKind::Instance).await;
        let found = found.map_err(|_| Unclear)?;
        let Some(vm) = found.first().map(VmId::from) else { return Ok(None) };
        let row = self.mirror().read(&self.observer(), &vm).await;
        match row {
            Ok(Some(row)) if owner.owns(&row) => Ok(Some(vm)),
            _ => Err(Unclear),
        }
    }

    /// A ticket for the console of a VM that is on, such as `webmks`. It changes nothing about the VM.
    pub async fn console_ticket(
        &self,
        vm: &VmId,
        kind: &str,
    ) -> Result<roost_vim::ConsoleTicket, MachineError> {
        let ticket = self.client().acquire_ticket(&vm.moref(), kind).await;
        ticket.map_err(MachineError::vm(Phase::IN_GUEST, &self.name_of(vm)))
    }
}

/// Nobody can say whether the VM is there, or whose it is.
struct Unclear;

impl NotMade {
    /// A request that was refused made nothing; of one whose answer is missing nobody knows.
    fn by(error: MachineError) -> Self {
        let is_taken = error.fault().is_some_and(|fault| fault.is("DuplicateName"));
        if error.outcome_unknown() && !is_taken || error.nothing_made() {
            Self { error, left: None }
        } else {
            Self { error: MachineError::NotMade(Box::new(error)), left: None }
        }
    }
}
