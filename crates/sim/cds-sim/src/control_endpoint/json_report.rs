use serde_json::{Value, json};

use crate::control::WorkerReport;
use crate::history::{DoubleWorker, HistoryEntry, JobReport};

pub(super) fn job(report: &JobReport) -> Value {
    json!({
        "id": report.id.to_string(),
        "protocol": report.id.protocol().to_string().to_lowercase(),
        "status": report.status,
        "hatchery": report.hatchery,
        "holders": report.holders(),
        "releases": report.releases(),
        "workers": report.workers(),
        "executions": report.executions(),
        "waited_ms": report.waited().map(|waited| u64::try_from(waited.as_millis()).unwrap_or(0)),
        "history": report.history.iter().map(entry).collect::<Vec<_>>(),
        "infos": report.infos,
    })
}

/// `{"at": "2026-..Z", "event": "taken", "hatchery": "roost"}`.
fn entry(entry: &HistoryEntry) -> Value {
    let mut value = json!(entry.event);
    value["at"] = json!(entry.at.to_string());
    value
}

pub(super) fn worker(report: &WorkerReport) -> Value {
    json!({
        "id": report.id,
        "name": report.name,
        "hatchery": report.hatchery,
        "status": report.status,
        "job": report.job.as_ref().map(ToString::to_string),
    })
}

pub(super) fn double_worker(double: &DoubleWorker) -> Value {
    json!({
        "at": double.at.to_string(),
        "job": double.job.to_string(),
        "workers": double.workers,
        "hatcheries": double.hatcheries,
    })
}
