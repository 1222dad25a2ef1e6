use roost_cds::v2::{RunJob, RunJobInfo};
use roost_cds::{JobId, JobStatus};

use crate::history::JobEvent;
use crate::incoming::Incoming;
use crate::reply::{Refusal, Reply};
use crate::world::{HatcheryRow, V2Row, World};

/// The hatchery that asks, if it may start workers for the region in the path.
fn of_region<'a>(world: &'a World, incoming: &Incoming) -> Result<&'a HatcheryRow, Refusal> {
    let row = world.access.hatchery_of(incoming.who()?)?;
    if !world.access.has_region(incoming.param(0)) {
        return Err(Refusal::not_found(format!("region {} not found", incoming.param(0))));
    }
    if row.region.as_deref() == Some(incoming.param(0)) {
        Ok(row)
    } else {
        Err(Refusal::forbidden("no permission for this region"))
    }
}

pub(crate) fn list(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let hatchery = of_region(world, incoming)?;
    let os_arch = incoming.query("osarch");
    let is_wanted = |row: &&V2Row| {
        !row.has_vanished
            && row.job.status == JobStatus::Waiting
            && row.job.region == incoming.param(0)
            && row.job.model_type == hatchery.hatchery.model_type
            && (os_arch.is_empty() || os_arch.contains(&row.job.model_os_arch.as_str()))
    };
    let mut rows: Vec<&V2Row> = world.v2_jobs.values().filter(is_wanted).collect();
    rows.sort_by_key(|row| (row.job.queued, row.number));
    let jobs: Vec<&RunJob> = rows.into_iter().map(|row| &row.job).collect();
    Ok(Reply::json(&jobs))
}

pub(crate) fn info(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    of_region(world, incoming)?;
    Ok(Reply::json(&world.v2_job(incoming.param(0), incoming.param(1))?.info()))
}

pub(crate) fn take(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let (region, id) = (incoming.param(0), incoming.param(1));
    let hatchery = of_region(world, incoming)?.hatchery.name.clone();
    let now = world.now();
    let row = world.v2_job_mut(region, id)?;
    if row.job.status.is_final() {
        return Err(Refusal::wrong_request("the job has ended"));
    }
    if row.job.status != JobStatus::Waiting {
        let by = &row.job.hatchery_name;
        return Err(Refusal::not_found(format!("the job has been taken by {by}")));
    }
    row.job.status = JobStatus::Scheduling;
    row.job.hatchery_name.clone_from(&hatchery);
    row.job.scheduled = Some(now);
    let job = row.job.clone();
    world.record(&JobId::V2(id.to_owned()), JobEvent::Taken { hatchery });
    Ok(Reply::json(&job))
}

/// Puts a job back into the queue whatever its status is; the fifth time it fails instead.
pub(crate) fn release(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    let (region, id) = (incoming.param(0), incoming.param(1));
    let hatchery = of_region(world, incoming)?.hatchery.name.clone();
    let limit = world.options.timings.v2_releases;
    let row = world.v2_job_mut(region, id)?;
    if row.job.hatchery_name != hatchery || row.job.status.is_final() {
        return Err(Refusal::invalid_data("unknown job"));
    }
    row.releases += 1;
    let text = format!("hatchery {hatchery} stops working on the job");
    row.record.infos.push(text);
    let is_last = row.releases >= limit;
    world.record(&JobId::V2(id.to_owned()), JobEvent::Released { hatchery });
    if is_last {
        world.end_v2_job(id, JobStatus::Fail, "released too often");
    } else {
        world.requeue_v2_job(id);
    }
    Ok(Reply::nothing())
}

pub(crate) fn add_info(world: &mut World, incoming: &Incoming) -> Result<Reply, Refusal> {
    of_region(world, incoming)?;
    let info: RunJobInfo = incoming.json()?;
    let row = world.v2_job_mut(incoming.param(0), incoming.param(1))?;
    row.record.infos.push(info.message);
    Ok(Reply::nothing())
}
