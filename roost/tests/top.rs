//! `roost top` and the view of `roost demo` as a person uses them: in a terminal, at the keys.
#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod stand_in;
mod terminal;
mod wire;

use std::process::Output;
use std::sync::Arc;

use roost_console::Settings;
use roost_oracle::python3;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use unicode_width::UnicodeWidthStr as _;

use stand_in::{StandIn, serve};
use terminal::drive;
use wire::{Process, Site, roost, until, within};

/// They would clear the screen, set a title, ring, turn a line around or push columns aside.
const HOSTILE: [&str; 6] = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "\u{1b}c\u{1b}[?1049l\u{1b}[1;1Hpwned",
    "a\r\nb\tc\u{8}\u{7f}\u{9b}31m",
    "x\u{202e}gnp.exe\u{2066}",
    "名前が長いワーカーの名前が長いワーカーの名前が長いワーカーの名前が長いワーカー",
    "e\u{301}\u{301}\u{301}\u{200d}\u{feff}",
];

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (120, 40);

/// A demo that goes on, and where it is.
fn demo(name: &str) -> (Process, String) {
    let args =
        ["demo", "hatchery", "--plain", "--keep", "--seed", "7", "--speed", "15", "--jobs", "60"];
    let mut command = roost(&args);
    command.args(["--listen", "127.0.0.1:0"]);
    let process = Process::start(command, &Site::new(name).file("demo.log"), "Ctrl-C ends it");
    let url = process.word("http://").to_owned();
    (process, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn top_shows_a_running_service_explains_its_jobs_and_steers_it() {
    let Some(python) = python3() else { return };
    let (demo, url) = demo("top-steers");
    let steps = json!([
        {"until": "[3 decisions]"},
        {"type": "1"},
        // A row of the list, not the lane of that name.
        {"until": "  working "},
        {"type": "/working\r"},
        {"until": "/working"},
        {"type": "j"},
        {"until": "\n>"},
        {"picture": ""},
        {"type": "\r"},
        {"until": "waiting for address"},
        {"picture": ""},
        {"type": "\r"},
        {"until": "worker, for "},
        {"picture": ""},
        {"type": "\u{1b}\u{1b}\u{1b}?"},
        {"until": "any key closes this"},
        {"type": "xp"},
        {"until": "Pause spawning?"},
        {"type": "n"},
        {"gone": "Pause spawning?"},
        {"type": "py"},
        {"until": "spawning is paused; what is under way goes on"},
        {"until": "spawning is paused since"},
        {"picture": ""},
        {"type": "q"},
    ]);
    let token = [("ROOST_TOKEN", "demo"), ("ROOST_URL", &url)];
    let session = drive(&python, LARGE, &steps, &["top"], &token).await;
    session.assert_well();
    let list = session.picture(0);
    for part in ["roost top · roost-demo", "debian12", "capacity", "[1 jobs ", "working"] {
        assert!(list.contains(part), "{part} is missing in\n{list}");
    }
    let job = session.picture(1);
    for part in ["A VM was started for it", "GATE", "workers", "PHASE", "###"] {
        assert!(job.contains(part), "{part} is missing in\n{job}");
    }
    let vm = session.picture(2);
    for part in ["─ VM ", "powered on", "template "] {
        assert!(vm.contains(part), "{part} is missing in\n{vm}");
    }
    let paused = session.picture(3);
    assert!(paused.contains("spawning is paused; what is under way goes on"), "{paused}");

    let steps = json!([
        {"until": "spawning is paused since"},
        {"type": "r"},
        {"until": "an action needs the service's token"},
        {"picture": ""},
        {"resize": [120, 40]},
        {"until": "capacity"},
        {"picture": ""},
        {"signal": "SIGTERM"},
    ]);
    let session = drive(&python, SMALL, &steps, &["top"], &token[1..]).await;
    session.assert_well();
    assert!(!session.picture(0).contains("Resume spawning?"), "nothing is asked for in vain");
    let larger = session.lines(1);
    assert!(larger[39].contains("needs the service's token"), "{larger:#?}");
    assert!(larger[0].contains("roost 0."), "there is room for more: {larger:#?}");
    drop(demo);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_is_gone_is_said_to_be_and_found_again_when_it_is_back() {
    let Some(python) = python3() else { return };
    let site = Site::new("top-lost");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let service = StandIn::hostile("before", &HOSTILE);
    let ended = async { drop(stopped.await) };
    let first = tokio::spawn(serve(listener, Arc::new(service), Settings::default(), ended));
    let marks = ["seen", "lost"].map(|name| site.file(name));
    let steps = json!([
        {"until": "before"},
        {"mark": &marks[0]},
        {"until": "LINK LOST since"},
        {"picture": ""},
        {"mark": &marks[1]},
        {"until": "after"},
        {"gone": "LINK LOST"},
        {"type": "q"},
    ]);
    let url = format!("http://{address}");
    let args = ["top", "--url", &url];
    let interrupting = async {
        until("it is seen", within(60), async || marks[0].exists()).await;
        stop.send(()).unwrap();
        first.await.unwrap();
        until("it is missed", within(60), async || marks[1].exists()).await;
        let again = TcpListener::bind(address).await.unwrap();
        let service = Arc::new(StandIn::hostile("after", &HOSTILE));
        tokio::spawn(serve(again, service, Settings::default(), std::future::pending()));
    };
    let (session, ()) = tokio::join!(drive(&python, SMALL, &steps, &args, &[]), interrupting);
    session.assert_well();
    let lost = session.picture(0);
    assert!(lost.contains("before"), "what was known stays:\n{lost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_do_nothing_to_a_terminal() {
    let Some(python) = python3() else { return };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = Arc::new(StandIn::hostile("plain", &HOSTILE));
    tokio::spawn(serve(listener, service, Settings::default(), std::future::pending()));
    let mut steps = vec![json!({"until": "[3 decisions]"})];
    for list in ["1", "2", "3"] {
        steps.extend([json!({"type": list}), json!({"picture": ""})]);
        for _ in HOSTILE {
            steps.extend([
                json!({"type": "j\r"}),
                json!({"picture": ""}),
                json!({"type": "\u{1b}"}),
            ]);
        }
    }
    steps.push(json!({"type": "q"}));
    let session = drive(&python, SMALL, &json!(steps), &["top", "--url", &url], &[]).await;
    session.assert_well();
    assert!(!session.rang, "no name rings the bell");
    for number in 0..3 * (1 + HOSTILE.len()) {
        let lines = session.lines(number);
        assert!(lines[0].starts_with(" roost top"), "the head stays: {lines:#?}");
        assert!(lines[23].starts_with(" q ends") || lines[23].starts_with(" Esc"), "{lines:#?}");
        assert!(lines.iter().all(|line| line.width() <= 80), "{lines:#?}");
    }
    let names = session.picture(1 + HOSTILE.len());
    assert!(names.contains("\u{fffd}[2J") && names.contains("名前"), "{names}");

    let watch = ["vms", "--watch", "0.2", "--url", &url];
    let steps = json!([{"until": "every 0.2 s"}, {"picture": ""}, {"type": "\u{3}"}]);
    let session = drive(&python, SMALL, &steps, &watch, &[]).await;
    session.assert_well();
    let table = session.picture(0);
    assert!(table.starts_with("NAME ") && table.contains("\u{fffd}[2J"), "{table}");
    assert!(session.lines(0).iter().all(|line| line.width() <= 80), "{table}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_has_the_same_keys_and_ends_with_its_summary() {
    let Some(python) = python3() else { return };
    let args = ["demo", "hatchery", "--seed", "7", "--speed", "20", "--listen", "127.0.0.1:0"];
    let steps = json!([
        {"until": " done"},
        {"type": "\t"},
        {"until": "[1 jobs "},
        {"until": " debian12/"},
        {"type": "j\r"},
        {"until": "Job "},
        {"picture": ""},
        {"type": "\u{1b}Dy"},
        {"until": "no new workers"},
        {"until": "the hatchery is being drained"},
        {"picture": ""},
        {"type": "\u{3}"},
    ]);
    let session = drive(&python, SMALL, &steps, &args, &[]).await;
    session.assert_well();
    assert!(session.picture(0).contains("─ job "), "{}", session.picture(0));
    assert!(session.last().contains("stopped early"), "{}", session.last());
}

async fn run(args: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = roost(args);
    command.env_remove("COLUMNS").env_remove("LINES").envs(variables.iter().copied());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_it_is_one_clear_line_or_one_frame_of_text() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let service = Arc::new(StandIn::hostile("plain", &HOSTILE));
    tokio::spawn(serve(listener, service, Settings::default(), std::future::pending()));
    let refused = run(&["top", "--url", &url], &[]).await;
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{said}");
    let words = "roost: `roost top` needs a terminal; `roost top --once` prints one frame as text";
    assert!(said.starts_with(words) && said.lines().count() == 1, "{said}");

    for (size, width, height) in
        [(vec![], 80, 24), (vec![("COLUMNS", "120"), ("LINES", "40")], 120, 40)]
    {
        let once = run(&["top", "--once", "--url", &url], &size).await;
        let frame = String::from_utf8(once.stdout).unwrap();
        assert!(once.status.success() && frame.starts_with(" roost top · plain"), "{frame}");
        assert_eq!(frame.lines().count(), height);
        assert!(frame.lines().all(|line| line.width() <= width), "{frame}");
        assert!(!frame.contains('\u{1b}'), "{frame:?}");
    }
    let nobody = run(&["top", "--once", "--url", "http://127.0.0.1:9"], &[]).await;
    let said = String::from_utf8(nobody.stderr).unwrap();
    assert!(said.starts_with("roost: no service can be reached at http://127.0.0.1:9/"), "{said}");
}
