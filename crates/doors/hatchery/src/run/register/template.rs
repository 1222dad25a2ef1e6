//! From an image to the template of a V1 model (7.6).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use roost_cds::v1::Model;
use roost_fleet::{Phase, PhaseError, Power, Reservation, Vm, VmId, WaitError, Wrote, condition};
use roost_vim::{GuestCredentials, Program};

use crate::annotation::Annotation;
use crate::clone_spec::{Birth, Purpose};
use crate::names;
use crate::run::desk::AtWork;
use crate::run::machine::StepError;
use crate::run::nest::Nest;

/// How long the model's own last command may take to power the VM off.
const ENDING: Duration = Duration::from_mins(10);

/// Builds the template under its working name, within the time of its phase. `work` is the VM while it is being built.
pub(super) async fn build(
    nest: &Nest,
    model: &Model,
    image: &Vm,
    credentials: &GuestCredentials,
    reservation: &mut Reservation,
    work: &mut Option<AtWork>,
) -> Result<VmId, StepError> {
    let name = names::building(&model.name);
    let phase = Phase::TEMPLATING;
    let deadline = nest.deadlines.of(phase);
    let building = async {
        let address = reservation.address().cloned();
        let birth = Birth {
            hatchery: nest.hatchery(),
            name: &name,
            source: &image.name,
            purpose: Purpose::Template { model },
            flavor: None,
            address: address.as_ref(),
            now: nest.now(),
        };
        let made = Box::pin(nest.clone_at_work(&birth, image, reservation)).await?;
        let vm = work.insert(made).vm().clone();
        let expected = address.map(|grant| IpAddr::V4(grant.address));
        nest.wait_ready(&vm, &name, expected).await?;
        nest.probe(&vm, &name, credentials).await?;
        end(nest, &vm, &name, &model.model_virtual_machine.post_cmd, credentials).await?;
        let moref = vm.moref();
        let marked = nest.vcenter.mark_as_template(&moref).await;
        marked.map_err(StepError::vm(phase, &name))?;
        nest.mirror.changed(&vm, Wrote::new().template(true));
        Ok(vm)
    };
    match nest.timelines.run(&name, phase, deadline, building).await {
        Ok(built) => Ok(built),
        Err(PhaseError::Failed { source, .. }) => Err(source),
        Err(PhaseError::Overdue { after, .. }) => Err(StepError::Overdue {
            step: phase.into(),
            machine: name.clone(),
            after,
            seen: String::new(),
        }),
    }
}

/// Runs the model's last command, which powers the VM off. A model without one is shut down.
async fn end(
    nest: &Nest,
    vm: &VmId,
    machine: &str,
    last: &str,
    credentials: &GuestCredentials,
) -> Result<(), StepError> {
    if last.trim().is_empty() {
        return nest.shut_down(vm, machine).await;
    }
    // As workers are started: what is behind the empty echo is run by a shell (5.4).
    let program = Program::new("/bin/echo", format!("-n ;{last}"));
    nest.launch(vm, machine, credentials, &program).await?;
    let step = Phase::POWERING_OFF;
    match nest.mirror.wait_until(vm, ENDING, condition::powered(Power::Off)).await {
        Ok(()) => Ok(()),
        Err(WaitError::Never { .. }) => {
            Err(StepError::Gone { step: step.into(), machine: machine.to_owned(), vm: vm.clone() })
        }
        Err(WaitError::Deadline { after, .. }) => Err(StepError::Overdue {
            step: step.into(),
            machine: machine.to_owned(),
            after,
            seen: ": the model's post_cmd has not powered the VM off".to_owned(),
        }),
    }
}

/// Puts a template that is complete in the place of the one before. Every step may be the last one of this process: the next one sees a
/// complete template under its working name, and does what is left.
pub(super) async fn install(
    nest: &Nest,
    model: &Model,
    built: &VmId,
) -> Result<Arc<Vm>, StepError> {
    let step = Phase::TEMPLATING.into();
    let machine = || model.name.clone();
    let Some(_at_work) = nest.at_work(built) else {
        return Err(StepError::Changed { step, machine: machine(), vm: built.clone() });
    };
    let snapshot = nest.mirror.snapshot();
    for before in snapshot.named(&model.name).filter(|vm| vm.id != *built) {
        let is_ours = Annotation::of(before)
            .is_some_and(|annotation| annotation.is_of(nest.hatchery()) && annotation.model);
        let vm = before.id.clone();
        if !is_ours {
            return Err(StepError::Foreign { step, machine: machine(), vm });
        }
        let Some(_at_work) = nest.at_work(&vm) else {
            return Err(StepError::Changed { step, machine: machine(), vm });
        };
        nest.destroy(&vm, &model.name).await?;
    }
    let named = nest.vcenter.rename(&built.moref(), &model.name).await;
    named.map_err(StepError::vm(Phase::TEMPLATING, &model.name))?;
    nest.mirror.changed(built, Wrote::new().name(model.name.as_str()));
    nest.signals.spares.notify_one();
    nest.signals.plan.notify_one();
    let placed = nest.mirror.vm(built);
    placed.ok_or_else(|| StepError::Gone { step, machine: machine(), vm: built.clone() })
}
