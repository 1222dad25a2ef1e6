//! The picture on screens of several sizes.

use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use roost_console::views::{
    AddressesView, CapacityView, DecisionView, DeletionsView, GaugeView, LaneView, LimitView,
    LinkView, Overview, PoolView, QueueView, SubjectKind,
};

use super::draw::draw;
use super::paint::Paint;
use super::{Count, Mood, Picture};

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(1_767_261_600 + secs).unwrap()
}

fn lane(phase: &str, words: &str, names: &[&str]) -> LaneView {
    LaneView {
        phase: phase.into(),
        words: words.into(),
        count: names.len() as u64,
        names: names.iter().map(ToString::to_string).collect(),
    }
}

fn pool(template: &str, wanted: u64, ready: u64, coming: u64) -> PoolView {
    PoolView {
        model: template.into(),
        template: Some(template.into()),
        flavor: None,
        wanted,
        ready,
        coming,
        in_use: 0,
        missing: wanted - ready - coming,
        waiting: None,
    }
}

fn decision(
    seq: u64,
    kind: SubjectKind,
    subject: &str,
    verdict: &str,
    reason: &str,
) -> DecisionView {
    let since = at(700 + i64::try_from(seq).unwrap());
    DecisionView {
        seq,
        at: since,
        subject_kind: kind,
        subject: subject.into(),
        subject_name: None,
        verdict: verdict.into(),
        reason: reason.into(),
        bound_by: None,
        gates: vec![],
        next_look: None,
        vm: None,
        times: 1,
        since,
    }
}

fn picture() -> Picture {
    let gauge = |used, reserved, limit| GaugeView { used, reserved, limit: LimitView::At(limit) };
    let job = "6f1c7a52-0c7e-4d7e-9a51-3f4f6f1b2c3d";
    let mut decisions: Vec<_> = (1..30)
        .map(|seq| decision(seq, SubjectKind::Job, job, "deferred", "vCPUs: 38 + 8 of 40"))
        .collect();
    let gigantic = "flavor \"gigantic\" is not known: there are small, medium, large";
    let finished = "its worker has finished: powered off and not known to CDS";
    decisions.extend([
        decision(30, SubjectKind::Job, job, "spawned", "worker keen-bohr runs in a spare"),
        decision(31, SubjectKind::Job, "17", "refused", gigantic),
        decision(32, SubjectKind::Pool, "debian12", "deferred", "vCPUs: 38 + 2 of 40"),
        decision(33, SubjectKind::Vm, "vm-412", "deleted", finished),
    ]);
    let count = |name, number, mood| Count { name, number, mood };
    Picture {
        title: "roost demo".into(),
        facts: vec![
            "10:12:31 simulated".into(),
            "30x".into(),
            "seed 7".into(),
            "http://127.0.0.1:8086".into(),
        ],
        jobs: vec![
            count("done", 30, Mood::Good),
            count("running", 8, Mood::Busy),
            count("starting", 3, Mood::Busy),
            count("waiting", 5, Mood::Waiting),
            count("refused", 2, Mood::Bad),
            count("failed", 0, Mood::Bad),
            count("to come", 12, Mood::Quiet),
        ],
        overview: Overview {
            service: "roost-demo".into(),
            version: "0.1.0".into(),
            now: at(751),
            started: at(0),
            ready: true,
            what_binds: Some("vCPUs: 38 taken, 8 needed, limit 40".into()),
            queue: QueueView { waiting: 5, oldest_waiting_secs: Some(45), starting: 3 },
            workers: vec![
                lane("claiming", "claiming a spare", &[]),
                lane("cloning", "cloning", &["calm-curie"]),
                lane("powering-on", "powering on", &[]),
                lane("booting", "booting", &["keen-bohr", "bold-noether"]),
                lane("waiting-for-address", "waiting for address", &[]),
                lane("probing", "probing the guest", &[]),
                lane("launching", "launching", &[]),
                lane("registering", "registering", &["<script>alert(1)</script>"]),
                lane(
                    "working",
                    "working",
                    &[
                        "wise-euler",
                        "warm-gauss",
                        "quiet-hopper",
                        "brave-turing",
                        "gentle-lovelace",
                        "busy-knuth",
                    ],
                ),
                lane("destroying", "destroying", &["done-wirth"]),
            ],
            pools: vec![pool("debian12", 5, 3, 1), pool("ubuntu24", 2, 2, 0)],
            capacity: CapacityView {
                workers: gauge(11, 0, 14),
                pending: gauge(3, 1, 10),
                registering: gauge(0, 0, 2),
                cpus: gauge(30, 8, 40),
                memory_mb: gauge(61_440, 16_384, 81_920),
            },
            addresses: Some(AddressesView {
                total: 24,
                free: 8,
                used: 12,
                reserved: 1,
                quarantined: 3,
                forecast: None,
            }),
            deletions: DeletionsView { frozen: None, last_minute: 4 },
            link: LinkView {
                connected: true,
                synced: true,
                last_contact: Some(at(750)),
                resyncs: 0,
                trouble: None,
                vms_seen: 338,
                calls: None,
            },
            recent: vec![],
        },
        decisions,
        hint: "q ends it".into(),
    }
}

fn drawn(picture: &Picture, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, picture, Paint::Colours)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn all_of_it_fits_80_by_24() {
    let screen = drawn(&picture(), 80, 24);
    for part in [
        "roost demo",
        "10:12:31",
        "30x",
        "seed 7",
        "http://127.0.0.1:8086",
        "30 done",
        "12 to come",
        "oldest waits 45 s",
        "booting",
        "working",
        "debian12",
        "ubuntu24",
        "workers",
        "vCPUs",
        "memory GB",
        "addresses",
        "338 VMs seen",
        "last decisions",
        "deferred",
        "q ends it",
    ] {
        assert!(screen.contains(part), "{part} is missing in\n{screen}");
    }
    insta::assert_snapshot!(screen);
}

#[test]
fn a_larger_screen_shows_more() {
    let screen = drawn(&picture(), 120, 40);
    for part in ["refused", "gigantic", "keen-bohr", "its worker has finished"] {
        assert!(screen.contains(part), "{part} is missing in\n{screen}");
    }
    insta::assert_snapshot!(screen);
}

#[test]
fn trouble_is_said_where_it_is_looked_for() {
    let mut picture = picture();
    picture.overview.link.trouble = Some("connection refused".into());
    picture.overview.deletions.frozen = Some("7 of 20 VMs within a minute".into());
    picture.overview.ready = false;
    let screen = drawn(&picture, 80, 24);
    for part in ["connection refused", "frozen: 7 of 20", "not ready"] {
        assert!(screen.contains(part), "{part} is missing in\n{screen}");
    }
}

#[test]
fn no_screen_is_too_small_and_nothing_at_all_is_a_picture() {
    let mut empty = picture();
    empty.overview = Overview {
        workers: vec![],
        pools: vec![],
        capacity: CapacityView::default(),
        addresses: None,
        what_binds: None,
        queue: QueueView::default(),
        ..empty.overview
    };
    empty.jobs = vec![];
    empty.decisions = vec![];
    for (width, height) in [(1, 1), (20, 5), (39, 10), (80, 12), (300, 100)] {
        drawn(&picture(), width, height);
        drawn(&empty, width, height);
    }
    assert!(drawn(&empty, 80, 24).contains("nothing waits"));
}
