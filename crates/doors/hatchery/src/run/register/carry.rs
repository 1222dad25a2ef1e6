//! One registration, from the booking to the worker that shows what its model can do.

use std::net::IpAddr;
use std::sync::Arc;

use roost_cds::v1::SpawnError;
use roost_cds::{ClaimedModel, Commands, Purpose as StartedFor, V1Worker};
use roost_fleet::{Decided, Draft, Hold, MachineError, NextLook, Reservation, Vm};
use roost_supervise::Chain;
use roost_vim::{GuestCredentials, Program};
use tokio::time::Instant;

use super::choose::Begin;
use super::error::RegisterError;
use super::look::{NewRegistration, subject};
use super::template::{build, install};
use crate::clone_spec::{Birth, Purpose};
use crate::model::WorkerModel;
use crate::run::machine::launch_program;
use crate::run::nest::Nest;

/// What the VM of a registration that came to nothing says of itself.
const FAILED: &str = "its registration failed";

/// What is needed in guests of the model.
struct Kit {
    credentials: GuestCredentials,
    launch: Program,
    pre_start: Option<String>,
}

pub(super) async fn carry_out(nest: &Nest, mut registration: NewRegistration) {
    let began = Instant::now();
    let path = registration.model.path();
    let mut work = None;
    let done = register(nest, &mut registration, &mut work).await;
    let NewRegistration { worker, reservation, .. } = registration;
    let error = match done {
        Ok(()) => {
            reservation.commit();
            let words = format!("worker {worker} registers the model");
            let mut draft = Draft::new(subject(&path), Decided::Spawned, words);
            if let Some(work) = &work {
                draft = draft.vm(work.vm());
            }
            nest.decide(draft.next_look(NextLook::OnChange), "registration");
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
        nest.decide(draft.next_look(NextLook::OnChange), "booked");
        return;
    }
    if let Some(work) = &work {
        give_up(nest, work).await;
    }
    let words = format!("after {} s: {}", began.elapsed().as_secs(), Chain(&error));
    if error.is_the_models()
        && let Some(client) = nest.cds.v1()
    {
        let told = SpawnError::new(format!("hatchery {:?}: {words}", nest.hatchery()), None);
        if let Err(untold) = client.report_spawn_error(&path, &told).await {
            tracing::warn!(model = %path, "reporting a registration failed: {}", Chain(&untold));
        }
    }
    let draft = Draft::new(subject(&path), Decided::Failed, words).next_look(NextLook::OnChange);
    nest.decide(draft, error.label());
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
async fn give_up(nest: &Nest, work: &Hold) {
    if let Err(error) = nest.mark(work.vm(), FAILED).await {
        tracing::warn!(vm = %work.vm(), "marking a failed registration: {}", Chain(&error));
    }
    nest.signals.cleanup.notify_one();
}

/// `work` is the VM that is being made, for whoever must give it up.
async fn register(
    nest: &Nest,
    registration: &mut NewRegistration,
    work: &mut Option<Hold>,
) -> Result<(), RegisterError> {
    // What is wrong without any VM is seen before the model is booked.
    let kit = pack(nest, registration).await?;
    let NewRegistration { model, begin, worker, reservation } = registration;
    if let Some(client) = nest.cds.v1() {
        let booked = client.book_model(&model.path()).await;
        booked.map_err(|source| RegisterError::Book { source })?;
    }
    let built = match begin {
        Begin::Show { .. } => None,
        Begin::Install { built } => Some(built.id.clone()),
        Begin::Build { image } => {
            let built = build(nest, model, image, &kit.credentials, reservation, work).await;
            let built = built.map_err(|source| RegisterError::Build { source })?;
            // It is complete by now. If it cannot be put in its place, the next look does.
            *work = None;
            Some(built)
        }
    };
    let template = match (built, &*begin) {
        (Some(built), _) => {
            let placed = install(nest, model, &built).await;
            placed.map_err(|source| RegisterError::Install { source })?
        }
        (None, begin) => Arc::clone(begin.source()),
    };
    let address = reservation.address().cloned();
    let birth = Birth {
        hatchery: nest.hatchery(),
        name: worker,
        source: &template.name,
        purpose: Purpose::Registration { model },
        flavor: None,
        address: address.as_ref(),
        now: nest.now(),
    };
    show(nest, &birth, &template, &kit, reservation, work)
        .await
        .map_err(|source| RegisterError::Show { source })
}

async fn pack(nest: &Nest, registration: &NewRegistration) -> Result<Kit, RegisterError> {
    let NewRegistration { model, worker, .. } = registration;
    let of_model = WorkerModel::v1((**model).clone());
    let credentials = nest
        .guest_login(&model.name, &of_model)
        .await
        .map_err(|source| RegisterError::Login { source })?;
    let claims = V1Worker {
        name: worker.to_string(),
        model: ClaimedModel { id: model.id, name: model.name.clone() },
        job_id: 0,
        register_only: true,
        hatchery_name: nest.hatchery().to_owned(),
    };
    let token = claims
        .token(nest.uuid(), nest.now(), &nest.config.identity.key)
        .map_err(|source| RegisterError::Token { source })?;
    let mut config = nest
        .worker_config(worker, &of_model.display_name(), token)
        .map_err(|source| RegisterError::Config { source })?;
    config.region = nest.config.region.name.clone().unwrap_or_default();
    let script = Commands::from(&model.model_virtual_machine)
        .script(StartedFor::Registration, &config)
        .map_err(|source| RegisterError::Script { source })?;
    let launch = launch_program(&script, config.environment());
    launch.check().map_err(|source| RegisterError::Program { source })?;
    let pre_start = nest.config.guests.pre_start_script(&model.name).map(str::to_owned);
    Ok(Kit { credentials, launch, pre_start })
}

/// Starts the worker that registers, in a VM of its own.
async fn show(
    nest: &Nest,
    birth: &Birth<'_>,
    template: &Vm,
    kit: &Kit,
    reservation: &mut Reservation,
    work: &mut Option<Hold>,
) -> Result<(), MachineError> {
    let work = work.insert(Box::pin(nest.clone_at_work(birth, template, reservation)).await?);
    let expected = birth.address.map(|grant| IpAddr::V4(grant.address));
    nest.machines.wait_ready(work.vm(), expected).await?;
    nest.probe(work, &kit.credentials).await?;
    if let Some(script) = &kit.pre_start {
        nest.run_pre_start(work, birth.name, &kit.credentials, script).await?;
    }
    nest.launch(work, &kit.credentials, &kit.launch).await.map(drop)
}
