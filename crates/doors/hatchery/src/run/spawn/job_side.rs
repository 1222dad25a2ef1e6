//! The job on the CDS side: taken before anything is made, given back if nothing came of it.

use std::time::Duration;

use roost_cds::{CallError, ErrorKind, JobId, JobStatus, v1, v2};
use roost_fleet::Pauses;
use roost_supervise::Chain;

use crate::run::context::Context;

/// How long it is asked whether a job became ours when the answer was lost.
const FINDING_OUT: Duration = Duration::from_mins(1);

/// Whether CDS gave us a job.
#[derive(Debug)]
pub(super) enum Taking {
    Ours,
    /// It is somebody else's, or gone.
    NotOurs(String),
    /// CDS could not be reached, or could not say.
    Unsure(CallError),
}

/// How a job stands with respect to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// Held by us and without a worker.
    Held,
    /// It waits, and nobody holds it.
    Free,
    /// A worker is at it.
    Building,
    /// Somebody else's, done, or gone.
    NotOurs,
}

/// Takes a V2 job, or books a V1 job.
pub(super) async fn take(cx: &Context, id: &JobId) -> Taking {
    let answer = match id {
        JobId::V1(number) => match cx.cds.v1() {
            Some(client) => client.book(*number).await.map(drop),
            None => return Taking::NotOurs("V1 is not spoken".to_owned()),
        },
        JobId::V2(uuid) => match cx.cds.v2() {
            Some(client) => client.take(uuid).await.map(drop),
            None => return Taking::NotOurs("V2 is not spoken".to_owned()),
        },
    };
    match answer {
        Ok(()) => Taking::Ours,
        Err(error) if is_refused(&error) => Taking::NotOurs(Chain(&error).to_string()),
        Err(error) if error.may_have_happened() => find_out(cx, id, error).await,
        Err(error) => Taking::Unsure(error),
    }
}

/// Whether CDS said that the job is not for us.
fn is_refused(error: &CallError) -> bool {
    error.is_gone()
        || matches!(
            error.kind(),
            Some(
                ErrorKind::JobAlreadyBooked
                    | ErrorKind::JobAlreadyTaken
                    | ErrorKind::WrongRequest
                    | ErrorKind::InvalidData
            )
        )
}

/// The answer was lost, and so was that to the question behind it. A job that is ours and that nobody works on is lost for ten minutes.
async fn find_out(cx: &Context, id: &JobId, error: CallError) -> Taking {
    let mut pauses = Pauses::within(FINDING_OUT);
    while pauses.pause().await {
        match standing(cx, id).await {
            Ok((Standing::Held, _)) => return Taking::Ours,
            Ok((Standing::Free, _)) => return Taking::Unsure(error),
            Ok((Standing::Building | Standing::NotOurs, _)) => {
                return Taking::NotOurs("the job went to somebody else".to_owned());
            }
            Err(_) => {}
        }
    }
    Taking::Unsure(error)
}

/// A job as CDS has it.
#[derive(Debug)]
pub(super) enum Found {
    V1(Box<v1::Job>),
    V2(Box<v2::JobInfo>),
    Gone,
}

impl Found {
    /// The worker that took it, if CDS names it.
    pub(super) fn worker(&self) -> Option<&str> {
        match self {
            Self::V1(job) => job.worker(),
            Self::V2(info) => Some(&*info.run_job.worker_name).filter(|name| !name.is_empty()),
            Self::Gone => None,
        }
    }
}

/// Asks CDS for the job, and how it stands.
pub(super) async fn standing(cx: &Context, id: &JobId) -> Result<(Standing, Found), CallError> {
    match id {
        JobId::V1(number) => {
            let Some(client) = cx.cds.v1() else { return Ok((Standing::NotOurs, Found::Gone)) };
            let service = client.service().await?.map_or(0, |service| service.id);
            match client.job(*number).await {
                Ok(job) => Ok((of_v1(&job, service), Found::V1(Box::new(job)))),
                Err(error) if error.is_gone() => Ok((Standing::NotOurs, Found::Gone)),
                Err(error) => Err(error),
            }
        }
        JobId::V2(uuid) => {
            let Some(client) = cx.cds.v2() else { return Ok((Standing::NotOurs, Found::Gone)) };
            match client.job(uuid).await {
                Ok(info) => Ok((of_v2(&info.run_job, cx.hatchery()), Found::V2(Box::new(info)))),
                Err(error) if error.is_gone() => Ok((Standing::NotOurs, Found::Gone)),
                Err(error) => Err(error),
            }
        }
    }
}

/// Why no worker is waited for at this job any more; `None` if one is.
pub(super) async fn waits_for_worker(
    cx: &Context,
    id: &JobId,
) -> Result<Option<String>, CallError> {
    let (standing, found) = standing(cx, id).await?;
    let status = match &found {
        Found::V1(job) => job.status,
        Found::V2(info) => info.run_job.status,
        Found::Gone => return Ok(Some("the job is gone".to_owned())),
    };
    Ok(match (id, standing) {
        (_, Standing::Held) => None,
        // A booking ends after two minutes, and what counts is whose worker takes the job.
        (JobId::V1(_), _) if status == JobStatus::Waiting => None,
        (_, Standing::Free) => Some("CDS has put the job back into its queue".to_owned()),
        (_, Standing::Building | Standing::NotOurs) => Some(match found.worker() {
            Some(worker) if !status.is_final() => format!("worker {worker} is at the job"),
            _ => format!("the job is {status:?}"),
        }),
    })
}

fn of_v1(job: &v1::Job, service: i64) -> Standing {
    match job.status {
        JobStatus::Waiting if service != 0 && job.booked_by.id == service => Standing::Held,
        JobStatus::Waiting if job.booked_by.is_free() => Standing::Free,
        JobStatus::Building => Standing::Building,
        _ => Standing::NotOurs,
    }
}

fn of_v2(job: &v2::RunJob, hatchery: &str) -> Standing {
    let is_ours = job.hatchery_name == hatchery;
    match job.status {
        JobStatus::Scheduling if is_ours => Standing::Held,
        JobStatus::Waiting => Standing::Free,
        JobStatus::Building if is_ours => Standing::Building,
        _ => Standing::NotOurs,
    }
}

/// Gives the job back if it is still held by us without a worker: CDS would take it from any worker. Returns whether it was.
pub(super) async fn give_back(cx: &Context, id: &JobId) -> Result<bool, CallError> {
    if standing(cx, id).await?.0 != Standing::Held {
        return Ok(false);
    }
    match (id, cx.cds.v1(), cx.cds.v2()) {
        (JobId::V1(number), Some(client), _) => client.release(*number).await?,
        (JobId::V2(uuid), _, Some(client)) => client.release(uuid).await?,
        _ => return Ok(false),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_v1_job_is_held_by_whom_it_is_booked_by() {
        let job = |status, id| v1::Job {
            status,
            booked_by: v1::BookedBy { name: String::new(), id },
            ..v1::Job::default()
        };
        for (status, booked, wanted) in [
            (JobStatus::Waiting, 42, Standing::Held),
            (JobStatus::Waiting, 0, Standing::Free),
            (JobStatus::Waiting, 9, Standing::NotOurs),
            (JobStatus::Building, 42, Standing::Building),
            (JobStatus::Success, 42, Standing::NotOurs),
        ] {
            assert_eq!(of_v1(&job(status, booked), 42), wanted, "{status:?} {booked}");
        }
        assert_eq!(
            of_v1(&job(JobStatus::Waiting, 0), 0),
            Standing::Free,
            "an API without services"
        );
    }

    #[test]
    fn a_v2_job_is_held_while_it_is_scheduling_in_our_name() {
        let job = |status, name: &str| v2::RunJob {
            status,
            hatchery_name: name.into(),
            ..v2::RunJob::default()
        };
        for (status, name, wanted) in [
            (JobStatus::Scheduling, "h1", Standing::Held),
            (JobStatus::Scheduling, "h2", Standing::NotOurs),
            (JobStatus::Waiting, "", Standing::Free),
            (JobStatus::Building, "h1", Standing::Building),
            (JobStatus::Building, "h2", Standing::NotOurs),
            (JobStatus::Fail, "h1", Standing::NotOurs),
        ] {
            assert_eq!(of_v2(&job(status, name), "h1"), wanted, "{status:?} {name}");
        }
    }
}
