use roost_cds::v2::{AsCodePath, JobInfo, Model, RunJob, RunsOn, WorkflowJob};
use roost_cds::{JobId, JobStatus};
use serde_json::json;

use super::{Event, Record, World};
use crate::demand::V2Demand;
use crate::history::JobEvent;
use crate::reply::Refusal;

#[derive(Debug)]
pub(crate) struct V2Row {
    pub(crate) job: RunJob,
    pub(crate) model: Model,
    /// Where it is in the queue.
    pub(crate) number: i64,
    pub(crate) releases: usize,
    /// The id of the worker that executes it.
    pub(crate) worker: Option<String>,
    pub(crate) record: Record,
    pub(crate) has_vanished: bool,
}

impl V2Row {
    pub(crate) fn info(&self) -> JobInfo {
        JobInfo { run_job: self.job.clone(), model: self.model.clone() }
    }
}

impl World {
    /// `None` when there is no such model: the API does not queue such a job.
    pub(crate) fn add_v2_job(&mut self, demand: V2Demand) -> Option<String> {
        let V2Demand { project_key, workflow, job, model, flavor, memory, region, work } = demand;
        let found = self.models.v2_at(&AsCodePath::parse(&model)?)?.clone();
        let (id, run) = (self.random.uuid(), self.random.uuid());
        let number = self.number();
        let job = RunJob {
            id: id.clone(),
            job_id: job,
            workflow_run_id: run,
            project_key,
            vcs_server: "github".to_owned(),
            repository: "org/repo".to_owned(),
            workflow_name: workflow,
            run_number: number,
            run_attempt: 1,
            status: JobStatus::Waiting,
            queued: Some(self.now()),
            region: region.clone(),
            model_type: found.model_type.clone(),
            model_os_arch: found.os_arch.clone(),
            job: WorkflowJob {
                runs_on: RunsOn { model, memory, flavor },
                region,
                steps: vec![json!({"run": work.script()})],
                ..WorkflowJob::default()
            },
            ..RunJob::default()
        };
        let row = V2Row {
            job,
            model: found,
            number,
            releases: 0,
            worker: None,
            record: Record::default(),
            has_vanished: false,
        };
        self.v2_jobs.insert(id.clone(), row);
        self.record(&JobId::V2(id.clone()), JobEvent::Queued);
        self.outbox.push(Event::V2(id.clone()));
        Some(id)
    }

    pub(crate) fn v2_job(&self, region: &str, id: &str) -> Result<&V2Row, Refusal> {
        if !matches!(JobId::parse(id), Some(JobId::V2(_))) {
            return Err(Refusal::new(
                500,
                1,
                format!("invalid input syntax for type uuid: {id:?}"),
            ));
        }
        let row = self.v2_jobs.get(id).filter(|row| !row.has_vanished);
        let row = row.ok_or_else(|| Refusal::not_found(format!("job {id} not found")))?;
        if row.job.region == region { Ok(row) } else { Err(Refusal::forbidden("another region")) }
    }

    pub(crate) fn v2_job_mut(&mut self, region: &str, id: &str) -> Result<&mut V2Row, Refusal> {
        self.v2_job(region, id)?;
        self.v2_jobs.get_mut(id).ok_or_else(|| Refusal::not_found(id))
    }

    /// Puts a V2 job back into the queue, at its old place: what it waited already counts.
    pub(crate) fn requeue_v2_job(&mut self, id: &str) {
        if let Some(row) = self.v2_jobs.get_mut(id) {
            row.job.status = JobStatus::Waiting;
            row.job.hatchery_name.clear();
            row.job.worker_name.clear();
            row.job.scheduled = None;
            row.worker = None;
            self.outbox.push(Event::V2(id.to_owned()));
        }
    }

    /// Ends a V2 job, once.
    pub(crate) fn end_v2_job(&mut self, id: &str, status: JobStatus, reason: &str) {
        let Some(row) = self.v2_jobs.get_mut(id).filter(|row| !row.job.status.is_final()) else {
            return;
        };
        row.job.status = status;
        row.worker = None;
        let event = JobEvent::Ended { status, reason: reason.to_owned() };
        self.record(&JobId::V2(id.to_owned()), event);
    }
}
