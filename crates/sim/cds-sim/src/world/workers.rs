use jiff::Timestamp;
use roost_cds::{JobId, JobStatus, WorkerStatus, v1, v2};

use super::{Who, World};
use crate::history::{DoubleWorker, JobEvent};
use crate::reply::Refusal;

#[derive(Debug, Clone)]
pub(crate) struct WorkerRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) status: WorkerStatus,
    pub(crate) last_beat: Timestamp,
    pub(crate) hatchery_name: String,
    pub(crate) model_name: String,
    pub(crate) purpose: WorkerFor,
    pub(crate) os: String,
    pub(crate) arch: String,
    pub(crate) version: String,
    /// A worker that signed in later for the same job. If this one is heard of once more, both were alive at once.
    rival: Option<String>,
}

/// What a worker was started for, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkerFor {
    V1Job { job: i64, service: Option<i64>, model: Option<i64> },
    V1Registration { service: Option<i64>, model: Option<i64> },
    V2Job { job: String, hatchery: String },
}

impl WorkerRow {
    pub(crate) fn job(&self) -> Option<JobId> {
        match &self.purpose {
            WorkerFor::V1Job { job, .. } => Some(JobId::V1(*job)),
            WorkerFor::V2Job { job, .. } => Some(JobId::V2(job.clone())),
            WorkerFor::V1Registration { .. } => None,
        }
    }

    /// `None` for a V2 worker.
    pub(crate) fn as_v1(&self) -> Option<v1::Worker> {
        let (service, model, job) = match &self.purpose {
            WorkerFor::V1Job { job, service, model } => (*service, *model, Some(*job)),
            WorkerFor::V1Registration { service, model } => (*service, *model, None),
            WorkerFor::V2Job { .. } => return None,
        };
        Some(v1::Worker {
            id: self.id.clone(),
            name: self.name.clone(),
            last_beat: Some(self.last_beat),
            model_id: model,
            model_name: self.model_name.clone(),
            job_run_id: job.filter(|_| self.status == WorkerStatus::Building),
            status: self.status,
            hatchery_id: service,
            hatchery_name: self.hatchery_name.clone(),
            up_to_date: true,
            version: self.version.clone(),
            os: self.os.clone(),
            arch: self.arch.clone(),
        })
    }

    /// `None` for a V1 worker.
    pub(crate) fn as_v2(&self) -> Option<v2::Worker> {
        let WorkerFor::V2Job { job, hatchery } = &self.purpose else { return None };
        Some(v2::Worker {
            id: self.id.clone(),
            name: self.name.clone(),
            last_beat: Some(self.last_beat),
            model_name: self.model_name.clone(),
            run_job_id: job.clone(),
            status: self.status,
            hatchery_id: hatchery.clone(),
            hatchery_name: self.hatchery_name.clone(),
            version: self.version.clone(),
            os: self.os.clone(),
            arch: self.arch.clone(),
        })
    }
}

/// A worker that signs in.
#[derive(Debug)]
pub(crate) struct NewWorker {
    pub(crate) name: String,
    pub(crate) hatchery_name: String,
    pub(crate) model_name: String,
    pub(crate) purpose: WorkerFor,
    pub(crate) os: String,
    pub(crate) arch: String,
    pub(crate) version: String,
}

impl World {
    /// A worker that signs in a second time, because it did not get the first answer, is still one worker.
    pub(crate) fn add_worker(&mut self, new: NewWorker) -> WorkerRow {
        let again = |row: &&WorkerRow| row.name == new.name && row.purpose == new.purpose;
        if let Some(row) = self.workers.values().find(again) {
            return row.clone();
        }
        let (id, last_beat) = (self.random.uuid(), self.now());
        let status = match new.purpose {
            WorkerFor::V1Registration { .. } => WorkerStatus::Registering,
            _ => WorkerStatus::Waiting,
        };
        let row = WorkerRow {
            id: id.clone(),
            name: new.name,
            status,
            last_beat,
            hatchery_name: new.hatchery_name,
            model_name: new.model_name,
            purpose: new.purpose,
            os: new.os,
            arch: new.arch,
            version: new.version,
            rival: None,
        };
        if let Some(job) = row.job() {
            for other in self.workers.values_mut() {
                if other.job().as_ref() == Some(&job) && other.status != WorkerStatus::Disabled {
                    other.rival.get_or_insert(id.clone());
                }
            }
            self.record(&job, JobEvent::WorkerSignedIn { worker: row.name.clone() });
        }
        self.workers.insert(id, row.clone());
        row
    }

    /// A worker made a call: it is alive.
    pub(crate) fn hear_worker(&mut self, id: &str) -> Result<WorkerRow, Refusal> {
        let now = self.now();
        let row = self.workers.get_mut(id).ok_or_else(|| Refusal::forbidden("unknown worker"))?;
        if row.status == WorkerStatus::Disabled {
            return Err(Refusal::forbidden("the worker is disabled"));
        }
        row.last_beat = now;
        let (row, rival) = (row.clone(), row.rival.take());
        if let Some(rival) = rival.and_then(|id| self.workers.get(&id))
            && let Some(job) = row.job()
        {
            self.doubles.push(DoubleWorker {
                at: now,
                job,
                workers: [row.name.clone(), rival.name.clone()],
                hatcheries: [row.hatchery_name.clone(), rival.hatchery_name.clone()],
            });
        }
        Ok(row)
    }

    /// Takes a worker off the list and ends its session.
    pub(crate) fn remove_worker(&mut self, id: &str) {
        let Some(row) = self.workers.remove(id) else { return };
        self.access.close_all_of(&Who::Worker(id.to_owned()));
        if let Some(job) = row.job() {
            self.record(&job, JobEvent::WorkerGone { worker: row.name });
        }
    }

    /// Disables a worker. The V1 job that it is building fails with it.
    pub(crate) fn disable_worker(&mut self, id: &str) -> Result<(), Refusal> {
        let row = self.workers.get_mut(id).ok_or_else(|| Refusal::not_found("worker not found"))?;
        let was_building = row.status == WorkerStatus::Building;
        row.status = WorkerStatus::Disabled;
        if let (true, WorkerFor::V1Job { job, .. }) = (was_building, row.purpose.clone()) {
            self.end_v1_job(job, JobStatus::Fail, "the worker was disabled");
        }
        Ok(())
    }
}
