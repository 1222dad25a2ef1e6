use serde::{Deserialize, Serialize};

/// A frame of the V2 websocket: this job waits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobQueued {
    pub job_run_id: String,
    pub region: String,
    pub model_type: String,
    #[serde(rename = "model_osarch")]
    pub model_os_arch: String,
    pub project_key: String,
    pub workflow_name: String,
    pub job_id: String,
    pub run_number: i64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_frame_is_read_and_written_as_the_reference_shows_it() {
        let wire = concat!(
            r#"{"job_run_id":"u-1","region":"default","model_type":"vsphere","model_osarch":"linux/amd64","#,
            r#""project_key":"P","workflow_name":"w","job_id":"build","run_number":12}"#
        );
        let frame: JobQueued = json::decode(wire.as_bytes()).unwrap();
        assert_eq!(frame.job_run_id, "u-1");
        assert_eq!(String::from_utf8(json::encode(&frame)).unwrap(), wire);
    }
}
