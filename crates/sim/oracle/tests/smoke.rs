//! The harness itself: every oracle can be had, starts, talks to another one, and ends.

use roost_oracle::{
    Cluster, ClusterOptions, Govc, Prometheus, Pyvmomi, Vcsim, VcsimOptions, etcd, govmomi_bench,
    kube_apiserver, kubectl, promtool, systemd_analyze,
};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

#[test]
fn govc_sees_the_inventory_of_vcsim() {
    let options = VcsimOptions { datastores: 3, ..VcsimOptions::default() };
    let Some(vcsim) = Vcsim::start(options) else { return };
    let Some(govc) = Govc::new(vcsim.url()) else { return };
    assert!(govc.stdout(&["about"]).contains("API type:     VirtualCenter"));
    assert!(govc.json(&["about"]).contains("\"apiType\": \"VirtualCenter\""));
    assert_eq!(govc.stdout(&["find", "/", "-type", "m"]).lines().count(), 4);
    assert_eq!(govc.stdout(&["find", "/", "-type", "s"]).lines().count(), 3);

    let refused = govc.run(&["vm.power", "-on", "DC0_H0_VM0"]);
    assert!(!refused.is_success());
    assert!(refused.stderr.contains("InvalidPowerState"), "{}", refused.stderr);
}

#[test]
fn pyvmomi_logs_in_with_and_without_tls() {
    for tls in [false, true] {
        let options = VcsimOptions { tls, esx: tls, vms: 1, ..VcsimOptions::default() };
        let Some(vcsim) = Vcsim::start(options) else { return };
        let Some(pyvmomi) = Pyvmomi::new() else { return };
        let script = "
from pyVim.connect import Disconnect
service = connect(sys.argv[1])
print(service.content.about.apiType)
Disconnect(service)
";
        let want = if tls { "HostAgent\n" } else { "VirtualCenter\n" };
        assert_eq!(pyvmomi.stdout(script, &[vcsim.url()]), want);
    }
}

#[test]
fn vcsim_checks_the_login_it_was_given() {
    let login = VcsimOptions {
        username: "roost@vsphere.local".to_owned(),
        password: "p/a s%s:w@rd".to_owned(),
        ..VcsimOptions::default()
    };
    let Some(vcsim) = Vcsim::start(login) else { return };
    let Some(govc) = Govc::new(vcsim.url()) else { return };
    assert!(govc.stdout(&["session.ls"]).contains(vcsim.username()));

    let endpoint = vcsim.endpoint().replace("://", "://roost%40vsphere.local:wrong@");
    let refused = Govc::new(&endpoint).unwrap().run(&["about"]);
    assert!(!refused.is_success());
    assert!(refused.stderr.contains("Login failure"), "{}", refused.stderr);
}

#[test]
fn vcsim_ends_with_its_handle_even_with_a_connection_open() {
    let Some(vcsim) = Vcsim::start(VcsimOptions::default()) else { return };
    let address = vcsim.endpoint().replace("http://", "").replace("/sdk", "");
    let _open = TcpStream::connect(&address).unwrap();
    drop(vcsim);
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn the_benchmark_reads_what_vcsim_has_and_decodes_what_it_recorded() {
    let options = VcsimOptions { vms: 15, autostart: false, ..VcsimOptions::default() };
    let Some(vcsim) = Vcsim::start(options) else { return };
    let Some(bench) = govmomi_bench() else { return };
    let run = |args: &[&str]| {
        let output = bench.command().args(args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let url = vcsim.url();
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/narrow.xml");
    let pages = concat!(env!("CARGO_TARGET_TMPDIR"), "/narrow*.xml");
    let whole = "\"vms\":30,";
    assert!(run(&["list", "--url", url, "--set", "wide"]).contains(whole));
    let change = run(&["sync", "--url", url, "--change", "--vm", "DC0_H0_VM1"]);
    assert!(change.contains(whole) && change.contains("submit_to_update_seconds"), "{change}");
    let recorded = run(&["record", "--url", url, "--page", "10", "--out", file]);
    assert!(recorded.contains("narrow.3.xml"), "{recorded}");
    assert!(run(&["decode", "--file", pages, "--repeat", "2"]).contains(whole));
}

#[test]
fn promtool_tells_good_metrics_from_bad_ones() {
    let Some(promtool) = promtool() else { return };
    let help = "# HELP jobs_total Jobs.\n# TYPE jobs_total counter\n";
    assert!(promtool.check_metrics(&format!("{help}jobs_total 1\n")).is_success());
    assert!(!promtool.check_metrics(&format!("{help}jobs_total one\n")).is_success());
    assert!(!promtool.run(Path::new("."), &["check", "rules", "no-such.yml"]).is_success());
}

#[test]
fn prometheus_answers_queries_and_ends_with_its_handle() {
    let Some(prometheus) = Prometheus::start("scrape_configs: []\n") else { return };
    let answer = prometheus.query("vector(6) * 7").unwrap();
    assert!(answer.contains("\"42\""), "{answer}");
    assert!(prometheus.query("vector(").unwrap_err().contains("400"));
    let log = prometheus.log();
    let (_, address) = log.split_once("msg=\"Listening on\" address=").unwrap();
    let address = address.split_whitespace().next().unwrap().to_owned();
    drop(prometheus);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn a_prometheus_that_does_not_start_says_why() {
    if promtool().is_none() {
        return;
    }
    let panic = std::panic::catch_unwind(|| Prometheus::start("no_such_key: 1\n")).unwrap_err();
    let words = panic.downcast_ref::<String>().unwrap();
    assert!(words.contains("no_such_key"), "{words}");
}

#[test]
fn systemd_analyze_reads_a_unit() {
    let Some(analyze) = systemd_analyze() else { return };
    assert!(analyze.command().args(["timespan", "12min"]).output().unwrap().status.success());
}

#[test]
fn a_cluster_keeps_its_objects_over_a_restart_and_collects_garbage() {
    let options = ClusterOptions { controller_manager: true, ..ClusterOptions::default() };
    let Some(mut cluster) = Cluster::start(&options) else { return };
    let kubectl = cluster.kubectl();
    assert!(kubectl.stdout(&["version"]).contains("Server Version: v1.37.1"));
    kubectl.stdout(&["create", "configmap", "owner"]);
    let uid = kubectl.stdout(&["get", "configmap", "owner", "-o", "jsonpath={.metadata.uid}"]);
    let owned = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: owned\n  ownerReferences: [{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {uid}}}]\n"
    );
    let owned = kubectl.file("owned.yaml", &owned);
    kubectl.stdout(&["apply", "-f", &owned]);
    // Before the restart: the controller manager needs a minute or more to find back to a server that was away.
    kubectl.stdout(&["delete", "configmap", "owner"]);
    kubectl.stdout(&["wait", "--for=delete", "configmap/owned", "--timeout=60s"]);
    kubectl.stdout(&["create", "configmap", "kept"]);
    cluster.restart_api_server();
    let kept = cluster.kubectl().stdout(&["get", "configmap", "kept", "-o", "name"]);
    assert_eq!(kept, "configmap/kept\n");
}

/// Set in the process that is killed.
const DOOMED: &str = "ROOST_ORACLE_DOOMED";

/// Programs at work in this folder.
fn at_work_in(folder: &Path) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    processes
        .filter(|process| {
            std::fs::read_link(process.path().join("cwd")).is_ok_and(|at| at == folder)
        })
        .count()
}

#[test]
fn a_cluster_ends_when_the_test_process_is_killed() {
    if std::env::var_os(DOOMED).is_some() {
        let Some(cluster) = Cluster::start(&ClusterOptions::default()) else { return };
        println!("cluster in {}", cluster.certificates().display());
        loop {
            std::thread::park();
        }
    }
    if etcd().is_none() || kube_apiserver().is_none() || kubectl().is_none() {
        return;
    }
    let name = "a_cluster_ends_when_the_test_process_is_killed";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture"])
        .env(DOOMED, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let place =
        lines.filter_map(|line| line.split_once("cluster in ").map(|(_, at)| at.to_owned()));
    let folder = PathBuf::from(place.take(1).next().unwrap()).canonicalize().unwrap();
    let count = at_work_in(&folder);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(count, 2, "etcd and the API server");
    let is_over = (0..1200).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        at_work_in(&folder) == 0
    });
    assert!(is_over, "they outlive the process that started them");
    std::fs::remove_dir_all(&folder).unwrap();
}
