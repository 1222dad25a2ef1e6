use jiff::SignedDuration;
use roost_cds::v1::{Booking, Job, JobResult, SpawnInfo};
use roost_cds::{JobId, JobStatus};
use serde::Deserialize;

use crate::history::JobEvent;
use crate::incoming::Incoming;
use crate::reply::{Refusal, Reply};
use crate::world::{V1Booking, V1Row, Who, World};

/// Waiting jobs that nobody has booked, by queued time.
pub(crate) fn list(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let now = world.now();
    let service = world.access.service_of(incoming.who()?)?;
    let (types, regions) = (incoming.query("modelType"), incoming.query("region"));
    let is_wanted = |row: &&V1Row| {
        let job = &row.job;
        let region = job.region.as_deref().unwrap_or_default();
        !row.has_vanished
            && job.status == JobStatus::Waiting
            && row.holder(now).is_none()
            && (types.is_empty() || job.model_type.is_empty() || types.contains(&&*job.model_type))
            && (regions.is_empty() || regions.contains(&region))
            && service.sees(&job.exec_groups)
    };
    let mut jobs: Vec<Job> =
        world.v1_jobs.values().filter(is_wanted).map(|row| row.shown(now)).collect();
    jobs.sort_by_key(|job| (job.queued, job.id));
    Ok(Reply::json(&jobs))
}

pub(crate) fn info(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let now = world.now();
    Ok(Reply::json(&world.v1_job(incoming.number(0)?)?.shown(now)))
}

#[derive(Deserialize)]
struct BookForm {
    #[serde(default)]
    delay: u64,
}

pub(crate) fn book(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let (id, now) = (incoming.number(0)?, world.now());
    let BookForm { delay } = incoming.json()?;
    let service = world.access.service_of(incoming.who()?)?.service.clone();
    let lifetime = match delay {
        0 => SignedDuration::try_from(world.options.timings.booking).unwrap_or(SignedDuration::MAX),
        secs => SignedDuration::from_secs(i64::try_from(secs).unwrap_or(i64::MAX)),
    };
    // Whether the job still waits is not looked at.
    let row = world.v1_job_mut(id)?;
    if let Some(holder) = row.holder(now)
        && !incoming.booking_race
    {
        return Err(Refusal::new(403, 89, format!("the job is booked by {}", holder.name)));
    }
    let until = now.saturating_add(lifetime).unwrap_or(jiff::Timestamp::MAX);
    row.booking = Some(V1Booking { service: service.id, name: service.name.clone(), until });
    let answer = Booking {
        project_key: row.job.project_key().to_owned(),
        workflow_name: "w".to_owned(),
        workflow_id: 1,
        run_id: id,
        node_run_name: "w".to_owned(),
        node_run_id: row.job.workflow_node_run_id,
        job_name: row.job.job.action.name.clone(),
    };
    world.record(&JobId::V1(id), JobEvent::Booked { hatchery: service.name });
    Ok(Reply::json(&answer))
}

/// Frees a booked job, whoever asks: the API does not look whose booking it is.
pub(crate) fn free(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let (id, now) = (incoming.number(0)?, world.now());
    let hatchery = world.access.service_of(incoming.who()?)?.service.name.clone();
    let row = world.v1_job_mut(id)?;
    if row.holder(now).is_none() {
        return Err(Refusal::new(400, 135, "the job is not booked"));
    }
    row.booking = None;
    world.record(&JobId::V1(id), JobEvent::Released { hatchery });
    Ok(Reply::null())
}

pub(crate) fn spawn_infos(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let infos: Vec<SpawnInfo> = incoming.json()?;
    let row = world.v1_job_mut(incoming.number(0)?)?;
    let text = |info: &SpawnInfo| format!("{}: {}", info.message.id, info.message.args.join(", "));
    row.record.infos.extend(infos.iter().map(text));
    row.job.spawn_infos.extend(infos);
    Ok(Reply::nothing())
}

/// From the worker that executes the job, or from a hatchery while the job waits.
pub(crate) fn result(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let id = incoming.number(0)?;
    let result: JobResult = incoming.json()?;
    match incoming.who()? {
        Who::Worker(worker) => {
            world.hear_worker(worker)?;
            if world.v1_job(id)?.worker.as_ref() != Some(worker) {
                return Err(Refusal::forbidden("the job is not this worker's"));
            }
        }
        who => {
            world.access.service_of(who)?;
            if world.v1_job(id)?.job.status != JobStatus::Waiting {
                return Err(Refusal::forbidden("the job does not wait"));
            }
        }
    }
    world.end_v1_job(id, result.status, &result.reason);
    Ok(Reply::nothing())
}
