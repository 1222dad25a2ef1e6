use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{GoDuration, JobStatus, go_time};

/// A line in a job's log about its worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnInfo {
    #[serde(with = "go_time::seconds")]
    pub remote_time: Timestamp,
    pub message: Message,
}

/// A text that the API has by this id, and what to fill in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    pub id: String,
    pub args: Vec<String>,
}

impl SpawnInfo {
    fn new<const N: usize>(now: Timestamp, id: &str, args: [String; N]) -> Self {
        Self { remote_time: now, message: Message { id: id.to_owned(), args: args.into() } }
    }

    pub fn hatchery_starts(now: Timestamp, hatchery: &str, worker: &str, model: &str) -> Self {
        Self::new(now, "MsgSpawnInfoHatcheryStarts", [hatchery, worker, model].map(Into::into))
    }

    pub fn spawn_failed(
        now: Timestamp,
        hatchery: &str,
        model: &str,
        after: Duration,
        error: &str,
    ) -> Self {
        let after = GoDuration(after).to_string();
        let args = [hatchery, model, &after, error].map(Into::into);
        Self::new(now, "MsgSpawnInfoHatcheryErrorSpawn", args)
    }

    pub fn deprecated_model(now: Timestamp, model: &str) -> Self {
        Self::new(now, "MsgSpawnInfoDeprecatedModel", [model.to_owned()])
    }
}

/// How a job ended: from its worker, or from a hatchery that gives up on a waiting one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobResult {
    pub id: i64,
    #[serde(rename = "buildID")]
    pub build_id: i64,
    pub status: JobStatus,
    #[serde(default)]
    pub reason: String,
    #[serde(rename = "remoteTime", with = "go_time::seconds")]
    pub remote_time: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    fn text<T: Serialize + ?Sized>(value: &T) -> String {
        String::from_utf8(json::encode(value)).unwrap()
    }

    #[test]
    fn spawn_infos_are_written_as_the_reference_shows_them() {
        let now = "2026-07-01T09:00:00.7Z".parse().unwrap();
        assert_eq!(
            text(&[SpawnInfo::hatchery_starts(now, "h", "w", "shared.infra/m")]),
            concat!(
                r#"[{"remote_time":"2026-07-01T09:00:00Z","message":"#,
                r#"{"id":"MsgSpawnInfoHatcheryStarts","args":["h","w","shared.infra/m"]}}]"#
            )
        );
        let failed = SpawnInfo::spawn_failed(now, "h", "m", Duration::from_millis(12_300), "no IP");
        assert_eq!(failed.message.id, "MsgSpawnInfoHatcheryErrorSpawn");
        assert_eq!(failed.message.args, ["h", "m", "12s", "no IP"]);
        let deprecated = SpawnInfo::deprecated_model(now, "m");
        assert_eq!(deprecated.message.id, "MsgSpawnInfoDeprecatedModel");
    }

    #[test]
    fn a_failing_result_is_written_as_the_reference_shows_it() {
        let result = JobResult {
            id: 123,
            build_id: 123,
            status: JobStatus::Fail,
            reason: "hatchery \"h\" failed to start worker after 5 attempts".into(),
            remote_time: "2026-07-01T09:00:00Z".parse().unwrap(),
        };
        assert_eq!(
            text(&result),
            concat!(
                r#"{"id":123,"buildID":123,"status":"Fail","#,
                r#""reason":"hatchery \"h\" failed to start worker after 5 attempts","#,
                r#""remoteTime":"2026-07-01T09:00:00Z"}"#
            )
        );
    }
}
