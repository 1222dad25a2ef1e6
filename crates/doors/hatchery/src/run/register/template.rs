//! From an image to the template of a V1 model.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use roost_cds::v1::Model;
use roost_fleet::{Hold, MachineError, Phase, Power, Reservation, Vm, VmId, WaitError, condition};
use roost_vim::{GuestCredentials, Program};

use crate::annotation::Annotation;
use crate::clone_spec::{Birth, Purpose};
use crate::names;
use crate::run::bring_up::BringUp;
use crate::run::context::Context;

/// How long the model's own last command may take to power the VM off.
const ENDING: Duration = Duration::from_mins(10);

/// Builds the template under its working name, within the time of its phase. `work` is the VM while it is being built.
pub(super) async fn build(
    cx: &Context,
    model: &Model,
    image: &Vm,
    credentials: &GuestCredentials,
    reservation: &mut Reservation,
    work: &mut Option<Hold>,
) -> Result<VmId, MachineError> {
    let name = names::building(&model.name);
    let building = async {
        let address = reservation.address().cloned();
        let birth = Birth {
            hatchery: cx.hatchery(),
            name: &name,
            source: &image.name,
            purpose: Purpose::Template { model },
            flavor: None,
            address: address.as_ref(),
            process: Some(cx.others.own()),
            now: cx.now(),
        };
        let made = Box::pin(cx.clone_at_work(&birth, image, reservation)).await?;
        let work = work.insert(made);
        let expected = address.map(|grant| IpAddr::V4(grant.address));
        let up = BringUp { cx, work, machine: &name, expected };
        up.wait_ready().await?;
        up.probe(credentials).await?;
        end(cx, work, &name, &model.model_virtual_machine.post_cmd, credentials).await?;
        cx.machines.mark_as_template(work).await?;
        Ok(work.vm().clone())
    };
    cx.machines.phase(&name, Phase::TEMPLATING, Box::pin(building)).await
}

/// Runs the model's last command, which powers the VM off. A model without one is shut down.
async fn end(
    cx: &Context,
    work: &Hold,
    machine: &str,
    last: &str,
    credentials: &GuestCredentials,
) -> Result<(), MachineError> {
    if last.trim().is_empty() {
        return cx.shut_down(work).await;
    }
    // As workers are started: what is behind the empty echo is run by a shell.
    let program = Program::new("/bin/echo", format!("-n ;{last}"));
    cx.launch(work, credentials, &program).await?;
    let (phase, vm) = (Phase::POWERING_OFF, work.vm());
    match cx.mirror.wait_until(vm, ENDING, condition::powered(Power::Off)).await {
        Ok(()) => Ok(()),
        Err(WaitError::Never { .. }) => {
            Err(MachineError::Gone { phase, machine: machine.to_owned(), vm: vm.clone() })
        }
        Err(WaitError::Deadline { after, .. }) => Err(MachineError::Overdue {
            phase,
            machine: machine.to_owned(),
            after,
            seen: ": the model's post_cmd has not powered the VM off".to_owned(),
        }),
    }
}

/// Puts a template that is complete in the place of the one before. Every step may be the last one of this process: the next one sees a
/// complete template under its working name, and does what is left.
pub(super) async fn install(
    cx: &Context,
    model: &Model,
    built: &VmId,
) -> Result<Arc<Vm>, MachineError> {
    let phase = Phase::TEMPLATING;
    let machine = || model.name.clone();
    let Some(work) = cx.at_work(built) else {
        return Err(MachineError::Changed { phase, machine: machine(), vm: built.clone() });
    };
    let snapshot = cx.mirror.snapshot();
    for before in snapshot.named(&model.name).filter(|vm| vm.id != *built) {
        let is_ours = Annotation::of(before)
            .is_some_and(|annotation| annotation.is_of(cx.hatchery()) && annotation.model);
        let vm = before.id.clone();
        if !is_ours {
            return Err(MachineError::Foreign { phase, machine: machine(), vm });
        }
        let Some(old) = cx.at_work(&vm) else {
            return Err(MachineError::Changed { phase, machine: machine(), vm });
        };
        cx.machines.destroy(&old).await?;
    }
    cx.machines.rename(&work, &model.name).await?;
    cx.signals.spares.notify_one();
    cx.signals.plan.notify_one();
    let placed = cx.mirror.vm(built);
    placed.ok_or_else(|| MachineError::Gone { phase, machine: machine(), vm: built.clone() })
}
