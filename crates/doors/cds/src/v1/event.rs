use serde::{Deserialize, Serialize};

use crate::{HATCHERY_TYPE, JobStatus};

/// What a client of the V1 websocket wants to hear. Must be sent anew on every connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventFilter {
    #[serde(rename = "type")]
    pub filter_type: String,
    pub project_key: String,
    pub application_name: String,
    pub pipeline_name: String,
    pub environment_name: String,
    pub workflow_name: String,
    pub workflow_run_num: i64,
    pub workflow_node_run_id: i64,
    pub operation_uuid: String,
    pub hatchery_type: String,
}

impl EventFilter {
    pub const QUEUE: &str = "queue";

    /// Jobs that a hatchery of this type may want.
    pub fn queue() -> Self {
        Self {
            filter_type: Self::QUEUE.to_owned(),
            hatchery_type: HATCHERY_TYPE.to_owned(),
            ..Self::default()
        }
    }
}

/// One frame from the server: an event, or why a filter was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventMessage {
    pub status: String,
    pub error: String,
    pub event: Event,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Event {
    pub type_event: String,
    pub project_key: String,
    pub workflow_name: String,
    pub status: Option<JobStatus>,
    pub region: String,
    pub model_type: String,
    pub payload: EventPayload,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventPayload {
    pub id: i64,
    pub status: Option<JobStatus>,
    pub start: i64,
}

impl Event {
    pub const JOB: &str = "sdk.EventRunWorkflowJob";

    /// The id of a job that waits, and that workers of our type might do. A consumer of an administrator gets every event of
    /// every hatchery type, so the server's filter is not relied upon.
    pub fn waiting_job(&self) -> Option<i64> {
        let ours = self.model_type.is_empty() || self.model_type == HATCHERY_TYPE;
        (self.type_event == Self::JOB && self.status == Some(JobStatus::Waiting) && ours)
            .then_some(self.payload.id)
            .filter(|id| *id > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn the_filter_is_the_one_of_the_reference() {
        assert_eq!(
            String::from_utf8(json::encode(&[EventFilter::queue()])).unwrap(),
            concat!(
                r#"[{"type":"queue","project_key":"","application_name":"","pipeline_name":"","#,
                r#""environment_name":"","workflow_name":"","workflow_run_num":0,"#,
                r#""workflow_node_run_id":0,"operation_uuid":"","hatchery_type":"vsphere"}]"#
            )
        );
    }

    #[test]
    fn only_waiting_jobs_of_our_type_are_heard() {
        let frame = |kind: &str, status: &str, model: &str| {
            let frame = format!(
                r#"{{"status":"OK","error":"","event":{{"timestamp":"2026-07-01T09:00:00Z","hostname":"a",
                "type_event":"{kind}","payload":{{"id":123,"status":"Waiting","start":-62135596800}},
                "attempt":0,"status":"{status}","model_type":"{model}","event_integrations_id":null}}}}"#
            );
            json::decode::<EventMessage>(frame.as_bytes()).unwrap().event.waiting_job()
        };
        assert_eq!(frame("sdk.EventRunWorkflowJob", "Waiting", "vsphere"), Some(123));
        assert_eq!(frame("sdk.EventRunWorkflowJob", "Waiting", ""), Some(123));
        assert_eq!(frame("sdk.EventRunWorkflowJob", "Building", "vsphere"), None);
        assert_eq!(frame("sdk.EventRunWorkflowJob", "Waiting", "docker"), None);
        assert_eq!(frame("sdk.EventRunWorkflow", "Waiting", ""), None);
    }

    #[test]
    fn a_refused_filter_is_understood() {
        let wire = br#"{"status":"KO","error":"bad filter","event":{"payload":null}}"#;
        let message: EventMessage = json::decode(wire).unwrap();
        assert_eq!((message.status.as_str(), message.error.as_str()), ("KO", "bad filter"));
    }
}
