use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::SpawnInfo;
use crate::{JobStatus, go_time};

/// A job in the V1 queue, as far as a hatchery reads it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Job {
    pub project_id: i64,
    pub id: i64,
    pub workflow_node_run_id: i64,
    pub status: JobStatus,
    pub retry: i64,
    #[serde(with = "go_time")]
    pub queued: Option<Timestamp>,
    pub model_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    #[serde(rename = "bookedby")]
    pub booked_by: BookedBy,
    pub job: ExecutedJob,
    pub exec_groups: Vec<Group>,
    /// Names for logs: `X-Workflow`, `X-Workflow-Run`, `X-Project-Key`.
    pub header: BTreeMap<String, String>,
    pub contains_service: bool,
    /// Whose worker took it; empty while nobody has.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hatchery_name: String,
    /// Which worker took it; empty while nobody has. See [`Job::worker`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub worker_name: String,
    #[serde(rename = "spawninfos")]
    pub spawn_infos: Vec<SpawnInfo>,
}

impl Job {
    pub fn requirements(&self) -> &[Requirement] {
        &self.job.action.requirements
    }

    /// Whether a hatchery may start a worker for it.
    pub fn is_free(&self) -> bool {
        self.status == JobStatus::Waiting && self.booked_by.is_free()
    }

    /// The worker that took it, if the API says so: older ones say it only within the pipeline job.
    pub fn worker(&self) -> Option<&str> {
        let names = [&self.worker_name, &self.job.worker_name];
        names.into_iter().map(String::as_str).find(|name| !name.is_empty())
    }

    /// The project's key, if the API said it.
    pub fn project_key(&self) -> &str {
        self.header.get("X-Project-Key").map_or("", String::as_str)
    }
}

/// The hatchery that holds a job; `{}` when none does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BookedBy {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub id: i64,
}

impl BookedBy {
    pub fn is_free(&self) -> bool {
        self.name.is_empty() && self.id == 0
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// The pipeline job behind a queued one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutedJob {
    pub pipeline_action_id: i64,
    pub enabled: bool,
    pub action: Action,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub worker_name: String,
}

/// What a job does and what it needs for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Action {
    pub id: i64,
    pub name: String,
    pub requirements: Vec<Requirement>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub id: i64,
    pub action_id: i64,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: RequirementType,
    pub value: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequirementType {
    #[default]
    Binary,
    Model,
    Hostname,
    Plugin,
    Service,
    Memory,
    OsArchitecture,
    Region,
    Secret,
    Flavor,
    #[serde(other)]
    Unknown,
}

/// Who may see a job or model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Group {
    pub id: i64,
    pub name: String,
}

impl Group {
    /// The group that everybody belongs to.
    pub const SHARED_INFRA: &str = "shared.infra";
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json as go_json;

    const WIRE: &str = r#"{ "project_id": 1, "id": 123, "workflow_node_run_id": 77, "status": "Waiting", "retry": 0,
  "queued": "2026-07-01T09:00:00Z", "model_type": "vsphere", "region": "eu-west",
  "bookedby": {"name": "h2", "id": 9},
  "job": { "pipeline_action_id": 5, "enabled": true,
           "action": { "id": 6, "name": "build", "requirements": [
             {"id":1,"action_id":6,"name":"git","type":"binary","value":"git"} ] } },
  "exec_groups": [ {"id": 1, "name": "shared.infra"} ],
  "header": {"X-Workflow":"w","X-Workflow-Run":"12","X-Project-Key":"P"},
  "contains_service": false, "spawninfos": null }"#;

    #[test]
    fn the_job_of_the_reference_is_read_and_written() {
        let job: Job = go_json::decode(WIRE.as_bytes()).unwrap();
        assert_eq!((job.id, job.status, job.is_free()), (123, JobStatus::Waiting, false));
        assert_eq!(job.booked_by, BookedBy { name: "h2".into(), id: 9 });
        assert_eq!(job.requirements()[0].kind, RequirementType::Binary);
        assert_eq!(job.project_key(), "P");
        let written: Value = serde_json::from_slice(&go_json::encode(&job)).unwrap();
        let mut wanted: Value = serde_json::from_str(WIRE).unwrap();
        wanted["spawninfos"] = json!([]);
        assert_eq!(written, wanted);
    }

    #[test]
    fn a_job_that_was_taken_names_its_worker() {
        for (wire, wanted) in [
            (
                r#"{"id":1,"worker_name":"keen-bohr","job":{"worker_name":"keen-bohr"}}"#,
                Some("keen-bohr"),
            ),
            (r#"{"id":1,"job":{"worker_name":"keen-bohr"}}"#, Some("keen-bohr")),
            (r#"{"id":1,"job":{"worker_name":""}}"#, None),
        ] {
            let job: Job = go_json::decode(wire.as_bytes()).unwrap();
            assert_eq!(job.worker(), wanted, "{wire}");
        }
    }

    #[test]
    fn a_free_job_without_region_is_read_and_written() {
        let wire = r#"{"id":1,"status":"Waiting","bookedby":{},"job":{"action":{"requirements":
            [{"name":"a","type":"os-architecture","value":"linux/amd64"},{"type":"teapot"}]}}}"#;
        let job: Job = go_json::decode(wire.as_bytes()).unwrap();
        assert!(job.is_free());
        let kinds: Vec<_> = job.requirements().iter().map(|r| r.kind).collect();
        assert_eq!(kinds, [RequirementType::OsArchitecture, RequirementType::Unknown]);
        let written: Value = serde_json::from_slice(&go_json::encode(&job)).unwrap();
        assert_eq!(written["bookedby"], json!({}));
        assert_eq!(written.get("region"), None);
    }
}
