//! The picture on screens of several sizes.

use jiff::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use roost_views::{
    AddressesView, DecisionView, DeletionsView, DoorView, Ended, Facts, GateView, GaugeView,
    Gauges, HistoryView, LaneView, LimitView, LinkView, NeedKind, NeedView, Overview, Part,
    PoolView, Power, QueueView, RequestDetail, RequestId, RequestState, RequestView, SteeringView,
    StepView, SubjectKind, Unit, Verdict, VmDetail, VmKind, VmPhase, VmView,
};

use super::draw::draw;
use super::paint::Paint;
use super::view::View;
use super::{Count, Detail, Look, Lost, Mood, Opened, Picture, print_once};

fn at(secs: i64) -> Timestamp {
    Timestamp::from_second(1_767_261_600 + secs).unwrap()
}

fn part(phase: &str) -> Part {
    match phase {
        "claiming" => Part::Claiming,
        "cloning" => Part::Making,
        "launching" => Part::Launching,
        "registering" => Part::Joining,
        "working" => Part::Working,
        "destroying" => Part::Leaving,
        _ => Part::Starting,
    }
}

fn lane(phase: &str, words: &str, names: &[&str]) -> LaneView {
    LaneView {
        phase: phase.into(),
        words: words.into(),
        part: part(phase),
        count: names.len() as u64,
        names: names.iter().map(ToString::to_string).collect(),
    }
}

fn pool(template: &str, wanted: u64, ready: u64, coming: u64) -> PoolView {
    PoolView {
        door: "bakery".into(),
        name: template.into(),
        template: Some(template.into()),
        size: None,
        facts: Facts::default(),
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
    verdict: Verdict,
    reason: &str,
) -> DecisionView {
    let since = at(700 + i64::try_from(seq).unwrap());
    DecisionView {
        seq,
        at: since,
        door: "bakery".into(),
        subject_kind: kind,
        subject: subject.into(),
        subject_name: None,
        verdict,
        reason: reason.into(),
        bound_by: None,
        gates: vec![],
        next_look: None,
        vm: None,
        times: 1,
        since,
    }
}

const JOB: &str = "6f1c7a52-0c7e-4d7e-9a51-3f4f6f1b2c3d";

fn of_job() -> SubjectKind {
    SubjectKind::Request("job".into())
}

fn job(id: &str, state: RequestState, vm: Option<&str>) -> RequestView {
    RequestView {
        id: RequestId::new("bakery", id),
        noun: "job".into(),
        group: "project".into(),
        project: Some("DEMO".into()),
        facts: Facts::default(),
        state,
        queued: Some(at(600)),
        waited_secs: Some(151),
        outcome: None,
        wants: Some("debian12/large".into()),
        vm: vm.map(Into::into),
        verdict: Some(decision(9, of_job(), id, Verdict::Deferred, "vCPUs: 38 + 8 of 40")),
    }
}

fn vm(id: &str, name: &str, kind: VmKind, job: Option<&str>) -> VmView {
    VmView {
        id: id.into(),
        name: name.into(),
        door: "bakery".into(),
        kind,
        power: Power::On,
        phase: Some(VmPhase {
            words: "booting".into(),
            label: "booting".into(),
            part: Part::Starting,
            since: Some(at(740)),
        }),
        request: job.map(|job| RequestId::new("bakery", job)),
        template: Some("debian12".into()),
        facts: Facts::default(),
        cpus: Some(8),
        memory_mb: Some(16_384),
        address: Some("10.0.0.17".into()),
        created: Some(at(730)),
        started: None,
        fate: Some("kept: its worker starts".into()),
    }
}

/// Two jobs of which the second has a VM, and a spare.
pub(super) fn look() -> Look {
    Look {
        picture: picture(),
        requests: vec![
            job(JOB, RequestState::Waiting, None),
            job("17", RequestState::Working, Some("keen-bohr")),
        ],
        vms: vec![
            vm("vm-1", "keen-bohr", VmKind::Worker, Some("17")),
            vm("vm-2", "provision-v2-1", VmKind::Spare, None),
        ],
        detail: None,
        said: None,
    }
}

fn picture() -> Picture {
    let mut capacity = Gauges::default();
    for (brief, unit, used, reserved, limit) in [
        ("workers", Unit::Pieces, 11, 0, 14),
        ("starting", Unit::Pieces, 3, 1, 10),
        ("vCPUs", Unit::Pieces, 30, 8, 40),
        ("memory", Unit::Mebibytes, 61_440, 16_384, 81_920),
    ] {
        let (words, limit) = (brief.to_owned(), LimitView::At(limit));
        capacity.add(brief, GaugeView { words, brief: brief.into(), unit, used, reserved, limit });
    }
    let job = JOB;
    let mut decisions: Vec<_> = (1..30)
        .map(|seq| decision(seq, of_job(), job, Verdict::Deferred, "vCPUs: 38 + 8 of 40"))
        .collect();
    let gigantic = "flavor \"gigantic\" is not known: there are small, medium, large";
    let finished = "its worker has finished: powered off and not known to CDS";
    decisions.extend([
        decision(30, of_job(), job, Verdict::Spawned, "worker keen-bohr runs in a spare"),
        decision(31, of_job(), "17", Verdict::Refused, gigantic),
        decision(32, SubjectKind::Pool, "debian12", Verdict::Deferred, "vCPUs: 38 + 2 of 40"),
        decision(33, SubjectKind::Vm, "vm-412", Verdict::Deleted, finished),
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
        counts: vec![
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
            observes_only: false,
            what_binds: Some("vCPUs: 38 taken, 8 needed, limit 40".into()),
            needs: Vec::new(),
            outages: Vec::new(),
            queue: QueueView {
                waiting: 5,
                oldest_waiting_secs: Some(45),
                starting: 3,
                refused: 2,
                working: 7,
                ..QueueView::default()
            },
            lanes: vec![
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
            capacity,
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
                server: LinkView::VCENTER.into(),
                connected: true,
                synced: true,
                last_contact: Some(at(750)),
                resyncs: 0,
                trouble: None,
                vms_seen: 338,
                calls: None,
            },
            recent: vec![],
            doors: vec![DoorView {
                name: "bakery".into(),
                title: "roost-demo".into(),
                noun: "job".into(),
                nouns: "jobs".into(),
                path: "jobs".into(),
                about: String::new(),
                ready: true,
                queue: QueueView::default(),
                what_binds: None,
                oldest: None,
                tiles: vec![],
            }],
        },
        steering: SteeringView::default(),
        decisions,
        ends_with_view: false,
        history: HistoryView::default(),
        hint: "q ends it".into(),
        lost: None,
    }
}

fn drawn(picture: &Picture, width: u16, height: u16) -> String {
    shown(&Look { picture: picture.clone(), ..look() }, &mut View::default(), width, height)
}

fn shown(look: &Look, view: &mut View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, look, view, Paint::Colours)).unwrap();
    terminal.backend().to_string()
}

/// What is shown after these keys.
fn after(keys: &str, look: &Look, width: u16, height: u16) -> String {
    let mut view = View::default();
    for key in keys.chars() {
        view.press(super::keys::typed(key), look, || Ok(()));
    }
    shown(look, &mut view, width, height)
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
        "memory GiB",
        "addresses",
        "338 VMs seen",
        "[3 decisions]",
        "1 jobs",
        "2 VMs",
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
        lanes: vec![],
        pools: vec![],
        capacity: Gauges::default(),
        addresses: None,
        what_binds: None,
        queue: QueueView::default(),
        ..empty.overview
    };
    empty.counts = vec![];
    empty.decisions = vec![];
    for (width, height) in [(1, 1), (20, 5), (39, 10), (80, 12), (300, 100)] {
        drawn(&picture(), width, height);
        drawn(&empty, width, height);
    }
    assert!(drawn(&empty, 80, 24).contains("nothing waits"));
}

#[test]
fn the_lists_are_a_key_away_and_the_marked_line_is_seen() {
    let screen = after("1j", &look(), 80, 24);
    assert!(screen.contains("[1 jobs 2]"), "{screen}");
    assert!(screen.contains(">6f1c7a52  waiting    2m31s  debian12/large"), "{screen}");
    let screen = after("2jj", &look(), 80, 24);
    assert!(screen.contains(">provision-v2-1"), "{screen}");
    let screen = after("1z", &look(), 120, 40);
    assert!(!screen.contains("capacity"), "the list has all of it:\n{screen}");
    let screen = after("1/bohr\n", &look(), 80, 24);
    assert!(screen.contains("[1 jobs 0 of 2]") && screen.contains("/bohr"), "{screen}");
}

fn explained() -> Look {
    let gate = GateView {
        name: "cpus".into(),
        passed: false,
        need: Some(8),
        have: Some(38),
        limit: Some(LimitView::At(40)),
        note: None,
        words: None,
    };
    let step = |words: &str, began, took_ms: Option<u64>| StepView {
        phase: words.replace(' ', "-"),
        words: words.into(),
        part: part(words),
        began: at(began),
        took_ms,
        deadline_ms: 180_000,
        ended: took_ms.map(|_| Ended::Done),
    };
    let decided = decision(9, of_job(), "17", Verdict::Spawned, "cloned from debian12");
    let deferred = decision(8, of_job(), "17", Verdict::Deferred, "vCPUs: 38 + 8 of 40");
    let detail = VmDetail {
        vm: vm("vm-1", "keen-bohr", VmKind::Worker, Some("17")),
        annotation: None,
        timeline: vec![step("cloning", 700, Some(20_000)), step("booting", 720, None)],
        decisions: vec![],
    };
    let detail = RequestDetail::new(
        job("17", RequestState::Working, Some("keen-bohr")),
        vec![DecisionView { gates: vec![gate], ..deferred }, decided],
        Some(detail),
    );
    Look { detail: Some(Detail::Request(Box::new(detail))), ..look() }
}

#[test]
fn a_job_opens_with_its_gates_and_its_waterfall() {
    let screen = after("1jj\n", &explained(), 80, 24);
    for part in ["Job 17", "A VM was started", "cpus", "cloning", "####", "booting", "Esc"] {
        assert!(screen.contains(part), "{part} is missing in\n{screen}");
    }
    insta::assert_snapshot!(screen);
    let scrolled = after("1jj\njjj", &explained(), 80, 14);
    let mut view = View {
        opened: vec![Opened::Request(RequestId::new("bakery", "17"))],
        scroll: 999,
        ..View::default()
    };
    let end = shown(&explained(), &mut view, 80, 14);
    assert!(end.contains("booting") && !end.contains("below"), "{end}\n{scrolled}");
}

#[test]
fn keys_are_listed_and_an_action_is_asked_for_once_more() {
    let screen = after("?", &look(), 80, 24);
    for part in ["pause spawning", "any key closes this", "freeze deletions"] {
        assert!(screen.contains(part), "{part} is missing in\n{screen}");
    }
    let screen = after("2jx", &look(), 80, 24);
    assert!(screen.contains("Delete VM keen-bohr?") && screen.contains("y does it"), "{screen}");
    insta::assert_snapshot!(screen);
}

#[test]
fn a_lost_link_and_what_persons_said_stand_where_everybody_looks() {
    let mut look = look();
    look.picture.steering.held = Some("spawning is paused since 10:00 by somebody".into());
    let screen = shown(&look, &mut View::default(), 80, 24);
    assert!(
        screen.contains("spawning is paused since 10:00 by somebody; oldest waits"),
        "{screen}"
    );
    look.picture.lost =
        Some(Lost { since: at(656), for_secs: 95, why: "connection refused".into() });
    let screen = shown(&look, &mut View::default(), 80, 24);
    let words = "LINK LOST since 10:10:56 (1 min 35 s): connection refused; all below is from";
    assert!(screen.contains(words), "{screen}");
}

/// Names that would command a terminal, turn a line around or push a column aside.
const HOSTILE: [&str; 6] = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "a\r\nb\tc\u{8}\u{9b}31m",
    "x\u{202e}gnp.exe\u{2066}",
    "名前が長いワーカーの名前が長いワーカー",
    "e\u{301}\u{301}\u{301}\u{200d}\u{feff}",
    "שלום-مرحبا",
];

#[test]
fn hostile_names_cannot_break_the_screen() {
    let mut look = explained();
    for (number, name) in HOSTILE.iter().enumerate() {
        look.requests.push(RequestView {
            outcome: None,
            wants: Some((*name).into()),
            ..job(name, RequestState::Waiting, Some(name))
        });
        look.vms.push(VmView {
            fate: Some((*name).into()),
            ..vm(name, name, VmKind::Leaving, Some(name))
        });
        let seq = 100 + number as u64;
        look.picture.decisions.push(decision(seq, SubjectKind::Vm, name, Verdict::Kept, name));
        look.picture.overview.lanes.push(lane(name, name, &HOSTILE));
        look.picture.overview.pools.push(pool(name, 3, 1, 1));
    }
    let all = HOSTILE.concat();
    look.picture.facts.insert(0, all.clone());
    look.picture.overview.what_binds = Some(all.clone());
    look.picture.overview.link.trouble = Some(all.clone());
    look.picture.steering.frozen = Some(all.clone());
    let open = |opened: Opened| View { opened: vec![opened], ..View::default() };
    for (width, height) in [(80, 24), (120, 40), (30, 10)] {
        let mut views = vec![
            open(Opened::Vm(all.clone())),
            open(Opened::Decision(102)),
            View { filter: all.clone(), ..View::default() },
        ];
        for keys in ["1", "2", "3", "1z", "2jjjjjx", "?", "/"] {
            let mut view = View::default();
            keys.chars().for_each(|key| {
                view.press(super::keys::typed(key), &look, || Ok(()));
            });
            views.push(view);
        }
        for mut view in views {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let frame =
                terminal.draw(|frame| draw(frame, &look, &mut view, Paint::Colours)).unwrap();
            for cell in frame.buffer.content() {
                let safe = cell.symbol().chars().all(|char| !super::words::is_unsafe(char));
                assert!(safe, "{:?} in {view:?}", cell.symbol());
            }
        }
    }
    let text = print_once(&look, 80, 24);
    assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 80), "{text}");
}

#[test]
fn one_frame_is_plain_text() {
    let text = print_once(&look(), 80, 24);
    assert_eq!(text.lines().count(), 24);
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.starts_with(" roost demo · 10:12:31 simulated"), "{text}");
}

fn need(words: &str, advice: &str, runbook: &str) -> NeedView {
    NeedView {
        kind: NeedKind::Refused,
        door: "bakery".into(),
        words: words.into(),
        advice: advice.into(),
        since: Some(at(640)),
        count: 3,
        names: vec![],
        href: "/jobs".into(),
        runbook: Some(runbook.into()),
    }
}

#[test]
fn all_that_needs_a_person_is_a_key_away_and_none_of_it_is_cut() {
    let mut look = look();
    let flavor = "3 jobs refused: flavor \"gigantic\" is not configured, and no other flavor was asked for by any of them";
    look.picture.overview.needs = vec![
        need(flavor, "Add the flavor to the file.", "jobs-wait-without-workers"),
        need(
            "template debian12 fails: 7 attempts in a row",
            "Correct it.",
            "template-keeps-failing",
        ),
    ];
    let head = after("", &look, 80, 24);
    assert!(head.contains("2 THINGS NEED A PERSON (n says more): 3 jobs refused"), "{head}");
    let screen = after("n", &look, 80, 24);
    let lines = screen.lines().map(|line| line.trim_matches('"').trim());
    let text = lines.collect::<Vec<_>>().join(" ");
    for part in [
        flavor,
        "Add the flavor to the file. See docs/runbooks/jobs-wait-without-workers.md.",
        "template debian12 fails: 7 attempts in a row",
        "See docs/runbooks/template-keeps-failing.md.",
    ] {
        assert!(text.contains(part), "{part:?} is missing in\n{screen}");
    }
    look.picture.overview.needs.truncate(1);
    assert!(after("", &look, 80, 24).contains("1 THING NEEDS A PERSON"));
    look.picture.overview.needs.clear();
    let screen = after("n", &look, 80, 24);
    assert!(screen.contains("Nothing needs you."), "{screen}");
}
