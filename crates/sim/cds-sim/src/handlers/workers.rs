use jiff::Timestamp;
use roost_cds::v1::{Requirement, RequirementType};
use roost_cds::{
    JobId, JobStatus, PublicKey, Secret, V1Worker, V2Worker, WorkerClaims, WorkerStatus, jwt, v1,
    v2,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::history::JobEvent;
use crate::incoming::Incoming;
use crate::reply::{Refusal, Reply};
use crate::world::{NewWorker, Who, WorkerFor, WorkerRow, World};

const SESSION_HEADER: &str = "x-cds-jwt";

pub(crate) fn v1_list(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let own = &world.access.service_of(incoming.who()?)?.service;
    let workers = world.workers.values().filter_map(WorkerRow::as_v1);
    let workers: Vec<v1::Worker> =
        workers.filter(|worker| worker.hatchery_id == Some(own.id)).collect();
    Ok(Reply::json(&workers))
}

pub(crate) fn v1_disable(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    world.access.service_of(incoming.who()?)?;
    world.disable_worker(incoming.param(0))?;
    Ok(Reply::nothing())
}

pub(crate) fn v2_list(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let own = &world.access.hatchery_of(incoming.who()?)?.hatchery;
    let workers = world.workers.values().filter_map(WorkerRow::as_v2);
    let workers: Vec<v2::Worker> = workers.filter(|worker| worker.hatchery_id == own.id).collect();
    Ok(if workers.is_empty() { Reply::null() } else { Reply::json(&workers) })
}

/// What a worker tells about its machine.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
struct Machine {
    binary_capabilities: Vec<String>,
    version: String,
    #[serde(rename = "OS")]
    os: String,
    arch: String,
}

/// Believes a worker's token if the hatchery that it names signed it.
fn claims<W: DeserializeOwned>(
    token: &Secret,
    key: Option<&PublicKey>,
    now: Timestamp,
) -> Result<WorkerClaims<W>, Refusal> {
    let key = key.ok_or_else(|| Refusal::forbidden("unknown hatchery"))?;
    let claims: WorkerClaims<W> = jwt::verify(token, key)
        .map_err(|error| Refusal::new(401, 10, format!("the worker is not believed: {error}")))?;
    if now.as_second() >= claims.exp {
        return Err(Refusal::new(401, 10, "the worker's token has expired"));
    }
    Ok(claims)
}

fn unverified<W: DeserializeOwned>(token: &Secret) -> Result<WorkerClaims<W>, Refusal> {
    jwt::read_unverified(token).map_err(|error| Refusal::new(401, 10, error.to_string()))
}

pub(crate) fn v1_sign_in(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let (token, now) = (incoming.token()?, world.now());
    let machine: Machine = incoming.json()?;
    let hatchery = unverified::<V1Worker>(token)?.worker.hatchery_name;
    let service = world.access.service_named(&hatchery);
    let claimed = claims::<V1Worker>(token, service.map(|row| &row.key), now)?.worker;
    let service = service.map(|row| row.service.id);
    if claimed.name.is_empty() || (claimed.job_id == 0) != claimed.register_only {
        return Err(Refusal::wrong_request("a worker is for a job or for a registration"));
    }
    let model = Some(claimed.model.id).filter(|id| *id != 0);
    let purpose = if claimed.register_only {
        register_model(world, claimed.model.id, &machine)?;
        WorkerFor::V1Registration { service, model }
    } else {
        world.v1_job(claimed.job_id)?;
        WorkerFor::V1Job { job: claimed.job_id, service, model }
    };
    let row = world.add_worker(NewWorker {
        name: claimed.name,
        hatchery_name: hatchery,
        model_name: claimed.model.name,
        purpose,
        os: machine.os,
        arch: machine.arch,
        version: machine.version,
    });
    signed_in(world, &row)
}

/// The worker has shown what its model can do.
fn register_model(world: &mut World, id: i64, machine: &Machine) -> Result<(), Refusal> {
    let now = world.now();
    let row = world.models.v1.values_mut().find(|row| row.model.id == id);
    let row = row.ok_or_else(|| Refusal::not_found("worker model not found"))?;
    let capability = |name: &String| Requirement {
        name: name.clone(),
        kind: RequirementType::Binary,
        value: name.clone(),
        ..Requirement::default()
    };
    let model = &mut row.model;
    model.registered_capabilities = machine.binary_capabilities.iter().map(capability).collect();
    model.registered_os = Some(machine.os.clone());
    model.registered_arch = Some(machine.arch.clone());
    model.last_registration = Some(now);
    (model.need_registration, model.check_registration) = (false, false);
    model.nb_spawn_err = 0;
    row.booked = None;
    Ok(())
}

/// Answers with the worker and, in a header, its session.
fn signed_in(world: &mut World, row: &WorkerRow) -> Result<Reply, Refusal> {
    let (now, lifetime) = (world.now(), world.options.timings.worker_session);
    let who = Who::Worker(row.id.clone());
    let session = world.access.open(who, now, lifetime, &mut world.random, &world.key)?;
    let reply = match row.as_v1() {
        Some(worker) => Reply::json(&worker),
        None => Reply::json(&row.as_v2()),
    };
    Ok(reply.header(SESSION_HEADER, session.expose().to_owned()))
}

fn worker(world: &mut World, incoming: &Incoming) -> Result<WorkerRow, Refusal> {
    let Who::Worker(id) = incoming.who()? else {
        return Err(Refusal::forbidden("not a worker"));
    };
    world.hear_worker(id)
}

pub(crate) fn refresh(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    worker(world, incoming)?;
    Ok(Reply::nothing())
}

pub(crate) fn sign_out(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let row = worker(world, incoming)?;
    match row.purpose {
        // Its row is listed until the API looks for such next.
        WorkerFor::V2Job { .. } => set_status(world, &row.id, WorkerStatus::Disabled),
        WorkerFor::V1Job { .. } | WorkerFor::V1Registration { .. } => world.remove_worker(&row.id),
    }
    Ok(Reply::null())
}

fn set_status(world: &mut World, id: &str, status: WorkerStatus) {
    if let Some(row) = world.workers.get_mut(id) {
        row.status = status;
    }
}

pub(crate) fn v1_waiting(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let row = worker(world, incoming)?;
    set_status(world, &row.id, WorkerStatus::Waiting);
    Ok(Reply::nothing())
}

/// The moment that decides between two workers for one job. A worker that missed the answer may ask again.
pub(crate) fn v1_take(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let (id, row) = (incoming.number(0)?, worker(world, incoming)?);
    let job = world.v1_job_mut(id)?;
    let is_again = job.worker.as_ref() == Some(&row.id);
    if job.job.status != JobStatus::Waiting && !is_again {
        return Err(Refusal::new(410, 91, "the job has been taken"));
    }
    job.job.status = JobStatus::Building;
    job.job.hatchery_name.clone_from(&row.hatchery_name);
    job.job.worker_name.clone_from(&row.name);
    job.job.job.worker_name.clone_from(&row.name);
    job.booking = None;
    job.worker = Some(row.id.clone());
    let mut shown = serde_json::to_value(&job.job).unwrap_or_default();
    shown["job"]["action"]["actions"] =
        json!([{"name": "Script", "parameters": [{"name": "script", "value": job.work.script()}]}]);
    set_status(world, &row.id, WorkerStatus::Building);
    if !is_again {
        world.record(&JobId::V1(id), JobEvent::WorkerTook { worker: row.name });
    }
    Ok(Reply::json(&json!({"NodeJobRun": shown, "Secrets": [], "Number": 1, "SubNumber": 0})))
}

pub(crate) fn v2_sign_in(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let (token, now) = (incoming.token()?, world.now());
    let machine: Machine = incoming.json()?;
    let name = unverified::<V2Worker>(token)?.worker.hatchery_name;
    let hatchery = world.access.hatcheries.get(&name);
    let claimed = claims::<V2Worker>(token, hatchery.and_then(|row| row.key.as_ref()), now)?.worker;
    let hatchery = hatchery.map(|row| row.hatchery.id.clone()).unwrap_or_default();
    let job = &world.v2_job(incoming.param(0), incoming.param(1))?.job;
    let is_meant = job.id == claimed.run_job_id && job.hatchery_name == name;
    if job.status != JobStatus::Scheduling || !is_meant {
        return Err(Refusal::forbidden("the job does not wait for this worker"));
    }
    let row = world.add_worker(NewWorker {
        name: claimed.name,
        hatchery_name: name,
        model_name: claimed.model_name,
        purpose: WorkerFor::V2Job { job: claimed.run_job_id, hatchery },
        os: machine.os,
        arch: machine.arch,
        version: machine.version,
    });
    signed_in(world, &row)
}

pub(crate) fn v2_take(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let row = worker(world, incoming)?;
    let id = incoming.param(1);
    if row.job() != Some(JobId::V2(id.to_owned())) {
        return Err(Refusal::forbidden("another worker's job"));
    }
    let job = world.v2_job_mut(incoming.param(0), id)?;
    let is_again = job.worker.as_ref() == Some(&row.id);
    if job.job.status != JobStatus::Scheduling && !is_again {
        return Err(Refusal::forbidden("the job does not wait for a worker"));
    }
    job.job.status = JobStatus::Building;
    job.job.worker_name.clone_from(&row.name);
    job.worker = Some(row.id.clone());
    let shown = job.job.clone();
    set_status(world, &row.id, WorkerStatus::Building);
    if !is_again {
        world.record(&JobId::V2(id.to_owned()), JobEvent::WorkerTook { worker: row.name });
    }
    Ok(Reply::json(&json!({"run_job": shown, "secrets": []})))
}

/// The job that a worker of it speaks about.
fn own_v2_job(world: &mut World, incoming: &Incoming) -> Result<WorkerRow, Refusal> {
    let row = worker(world, incoming)?;
    let job = world.v2_job(incoming.param(0), incoming.param(1))?;
    if job.worker.as_ref() == Some(&row.id) {
        Ok(row)
    } else {
        Err(Refusal::forbidden("the job is not this worker's"))
    }
}

pub(crate) fn v2_step(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    own_v2_job(world, incoming)?;
    Ok(Reply::nothing())
}

#[derive(Deserialize)]
struct RunResult {
    status: JobStatus,
    #[serde(default)]
    error: String,
}

pub(crate) fn v2_result(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let row = own_v2_job(world, incoming)?;
    let RunResult { status, error } = incoming.json()?;
    set_status(world, &row.id, WorkerStatus::Waiting);
    world.end_v2_job(incoming.param(1), status, &error);
    Ok(Reply::nothing())
}
