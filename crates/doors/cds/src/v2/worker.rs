use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{WorkerStatus, go_time};

/// A worker that registered with the API. Its name is its VM's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    pub id: String,
    pub name: String,
    #[serde(with = "go_time")]
    pub last_beat: Option<Timestamp>,
    pub model_name: String,
    pub run_job_id: String,
    pub status: WorkerStatus,
    pub hatchery_id: String,
    pub hatchery_name: String,
    pub version: String,
    pub os: String,
    pub arch: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_worker_list_is_read() {
        let wire = br#"[{"id":"u-1","name":"keen-bohr","last_beat":"2026-07-01T09:00:00Z",
            "model_name":"P/github/org/repo/debian12","run_job_id":"j-1","status":"Building",
            "hatchery_id":"h-1","hatchery_name":"h","version":"","os":"linux","arch":"amd64"}]"#;
        let workers: Vec<Worker> = json::decode(wire).unwrap();
        assert_eq!(workers[0].status, WorkerStatus::Building);
        assert_eq!(json::decode::<Vec<Worker>>(&json::encode(&workers)).unwrap(), workers);
    }
}
