//! The service where its surroundings misbehave.

use std::fs::OpenOptions;
use std::net::TcpStream;
use std::process::{Command, Stdio};

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

/// The managers of Kubernetes doors have no file, and wrote their log themselves: a pipe that nobody reads stopped their loops.
#[tokio::test]
async fn a_log_that_nobody_reads_stops_no_manager() {
    let site = Site::new("stress-manager");
    let mut sim = roost(&["sim", "kube", "--listen", "127.0.0.1:0", "--seed", "7"]);
    sim.current_dir(site.folder());
    let sim = Process::start(sim, &site.file("sim.log"), "Ctrl-C");
    let port = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (metrics, probes) = (port(), port());
    let mut manager = roost(&["agent-forge", "--metrics-secure=false"]);
    manager
        .arg(format!("--metrics-bind-address={metrics}"))
        .arg(format!("--health-probe-bind-address={probes}"))
        .env("KUBECONFIG", sim.line("export KUBECONFIG="))
        .env("ROOST_LOG", "trace");
    let manager = Process::start_logging_to(manager, Stdio::piped(), "become VMs");
    let dropped = comes_true(within(60), async || {
        for _ in 0..100 {
            text(&format!("http://{probes}/"), "healthz").await;
        }
        text(&format!("http://{metrics}/"), "metrics")
            .await
            .lines()
            .any(|line| line.starts_with("roost_log_lines_dropped_total ") && !line.ends_with(" 0"))
    });
    assert!(dropped.await, "{}", text(&format!("http://{metrics}/"), "metrics").await);
    assert_eq!(text(&format!("http://{probes}/"), "healthz").await, "ok");
    let (code, _) = manager.interrupt();
    assert_eq!(code, Some(0));
}

/// The limit of connections is a quarter of the files that the process may open, so that those to the vCenter and to CDS are left.
#[tokio::test]
async fn with_few_files_clients_that_hold_connections_take_none_that_work_needs() {
    let (site, _vcenter, cds) = site("stress-files");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 64 && exec \"$0\" run -c roost.toml"]);
    command.arg(env!("CARGO_BIN_EXE_roost")).current_dir(site.folder()).stdin(Stdio::null());
    let process = Process::start(command, &site.file("run.log"), "serves, http://");
    let http = base(&process);
    let address = http.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let held: Vec<_> = (0..200).map(|_| TcpStream::connect(&address)).collect();
    assert!(held.iter().all(Result::is_ok));
    // Taken after all of them.
    assert_eq!(text(&http, "livez").await, "ok\n");
    let log = std::fs::read_to_string(site.file("run.log")).unwrap();
    assert!(!log.contains("Too many open files"), "{log}");
    cds.add_job("v2", &json!({})).await;
    let done = comes_true(within(90), async || cds.count("done").await == 1);
    assert!(done.await, "the job is done: {}", text(&http, "mon/status").await);
    assert_eq!(text(&http, "livez").await, "ok\n");
    drop(held);
    let (code, _) = process.interrupt();
    assert_eq!(code, Some(0));
}

#[tokio::test]
async fn a_wrong_token_is_logged_with_who_showed_it_and_not_each_time() {
    let (site, _vcenter, _cds) = site("stress-token");
    let path = site.file("roost.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    assert_eq!(config.matches("port = 0\n").count(), 1, "{config}");
    let config = config.replace("port = 0\n", "port = 0\ntoken = \"s3cret\"\n");
    std::fs::write(&path, config).unwrap();
    let service = Service::start(&site);
    let http = base(&service.process);
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for _ in 0..5 {
        let asked = client.get(format!("{http}api/v1/overview")).bearer_auth("guess-1").send();
        assert_eq!(asked.await.unwrap().status().as_u16(), 401);
    }
    let (code, _) = service.process.interrupt();
    assert_eq!(code, Some(0));
    let log = std::fs::read_to_string(site.file(Service::LOG)).unwrap();
    let told: Vec<&str> =
        log.lines().filter(|line| line.contains("showed a token that is not the right")).collect();
    assert!((1..5).contains(&told.len()), "{told:?}");
    assert!(told[0].contains("127.0.0.1 showed a token"), "{told:?}");
    assert!(!log.contains("guess-1") && !log.contains("s3cret"), "{log}");
}

#[tokio::test]
async fn a_stop_leaves_nothing_and_says_nothing_else() {
    let (site, _vcenter, _cds) = site("stress-stop");
    let service = Service::start(&site);
    let http = base(&service.process);
    let ready = comes_true(within(60), async || text(&http, "readyz").await == "ok\n");
    assert!(ready.await);
    let version: Value = serde_json::from_str(&text(&http, "mon/version").await).unwrap();
    for key in ["git_hash", "build_time"] {
        assert!(version[key].as_str().is_some_and(|text| !text.is_empty()), "{version}");
    }
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
