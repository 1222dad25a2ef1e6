//! What CDS's operators know from its services, in JSON exactly as CDS writes it; and the checks behind `/livez` and `/readyz`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// `/mon/status`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MonitoringView {
    pub now: Timestamp,
    pub lines: Vec<MonitoringLineView>,
}

impl MonitoringView {
    /// The worst of its lines; `OK` without any.
    pub fn level(&self) -> LevelView {
        self.lines.iter().map(|line| line.status).max().unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MonitoringLineView {
    pub status: LevelView,
    pub component: String,
    pub value: String,
    /// The service's type, such as `hatchery`.
    #[serde(rename = "type")]
    pub service_type: String,
    pub service: String,
    pub hostname: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub consumer: String,
}

/// Ordered from good to bad.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum LevelView {
    #[default]
    #[serde(rename = "OK")]
    Ok,
    #[serde(rename = "WARN")]
    Warn,
    #[serde(rename = "AL")]
    Alert,
}

impl LevelView {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Alert => "AL",
        }
    }
}

/// `/mon/version`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VersionView {
    pub version: String,
    pub architecture: String,
    pub os: String,
    pub git_hash: String,
    pub build_time: String,
    /// Only CDS services with a database have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub db_migrate: Option<String>,
}

/// Checks of which all must hold.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Health {
    pub checks: Vec<CheckView>,
}

impl Health {
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckView {
    /// Short and without spaces, such as `inventory`.
    pub name: String,
    pub ok: bool,
    /// How it stands, for people. May be empty.
    pub words: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_as_cds_writes_it() {
        let status = MonitoringView {
            now: "2026-07-01T09:14:21+02:00".parse().unwrap(),
            lines: vec![MonitoringLineView {
                component: "Workers".into(),
                value: "3/10".into(),
                service_type: "hatchery".into(),
                service: "my-vsphere-hatchery".into(),
                hostname: "h1".into(),
                ..MonitoringLineView::default()
            }],
        };
        let wire = concat!(
            r#"{"now":"2026-07-01T07:14:21Z","lines":["#,
            r#"{"status":"OK","component":"Workers","value":"3/10","type":"hatchery","#,
            r#""service":"my-vsphere-hatchery","hostname":"h1"}]}"#
        );
        assert_eq!(serde_json::to_string(&status).unwrap(), wire);
        assert_eq!(serde_json::from_str::<MonitoringView>(wire).unwrap(), status);
    }

    #[test]
    fn one_alert_makes_the_whole_an_alert() {
        let lines = [LevelView::Warn, LevelView::Alert, LevelView::Ok];
        let line = |status| MonitoringLineView { status, ..MonitoringLineView::default() };
        let now = Timestamp::UNIX_EPOCH;
        assert_eq!(MonitoringView { now, lines: vec![] }.level(), LevelView::Ok);
        let status = MonitoringView { now, lines: lines.map(line).to_vec() };
        assert_eq!(status.level(), LevelView::Alert);
    }

    #[test]
    fn health_holds_while_every_check_does() {
        let check = |ok| CheckView { name: "c".into(), ok, words: String::new() };
        assert!(Health::default().holds());
        assert!(Health { checks: vec![check(true), check(true)] }.holds());
        assert!(!Health { checks: vec![check(true), check(false)] }.holds());
    }
}
