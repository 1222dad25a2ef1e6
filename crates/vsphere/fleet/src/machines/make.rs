use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use roost_vim::wire::MoRef;
use roost_vim::{CloneVm, CreateVm, Made, Namesake, TemplateFacts, VmError};
use tokio::time::timeout;

use super::retry::Pauses;
use super::{Hold, MachineError, Machines};
use crate::{Claim, DoorName, Phase, PoolId, Power, Reservation, Vm, VmId, Wrote, condition};

/// How long what a failed request left behind is looked for.
const LOOKING: Duration = Duration::from_secs(30);
/// A clone that was seen gets its power within this time.
const COMES_ON: Duration = Duration::from_mins(1);
/// Writing down whose a VM is, where a server did not keep it.
const LABELLING: Duration = Duration::from_mins(2);

/// For whom a VM is made. It is recognised as theirs from its first sight on.
#[derive(Debug, Clone, Copy)]
pub struct Owner<'a> {
    pub door: DoorName,
    pub name: &'a str,
}

/// A VM that was to be made.
#[derive(Debug)]
pub struct NotMade {
    pub error: MachineError,
    /// What was left behind and must be given up. It is the holder's to say so in the VM itself.
    pub left: Option<Hold>,
}

impl Machines {
    /// Sees whether the template can be cloned as wished. Nothing is changed.
    pub async fn check_clone(
        &self,
        request: &CloneVm,
        template: &Vm,
    ) -> Result<Arc<TemplateFacts>, MachineError> {
        let failed = |error| MachineError::vm(Phase::CLONING, &request.name)(error);
        let facts = self.template_facts(template).await.map_err(failed)?;
        let checked = request
            .spec(&facts)
            .map_err(|source| VmError::CloneSpec { name: request.name.clone(), source });
        checked.map_err(failed)?;
        Ok(facts)
    }

    /// Clones a template, or takes over the VM that an earlier attempt of the same request made. The reservation is submitted before anything is sent and
    /// bound to the VM afterwards; the mirror shows the VM, and whoever calls holds it from its first sight on.
    pub async fn clone_vm(
        &self,
        owner: Owner<'_>,
        request: &CloneVm,
        template: &Vm,
        reservation: &mut Reservation,
    ) -> Result<Hold, NotMade> {
        let facts = match self.check_clone(request, template).await {
            Ok(facts) => facts,
            Err(error) => return Err(NotMade::nothing(error)),
        };
        let text = request.annotation.as_deref();
        let memory = request.memory_mb.and_then(|memory| memory.try_into().ok());
        let wrote = Wrote::new()
            .name(request.name.as_str())
            .pool(PoolId::from(&request.pool))
            .cpus(request.cpus.and_then(|cpus| cpus.try_into().ok()).unwrap_or(template.cpus))
            .memory_mb(memory.unwrap_or(template.memory_mb));
        let served = Arc::clone(&reservation.request().id);
        let making = self.client().clone_or_adopt(&facts, request, |namesake| {
            self.is_earlier_attempt(owner, &served, text, namesake)
        });
        let new = NewVm {
            phase: Phase::CLONING,
            owner,
            folder: &request.folder,
            name: &request.name,
            annotation: text,
            extra_config: &request.extra_config,
            comes_on: request.power_on,
            wrote,
        };
        Box::pin(self.make(new, making, reservation)).await
    }

    /// Creates a VM without a template, or takes over the one that an earlier attempt of the same request made. See [`clone_vm`](Self::clone_vm).
    pub async fn create_vm(
        &self,
        owner: Owner<'_>,
        request: &CreateVm,
        reservation: &mut Reservation,
    ) -> Result<Hold, NotMade> {
        let text = request.annotation.as_deref();
        let wrote = Wrote::new()
            .name(request.name.as_str())
            .pool(PoolId::from(&request.pool))
            .cpus(request.cpus.try_into().unwrap_or_default())
            .memory_mb(request.memory_mb.try_into().unwrap_or_default())
            .power(Power::Off);
        let served = Arc::clone(&reservation.request().id);
        let making = self.client().create_or_adopt(request, |namesake| {
            self.is_earlier_attempt(owner, &served, text, namesake)
        });
        let new = NewVm {
            phase: Phase::CREATING,
            owner,
            folder: &request.folder,
            name: &request.name,
            annotation: text,
            extra_config: &request.extra_config,
            comes_on: false,
            wrote,
        };
        Box::pin(self.make(new, making, reservation)).await
    }

    /// Whether the VM that has the name was made by this very request: by its annotation, or else because the owner recognises it as theirs and for this
    /// request.
    fn is_earlier_attempt(
        &self,
        owner: Owner<'_>,
        request: &str,
        annotation: Option<&str>,
        namesake: &Namesake,
    ) -> bool {
        match annotation {
            Some(text) => namesake.annotation.as_deref() == Some(text),
            None => self.mirror().vm(&VmId::from(&namesake.vm)).is_some_and(|vm| {
                owner.owns(&vm) && vm.request().is_some_and(|serves| **serves == *request)
            }),
        }
    }

    async fn make(
        &self,
        new: NewVm<'_>,
        making: impl Future<Output = Result<Made, VmError>>,
        reservation: &mut Reservation,
    ) -> Result<Hold, NotMade> {
        let mut sighted = None;
        reservation.submitted_as(new.name);
        let work = async {
            let mut made = Box::pin(making);
            // Held from its first sight on, so that nobody takes it for one that has ended.
            let early = tokio::select! {
                biased;
                made = &mut made => Some(made),
                hold = self.sight(new.owner, new.name) => {
                    sighted = Some(hold);
                    None
                }
            };
            let made = match early {
                Some(made) => made,
                None => made.await,
            };
            made.map_err(MachineError::vm(new.phase, new.name))
        };
        let settled = match self.phase(new.name, new.phase, work).await {
            Ok(made) => self.settle(&new, &made, &mut sighted, reservation).await,
            Err(error) => Err(error),
        };
        match settled {
            Ok(hold) => Ok(hold),
            Err(error) => Err(self.look_for_rest(&new, error, sighted, reservation).await),
        }
    }

    /// Waits until a VM of this owner has this name and nobody else holds it, and takes it.
    pub async fn sight(&self, owner: Owner<'_>, name: &str) -> Hold {
        let mut changes = self.mirror().changes();
        loop {
            let snapshot = self.mirror().snapshot();
            let found = snapshot.named(name).find(|vm| owner.owns(vm));
            if let Some(hold) = found.and_then(|vm| self.hold(owner.door, &vm.id)) {
                return hold;
            }
            if changes.changed().await.is_err() {
                pending::<()>().await;
            }
        }
    }

    /// The VM is there: tells the mirror, and sees that it is as it was asked for.
    async fn settle(
        &self,
        new: &NewVm<'_>,
        made: &Made,
        sighted: &mut Option<Hold>,
        reservation: &mut Reservation,
    ) -> Result<Hold, MachineError> {
        let vm = VmId::from(made.vm());
        let mut wrote = new.wrote.clone();
        if let Some(text) = new.annotation {
            wrote = wrote.annotation(text);
        }
        wrote = self.with_extra_config(wrote, new.extra_config);
        if new.comes_on && matches!(made, Made::Now(_)) {
            wrote = wrote.power(Power::On);
        }
        self.mirror().created(&vm, wrote);
        reservation.bind(&vm);
        let held = sighted.take().filter(|hold| *hold.vm() == vm);
        let Some(hold) = held.or_else(|| self.hold(new.owner.door, &vm)) else {
            let (phase, machine) = (new.phase, new.name.to_owned());
            return Err(MachineError::Changed { phase, machine, vm });
        };
        let settled = async {
            if let Some(text) = new.annotation {
                self.ensure_annotation(new, &vm, text).await?;
            }
            // An earlier attempt made it, and may not have come to the power.
            if new.comes_on && matches!(made, Made::Before(_)) {
                self.power_on(&hold).await?;
            }
            Ok(())
        };
        match settled.await {
            Ok(()) => Ok(hold),
            Err(error) => {
                *sighted = Some(hold);
                Err(error)
            }
        }
    }

    /// A vCenter keeps the annotation of a request. Where a server does not, nobody would know whose the VM is.
    async fn ensure_annotation(
        &self,
        new: &NewVm<'_>,
        vm: &VmId,
        text: &str,
    ) -> Result<(), MachineError> {
        let mut pauses = Pauses::within(LABELLING);
        loop {
            match self.client().ensure_annotation(&vm.moref(), text).await {
                Ok(_) => return Ok(()),
                Err(error) => {
                    let error = MachineError::vm(new.phase, new.name)(error);
                    if !error.may_pass() || !pauses.pause().await {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Looks for what a failed request left behind.
    async fn look_for_rest(
        &self,
        new: &NewVm<'_>,
        error: MachineError,
        sighted: Option<Hold>,
        reservation: &mut Reservation,
    ) -> NotMade {
        let left = match sighted {
            Some(hold) => Some(hold),
            None => match timeout(LOOKING, self.find_own(new)).await {
                Ok(Ok(Some(vm))) => self.hold(new.owner.door, &vm),
                Ok(Ok(None)) if !error.outcome_unknown() => return NotMade::nothing(error),
                // It may come yet. Then it is found by its marks, as after a restart.
                Ok(Ok(None) | Err(_)) | Err(_) => None,
            },
        };
        if let Some(hold) = &left {
            reservation.bind(hold.vm());
        }
        NotMade { error, left }
    }

    /// Looks for a VM of the owner by its name, first in the mirror and then on the server. One that only the server knows is in the mirror afterwards.
    async fn find_own(&self, new: &NewVm<'_>) -> Result<Option<VmId>, roost_vim::CallError> {
        let snapshot = self.mirror().snapshot();
        if let Some(vm) = snapshot.named(new.name).find(|vm| new.owner.owns(vm)) {
            return Ok(Some(vm.id.clone()));
        }
        let Some(found) = self.client().child_named(new.folder, new.name).await? else {
            return Ok(None);
        };
        let vm = VmId::from(&found);
        let Some(row) = self.mirror().read(&self.observer(), &vm).await? else { return Ok(None) };
        if !new.owner.owns(&row) {
            return Ok(None);
        }
        self.mirror().created(&vm, Wrote::marks_of(&row));
        Ok(Some(vm))
    }

    /// Powers off a VM that nobody wants any more. The server may be about to power it on, as it was asked to: it is waited for, so that it
    /// does not come on when everybody has turned away.
    pub async fn power_off_when_on(&self, hold: &Hold) -> Result<(), MachineError> {
        let on = condition::powered(Power::On);
        let is_on = self.mirror().wait_until(hold.vm(), COMES_ON, on).await.is_ok();
        if is_on { self.power_off(hold).await } else { Ok(()) }
    }
}

/// A VM to be made, by whichever call.
struct NewVm<'a> {
    phase: Phase,
    owner: Owner<'a>,
    folder: &'a MoRef,
    name: &'a str,
    annotation: Option<&'a str>,
    extra_config: &'a [(String, roost_vim::wire::types::Hidden)],
    /// The request itself powers it on.
    comes_on: bool,
    wrote: Wrote,
}

impl Owner<'_> {
    pub(super) fn owns(&self, vm: &Vm) -> bool {
        let is_theirs = |claim: &Claim| claim.door == self.door && *claim.owner == *self.name;
        vm.claim.as_deref().is_some_and(is_theirs)
    }
}

impl NotMade {
    fn nothing(error: MachineError) -> Self {
        Self { error: MachineError::NotMade(Box::new(error)), left: None }
    }
}
