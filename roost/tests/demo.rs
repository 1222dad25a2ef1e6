//! `roost demo` as a newcomer meets it: one command, and what it says and serves.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

fn roost(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_roost"));
    command.args(args).env_remove("ROOST_LOG");
    command
}

/// A whole run, without a terminal and on a port of its own.
fn demo(args: &[&str]) -> Output {
    roost(&["demo", "hatchery", "--listen", "127.0.0.1:0"]).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// What it said after the address of its page, which is another one each time.
fn said(output: &Output) -> String {
    let said = text(&output.stdout);
    said.split_once('\n').unwrap().1.to_owned()
}

fn summary(output: &Output) -> String {
    let said = said(output);
    let at = said.find("Roost demo, seed").unwrap_or_else(|| panic!("no summary in\n{said}"));
    said[at..].to_owned()
}

fn assert_all_is_well(output: &Output) {
    let (summary, errors) = (summary(output), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{summary}{errors}");
    assert_eq!(errors, "", "{summary}");
    for part in [
        "20 queued: 18 done, 2 refused, 0 failed",
        "warm starts       1",
        "    waited          p50 ",
        "    of it to start  p50 ",
        "with the shared long poll",
        "debian12 5/5, ubuntu24 2/2 ready",
        "ok   no job had two workers",
        "ok   limits held",
        "ok   no address was on two VMs",
        "ok   headline, lists and VMs agreed on every look",
        "ok   2 impossible jobs were refused by name",
        "ok   nothing is left over: 7 VMs of ours, all of them spares",
    ] {
        assert!(summary.contains(part), "{part:?} is missing in\n{summary}");
    }
    assert!(!summary.contains("FAIL"), "{summary}");
}

#[test]
fn every_job_is_done_nothing_is_left_and_a_seed_is_a_run_at_any_speed() {
    let first = demo(&["--plain", "--speed", "max", "--seed", "7", "--jobs", "20"]);
    assert_all_is_well(&first);
    let page = text(&first.stdout);
    assert!(page.starts_with("http://127.0.0.1:"), "{page}");
    for part in ["spawned   job ", "\"gigantic\"", "\"windows95\"", "deleted   vm ", " to come\n"] {
        assert!(page.contains(part), "{part:?} is missing in\n{page}");
    }
    let again = demo(&["--speed", "600", "--seed", "7", "--jobs", "20"]);
    assert_eq!(said(&first), said(&again), "line by line");
    let other = demo(&["--speed", "0", "--seed", "8", "--jobs", "20"]);
    assert_ne!(summary(&first), summary(&other));
}

#[test]
fn all_doors_work_on_one_vcenter_and_a_seed_is_a_run() {
    let args = ["demo", "--plain", "--speed", "max", "--seed", "7", "--jobs", "20"];
    let all = || roost(&args).args(["--listen", "127.0.0.1:0"]).output().unwrap();
    let first = all();
    assert_all_is_well(&first);
    let summary = summary(&first);
    for part in [
        "ok   3 objects became VMs with an address",
        "ok   the VM of the deleted object went, those of the others stay",
        "ok   one VM was made for each of 3 AgentMachines",
        "ok   3 pods became a microVM each",
        "ok   the microVM that was killed runs again",
    ] {
        assert!(summary.contains(part), "{part:?} is missing in\n{summary}");
    }
    assert_eq!(said(&first), said(&all()), "line by line");
}

#[test]
fn each_kubernetes_door_tells_its_story_and_checks_its_end() {
    let doors =
        [("vm-operator", "3 objects became VMs"), ("kubelet", "3 pods became a microVM each")];
    let running = doors.map(|(door, _)| {
        let mut command = roost(&["demo", door, "--listen", "127.0.0.1:0", "--seed", "7"]);
        command.stdout(Stdio::piped()).spawn().unwrap()
    });
    for (child, (door, part)) in running.into_iter().zip(doors) {
        let output = child.wait_with_output().unwrap();
        let said = text(&output.stdout);
        assert!(output.status.success() && !said.contains("BROKEN"), "{door}:\n{said}");
        assert!(said.contains(&format!("ok     {part}")), "{door}:\n{said}");
    }
}

#[test]
fn chaos_is_survived_counted_and_replayed() {
    let args = ["--plain", "--speed", "max", "--seed", "7", "--jobs", "20", "--chaos"];
    let first = demo(&args);
    assert_all_is_well(&first);
    let summary = summary(&first);
    for fault in ["vCenter restarts 1", "failed clones", "CDS faults", "lost vCenter sessions"] {
        assert!(summary.contains(fault), "{fault:?} is missing in\n{summary}");
    }
    assert_eq!(said(&first), said(&demo(&args)), "line by line");
}

#[test]
fn the_configuration_that_it_runs_on_passes_the_check() {
    let printed = demo(&["--print-config"]);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("demo.toml");
    std::fs::write(&file, &printed.stdout).unwrap();
    let checked = roost(&["check", "-c"]).arg(&file).output().unwrap();
    let said = text(&checked.stdout);
    assert!(checked.status.success() && said.contains("no problems, 0 warnings"), "{said}");
}

/// A demo that runs. Ends with the test.
struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    said: String,
}

impl Running {
    fn start(args: &[&str]) -> Self {
        let mut command = roost(&["demo", "hatchery", "--listen", "127.0.0.1:0", "--seed", "7"]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout, said: String::new() }
    }

    fn wait_until_it_says(&mut self, part: &str) {
        while !self.said.contains(part) {
            let read = self.stdout.read_line(&mut self.said).unwrap();
            assert_ne!(read, 0, "it ended early and said:\n{}", self.said);
        }
    }

    /// Asks the page that it named first.
    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path}"), "")
    }

    fn ask(&self, what: &str, more: &str) -> String {
        let address = self.said.strip_prefix("http://").unwrap().split(' ').next().unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request =
            format!("{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{more}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ctrl-C; its exit code and all that it said.
    fn interrupt(mut self) -> (Option<i32>, String) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let mut said = std::mem::take(&mut self.said);
        self.stdout.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn its_page_shows_simulated_time_and_can_be_steered_and_ctrl_c_ends_it_with_a_summary() {
    let mut running = Running::start(&["--speed", "100"]);
    running.wait_until_it_says("spawned   pool");
    let answer = running.get("/api/v1/overview");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(r#""now":"2026-01-01T10:0"#), "{answer}");
    assert!(answer.contains(r#""service":"roost-demo""#), "{answer}");
    let pause = "POST /api/v1/actions/pause";
    let refused = running.ask(pause, "");
    assert!(refused.starts_with("HTTP/1.1 401"), "{refused}");
    let paused = running.ask(pause, "Authorization: Bearer demo\r\nContent-Length: 0\r\n");
    assert!(paused.starts_with("HTTP/1.1 200"), "{paused}");
    let (code, said) = running.interrupt();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("of simulated time, stopped early") && !said.contains("FAIL"), "{said}");
}

#[test]
fn what_is_kept_can_be_looked_at_after_the_end() {
    let mut running = Running::start(&["--speed", "max", "--jobs", "6", "--keep"]);
    running.wait_until_it_says("stays; Ctrl-C ends it");
    let answer = running.get("/api/v1/pools");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("debian12"), "{answer}");
    let (code, said) = running.interrupt();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.matches("Roost demo, seed 7").count(), 1, "{said}");
}

#[test]
fn a_port_in_use_and_bad_arguments_are_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = roost(&["demo", "hatchery", "--listen", &address]).output().unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(said.starts_with("roost: ") && said.contains(&address), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    for (args, part) in
        [(["--speed", "fast"], "--speed"), (["--jobs", "0"], "--jobs"), (["--seed", "x"], "--seed")]
    {
        let output = demo(&args);
        let said = text(&output.stderr);
        assert!(!output.status.success() && said.contains(part), "{said}");
    }
}
