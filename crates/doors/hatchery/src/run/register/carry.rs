//! One registration, from the booking to the worker that shows what its model can do.

use std::net::IpAddr;
use std::sync::Arc;

use roost_cds::v1::SpawnError;
use roost_cds::{ClaimedModel, Commands, Purpose as StartedFor, V1Worker};
use roost_fleet::{Decided, Draft, Hold, MachineError, NextLook, Reservation, Vm};
use roost_supervise::Chain;
use tokio::time::Instant;

use super::choose::Begin;
use super::error::RegisterError;
use super::look::{NewRegistration, subject};
use super::template::{build, install};
use crate::clone_spec::{Birth, Purpose};
use crate::model::WorkerModel;
use crate::run::bring_up::{BringUp, LaunchSpec};
use crate::run::machine::launch_program;
use crate::run::register::Registrar;

/// What the VM of a registration that came to nothing says of itself.
const FAILED: &str = "its registration failed";

pub(super) async fn carry_out(registrar: &Registrar, mut registration: NewRegistration) {
    let began = Instant::now();
    let path = registration.model.path();
    let mut work = None;
    let done = register(registrar, &mut registration, &mut work).await;
    let NewRegistration { worker, reservation, .. } = registration;
    let error = match done {
        Ok(()) => {
            reservation.commit();
            let words = format!("worker {worker} registers the model");
            let mut draft = Draft::new(subject(&path), Decided::Spawned, words);
            if let Some(work) = &work {
                draft = draft.vm(work.vm());
            }
            registrar.recorder.decide(draft.next_look(NextLook::OnChange), "registration");
            return;
        }
        Err(error) => error,
    };
    let nothing_made = work.is_none() && made_nothing(&error);
    if nothing_made {
        reservation.release();
    } else {
        drop(reservation);
    }
    if error.is_booked() {
        let words = "the model is booked: another hatchery registers it, or an attempt of ours had no answer";
        let draft = Draft::new(subject(&path), Decided::Skipped, words);
        registrar.recorder.decide(draft.next_look(NextLook::OnChange), "booked");
        return;
    }
    if let Some(work) = &work {
        give_up(registrar, work).await;
    }
    let words = format!("after {} s: {}", began.elapsed().as_secs(), Chain(&error));
    if error.is_the_models()
        && let Some(client) = registrar.cds.v1()
    {
        let told =
            SpawnError::new(format!("hatchery {:?}: {words}", registrar.about.hatchery()), None);
        if let Err(untold) = client.report_spawn_error(&path, &told).await {
            tracing::warn!(model = %path, "reporting a registration failed: {}", Chain(&untold));
        }
    }
    let draft = Draft::new(subject(&path), Decided::Failed, words).next_look(NextLook::OnChange);
    registrar.recorder.decide(draft, error.label());
}

/// Whether surely no VM has come of it, so that nothing needs to stay reserved.
fn made_nothing(error: &RegisterError) -> bool {
    match error {
        RegisterError::Login { .. }
        | RegisterError::Token { .. }
        | RegisterError::Config { .. }
        | RegisterError::Script { .. }
        | RegisterError::Program { .. }
        | RegisterError::Book { .. } => true,
        RegisterError::Build { source }
        | RegisterError::Install { source }
        | RegisterError::Show { source } => source.nothing_made(),
    }
}

/// The mark has a budget of its own, whatever the registration has used up.
async fn give_up(registrar: &Registrar, work: &Hold) {
    if let Err(error) = registrar.vms.mark(work.vm(), FAILED).await {
        tracing::warn!(vm = %work.vm(), "marking a failed registration: {}", Chain(&error));
    }
    registrar.signals.cleanup.notify_one();
}

/// `work` is the VM that is being made, for whoever must give it up.
async fn register(
    registrar: &Registrar,
    registration: &mut NewRegistration,
    work: &mut Option<Hold>,
) -> Result<(), RegisterError> {
    // What is wrong without any VM is seen before the model is booked.
    let launch_spec = prepare_launch(registrar, registration).await?;
    let NewRegistration { model, begin, worker, reservation } = registration;
    if let Some(client) = registrar.cds.v1() {
        let booked = client.book_model(&model.path()).await;
        booked.map_err(|source| RegisterError::Book { source })?;
    }
    let built = match begin {
        Begin::Show { .. } => None,
        Begin::Install { built } => Some(built.id.clone()),
        Begin::Build { image } => {
            let built =
                build(registrar, model, image, &launch_spec.credentials, reservation, work).await;
            let built = built.map_err(|source| RegisterError::Build { source })?;
            // It is complete by now. If it cannot be put in its place, the next look does.
            *work = None;
            Some(built)
        }
    };
    let template = match (built, &*begin) {
        (Some(built), _) => {
            let placed = install(registrar, model, &built).await;
            placed.map_err(|source| RegisterError::Install { source })?
        }
        (None, begin) => Arc::clone(begin.source()),
    };
    let address = reservation.address().cloned();
    let birth = Birth {
        hatchery: registrar.about.hatchery(),
        name: worker,
        source: &template.name,
        purpose: Purpose::Registration { model },
        flavor: None,
        address: address.as_ref(),
        process: Some(registrar.processes.own()),
        now: registrar.about.now(),
    };
    show(registrar, &birth, &template, &launch_spec, reservation, work)
        .await
        .map_err(|source| RegisterError::Show { source })
}

async fn prepare_launch(
    registrar: &Registrar,
    registration: &NewRegistration,
) -> Result<LaunchSpec, RegisterError> {
    let NewRegistration { model, worker, .. } = registration;
    let of_model = WorkerModel::v1((**model).clone());
    let credentials = registrar
        .vms
        .guest_login(&model.name, &of_model)
        .await
        .map_err(|source| RegisterError::Login { source })?;
    let claims = V1Worker {
        name: worker.to_string(),
        model: ClaimedModel { id: model.id, name: model.name.clone() },
        job_id: 0,
        register_only: true,
        hatchery_name: registrar.about.hatchery().to_owned(),
    };
    let token = claims
        .token(
            registrar.scheduler.uuid(),
            registrar.about.now(),
            &registrar.about.config.identity.key,
        )
        .map_err(|source| RegisterError::Token { source })?;
    let mut config = registrar
        .setup
        .worker_config(worker, &of_model.display_name(), token)
        .map_err(|source| RegisterError::Config { source })?;
    config.region = registrar.about.config.region.name.clone().unwrap_or_default();
    let script = Commands::from(&model.model_virtual_machine)
        .script(StartedFor::Registration, &config)
        .map_err(|source| RegisterError::Script { source })?;
    let launch = launch_program(&script, config.environment());
    launch.check().map_err(|source| RegisterError::Program { source })?;
    let pre_start = registrar.about.config.guests.pre_start_script(&model.name).map(str::to_owned);
    Ok(LaunchSpec { credentials, launch, pre_start })
}

/// Starts the worker that registers, in a VM of its own.
async fn show(
    registrar: &Registrar,
    birth: &Birth<'_>,
    template: &Vm,
    launch_spec: &LaunchSpec,
    reservation: &mut Reservation,
    work: &mut Option<Hold>,
) -> Result<(), MachineError> {
    let work =
        work.insert(Box::pin(registrar.vms.clone_at_work(birth, template, reservation)).await?);
    let expected = birth.address.map(|grant| IpAddr::V4(grant.address));
    let up = BringUp { vms: &registrar.vms, work, machine: birth.name, expected };
    up.wait_ready().await?;
    up.prepare(launch_spec).await?;
    up.launch(launch_spec).await.map(drop)
}
