//! `/mon/status`, which is also what heartbeats tell CDS.

use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{HeartbeatHealth, Level, MonitoringStatus, Protocol, QueueHealth};
use roost_fleet::Snapshot;
use roost_supervise::Tasks;

use super::StateReader;
use super::overview::queue;
use super::view::{Check, Link, Pool};
use super::workers::{inventory_doubt, started};
use crate::status::{StatusFacts, TaskState, status};
use crate::time::elapsed;

/// A queue that was neither polled nor pushed for this long is not heard: three polls were missed.
const DEAF: Duration = Duration::from_mins(1);

/// A line of ours.
type Line = (Level, &'static str, String);

impl StateReader {
    pub(crate) fn status(&self, tasks: &Tasks) -> MonitoringStatus {
        let now = self.about.now();
        let snapshot = self.mirror.snapshot();
        let health = tasks.health();
        let tasks: Vec<TaskState<'_>> = health
            .iter()
            .map(|task| TaskState {
                name: task.name,
                is_running: task.is_running,
                silent: task.silent,
            })
            .collect();
        let is_whole = inventory_doubt(&snapshot, now).is_none();
        let workers = is_whole
            .then(|| started(&snapshot, self.about.hatchery(), &self.scheduler.lock()).len());
        let more = self.own_lines(&snapshot, now);
        let cds_version = self.cds_link.version();
        status(&StatusFacts {
            version: &self.about.version,
            cds_version: cds_version.as_deref(),
            service: self.about.hatchery(),
            hostname: &self.about.hostname,
            uptime: elapsed(self.about.started, now),
            now,
            tasks: &tasks,
            workers,
            max_workers: self.about.config.counts.max_workers,
            vms: is_whole.then(|| snapshot.len()),
            more: &more,
        })
    }

    fn own_lines(&self, snapshot: &Snapshot, now: Timestamp) -> Vec<Line> {
        let mut lines = vec![vcenter_line(&self.link(snapshot, now), now)];
        let queues = self.cds_link.queue_health();
        lines.extend(queues.iter().map(|(protocol, health)| queue_line(*protocol, health, now)));
        lines.extend(
            self.cds_link
                .heart_health()
                .iter()
                .filter_map(|(protocol, heart)| heart_line(*protocol, heart)),
        );
        lines.push(self.jobs_line(now));
        if let Some(other) = self.processes.others.at_work(now) {
            lines.push((Level::Warn, "Process", other.to_string()));
        }
        if let Some(held) = self.steering.spawning() {
            lines.push((Level::Warn, "Spawning", held.to_string()));
        }
        let deletions = self.deletions(now);
        lines.push(match (deletions.frozen, self.steering.deleting()) {
            (Some(freeze), _) => (Level::Warn, "Deletion", freeze.to_string()),
            (None, Some(held)) => (Level::Warn, "Deletion", held.to_string()),
            (None, None) => {
                (Level::Ok, "Deletion", format!("{} in the last minute", deletions.last_minute))
            }
        });
        if !self.about.config.provisioning.pools.is_empty() {
            lines.push(pools_line(&self.pool_views()));
        }
        lines
    }

    fn jobs_line(&self, now: Timestamp) -> Line {
        let (queue, _) = queue(&self.scheduler.lock(), &self.recorder.journal, now);
        let oldest = match queue.oldest_waiting_secs {
            Some(secs) => format!(" (the oldest for {secs} s)"),
            None => String::new(),
        };
        let refused = match queue.refused {
            0 => String::new(),
            number => format!(", {number} refused as they are"),
        };
        let words =
            format!("{} waiting{oldest}, {} starting{refused}", queue.waiting, queue.starting);
        (Level::Ok, "Jobs", words)
    }

    /// Whether the loops make progress. Asks for nothing that a loop may hold: it must answer when one hangs.
    pub(super) fn liveness(&self, tasks: &Tasks) -> Vec<Check> {
        let mut checks: Vec<Check> = tasks
            .health()
            .into_iter()
            .map(|task| Check {
                name: task.name,
                ok: task.is_running && task.silent.is_none(),
                words: match (task.is_running, task.silent, task.restarts) {
                    (true, Some(silent), _) => {
                        format!("hangs: no progress for {} s", silent.as_secs())
                    }
                    (true, None, 0) => "running".to_owned(),
                    (true, None, restarts) => format!("running, restarted {restarts} times"),
                    (false, _, 0) => "not running".to_owned(),
                    (false, _, restarts) => format!("not running, restarted {restarts} times"),
                },
            })
            .collect();
        let stopped = self.lifecycle.stopped().borrow().clone();
        checks.push(Check {
            name: "service",
            ok: stopped.is_none(),
            words: stopped.map_or_else(|| "goes on".to_owned(), |why| why.to_string()),
        });
        checks
    }

    /// Whether the views of both sides are good enough to act on.
    pub(super) fn readiness(&self) -> Vec<Check> {
        let now = self.about.now();
        let snapshot = self.mirror.snapshot();
        let check = |name, doubt: Option<String>, fine: String| Check {
            name,
            ok: doubt.is_none(),
            words: doubt.unwrap_or(fine),
        };
        let vms = format!("{} VMs, {} ours", snapshot.len(), self.own_vms(&snapshot));
        let (known, doubt) = match self.workers.believed() {
            Ok(lists) => (lists.len(), None),
            Err(why) => (0, Some(why)),
        };
        let not_open =
            (!self.lifecycle.is_open()).then(|| "not everything was read yet".to_owned());
        vec![
            check("open", not_open, "decisions are made".to_owned()),
            check("inventory", inventory_doubt(&snapshot, now), vms),
            check("workers", doubt, format!("{known} known to CDS")),
        ]
    }
}

fn vcenter_line(link: &Link, now: Timestamp) -> Line {
    let heard = link.last_contact.map(|at| format!("heard {} s ago", elapsed(at, now).as_secs()));
    let heard = heard.unwrap_or_else(|| "not heard yet".to_owned());
    match &link.trouble {
        Some(trouble) => (Level::Warn, "vCenter", format!("{heard}: {trouble}")),
        None if !link.is_synced => (Level::Warn, "vCenter", format!("{heard}; being read")),
        None => (
            Level::Ok,
            "vCenter",
            format!("{heard}, {} calls in the last minute", link.calls.last_minute),
        ),
    }
}

/// Whether nothing can have come from a queue for a while.
pub(super) fn is_deaf(health: &QueueHealth, now: Timestamp) -> bool {
    let polled = health.last_poll.map(|at| elapsed(at, now));
    health.connected.is_none() && polled.is_none_or(|ago| ago > DEAF)
}

fn queue_line(protocol: Protocol, health: &QueueHealth, now: Timestamp) -> Line {
    let component = match protocol {
        Protocol::V1 => "Queue/V1",
        Protocol::V2 => "Queue/V2",
    };
    let polled = health.last_poll.map(|at| elapsed(at, now));
    let words = match (health.connected, polled) {
        (Some(_), _) => "pushed and polled".to_owned(),
        (None, Some(ago)) => format!("polled {} s ago, websocket closed", ago.as_secs()),
        (None, None) => "not read yet".to_owned(),
    };
    let level =
        if is_deaf(health, now) || health.failed_polls > 2 { Level::Warn } else { Level::Ok };
    let why = health.last_error.as_ref().filter(|_| level != Level::Ok);
    (level, component, why.map_or_else(|| words.clone(), |why| format!("{words}: {why}")))
}

/// Only when something is wrong: CDS reads this in the heartbeat itself.
fn heart_line(protocol: Protocol, heart: &HeartbeatHealth) -> Option<Line> {
    let component = match protocol {
        Protocol::V1 => "Heartbeat/V1",
        Protocol::V2 => "Heartbeat/V2",
    };
    let why = heart.last_error.as_deref().unwrap_or("no answer");
    let words = format!("{} failed in a row: {why}", heart.failures);
    (heart.failures > 0).then_some((Level::Warn, component, words))
}

fn pools_line(pools: &[Pool]) -> Line {
    let short: Vec<String> = pools
        .iter()
        .filter(|pool| pool.ready < pool.wanted)
        .map(|pool| {
            let flavor =
                pool.flavor.as_ref().map(|flavor| format!(" ({flavor})")).unwrap_or_default();
            let why = pool.waiting.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
            format!("{}{flavor} {}/{}{why}", pool.model, pool.ready, pool.wanted)
        })
        .collect();
    if short.is_empty() {
        return (Level::Ok, "Pools", "full".to_owned());
    }
    let waits = pools.iter().any(|pool| pool.waiting.is_some());
    let level = if waits { Level::Warn } else { Level::Ok };
    (level, "Pools", format!("below target: {}", short.join("; ")))
}
