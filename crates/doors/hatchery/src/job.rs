//! One job, whichever queue it came from.

use jiff::Timestamp;
use roost_cds::v1::{self, Requirement, RequirementType};
use roost_cds::v2::{self, AsCodePath};
use roost_cds::{JobId, JobStatus};

use crate::config::{DefaultModel, Region};
use crate::refusal::Refusal;

/// What is known about a job that waits for a worker.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub id: JobId,
    pub queued: Option<Timestamp>,
    /// For fairness and messages: the project's key, or its number if V1 said no more.
    pub project: String,
    pub workflow: String,
    /// What a V2 job or a V1 requirement asks for.
    pub region: Option<String>,
    /// None for V2 jobs, which have no such list.
    pub requirements: Vec<Requirement>,
    pub model: ModelRequest,
    /// `runs-on.flavor` of a V2 job.
    pub flavor: Option<String>,
    /// Ids of the groups that may run it; empty for V2, where the API has seen to it.
    pub groups: Vec<i64>,
}

/// How the job names its worker model.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelRequest {
    /// A V2 job comes with its model.
    Embedded { path: String, model: Box<v2::Model> },
    /// A V1 job that names a model as code, to be fetched.
    AsCode(AsCodePath),
    /// A V1 job that names a V1 model: `name`, `group/name`, without options.
    Named(String),
    /// A V1 job that leaves it to us.
    Any,
}

impl Job {
    /// Reads a V1 job and sees whether it waits for a hatchery (2.3, steps 2 and 5).
    pub fn from_v1(job: &v1::Job) -> Result<Self, Refusal> {
        if job.status != JobStatus::Waiting {
            return Err(Refusal::NotWaiting { status: job.status });
        }
        if !job.booked_by.is_free() {
            let by = if job.booked_by.name.is_empty() {
                job.booked_by.id.to_string()
            } else {
                job.booked_by.name.clone()
            };
            return Err(Refusal::Booked { by });
        }
        if job.id <= 0 {
            return Err(Refusal::BadId { id: job.id.to_string() });
        }
        let requirements = job.requirements().to_vec();
        let value = |kind| first_value(&requirements, kind);
        let model =
            match value(RequirementType::Model).and_then(|text| text.split_whitespace().next()) {
                None => ModelRequest::Any,
                Some(text) => match AsCodePath::parse(text) {
                    Some(path) => ModelRequest::AsCode(path),
                    None => ModelRequest::Named(text.to_owned()),
                },
            };
        let project = match job.project_key() {
            "" => job.project_id.to_string(),
            key => key.to_owned(),
        };
        Ok(Self {
            id: JobId::V1(job.id),
            queued: job.queued,
            project,
            workflow: job.header.get("X-Workflow").cloned().unwrap_or_default(),
            region: value(RequirementType::Region)
                .map(str::to_owned)
                .or_else(|| job.region.clone()),
            model,
            flavor: None,
            groups: job.exec_groups.iter().map(|group| group.id).collect(),
            requirements,
        })
    }

    /// Reads a V2 job with its model (3.3, steps 1 and 3).
    pub fn from_v2(info: &v2::JobInfo) -> Result<Self, Refusal> {
        let job = &info.run_job;
        if job.status != JobStatus::Waiting {
            return Err(Refusal::NotWaiting { status: job.status });
        }
        let Some(id @ JobId::V2(_)) = JobId::parse(&job.id) else {
            return Err(Refusal::BadId { id: job.id.clone() });
        };
        let runs_on = &job.job.runs_on;
        if runs_on.model.trim().is_empty() {
            return Err(Refusal::NoModelNamed);
        }
        let memory = runs_on.memory.trim();
        if !memory.is_empty() && memory.parse::<i64>().is_err() {
            return Err(Refusal::BadMemory { memory: memory.to_owned() });
        }
        let filled = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        Ok(Self {
            id,
            queued: job.queued,
            project: job.project_key.clone(),
            workflow: job.workflow_name.clone(),
            region: filled(&job.region),
            requirements: Vec::new(),
            model: ModelRequest::Embedded {
                path: runs_on.model.trim().to_owned(),
                model: Box::new(info.model.clone()),
            },
            flavor: filled(&runs_on.flavor),
            groups: Vec::new(),
        })
    }

    pub fn requirement(&self, kind: RequirementType) -> Option<&str> {
        first_value(&self.requirements, kind)
    }

    /// The programs that a V1 job needs.
    pub fn binaries(&self) -> impl Iterator<Item = &str> {
        let binaries = self.requirements.iter().filter(|r| r.kind == RequirementType::Binary);
        binaries.map(|r| r.value.as_str())
    }

    /// Whether the job is for this hatchery's region (2.3, step 4, and the region rule of 2.4).
    ///
    /// Only V1 jobs are asked: for V2 the API gives out nothing but jobs of the region that it told us at sign-in. CDS's hatchery asks only
    /// when the model is a V1 one, and would run the job of another region on a V2 model.
    pub fn check_region(&self, ours: &Region) -> Result<(), Refusal> {
        if matches!(self.id, JobId::V2(_)) {
            return Ok(());
        }
        match &self.region {
            None if ours.ignore_jobs_without => Err(Refusal::NoRegion),
            None => Ok(()),
            Some(wanted) if ours.name.as_ref() == Some(wanted) => Ok(()),
            Some(wanted) => Err(Refusal::OtherRegion {
                wanted: wanted.clone(),
                ours: ours
                    .name
                    .as_ref()
                    .map_or_else(|| "none".to_owned(), |name| format!("{name:?}")),
            }),
        }
    }

    /// The V2 model for a V1 job that names none: the first entry for a job without binaries, else the first entry that has at least one of
    /// them.
    pub fn default_model<'a>(&self, models: &'a [DefaultModel]) -> Option<&'a AsCodePath> {
        if self.model != ModelRequest::Any {
            return None;
        }
        if self.binaries().next().is_none() {
            return models.first().map(|default| &default.model);
        }
        let has_one = |default: &&DefaultModel| {
            self.binaries().any(|binary| default.binaries.iter().any(|known| known == binary))
        };
        models.iter().find(has_one).map(|default| &default.model)
    }
}

fn first_value(requirements: &[Requirement], kind: RequirementType) -> Option<&str> {
    let first = requirements.iter().find(|requirement| requirement.kind == kind)?;
    Some(first.value.trim()).filter(|value| !value.is_empty())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn requirement(kind: RequirementType, value: &str) -> Requirement {
        Requirement { kind, name: value.into(), value: value.into(), ..Requirement::default() }
    }

    pub(crate) fn v1_job(requirements: &[(RequirementType, &str)]) -> Job {
        Job::from_v1(&wire(requirements)).unwrap()
    }

    fn wire(requirements: &[(RequirementType, &str)]) -> v1::Job {
        let mut job = v1::Job { id: 123, project_id: 1, ..v1::Job::default() };
        job.job.action.requirements =
            requirements.iter().map(|(kind, value)| requirement(*kind, value)).collect();
        job.exec_groups = vec![v1::Group { id: 1, name: "shared.infra".into() }];
        job
    }

    fn v2_wire(runs_on: &str) -> v2::JobInfo {
        let text = format!(
            r#"{{"runjob":{{"id":"0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e4","status":"Waiting","region":"default","project_key":"P",
                "workflow_name":"w","queued":"2026-07-01T09:00:00Z","job":{{"runs-on":{runs_on}}}}},
                "model":{{"name":"debian12","type":"vsphere","osarch":"linux/amd64","spec":{{"image":"debian12"}}}}}}"#
        );
        roost_cds::json::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn both_protocols_become_one_job() {
        let v1 = v1_job(&[
            (RequirementType::Model, "team/debian12 --privileged"),
            (RequirementType::Region, "eu"),
        ]);
        assert_eq!((v1.id.clone(), v1.project.as_str()), (JobId::V1(123), "1"));
        assert_eq!(v1.model, ModelRequest::Named("team/debian12".into()), "options are left out");
        assert_eq!((v1.region.as_deref(), v1.flavor, v1.groups), (Some("eu"), None, vec![1]));

        let full =
            r#"{"model":"P/github/org/repo/debian12@main","memory":"2048","flavor":"large"}"#;
        let v2 = Job::from_v2(&v2_wire(full)).unwrap();
        assert_eq!(v2.flavor.as_deref(), Some("large"));
        assert_eq!((v2.project.as_str(), v2.region.as_deref()), ("P", Some("default")));
        assert!(matches!(v2.model, ModelRequest::Embedded { .. }) && v2.requirements.is_empty());
        let plain = Job::from_v2(&v2_wire(r#""P/github/org/repo/debian12""#)).unwrap();
        assert_eq!(plain.flavor, None);
    }

    #[test]
    fn only_jobs_that_wait_for_a_hatchery_are_looked_at() {
        let mut job = wire(&[]);
        job.status = JobStatus::Building;
        assert_eq!(Job::from_v1(&job), Err(Refusal::NotWaiting { status: JobStatus::Building }));
        let mut job = wire(&[]);
        job.booked_by = v1::BookedBy { name: "h2".into(), id: 9 };
        assert_eq!(Job::from_v1(&job), Err(Refusal::Booked { by: "h2".into() }));
        assert_eq!(Job::from_v2(&v2_wire(r#""""#)), Err(Refusal::NoModelNamed));
        let odd =
            Job::from_v2(&v2_wire(r#"{"model":"m","memory":"much","flavor":""}"#)).unwrap_err();
        assert!(odd.counts_as_attempt(), "3.2: {odd}");
    }

    #[test]
    fn a_requirement_with_five_parts_is_a_model_as_code() {
        let job = v1_job(&[(RequirementType::Model, "P/github/org/repo/debian12@feature/x")]);
        let ModelRequest::AsCode(path) = job.model else { panic!("{:?}", job.model) };
        assert_eq!((path.repository.as_str(), path.branch.as_str()), ("org/repo", "feature/x"));
    }

    #[test]
    fn v1_jobs_of_other_regions_are_left_to_others() {
        let eu = Region { name: Some("eu".into()), ignore_jobs_without: false };
        let only_eu = Region { ignore_jobs_without: true, ..eu.clone() };
        let job = |region: Option<&str>| match region {
            Some(region) => v1_job(&[(RequirementType::Region, region)]),
            None => v1_job(&[]),
        };
        assert_eq!(job(Some("eu")).check_region(&eu), Ok(()));
        assert_eq!(job(None).check_region(&eu), Ok(()));
        assert_eq!(job(None).check_region(&only_eu), Err(Refusal::NoRegion));
        let other = job(Some("us")).check_region(&eu).unwrap_err();
        assert_eq!(other.to_string(), r#"the job wants region "us" and this hatchery is in "eu""#);
        assert!(job(Some("eu")).check_region(&Region::default()).is_err());
        let v2 = Job::from_v2(&v2_wire(r#""P/github/org/repo/debian12""#)).unwrap();
        assert_eq!(v2.check_region(&only_eu), Ok(()), "the API decides");
    }

    #[test]
    fn s_6_8_the_default_model_goes_by_binaries() {
        use RequirementType::{Binary, Model};
        let default = |name: &str, binaries: &[&str]| DefaultModel {
            model: AsCodePath::parse(&format!("P/github/org/repo/{name}")).unwrap(),
            binaries: binaries.iter().map(|binary| (*binary).to_owned()).collect(),
        };
        let models = [
            default("first", &["git"]),
            default("second", &["make", "go"]),
            default("third", &["go"]),
        ];
        let name = |requirements: &[(RequirementType, &str)]| {
            v1_job(requirements).default_model(&models).map(|path| path.name.clone())
        };
        assert_eq!(name(&[]).as_deref(), Some("first"), "no binary at all");
        assert_eq!(name(&[(Binary, "go")]).as_deref(), Some("second"));
        assert_eq!(
            name(&[(Binary, "cargo"), (Binary, "git")]).as_deref(),
            Some("first"),
            "one is enough"
        );
        assert_eq!(name(&[(Binary, "cargo")]), None);
        assert_eq!(name(&[(Model, "debian12")]), None, "the job names one");
        assert_eq!(v1_job(&[]).default_model(&[]), None);
    }
}
