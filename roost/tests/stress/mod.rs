//! The service where its surroundings misbehave.

use std::fs::OpenOptions;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::wire::{CdsSim, Process, Service, Site, VcenterSim, comes_true, roost, within};

const VSPHERE: &str = "finishedWorkerGracePeriod = 1\nkillAwolServersInterval = 2\n";

/// Both simulators and a configuration between them.
fn site(name: &str) -> (Site, VcenterSim, CdsSim) {
    let site = Site::new(name);
    let vcenter = VcenterSim::start(&site, &["--pace", "quick"]);
    let cds = CdsSim::start(&site, &[]);
    site.write_config(&vcenter, &cds, VSPHERE, "maxWorker = 5\nmaxConcurrentProvisioning = 5");
    (site, vcenter, cds)
}

/// Whatever the status.
async fn text(base: &str, path: &str) -> String {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    match client.get(format!("{base}{path}")).send().await {
        Ok(answer) => answer.text().await.unwrap_or_default(),
        Err(error) => format!("{error:?}"),
    }
}

/// The address that it prints, ready for a path.
fn base(process: &Process) -> String {
    format!("{}/", process.word("http://").trim_end_matches('/'))
}

/// Does a job, and is alive afterwards, wherever its log goes. What was lost is counted.
async fn works_with_stderr(name: &str, stderr: Stdio, keep: Option<&dyn Fn(&mut Process)>) {
    let (site, _vcenter, cds) = site(name);
    let mut command = roost(&["run", "-c", "roost.toml"]);
    command.current_dir(site.folder()).env("ROOST_LOG", "trace");
    let mut process = Process::start_logging_to(command, stderr, "serves, http://");
    if let Some(keep) = keep {
        keep(&mut process);
    }
    let http = base(&process);
    cds.add_job("v2", &json!({})).await;
    let done = comes_true(within(90), async || cds.count("done").await == 1);
    assert!(done.await, "the job is done: {}", text(&http, "mon/status").await);
    let lives = text(&http, "livez?verbose").await;
    assert!(lives.ends_with("livez check passed\n"), "{lives}");
    let dropped = comes_true(within(60), async || {
        // As many lines as wait for whoever does not read.
        for _ in 0..100 {
            text(&http, "livez").await;
        }
        text(&http, "metrics").await.lines().any(|line| {
            line.starts_with("roost_hatchery_log_lines_dropped_total{") && !line.ends_with(" 0")
        })
    });
    assert!(dropped.await, "what was dropped is counted");
    let (code, _) = process.interrupt();
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn a_full_log_disk_costs_log_lines_only() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    works_with_stderr("stress-full", full.into(), None).await;
}

#[tokio::test]
async fn a_log_that_nobody_reads_costs_log_lines_only() {
    works_with_stderr("stress-blocked", Stdio::piped(), None).await;
}

#[tokio::test]
async fn a_closed_log_costs_log_lines_only() {
    let close: &dyn Fn(&mut Process) = &|process| process.close_log();
    works_with_stderr("stress-closed", Stdio::piped(), Some(close)).await;
}

#[tokio::test]
async fn a_stop_leaves_nothing_and_says_nothing_else() {
    let (site, _vcenter, _cds) = site("stress-stop");
    let service = Service::start(&site);
    let http = base(&service.process);
    let ready = comes_true(within(60), async || text(&http, "readyz").await == "ok\n");
    assert!(ready.await);
    let (code, _) = service.process.interrupt();
    assert_eq!(code, Some(0));
    let log = std::fs::read_to_string(site.file(Service::LOG)).unwrap();
    assert!(log.contains("stopping: nothing new is begun"), "{log}");
    assert!(!log.contains("steps were not finished"), "{log}");
    let lines: Vec<Value> =
        log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    assert!(!lines.is_empty());
}

#[tokio::test]
async fn the_port_answers_while_the_service_starts() {
    let (site, vcenter, cds) = site("stress-start");
    drop(cds);
    let mut command = roost(&["run", "-c", "roost.toml"]);
    command.current_dir(site.folder());
    let process = Process::start(command, &site.file("run.log"), "starts, http://");
    let http = base(&process);
    assert_eq!(text(&http, "livez").await, "ok\n");
    let waits = comes_true(within(30), async || {
        text(&http, "readyz").await.contains("waits for CDS to take the sign-in")
    });
    assert!(waits.await, "{}", text(&http, "readyz").await);
    assert!(text(&http, "mon/status").await.contains("waits for CDS"));
    drop((process, vcenter));
}

#[test]
fn a_file_to_begin_with_that_cannot_be_written_is_an_error() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let ended = roost(&["config", "new"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("writing to standard output"), "{said}");
}
