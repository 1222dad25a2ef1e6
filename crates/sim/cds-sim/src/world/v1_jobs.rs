use jiff::Timestamp;
use roost_cds::v1::{Action, BookedBy, ExecutedJob, Group, Job, Requirement, RequirementType};
use roost_cds::{JobId, JobStatus, v2};

use super::{Event, Record, World};
use crate::demand::{V1Demand, Work};
use crate::history::JobEvent;
use crate::reply::Refusal;

#[derive(Debug)]
pub(crate) struct V1Row {
    pub(crate) job: Job,
    pub(crate) work: Work,
    pub(crate) booking: Option<V1Booking>,
    /// The id of the worker that executes it.
    pub(crate) worker: Option<String>,
    pub(crate) record: Record,
    pub(crate) ended: Option<Timestamp>,
    /// It is not in the API's tables any more: it was purged, or a fault took it.
    pub(crate) has_vanished: bool,
}

/// Who may ask about a job is found out by loading it, so one that does not exist is refused like one of others.
fn unknown(id: i64) -> Refusal {
    Refusal::forbidden(format!("unable to load job {id}"))
}

#[derive(Debug, Clone)]
pub(crate) struct V1Booking {
    pub(crate) service: i64,
    pub(crate) name: String,
    pub(crate) until: Timestamp,
}

impl V1Row {
    pub(crate) fn holder(&self, now: Timestamp) -> Option<&V1Booking> {
        self.booking.as_ref().filter(|booking| now < booking.until)
    }

    /// The job as the API shows it now.
    pub(crate) fn shown(&self, now: Timestamp) -> Job {
        let booked_by = self.holder(now).map_or_else(BookedBy::default, |booking| BookedBy {
            name: booking.name.clone(),
            id: booking.service,
        });
        Job { booked_by, ..self.job.clone() }
    }
}

impl World {
    pub(crate) fn add_v1_job(&mut self, demand: V1Demand) -> i64 {
        let (id, now) = (self.number(), self.now());
        let V1Demand { project_id, project_key, name, mut requirements, groups, work } = demand;
        let value = |kind| {
            let found =
                requirements.iter().find(|requirement: &&Requirement| requirement.kind == kind);
            found.map(|requirement| requirement.value.clone())
        };
        let (model, region) = (value(RequirementType::Model), value(RequirementType::Region));
        if model.is_none() && value(RequirementType::OsArchitecture).is_none() {
            requirements.push(Requirement {
                name: "linux/amd64".to_owned(),
                kind: RequirementType::OsArchitecture,
                value: "linux/amd64".to_owned(),
                ..Requirement::default()
            });
        }
        let header = [
            ("X-Workflow", "w".to_owned()),
            ("X-Workflow-Run", id.to_string()),
            ("X-Project-Key", project_key),
        ];
        let groups = std::iter::once(Group::SHARED_INFRA.to_owned()).chain(groups);
        let job = Job {
            project_id,
            id,
            workflow_node_run_id: id,
            status: JobStatus::Waiting,
            queued: Some(now),
            model_type: self.type_of_model(model.as_deref()),
            region,
            job: ExecutedJob {
                pipeline_action_id: 5,
                enabled: true,
                action: Action { id: 6, name, requirements },
                worker_name: String::new(),
            },
            exec_groups: (1..).zip(groups).map(|(id, name)| Group { id, name }).collect(),
            header: header.map(|(name, value)| (name.to_owned(), value)).into(),
            ..Job::default()
        };
        let row = V1Row {
            job,
            work,
            booking: None,
            worker: None,
            record: Record::default(),
            ended: None,
            has_vanished: false,
        };
        self.v1_jobs.insert(id, row);
        self.record(&JobId::V1(id), JobEvent::Queued);
        self.outbox.push(Event::V1(id));
        id
    }

    /// Empty when the job asks for no model, or for one that does not exist.
    fn type_of_model(&self, model: Option<&str>) -> String {
        let model = model.unwrap_or_default();
        let as_code = v2::AsCodePath::parse(model).and_then(|path| self.models.v2_at(&path));
        let found = as_code.map(|model| model.model_type.as_str());
        found.or_else(|| self.models.v1_type(model)).unwrap_or_default().to_owned()
    }

    pub(crate) fn v1_job(&self, id: i64) -> Result<&V1Row, Refusal> {
        let row = self.v1_jobs.get(&id).filter(|row| !row.has_vanished);
        row.ok_or_else(|| unknown(id))
    }

    pub(crate) fn v1_job_mut(&mut self, id: i64) -> Result<&mut V1Row, Refusal> {
        let row = self.v1_jobs.get_mut(&id).filter(|row| !row.has_vanished);
        row.ok_or_else(|| unknown(id))
    }

    /// Ends a V1 job, once.
    pub(crate) fn end_v1_job(&mut self, id: i64, status: JobStatus, reason: &str) {
        let now = self.now();
        let Ok(row) = self.v1_job_mut(id) else { return };
        if row.job.status.is_final() {
            return;
        }
        row.job.status = status;
        row.booking = None;
        row.worker = None;
        row.ended = Some(now);
        self.record(&JobId::V1(id), JobEvent::Ended { status, reason: reason.to_owned() });
    }
}
