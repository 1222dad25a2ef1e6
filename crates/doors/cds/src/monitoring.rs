use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::go_time;

/// How a service is, as heartbeats and `/mon/status` say it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitoringStatus {
    #[serde(with = "go_time")]
    pub now: Option<Timestamp>,
    pub lines: Option<Vec<MonitoringLine>>,
}

impl MonitoringStatus {
    pub fn new(now: Timestamp, lines: Vec<MonitoringLine>) -> Self {
        Self { now: Some(now), lines: Some(lines) }
    }

    /// The worst of its lines; `OK` without any.
    pub fn level(&self) -> Level {
        self.lines.iter().flatten().map(|line| line.status).max().unwrap_or_default()
    }
}

/// One fact about a service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MonitoringLine {
    pub status: Level,
    pub component: String,
    pub value: String,
    /// The service's type, such as `hatchery`.
    #[serde(rename = "type")]
    pub service_type: String,
    /// The service's name.
    pub service: String,
    pub hostname: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub consumer: String,
}

/// Ordered from good to bad.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub enum Level {
    #[default]
    #[serde(rename = "OK")]
    Ok,
    #[serde(rename = "WARN")]
    Warn,
    #[serde(rename = "AL")]
    Alert,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;

    #[test]
    fn a_status_is_written_as_the_reference_shows_it() {
        let line = |component: &str, value: &str| MonitoringLine {
            component: component.into(),
            value: value.into(),
            service_type: "hatchery".into(),
            service: "my-vsphere-hatchery".into(),
            hostname: "h1".into(),
            ..MonitoringLine::default()
        };
        let lines = vec![line("Version", "0.57.0"), line("Workers", "3/10")];
        let status = MonitoringStatus::new("2026-07-01T09:14:21+02:00".parse().unwrap(), lines);
        let wire = concat!(
            r#"{"now":"2026-07-01T07:14:21Z","lines":["#,
            r#"{"status":"OK","component":"Version","value":"0.57.0","type":"hatchery","#,
            r#""service":"my-vsphere-hatchery","hostname":"h1"},"#,
            r#"{"status":"OK","component":"Workers","value":"3/10","type":"hatchery","#,
            r#""service":"my-vsphere-hatchery","hostname":"h1"}]}"#
        );
        assert_eq!(String::from_utf8(json::encode(&status)).unwrap(), wire);
        assert_eq!(json::decode::<MonitoringStatus>(wire.as_bytes()).unwrap(), status);
    }

    #[test]
    fn a_status_without_content_is_the_one_of_the_sign_in() {
        assert_eq!(
            String::from_utf8(json::encode(&MonitoringStatus::default())).unwrap(),
            r#"{"now":"0001-01-01T00:00:00Z","lines":null}"#
        );
    }

    #[test]
    fn the_level_is_that_of_the_worst_line() {
        let mut status = MonitoringStatus::default();
        assert_eq!(status.level(), Level::Ok);
        let levels = [Level::Warn, Level::Alert, Level::Ok];
        let line = |status| MonitoringLine { status, ..MonitoringLine::default() };
        status.lines = Some(levels.map(line).to_vec());
        assert_eq!(status.level(), Level::Alert);
    }
}
