//! A real Prometheus scrapes us, with our scrape job and our rules.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use roost_hatchery::metrics::CONTENT_TYPE;
use roost_oracle::{Prometheus, promtool};
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::alerts::alerts;
use crate::dashboard::{Query, queries};
use crate::everything::Everything;
use crate::read;

/// Section 14.8 of the specification of CDS's hatchery: what operators already ask.
const EXAMPLES: [&str; 9] = [
    "cds_hatchery_vsphere_vm_count - cds_hatchery_vsphere_provisioned_vm_count",
    "cds_hatchery_vsphere_vm_count / cds_hatchery_vsphere_pool_total_vm_count",
    "cds_hatchery_vsphere_allocated_vcpus / cds_hatchery_vsphere_pool_total_vcpus",
    "cds_hatchery_vsphere_pool_total_vcpus - cds_hatchery_vsphere_allocated_vcpus - cds_hatchery_vsphere_template_vcpus",
    "cds_hatchery_vsphere_resource_pool_memory_usage_bytes / cds_hatchery_vsphere_resource_pool_memory_max_bytes * 100",
    "cds_hatchery_vsphere_resource_pool_memory_unreserved_bytes / cds_hatchery_vsphere_resource_pool_memory_max_bytes",
    "cds_hatchery_vsphere_ip_used_count / cds_hatchery_vsphere_ip_total_count * 100",
    "cds_hatchery_vsphere_ip_total_count - cds_hatchery_vsphere_ip_used_count",
    "cds_hatchery_vsphere_ip_used_count / cds_hatchery_vsphere_ip_total_count",
];

/// How long something must last until our rules tell of it. That a target is missing always needs some grace, because Prometheus takes
/// five seconds to its first scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grace {
    /// Not at all: nobody waits half an hour for a test.
    None,
    /// As the rules say, for a demo in which a second is a minute.
    SecondsForMinutes,
}

impl Grace {
    fn rules(self) -> String {
        let rules = read("deploy/prometheus/alerts.yml").replace("for: 2m", "for: 15s");
        match self {
            Self::None => {
                let is_grace =
                    |line: &&str| line.trim_start().starts_with("for: ") && line.ends_with('m');
                rules.lines().filter(|line| !is_grace(line)).collect::<Vec<_>>().join("\n")
            }
            Self::SecondsForMinutes => {
                let mut rules = rules;
                for minutes in ["1", "5", "10", "15", "20", "30"] {
                    for (before, after) in [("for: ", "\n"), ("[", "]"), ("offset ", "\n")] {
                        let (slow, fast) = (
                            format!("{before}{minutes}m{after}"),
                            format!("{before}{minutes}s{after}"),
                        );
                        rules = rules.replace(&slow, &fast);
                    }
                }
                assert!(!rules.contains("m]") && !rules.contains("m\n        labels"), "{rules}");
                rules
            }
        }
    }
}

/// Our own files, but every second, checked by `promtool` as they are then. `None` after a line that says so when there is none.
pub(crate) fn watch(target: SocketAddr, name: &str, grace: Grace) -> Option<Prometheus> {
    let promtool = promtool()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join(format!("{name}-alerts.yml"));
    std::fs::write(&file, grace.rules()).unwrap();
    let output = promtool.run(folder, &["check", "rules", &file.to_string_lossy()]);
    assert!(output.is_success(), "{}{}", output.stdout, output.stderr);
    let config = read("deploy/prometheus/prometheus.yml")
        .replace("- alerts.yml", &format!("- {}", file.display()))
        .replace("scrape_interval: 15s", "scrape_interval: 1s")
        .replace("127.0.0.1:8086", &target.to_string());
    Prometheus::start(&format!("global:\n  evaluation_interval: 1s\n\n{config}"))
}

/// More than anything here takes on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_mins(6);

/// What an expression answers: the results that are numbers.
pub(crate) fn results(prometheus: &Prometheus, expression: &str) -> Vec<Value> {
    let answer =
        prometheus.query(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let results = answer["data"]["result"].as_array().unwrap().iter();
    results.filter(|result| result["value"][1] != "NaN").cloned().collect()
}

/// Alerts that have fired since it watches.
pub(crate) fn fired(prometheus: &Prometheus) -> BTreeSet<String> {
    let results = results(prometheus, "last_over_time(ALERTS{alertstate=\"firing\"}[1h])");
    names(&results)
}

/// Alerts that fire at this moment.
pub(crate) fn firing(prometheus: &Prometheus) -> BTreeSet<String> {
    names(&results(prometheus, "ALERTS{alertstate=\"firing\"}"))
}

fn names(alerts: &[Value]) -> BTreeSet<String> {
    alerts.iter().map(|alert| alert["metric"]["alertname"].as_str().unwrap().to_owned()).collect()
}

pub(crate) async fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match look() {
            Ok(found) => return found,
            Err(why) => assert!(Instant::now() < deadline, "not in time: {what}: {why}"),
        }
        sleep(Duration::from_millis(200)).await;
    }
}

/// Serves a hatchery to which everything happens once more with each scrape.
fn serve_everything() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let everything = Everything::new();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            everything.happens();
            let body = everything.text();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    address
}

#[tokio::test]
async fn every_panel_has_data_and_every_alert_that_should_fires() {
    let Some(prometheus) = watch(serve_everything(), "everything", Grace::None) else { return };
    until("every panel has data", || {
        let empty = |query: &Query| results(&prometheus, &query.expression).is_empty();
        let empty: Vec<_> = queries("10s").into_iter().filter(empty).collect();
        if empty.is_empty() { Ok(()) } else { Err(format!("{empty:#?}")) }
    })
    .await;
    for example in EXAMPLES {
        assert!(!results(&prometheus, example).is_empty(), "{example}");
    }
    let mut wanted: BTreeSet<String> = alerts().into_iter().collect();
    wanted.remove("RoostHatcheryDown");
    wanted.remove("RoostJobsWaitWithoutWorkers"); // there is one, and it works
    // A hatchery is watched here; the rules of the other doors are tested by promtool only.
    let others = ["RoostAgentForge", "RoostKubelet", "RoostVm"];
    wanted.retain(|alert| !others.iter().any(|door| alert.starts_with(door)));
    until("all of these fire", || {
        let fired = fired(&prometheus);
        if fired == wanted { Ok(()) } else { Err(format!("{fired:?} instead of {wanted:?}")) }
    })
    .await;
}

/// `roost demo`, which ends with this value.
struct Demo(Child);

impl Demo {
    fn start(args: &[&str]) -> (Self, SocketAddr) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_roost"))
            .args(["demo", "hatchery", "--plain", "--listen", "127.0.0.1:0"])
            .args(args)
            .env("ROOST_LOG", "off")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        // Nobody reads the rest, but a full pipe would hold it up.
        thread::spawn(move || lines.for_each(drop));
        let address = first.trim_start_matches("http://").split_whitespace().next().unwrap();
        (Self(child), address.parse().unwrap_or_else(|_| panic!("{first}")))
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_demo_under_chaos_is_seen_for_what_it_is() {
    if promtool().is_none() {
        return;
    }
    let (demo, address) =
        Demo::start(&["--chaos", "--seed", "7", "--jobs", "40", "--speed", "60", "--keep"]);
    let Some(prometheus) = watch(address, "demo", Grace::None) else { return };
    until("the examples of the specification answer", || {
        let silent = |example: &&str| results(&prometheus, example).is_empty();
        let silent: Vec<_> = EXAMPLES.into_iter().filter(silent).collect();
        if silent.is_empty() { Ok(()) } else { Err(format!("{silent:#?}")) }
    })
    .await;
    until("pools that are claimed from are told of", || {
        let fired = fired(&prometheus);
        if fired.contains("RoostPoolBelowTarget") { Ok(()) } else { Err(format!("{fired:?}")) }
    })
    .await;
    until("workers start, and the vCenter's faults are counted", || {
        let started = results(&prometheus, "roost_hatchery_job_wait_seconds_count > 5");
        let faults = results(&prometheus, "roost_hatchery_vcenter_faults_total");
        if started.is_empty() || faults.is_empty() { Err(String::new()) } else { Ok(()) }
    })
    .await;
    until("a job that cannot be served as it is counts as refused", || {
        let refused = results(&prometheus, "max_over_time(roost_hatchery_refused_jobs[10m]) > 0");
        if refused.is_empty() { Err(String::new()) } else { Ok(()) }
    })
    .await;
    let fired_by_now = fired(&prometheus);
    for never in ["RoostHatcheryDown", "RoostDeletionsFrozen", "RoostTaskRestarts"] {
        assert!(!fired_by_now.contains(never), "{fired_by_now:?}");
    }
    drop(demo);
    until("its end is seen", || {
        let fired = fired(&prometheus);
        if fired.contains("RoostHatcheryDown") { Ok(()) } else { Err(format!("{fired:?}")) }
    })
    .await;
}

/// The other half of an alert's worth: it leaves people alone. The rules have their grace here, on the demo's own time.
#[tokio::test]
async fn a_quiet_demo_calls_nobody() {
    if promtool().is_none() {
        return;
    }
    // So few that none of them is one that cannot be served.
    let (_demo, address) = Demo::start(&["--seed", "7", "--jobs", "5", "--speed", "60", "--keep"]);
    let Some(prometheus) = watch(address, "quiet", Grace::SecondsForMinutes) else { return };
    until("all jobs had a worker, and half an hour of the demo was seen after that", || {
        let started = "sum(last_over_time(roost_hatchery_job_wait_seconds_count[1h])) >= 5";
        let scrapes = "count_over_time(up{job=\"roost\"}[1h]) >= 60";
        let is_so = |expression| !results(&prometheus, expression).is_empty();
        if is_so(started) && is_so(scrapes) { Ok(()) } else { Err(String::new()) }
    })
    .await;
    assert_eq!(fired(&prometheus), BTreeSet::new());
}
