use std::fmt::Write as _;
use std::fs;

use roost_vim::Client;
use serde_json::Value;

use super::{CdsSim, Service, Site, Vm};

/// The last lines of a log that are shown.
const LINES: usize = 60;

/// What every side says at this moment, for whoever has to find out why a test cannot go on.
pub(crate) async fn account(
    site: &Site,
    cds: &CdsSim,
    vcenter: &Client,
    service: Option<&Service>,
) -> String {
    let mut told = String::new();
    writeln!(told, "\n-- jobs: {}", cds.control.get("summary").await).unwrap();
    for job in cds.control.get("jobs").await.as_array().unwrap() {
        writeln!(told, "{}", job_line(job)).unwrap();
    }
    writeln!(told, "-- workers: {}", cds.control.get("workers").await).unwrap();
    writeln!(told, "-- VMs").unwrap();
    let vms = Vm::try_read_all(vcenter).await.unwrap_or_else(|error| {
        writeln!(told, "not to be read: {error:#}").unwrap();
        Vec::new()
    });
    for vm in vms {
        let power = if vm.is_on { "on" } else { "off" };
        writeln!(told, "{} {} {power} {:?} {}", vm.name, vm.moref, vm.address, vm.text).unwrap();
    }
    writeln!(told, "-- status").unwrap();
    match service {
        None => writeln!(told, "the service does not run").unwrap(),
        Some(service) => tell_status(service, &mut told).await,
    }
    writeln!(told, "-- {}", site.file(Service::LOG).display()).unwrap();
    let log = fs::read_to_string(site.file(Service::LOG)).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    told.push_str(&lines[lines.len().saturating_sub(LINES)..].join("\n"));
    told
}

fn job_line(job: &Value) -> String {
    let history = job["history"].as_array().into_iter().flatten();
    let history: Vec<&str> = history.filter_map(|entry| entry["event"].as_str()).collect();
    let (id, protocol, status) = (&job["id"], &job["protocol"], &job["status"]);
    format!("{id} {protocol} {status} executions {} history {history:?}", job["executions"])
}

async fn tell_status(service: &Service, told: &mut String) {
    let status = service.http.try_get("mon/status").await.unwrap_or_default();
    for line in status["lines"].as_array().into_iter().flatten() {
        let (status, component, value) = (&line["status"], &line["component"], &line["value"]);
        writeln!(told, "{status} {component} {value}").unwrap();
    }
    let decisions = service.http.try_get("api/v1/decisions").await.unwrap_or_default();
    for decision in decisions.as_array().into_iter().flatten() {
        let (subject, verdict) = (&decision["subject"], &decision["verdict"]);
        writeln!(told, "{} {subject} {verdict} {}", decision["at"], decision["reason"]).unwrap();
    }
}
