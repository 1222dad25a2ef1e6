use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{WorkerStatus, go_time};

/// A worker that registered with the API. Its name is its VM's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    pub id: String,
    pub name: String,
    #[serde(rename = "lastbeat", with = "go_time")]
    pub last_beat: Option<Timestamp>,
    pub model_id: Option<i64>,
    pub model_name: String,
    pub job_run_id: Option<i64>,
    pub status: WorkerStatus,
    pub hatchery_id: Option<i64>,
    pub hatchery_name: String,
    #[serde(rename = "uptodate")]
    pub up_to_date: bool,
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
        let wire =
            br#"[{"id":"u-1","name":"keen-bohr","lastbeat":"2026-07-01T09:00:00Z","model_id":12,
            "model_name":"debian12","job_run_id":null,"status":"Waiting","hatchery_id":42,
            "hatchery_name":"h","uptodate":true,"version":"0.57.0","os":"linux","arch":"amd64"}]"#;
        let workers: Vec<Worker> = json::decode(wire).unwrap();
        assert_eq!(workers[0].name, "keen-bohr");
        assert_eq!((workers[0].model_id, workers[0].job_run_id), (Some(12), None));
        assert_eq!(workers[0].status, WorkerStatus::Waiting);
        assert_eq!(json::decode::<Vec<Worker>>(&json::encode(&workers)).unwrap(), workers);
    }
}
