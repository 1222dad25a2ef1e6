//! `/mon/status`: the lines of reference 1.8 in their order, and a few of our own behind them.

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use roost_cds::{GoDuration, Level, MonitoringLine, MonitoringStatus};

/// The names of CDS's background tasks, kept for those who watch them.
pub mod task {
    pub const V2_QUEUE: &str = "V2QueuePolling";
    pub const V1_QUEUE: &str = "queuePolling";
    pub const MAIN: &str = "mainRoutine";
    pub const PROVISIONING: &str = "hatchery-vsphere-provisioning";
    pub const CLEANUP: &str = "hatchery-vsphere-kill-awol-servers";
    pub const DISABLED: &str = "hatchery-vsphere-kill-disable-workers";
    pub const METRICS: &str = "hatchery-vsphere-metrics";
}

/// What the status is made from.
#[derive(Debug, Clone)]
pub struct StatusFacts<'a> {
    pub version: &'a str,
    /// What CDS is told as ours: it warns of every hatchery whose version is not its own, and compares nothing else with it.
    pub cds_version: Option<&'a str>,
    pub service: &'a str,
    pub hostname: &'a str,
    pub uptime: Duration,
    pub now: Timestamp,
    pub tasks: &'a [TaskState<'a>],
    /// VMs that count as workers; `None` while the inventory cannot be counted on.
    pub workers: Option<usize>,
    /// `None`: no limit.
    pub max_workers: Option<u32>,
    /// All VMs of the datacenter; `None` while the inventory cannot be counted on.
    pub vms: Option<usize>,
    /// Ours: what else an operator should see.
    pub more: &'a [(Level, &'a str, String)],
}

/// A supervised background task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskState<'a> {
    pub name: &'a str,
    pub is_running: bool,
    /// How long nothing was heard of it, if it hangs.
    pub silent: Option<Duration>,
}

pub fn status(facts: &StatusFacts<'_>) -> MonitoringStatus {
    let line = |status: Level, component: &str, value: String| MonitoringLine {
        status,
        component: component.to_owned(),
        value,
        service_type: "hatchery".to_owned(),
        service: facts.service.to_owned(),
        hostname: facts.hostname.to_owned(),
        ..MonitoringLine::default()
    };
    let mut lines = vec![
        line(Level::Ok, "Version", facts.cds_version.unwrap_or(facts.version).to_owned()),
        line(Level::Ok, "Uptime", GoDuration(facts.uptime).to_string()),
        line(Level::Ok, "Time", rfc3339(facts.now)),
    ];
    lines.extend(facts.tasks.iter().map(|task| {
        let (status, value) = match (task.is_running, task.silent) {
            (false, _) => (Level::Alert, "NOT running".to_owned()),
            (true, Some(silent)) => {
                (Level::Alert, format!("hangs: no progress for {} s", silent.as_secs()))
            }
            (true, None) => (Level::Ok, "Running".to_owned()),
        };
        line(status, &format!("goroutine/{}", task.name), value)
    }));
    let limit = facts.max_workers.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
    lines.push(match facts.workers {
        Some(workers) => line(Level::Ok, "Workers", format!("{workers}/{limit}")),
        None => line(Level::Warn, "Workers", format!("?/{limit}")),
    });
    lines.push(match facts.vms {
        Some(vms) => line(Level::Ok, "VirtualMachines", vms.to_string()),
        None => line(Level::Alert, "VirtualMachines", "Error listing".to_owned()),
    });
    lines.push(line(Level::Ok, "Roost", facts.version.to_owned()));
    lines.extend(
        facts.more.iter().map(|(level, component, value)| line(*level, component, value.clone())),
    );
    MonitoringStatus::new(facts.now, lines)
}

/// Whether the answer is 503: any alert makes it so.
pub fn is_unavailable(status: &MonitoringStatus) -> bool {
    status.level() == Level::Alert
}

fn rfc3339(time: Timestamp) -> String {
    strtime::format("%Y-%m-%dT%H:%M:%SZ", &time.to_zoned(TimeZone::UTC))
        .unwrap_or_else(|_| time.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts<'a>(tasks: &'a [TaskState<'a>]) -> StatusFacts<'a> {
        StatusFacts {
            version: "0.1.0",
            cds_version: None,
            service: "h1",
            hostname: "host",
            uptime: Duration::from_secs(3_725),
            now: Timestamp::constant(1_780_272_000, 500_000_000),
            tasks,
            workers: Some(3),
            max_workers: Some(10),
            vms: Some(120),
            more: &[],
        }
    }

    fn seen(facts: &StatusFacts<'_>) -> Vec<(Level, String, String)> {
        let lines = status(facts).lines.unwrap();
        lines.into_iter().map(|line| (line.status, line.component, line.value)).collect()
    }

    #[test]
    fn reference_1_8_lines_in_order() {
        let tasks = [
            TaskState { name: task::MAIN, is_running: true, silent: None },
            TaskState { name: task::CLEANUP, is_running: false, silent: None },
        ];
        let more = [(Level::Warn, "Deletion", "frozen: 7 of 10 VMs".to_owned())];
        let facts = StatusFacts { more: &more, ..facts(&tasks) };
        let wanted = [
            (Level::Ok, "Version", "0.1.0"),
            (Level::Ok, "Uptime", "1h2m5s"),
            (Level::Ok, "Time", "2026-06-01T00:00:00Z"),
            (Level::Ok, "goroutine/mainRoutine", "Running"),
            (Level::Alert, "goroutine/hatchery-vsphere-kill-awol-servers", "NOT running"),
            (Level::Ok, "Workers", "3/10"),
            (Level::Ok, "VirtualMachines", "120"),
            (Level::Ok, "Roost", "0.1.0"),
            (Level::Warn, "Deletion", "frozen: 7 of 10 VMs"),
        ];
        let wanted =
            wanted.map(|(level, component, value)| (level, component.to_owned(), value.to_owned()));
        assert_eq!(seen(&facts), wanted);
        assert!(is_unavailable(&status(&facts)));
    }

    /// CDS warns of every hatchery whose `Version` is not its own, for good.
    #[test]
    fn cds_is_told_its_own_version_and_ours_has_a_line_of_its_own() {
        let facts = StatusFacts { cds_version: Some("0.57.0"), ..facts(&[]) };
        let lines = seen(&facts);
        assert_eq!(lines[0], (Level::Ok, "Version".into(), "0.57.0".into()));
        assert!(lines.contains(&(Level::Ok, "Roost".into(), "0.1.0".into())));
    }

    #[test]
    fn without_a_limit_it_says_unlimited() {
        let facts = StatusFacts { max_workers: None, ..facts(&[]) };
        assert!(seen(&facts).contains(&(Level::Ok, "Workers".into(), "3/unlimited".into())));
        assert!(!is_unavailable(&status(&facts)));
    }

    #[test]
    fn an_inventory_that_cannot_be_counted_on_is_an_alert_and_never_a_zero() {
        let facts = StatusFacts { workers: None, vms: None, ..facts(&[]) };
        let lines = seen(&facts);
        assert!(lines.contains(&(Level::Alert, "VirtualMachines".into(), "Error listing".into())));
        assert!(lines.contains(&(Level::Warn, "Workers".into(), "?/10".into())));
        assert!(is_unavailable(&status(&facts)));
    }
}
