use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Phase, Power, Reservation, Vm, VmId, Wrote, condition};
use roost_supervise::Chain;
use roost_vim::{CloneVm, Made, TemplateFacts, VmError};
use tokio::time::timeout;

use super::error::vm_may_pass;
use super::{Pauses, StepError};
use crate::clone_spec::Birth;
use crate::door::phase;
use crate::run::desk::AtWork;
use crate::run::nest::Nest;

/// How long a clone that failed is looked for: it may have left a VM behind.
const LOOKING: Duration = Duration::from_secs(30);

/// A clone that was seen gets its power within this time.
const COMES_ON: Duration = Duration::from_mins(1);

impl Nest {
    /// Sees whether the template can be cloned as wished. Nothing is changed.
    pub(crate) async fn check_clone(
        &self,
        birth: &Birth<'_>,
        template: &Vm,
    ) -> Result<(), StepError> {
        self.prepare_clone(birth, template).await.map(drop)
    }

    async fn prepare_clone(
        &self,
        birth: &Birth<'_>,
        template: &Vm,
    ) -> Result<(CloneVm, Arc<TemplateFacts>), StepError> {
        let failed = |error| StepError::vm(Phase::CLONING, birth.name)(error);
        let facts = self.template_facts(template).await.map_err(failed)?;
        let request = birth.clone_vm(&self.site);
        let checked = request
            .spec(&facts)
            .map_err(|source| VmError::CloneSpec { name: birth.name.to_owned(), source });
        checked.map_err(failed)?;
        Ok((request, facts))
    }

    /// Clones a template. The reservation is submitted before anything is sent and bound to the VM afterwards; the mirror shows the VM, and
    /// whoever calls is at work on it from its first sight on.
    ///
    /// If it fails and has left a VM behind, that VM is marked for deletion; [`StepError::nothing_made`] says that there is surely none.
    pub(crate) async fn clone_at_work(
        &self,
        birth: &Birth<'_>,
        template: &Vm,
        reservation: &mut Reservation,
    ) -> Result<AtWork, StepError> {
        let mut sighted = None;
        let mut submitted = false;
        let cloning = async {
            let (request, facts) = self.prepare_clone(birth, template).await?;
            reservation.submitted_as(birth.name);
            submitted = true;
            let text = request.annotation.as_deref();
            let mut made = Box::pin(self.vcenter.clone_or_adopt(&facts, &request, |namesake| {
                namesake.annotation.as_deref() == text
            }));
            // At work on it from its first sight on, so that nobody takes it for a worker that has ended.
            let early = tokio::select! {
                biased;
                made = &mut made => Some(made),
                work = self.sight(birth.name) => {
                    sighted = Some(work);
                    None
                }
            };
            let made = match early {
                Some(made) => made,
                None => made.await,
            };
            made.map_err(StepError::vm(Phase::CLONING, birth.name))
        };
        let settled = match self.phase(birth.name, Phase::CLONING, cloning).await {
            Ok(made) => self.settle(birth, template, made, &mut sighted, reservation).await,
            Err(error) => Err(error),
        };
        match settled {
            Ok(work) => Ok(work),
            Err(error) if !submitted => Err(StepError::NotMade(Box::new(error))),
            Err(error) => Err(self.disown(birth.name, error, sighted, reservation).await),
        }
    }

    /// Waits until a VM of ours has this name and nobody else is at work on it, and goes to work on it.
    pub(crate) async fn sight(&self, name: &str) -> AtWork {
        let mut changes = self.mirror.changes();
        loop {
            let snapshot = self.mirror.snapshot();
            let is_own = |vm: &Vm| vm.owner().is_some_and(|owner| **owner == *self.hatchery());
            let found = snapshot.named(name).find(|vm| is_own(vm));
            if let Some(work) = found.and_then(|vm| self.at_work(&vm.id)) {
                return work;
            }
            if changes.changed().await.is_err() {
                pending::<()>().await;
            }
        }
    }

    /// The clone is there: tells the mirror, and sees that it is as it was asked for.
    async fn settle(
        &self,
        birth: &Birth<'_>,
        template: &Vm,
        made: Made,
        sighted: &mut Option<AtWork>,
        reservation: &mut Reservation,
    ) -> Result<AtWork, StepError> {
        let vm = VmId::from(made.vm());
        let text = birth.annotation().to_string();
        let flavor = birth.flavor;
        let mut wrote = Wrote::new()
            .name(birth.name)
            .annotation(text.as_str())
            .cpus(flavor.and_then(|flavor| flavor.cpus).unwrap_or(template.cpus))
            .memory_mb(flavor.and_then(|flavor| flavor.memory_mb).unwrap_or(template.memory_mb))
            .pool(self.pool.clone());
        if matches!(made, Made::Now(_)) {
            wrote = wrote.power(Power::On);
        }
        self.mirror.created(&vm, wrote);
        reservation.bind(&vm);
        let held = sighted.take().filter(|work| *work.vm() == vm);
        let Some(work) = held.or_else(|| self.at_work(&vm)) else {
            let (step, machine) = (Phase::CLONING.into(), birth.name.to_owned());
            return Err(StepError::Changed { step, machine, vm });
        };
        let settled = async {
            self.ensure_annotation(&vm, birth.name, &text).await?;
            // An earlier attempt made it, and may not have come to the power.
            if matches!(made, Made::Before(_)) {
                self.power_on(&vm, birth.name).await?;
            }
            Ok(())
        };
        match settled.await {
            Ok(()) => Ok(work),
            Err(error) => {
                *sighted = Some(work);
                Err(error)
            }
        }
    }

    /// A vCenter keeps the annotation of a clone request. Where a server does not, nobody would know whose the VM is.
    async fn ensure_annotation(
        &self,
        vm: &VmId,
        machine: &str,
        text: &str,
    ) -> Result<(), StepError> {
        let mut pauses = Pauses::within(self.deadlines.of(phase::CLAIMING));
        loop {
            match self.vcenter.ensure_annotation(&vm.moref(), text).await {
                Ok(_) => return Ok(()),
                Err(error) if vm_may_pass(&error) && pauses.pause().await => {}
                Err(error) => return Err(StepError::vm(Phase::CLONING, machine)(error)),
            }
        }
    }

    /// Powers off a clone that nobody wants any more. The server may be about to power it on, as it was asked to: it is waited for, so that it
    /// does not come on when everybody has turned away.
    pub(crate) async fn quench(&self, vm: &VmId, machine: &str) {
        let on = condition::powered(Power::On);
        let is_on = self.mirror.wait_until(vm, COMES_ON, on).await.is_ok();
        if is_on && let Err(error) = self.power_off(vm, machine).await {
            tracing::warn!(%vm, "a VM is not powered off: {}", Chain(&error));
        }
    }

    /// Looks for what a failed clone left behind, and marks it for deletion.
    async fn disown(
        &self,
        name: &str,
        error: StepError,
        sighted: Option<AtWork>,
        reservation: &mut Reservation,
    ) -> StepError {
        let found = match &sighted {
            Some(work) => Some(work.vm().clone()),
            None => match timeout(LOOKING, self.find_own(name)).await {
                Ok(Ok(Some(vm))) => Some(vm),
                Ok(Ok(None)) if !error.outcome_unknown() => {
                    return StepError::NotMade(Box::new(error));
                }
                // It may come yet. Then it is found by its annotation, as after a restart.
                Ok(Ok(None) | Err(_)) | Err(_) => None,
            },
        };
        if let Some(vm) = found {
            reservation.bind(&vm);
            let work = sighted.or_else(|| self.at_work(&vm));
            if let Err(unmarked) = self.mark(&vm, "its clone failed").await {
                tracing::warn!(%vm, name, "a VM that was left behind: {}", Chain(&unmarked));
            }
            if error.outcome_unknown() {
                self.quench(&vm, name).await;
            }
            drop(work);
            self.signals.cleanup.notify_one();
        }
        error
    }
}
