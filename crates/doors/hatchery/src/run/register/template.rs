//! From an image to the template of a V1 model (7.6).

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
use crate::run::register::Registrar;

/// How long the model's own last command may take to power the VM off.
const ENDING: Duration = Duration::from_mins(10);

/// Builds the template under its working name, within the time of its phase. `work` is the VM while it is being built.
pub(super) async fn build(
    registrar: &Registrar,
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
            hatchery: registrar.about.hatchery(),
            name: &name,
            source: &image.name,
            purpose: Purpose::Template { model },
            flavor: None,
            address: address.as_ref(),
            process: Some(registrar.processes.own()),
            now: registrar.about.now(),
        };
        let made = Box::pin(registrar.vms.clone_at_work(&birth, image, reservation)).await?;
        let work = work.insert(made);
        let expected = address.map(|grant| IpAddr::V4(grant.address));
        let up = BringUp { vms: &registrar.vms, work, machine: &name, expected };
        up.wait_ready().await?;
        up.probe(credentials).await?;
        end(registrar, work, &name, &model.model_virtual_machine.post_cmd, credentials).await?;
        registrar.vms.machines.mark_as_template(work).await?;
        Ok(work.vm().clone())
    };
    registrar.vms.machines.phase(&name, Phase::TEMPLATING, Box::pin(building)).await
}

/// Runs the model's last command, which powers the VM off. A model without one is shut down.
async fn end(
    registrar: &Registrar,
    work: &Hold,
    machine: &str,
    last: &str,
    credentials: &GuestCredentials,
) -> Result<(), MachineError> {
    if last.trim().is_empty() {
        return registrar.vms.shut_down(work).await;
    }
    // As workers are started: what is behind the empty echo is run by a shell (5.4).
    let program = Program::new("/bin/echo", format!("-n ;{last}"));
    registrar.vms.launch(work, credentials, &program).await?;
    let (phase, vm) = (Phase::POWERING_OFF, work.vm());
    match registrar.mirror.wait_until(vm, ENDING, condition::powered(Power::Off)).await {
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
    registrar: &Registrar,
    model: &Model,
    built: &VmId,
) -> Result<Arc<Vm>, MachineError> {
    let phase = Phase::TEMPLATING;
    let machine = || model.name.clone();
    let Some(work) = registrar.vms.at_work(built) else {
        return Err(MachineError::Changed { phase, machine: machine(), vm: built.clone() });
    };
    let snapshot = registrar.mirror.snapshot();
    for before in snapshot.named(&model.name).filter(|vm| vm.id != *built) {
        let is_ours = Annotation::of(before).is_some_and(|annotation| {
            annotation.is_of(registrar.about.hatchery()) && annotation.model
        });
        let vm = before.id.clone();
        if !is_ours {
            return Err(MachineError::Foreign { phase, machine: machine(), vm });
        }
        let Some(old) = registrar.vms.at_work(&vm) else {
            return Err(MachineError::Changed { phase, machine: machine(), vm });
        };
        registrar.vms.machines.destroy(&old).await?;
    }
    registrar.vms.machines.rename(&work, &model.name).await?;
    registrar.signals.spares.notify_one();
    registrar.signals.plan.notify_one();
    let placed = registrar.mirror.vm(built);
    placed.ok_or_else(|| MachineError::Gone { phase, machine: machine(), vm: built.clone() })
}
