use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Model, RunsOn};
use crate::{JobStatus, go_time};

/// A job with the worker model that it runs on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobInfo {
    #[serde(rename = "runjob")]
    pub run_job: RunJob,
    pub model: Model,
}

/// A job in the V2 queue, as far as a hatchery and a worker read it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunJob {
    pub id: String,
    pub job_id: String,
    pub workflow_run_id: String,
    pub project_key: String,
    pub vcs_server: String,
    pub repository: String,
    pub workflow_name: String,
    pub run_number: i64,
    pub run_attempt: i64,
    pub retry: i64,
    pub status: JobStatus,
    #[serde(with = "go_time")]
    pub queued: Option<Timestamp>,
    #[serde(with = "go_time")]
    pub scheduled: Option<Timestamp>,
    pub worker_name: String,
    pub hatchery_name: String,
    pub region: String,
    pub model_type: String,
    #[serde(rename = "model_osarch")]
    pub model_os_arch: String,
    pub job: WorkflowJob,
}

/// The job as the workflow's author wrote it, with variables filled in.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkflowJob {
    #[serde(rename = "runs-on")]
    pub runs_on: RunsOn,
    pub region: String,
    pub steps: Vec<Value>,
    pub services: BTreeMap<String, Value>,
}

/// A line in a job's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunJobInfo {
    pub level: InfoLevel,
    pub message: String,
    #[serde(with = "go_time::seconds")]
    pub time: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InfoLevel {
    Info,
    Warning,
    Error,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    const WIRE: &str = r#"{ "runjob": {
    "id": "0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e4", "job_id": "build", "workflow_run_id": "r", "project_key": "P", "vcs_server": "github",
    "repository": "org/repo", "workflow_name": "w", "run_number": 12, "run_attempt": 1, "retry": 0, "status": "Waiting",
    "queued": "2026-07-01T09:00:00Z", "scheduled": null, "worker_name": "", "hatchery_name": "",
    "region": "default", "model_type": "vsphere", "model_osarch": "linux/amd64", "steps_status": {},
    "job": { "runs-on": {"model":"P/github/org/repo/debian12@refs/heads/master","memory":"","flavor":"large"},
             "region": "default", "steps": [], "services": {} },
    "initiator": {} },
  "model": { "name": "debian12", "description": "", "osarch": "linux/amd64", "type": "vsphere",
             "spec": {"image":"debian12","flavor":"","username":"","password":""} } }"#;

    #[test]
    fn the_job_of_the_reference_is_read() {
        let info: JobInfo = json::decode(WIRE.as_bytes()).unwrap();
        assert_eq!(info.run_job.status, JobStatus::Waiting);
        assert_eq!(info.run_job.scheduled, None);
        assert_eq!(info.run_job.job.runs_on.flavor, "large");
        assert_eq!(info.model.vsphere_spec().unwrap().image, "debian12");
        assert_eq!(json::decode::<JobInfo>(&json::encode(&info)).unwrap(), info);
    }

    #[test]
    fn an_info_is_written_as_the_reference_shows_it() {
        let info = RunJobInfo {
            level: InfoLevel::Warning,
            message: "text".into(),
            time: "2026-07-01T09:00:00.123Z".parse().unwrap(),
        };
        assert_eq!(
            String::from_utf8(json::encode(&info)).unwrap(),
            r#"{"level":"warning","message":"text","time":"2026-07-01T09:00:00Z"}"#
        );
    }
}
