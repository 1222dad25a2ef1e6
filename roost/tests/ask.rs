//! The commands that ask a running service, as a person runs them.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod stand_in;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use roost_console::Settings;
use roost_views::{DecisionView, Facts, RequestState, RequestView, SubjectKind, Verdict};
use serde_json::Value;
use tokio::net::TcpListener;

use self::stand_in::{NOW, StandIn, id, serve};

/// A service with one job.
fn one_job() -> StandIn {
    let job = RequestView {
        id: id("42"),
        noun: "job".into(),
        group: "project".into(),
        project: None,
        state: RequestState::Waiting,
        queued: None,
        waited_secs: Some(61),
        vm: None,
        outcome: None,
        wants: None,
        verdict: None,
        facts: Facts::default(),
    };
    let decision = DecisionView {
        seq: 7,
        at: NOW,
        door: "bakery".into(),
        subject_kind: SubjectKind::Request("job".into()),
        subject: "42".into(),
        subject_name: None,
        verdict: Verdict::Deferred,
        reason: "all workers are there".into(),
        bound_by: Some("workers".into()),
        gates: Vec::new(),
        next_look: Some("when something changes".into()),
        vm: None,
        times: 1,
        since: NOW,
    };
    let mut shown = StandIn::empty("nest");
    shown.jobs.push(job);
    shown.decisions.push(decision);
    shown
}

/// Where it is.
async fn service() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let settings = Settings { token: Some("s3cret".into()), ..Settings::default() };
    tokio::spawn(serve(listener, Arc::new(one_job()), settings, std::future::pending()));
    url
}

async fn roost(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roost"));
    command.args(args).env_remove("ROOST_URL").env_remove("ROOST_TOKEN");
    // Whatever proxy the machine has is not for this.
    command.env("http_proxy", "http://127.0.0.1:9").envs(variables.iter().copied());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

/// What it said, after it failed with one line.
fn complaint(output: &Output) -> &str {
    assert!(!output.status.success());
    assert_eq!(text(&output.stdout), "");
    let said = text(&output.stderr);
    assert_eq!(said.lines().count(), 1, "{said}");
    said.trim_end()
}

#[tokio::test]
async fn each_command_prints_what_the_service_shows() {
    let url = service().await;
    for (command, words) in [
        ("status", "nest  ready  up 0s"),
        ("jobs", "42   waiting    1m1s"),
        ("vms", "no VMs"),
        ("pools", "no pools"),
        ("decisions", "0s  job 42   deferred  workers"),
        ("explain 42", "Bound by:   workers"),
    ] {
        let mut args: Vec<_> = command.split(' ').collect();
        args.extend(["--url", &url]);
        let output = roost(&args, &[]).await;
        let said = text(&output.stdout);
        assert!(output.status.success() && said.contains(words), "{command}: {output:?}");
        args.push("--json");
        let output = roost(&args, &[]).await;
        let json: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(json.is_array() || json.is_object(), "{command}: {json}");
    }
    let none = roost(&["decisions", "--verdict", "kept", "--url", &url], &[]).await;
    assert_eq!(text(&none.stdout), "no decisions\n");
}

#[tokio::test]
async fn tables_are_narrowed_and_sorted_in_json_too_and_an_unknown_column_is_one_line() {
    let url = service().await;
    for (line, rows) in [
        ("jobs --state waiting --sort waited:desc", 1),
        ("jobs --state refused,ended", 0),
        ("jobs --filter V1x", 0),
        ("decisions --kind job --filter workers --sort age", 1),
        ("decisions --kind vm,service", 0),
    ] {
        let mut args: Vec<_> = line.split(' ').collect();
        args.extend(["--json", "--url", &url]);
        let output = roost(&args, &[]).await;
        let json: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json.len(), rows, "{line}: {json:?}");
    }
    let unknown = roost(&["jobs", "--sort", "size", "--url", &url], &[]).await;
    let words = "roost: there is no column \"size\" to sort by: there are job, state, waited, ran, project, vm, why";
    assert_eq!(complaint(&unknown), words);
}

#[tokio::test]
async fn what_is_watched_is_one_document_per_line_until_it_is_stopped() {
    let url = service().await;
    let mut command = Command::new(env!("CARGO_BIN_EXE_roost"));
    command.args(["jobs", "--json", "--watch", "0.2", "--url", &url]).stdout(Stdio::piped());
    let watching = move || {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let documents: Vec<Value> =
            lines.take(3).map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        (documents, child.wait().unwrap().code())
    };
    let (documents, code) = tokio::task::spawn_blocking(watching).await.unwrap();
    assert!(documents.iter().all(|jobs| jobs[0]["id"] == "42"), "{documents:?}");
    assert_eq!(code, Some(0));
    let nobody = roost(&["jobs", "--watch", "--url", "http://127.0.0.1:9"], &[]).await;
    assert!(complaint(&nobody).starts_with("roost: no service can be reached"));
}

#[tokio::test]
async fn the_address_may_come_from_the_environment_or_the_configuration() {
    let url = service().await;
    let output = roost(&["jobs"], &[("ROOST_URL", &url)]).await;
    assert!(output.status.success(), "{output:?}");
    let port = url.rsplit(':').next().unwrap();
    let folder = tempfile();
    let file = folder.join("roost.toml");
    let http = "[hatchery.vsphere.commonConfiguration.http]";
    std::fs::write(&file, format!("{http}\naddr = \"127.0.0.1\"\nport = {port}\n")).unwrap();
    let output = roost(&["jobs", "-c", file.to_str().unwrap()], &[("ROOST_URL", "http://h")]).await;
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn tempfile() -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("roost-ask-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[tokio::test]
async fn what_goes_wrong_is_one_clear_line() {
    let url = service().await;
    let unknown = roost(&["explain", "43", "--url", &url], &[]).await;
    assert_eq!(complaint(&unknown), "roost: 43 is neither a job nor a VM of ours");

    let denied = roost(&["jobs", "--url", &url], &[("ROOST_TOKEN", "wr0ng")]).await;
    let said = complaint(&denied);
    assert!(said.contains("the bearer token is not the right one"), "{said}");
    assert!(!said.contains("wr0ng"), "{said}");
    let allowed = roost(&["jobs", "--url", &url], &[("ROOST_TOKEN", "s3cret")]).await;
    assert!(allowed.status.success());

    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let nobody = roost(&["status", "--url", &format!("http://{closed}")], &[]).await;
    let said = complaint(&nobody);
    assert!(
        said.starts_with(&format!("roost: no service can be reached at http://{closed}/")),
        "{said}"
    );
    assert!(said.to_lowercase().contains("connection refused"), "{said}");

    let foreign = roost(&["status", "--url", &format!("{url}/elsewhere")], &[]).await;
    assert_eq!(complaint(&foreign), "roost: there is nothing at /elsewhere/api/v1/overview");
}

#[tokio::test]
async fn what_is_asked_for_is_written_as_it_is_wanted() {
    let url = service().await;
    let ask = async |args: &[&str]| {
        let output = roost(args, &[("ROOST_URL", &url)]).await;
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let yaml = ask(&["jobs", "-o", "yaml"]).await;
    assert!(yaml.starts_with("- ") && yaml.contains("state: waiting"), "{yaml}");
    assert_eq!(ask(&["jobs", "-o", "name"]).await.trim(), "42");
    let table = ask(&["jobs"]).await;
    assert_eq!(ask(&["jobs", "-o", "wide"]).await, table, "nobody looks, so nothing is cut");
    let bare = ask(&["jobs", "--no-headers"]).await;
    assert_eq!(table.lines().skip(1).collect::<Vec<_>>(), bare.lines().collect::<Vec<_>>());
    assert_eq!(ask(&["status", "-o", "name"]).await.trim(), "nest");
    let version = ask(&["version"]).await;
    assert!(version.starts_with("roost ") && version.lines().count() == 4, "{version}");
    let version: Value = serde_json::from_str(&ask(&["version", "-o", "json"]).await).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn all_services_are_asked_and_one_that_is_away_is_named() {
    let url = service().await;
    let targets = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("targets.toml");
    let two = format!("[here]\nurl = '{url}'\n[gone]\nurl = 'http://127.0.0.1:9'\n");
    std::fs::write(&targets, two).unwrap();
    let variables = [("ROOST_TARGETS", targets.to_str().unwrap())];
    let output = roost(&["status", "--all"], &variables).await;
    let table = text(&output.stdout);
    assert!(table.contains("NOT REACHED") && table.lines().count() == 3, "{table}");
    let output = roost(&["status", "--all", "-o", "json"], &variables).await;
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["here"]["service"], "nest", "{json}");
    assert!(json["gone"]["error"].is_string(), "{json}");
    let output = roost(&["--at", "here", "status", "-o", "name"], &variables).await;
    assert_eq!(text(&output.stdout).trim(), "nest", "{}", text(&output.stderr));
}
