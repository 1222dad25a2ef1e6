//! What is printed, from fixed views.

use insta::assert_snapshot;
use jiff::{SignedDuration, Timestamp};
use roost_views::{
    AddressesView, CallsView, DecisionView, DeletionsView, Ended, Facts, GateView, GaugeView,
    Gauges, LaneView, LimitView, LinkView, Overview, Part, PoolView, Power, QueueView,
    RequestDetail, RequestId, RequestState, RequestView, SteeringView, StepView, SubjectKind, Unit,
    Verdict, VmDetail, VmKind, VmPhase, VmView,
};

use super::args::{Ask, Picking};
use super::pick::{self, Row};
use super::{explain, status, vm as machine, words};

const NOW: Timestamp = Timestamp::constant(1_780_272_000, 0);

fn ago(secs: i64) -> Timestamp {
    NOW - SignedDuration::from_secs(secs)
}

#[expect(clippy::unnecessary_wraps, reason = "it fills fields that are options")]
fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn shown(lines: impl AsRef<[String]>) -> String {
    words::page(lines.as_ref())
}

/// A table in its usual order.
fn listed<T: Row + Clone>(rows: &[T], width: Option<usize>) -> String {
    let mut rows = rows.to_vec();
    rows.sort_by(T::usual);
    shown(pick::table(&rows, NOW, width))
}

fn gate(name: &str, numbers: Option<(u64, u64, LimitView)>, note: Option<&str>) -> GateView {
    let fits = |(need, have, limit): (u64, u64, LimitView)| {
        limit.at().is_none_or(|limit| have + need <= limit)
    };
    GateView {
        name: name.into(),
        passed: numbers.is_none_or(fits),
        need: numbers.map(|(need, ..)| need),
        have: numbers.map(|(_, have, _)| have),
        limit: numbers.map(|(.., limit)| limit),
        note: note.map(Into::into),
        words: None,
    }
}

fn deferred() -> DecisionView {
    DecisionView {
        seq: 31,
        at: ago(4),
        door: "bakery".into(),
        subject_kind: SubjectKind::Request("job".into()),
        subject: "8f2c1d7e".into(),
        subject_name: None,
        verdict: Verdict::Deferred,
        reason: "8 CPUs are needed, 60 of 64 are taken".into(),
        bound_by: some("cpus"),
        gates: vec![
            gate("model", None, Some("debian12")),
            gate("workers", Some((1, 12, LimitView::Unlimited)), None),
            gate("pool-memory", Some((16_384, 90_112, LimitView::Unknown)), Some("cannot be read")),
            gate("cpus", Some((8, 60, LimitView::At(64))), Some("2 kept for the smallest flavor")),
        ],
        next_look: some("when something changes"),
        vm: None,
        times: 12,
        since: ago(125),
    }
}

fn released() -> DecisionView {
    DecisionView {
        seq: 9,
        at: ago(240),
        verdict: Verdict::Released,
        reason: "booting took longer than 180s".into(),
        bound_by: None,
        gates: Vec::new(),
        next_look: None,
        times: 1,
        since: ago(240),
        ..deferred()
    }
}

fn spawned() -> DecisionView {
    DecisionView {
        seq: 40,
        at: ago(20),
        verdict: Verdict::Spawned,
        reason: "claimed a spare of debian12".into(),
        bound_by: None,
        gates: Vec::new(),
        next_look: None,
        vm: some("debian12-brave-hen"),
        times: 1,
        since: ago(20),
        ..deferred()
    }
}

fn facts() -> Facts {
    Facts::default()
        .listed("model", "Model", Some("debian12"))
        .listed("flavor", "Flavor", Some("large"))
        .listed("workflow", "Workflow", Some("build-and-test"))
        .with("protocol", "CDS queue", Some("v2"))
}

fn job() -> RequestView {
    RequestView {
        id: RequestId::new("bakery", "8f2c1d7e"),
        noun: "job".into(),
        group: "project".into(),
        project: some("SHOP"),
        state: RequestState::Waiting,
        queued: Some(ago(125)),
        waited_secs: Some(125),
        outcome: None,
        wants: some("debian12/large"),
        facts: facts(),
        vm: None,
        verdict: Some(DecisionView { gates: Vec::new(), ..deferred() }),
    }
}

fn vm() -> VmView {
    VmView {
        id: "vm-1207".into(),
        name: "debian12-brave-hen".into(),
        door: "bakery".into(),
        kind: VmKind::Worker,
        power: Power::On,
        phase: Some(VmPhase {
            words: "booting".into(),
            label: "booting".into(),
            part: Part::Starting,
            since: Some(ago(4)),
        }),
        request: Some(RequestId::new("bakery", "8f2c1d7e")),
        template: some("debian12-tpl"),
        facts: Facts::default()
            .listed("model", "Model", Some("debian12"))
            .listed("flavor", "Flavor", Some("large"))
            .with("worker_status", "CDS says", None::<String>),
        cpus: Some(8),
        memory_mb: Some(16_384),
        address: some("10.0.0.17"),
        created: Some(ago(3_725)),
        started: None,
        fate: None,
    }
}

fn step(words: &str, began: Timestamp, took_ms: Option<u64>, ended: Option<&str>) -> StepView {
    StepView {
        phase: words.replace(' ', "-"),
        words: words.into(),
        part: match words {
            "cloning" => Part::Making,
            "claiming a spare" => Part::Claiming,
            "launching" => Part::Launching,
            "working" => Part::Working,
            "destroying" | "shutting down" => Part::Leaving,
            _ => Part::Starting,
        },
        began,
        took_ms,
        deadline_ms: 180_000,
        ended: ended.map(|_| Ended::Done),
    }
}

fn pool(model: &str, flavor: Option<&str>, ready: u64, waiting: Option<&str>) -> PoolView {
    PoolView {
        door: "bakery".into(),
        name: model.into(),
        template: some("debian12-tpl"),
        size: flavor.map(Into::into),
        facts: Facts::default().listed("flavor", "Flavor", flavor),
        wanted: 5,
        ready,
        coming: 1,
        in_use: 2,
        missing: 4 - ready,
        waiting: waiting.map(Into::into),
    }
}

fn overview() -> Overview {
    let mut capacity = Gauges::default();
    for (name, brief, unit, used, reserved, limit) in [
        ("workers", "workers", Unit::Pieces, 12, 1, LimitView::Unlimited),
        ("pending", "starting", Unit::Pieces, 1, 0, LimitView::At(10)),
        ("cpus", "vCPUs", Unit::Pieces, 56, 4, LimitView::At(64)),
        ("memory_mb", "memory", Unit::Mebibytes, 98_304, 8_192, LimitView::At(262_144)),
    ] {
        let words = brief.to_owned();
        capacity.add(name, GaugeView { words, brief: brief.into(), unit, used, reserved, limit });
    }
    let lane = |words: &str, names: &[&str]| LaneView {
        phase: words.replace(' ', "-"),
        words: words.into(),
        part: Part::Starting,
        count: names.len() as u64,
        names: names.iter().map(|&name| name.into()).collect(),
    };
    Overview {
        service: "nest".into(),
        version: "0.1.0".into(),
        now: NOW,
        started: ago(90_000),
        ready: true,
        observes_only: false,
        what_binds: some("cpus: needs 8, 60 of 64 taken"),
        needs: Vec::new(),
        outages: Vec::new(),
        queue: QueueView {
            waiting: 3,
            oldest_waiting_secs: Some(125),
            starting: 1,
            working: 2,
            ..QueueView::default()
        },
        lanes: vec![
            lane("cloning", &[]),
            lane("booting", &["debian12-brave-hen"]),
            lane("working", &["debian12-calm-owl", "ubuntu24-dry-tern"]),
        ],
        pools: vec![pool("debian12", None, 3, None)],
        capacity,
        addresses: Some(AddressesView {
            total: 61,
            free: 0,
            used: 40,
            reserved: 11,
            quarantined: 10,
            forecast: some("the next one is free in 40s"),
        }),
        deletions: DeletionsView { frozen: None, last_minute: 2 },
        link: LinkView {
            server: LinkView::VCENTER.into(),
            connected: true,
            synced: true,
            last_contact: Some(ago(2)),
            resyncs: 1,
            trouble: None,
            vms_seen: 10_204,
            calls: Some(CallsView { last_minute: 4, ..CallsView::default() }),
        },
        recent: vec![released(), deferred()],
        doors: Vec::new(),
    }
}

#[test]
fn the_status_fits_a_screen() {
    assert_snapshot!(shown(status::render(&overview(), &SteeringView::default(), Some(100))));
}

#[test]
fn the_status_shouts_when_something_is_wrong() {
    let wrong = Overview {
        ready: false,
        what_binds: None,
        queue: QueueView::default(),
        lanes: Vec::new(),
        pools: Vec::new(),
        addresses: None,
        deletions: DeletionsView { frozen: some("7 of 10 VMs would go"), last_minute: 0 },
        link: LinkView { trouble: some("connection refused"), ..LinkView::default() },
        recent: Vec::new(),
        ..overview()
    };
    let paused = "spawning is paused since 2026-05-31T23:00:00Z by whoever has the token";
    let steering = SteeringView { held: some(paused), ..SteeringView::default() };
    assert_snapshot!(shown(status::render(&wrong, &steering, Some(100))));
}

#[test]
fn jobs_that_wait_longest_come_first() {
    let job = |id: &str, state, waited_secs| RequestView {
        id: RequestId::new("bakery", id),
        state,
        waited_secs,
        verdict: None,
        ..job()
    };
    let list = vec![
        job("1", RequestState::Ended, Some(3)),
        job("2", RequestState::Waiting, Some(3)),
        self::job(),
        job("3", RequestState::Working, None),
        job("4", RequestState::Starting, Some(9)),
    ];
    assert_snapshot!(listed(&list, None));
    assert_snapshot!("jobs_narrow", listed(&list, Some(80)));
    assert_eq!(listed::<RequestView>(&[], None), "no requests\n");
}

#[test]
fn vms_are_listed_by_what_they_are_for() {
    let list = vec![
        VmView { name: "leaves".into(), kind: VmKind::Leaving, fate: some("marked"), ..vm() },
        vm(),
        VmView {
            name: "provision-v2-1".into(),
            kind: VmKind::Spare,
            power: Power::Off,
            phase: None,
            request: None,
            facts: Facts::default().listed("model", "Model", None::<String>).listed(
                "flavor",
                "Flavor",
                None::<String>,
            ),
            cpus: None,
            memory_mb: Some(512),
            address: None,
            created: None,
            ..vm()
        },
        VmView { name: "\u{1b}[31m<script>\u{202e}".into(), ..vm() },
    ];
    assert_snapshot!(listed(&list, None));
    assert_snapshot!("vms_narrow", listed(&list, Some(80)));
}

#[test]
fn pools_say_what_they_wait_for() {
    let list = vec![
        pool(
            "ubuntu24",
            Some("small"),
            0,
            Some("the template keeps failing: 3 times, next try in 4m"),
        ),
        pool("debian12", None, 3, None),
    ];
    assert_snapshot!(listed(&list, None));
    assert_snapshot!("pools_narrow", listed(&list, Some(80)));
}

#[test]
fn decisions_are_one_line_each() {
    let deletion = DecisionView {
        subject_kind: SubjectKind::Vm,
        subject: "vm-1207".into(),
        subject_name: some("debian12-brave-hen"),
        verdict: Verdict::Kept,
        reason: "its job has ended (seen twice)".into(),
        bound_by: some("seen-twice"),
        next_look: some("in 30s"),
        ..released()
    };
    let list = [released(), deletion, deferred()];
    assert_snapshot!(listed(&list, None));
    assert_snapshot!("decisions_narrow", listed(&list, Some(80)));
    assert_eq!(listed::<DecisionView>(&[], None), "no decisions\n");
}

#[test]
fn a_waiting_job_is_explained_by_its_gates() {
    let detail = RequestDetail::new(job(), vec![released(), deferred()], None);
    assert_snapshot!(shown(explain::render(&detail, NOW, Some(80))));
}

#[test]
fn a_started_job_is_explained_by_what_its_vm_went_through() {
    let job = RequestView {
        state: RequestState::Starting,
        vm: some("debian12-brave-hen"),
        waited_secs: Some(145),
        ..job()
    };
    let timeline = vec![
        step("cloning", ago(90_000), Some(11_000), Some("done")),
        step("shutting down", ago(89_000), Some(6_500), Some("done")),
        StepView {
            phase: "claiming".into(),
            ..step("claiming a spare", ago(20), Some(1_250), Some("done"))
        },
        step("powering on", ago(18), Some(2_000), Some("done")),
        step("booting", ago(16), Some(10_000), Some("done")),
        step("waiting for address", ago(6), None, None),
    ];
    let waits = vm().phase.map(|phase| VmPhase { words: "waiting for address".into(), ..phase });
    let vm = VmDetail {
        vm: VmView { phase: waits, address: None, ..vm() },
        annotation: None,
        timeline,
        decisions: Vec::new(),
    };
    let deferred = DecisionView { at: ago(21), ..deferred() };
    let detail = RequestDetail::new(job, vec![deferred, spawned()], Some(vm));
    assert_snapshot!(shown(explain::render(&detail, NOW, Some(100))));
}

#[test]
fn hours_of_work_do_not_hide_what_led_to_it() {
    let timeline = vec![
        step("cloning", ago(7_300), Some(60_000), Some("done")),
        step("booting", ago(7_240), Some(30_000), Some("done")),
        step("launching", ago(7_210), Some(10_000), Some("done")),
        step("working", ago(7_200), Some(7_190_000), Some("done")),
        step("destroying", ago(10), None, None),
    ];
    assert_snapshot!(shown(super::waterfall::of_vm(&timeline, NOW, None)));
}

#[test]
fn a_job_that_was_only_just_seen_is_explained_too() {
    let job = RequestView { queued: None, waited_secs: None, verdict: None, ..job() };
    let detail = RequestDetail::new(job, Vec::new(), None);
    assert_snapshot!(shown(explain::render(&detail, NOW, None)));
}

#[test]
fn a_vm_is_explained_by_its_phases_and_what_was_decided_about_it() {
    let kept = DecisionView {
        subject_kind: SubjectKind::Vm,
        subject: "vm-1207".into(),
        subject_name: some("debian12-brave-hen"),
        verdict: Verdict::Kept,
        reason: "its job has ended (seen once)".into(),
        gates: vec![gate("seen-twice", Some((2, 1, LimitView::Unlimited)), None)],
        ..released()
    };
    let detail = VmDetail {
        vm: VmView { fate: some("goes when it was seen twice"), ..vm() },
        annotation: some("hatchery_name = nest\njob_id = 8f2c1d7e"),
        timeline: vec![
            step("cloning", ago(60), Some(40_000), Some("done")),
            step("booting", ago(20), None, None),
        ],
        decisions: vec![kept],
    };
    assert_snapshot!(shown(machine::render(&detail, NOW, Some(100))));
}

fn picked(sort: Option<&str>, filter: Option<&str>) -> Vec<String> {
    let vm = |name: &str, cpus, created, job: Option<&str>| VmView {
        name: name.into(),
        cpus,
        created: Some(ago(created)),
        request: job.map(|job| RequestId::new("bakery", job)),
        ..vm()
    };
    let vms = [
        vm("calm-owl", Some(16), 50, Some("77")),
        vm("Brave-hen", Some(2), 4_000, None),
        vm("dry-tern", None, 300, Some("8f2c")),
    ];
    let rows = vms.map(|vm| (vm.clone(), serde_json::to_value(vm).unwrap()));
    let picking =
        Picking { sort: sort.map(|sort| sort.parse().unwrap()), filter: filter.map(Into::into) };
    picking.pick(rows.to_vec(), NOW).unwrap().into_iter().map(|(vm, _)| vm.name).collect()
}

#[test]
fn rows_are_sorted_by_what_a_column_means_and_not_by_how_it_is_written() {
    for (sort, order) in [
        ("cpus", ["Brave-hen", "calm-owl", "dry-tern"]),
        ("cpus:desc", ["calm-owl", "Brave-hen", "dry-tern"]),
        ("age", ["calm-owl", "dry-tern", "Brave-hen"]),
        ("AGE:desc", ["Brave-hen", "dry-tern", "calm-owl"]),
        ("name", ["Brave-hen", "calm-owl", "dry-tern"]),
        ("for:asc", ["calm-owl", "dry-tern", "Brave-hen"]),
        ("for:desc", ["dry-tern", "calm-owl", "Brave-hen"]),
    ] {
        assert_eq!(picked(Some(sort), None), order, "{sort}");
    }
}

#[test]
fn a_filter_wants_each_of_its_words_somewhere_in_the_row() {
    for (filter, left) in [
        ("OWL", vec!["calm-owl"]),
        ("worker 8f2c", vec!["dry-tern"]),
        ("16gib", vec!["calm-owl", "Brave-hen", "dry-tern"]),
        ("owl tern", vec![]),
    ] {
        assert_eq!(picked(None, Some(filter)), left, "{filter}");
    }
}

#[test]
fn an_unknown_column_is_answered_with_the_known_ones() {
    let picking = Picking { sort: Some("wait".parse().unwrap()), filter: None };
    let row = || {
        let pool = pool("debian12", None, 3, None);
        vec![(pool.clone(), serde_json::to_value(pool).unwrap())]
    };
    let said = picking.pick(row(), NOW).unwrap_err().to_string();
    assert_eq!(
        said,
        "there is no column \"wait\" to sort by: there are pool, flavor, template, wanted, ready, coming, in-use, missing, waits-for"
    );
    let two_words = Picking { sort: Some("in use:desc".parse().unwrap()), filter: None };
    two_words.pick(row(), NOW).unwrap();
    assert!(picking.pick::<PoolView>(Vec::new(), NOW).is_ok(), "nobody knows what the columns are");
}

#[test]
fn each_table_is_narrowed_by_what_its_rows_are() {
    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(subcommand)]
        ask: Ask,
    }
    let parse = |line: &str| {
        let words = std::iter::once("roost").chain(line.split(' '));
        <Line as clap::Parser>::try_parse_from(words).unwrap().ask
    };
    let (waiting, large) =
        (job(), RequestView { state: RequestState::Working, verdict: None, ..job() });
    for (line, wanted) in [
        ("requests", [true, true]),
        ("requests --state waiting,starting", [true, false]),
        ("requests --state running", [false, true]),
        ("requests --verdict deferred", [true, false]),
        ("requests --model DEBIAN", [true, true]),
        ("requests --model ubuntu", [false, false]),
    ] {
        let Ask::Requests(requests) = parse(line) else { panic!("{line}") };
        assert_eq!([&waiting, &large].map(|job| requests.wants(job)), wanted, "{line}");
    }
    let spare = VmView { kind: VmKind::Spare, power: Power::Off, phase: None, ..vm() };
    for (line, wanted) in [
        ("vms --kind worker", [true, false]),
        ("vms --kind worker,spare", [true, true]),
        ("vms --power off", [false, true]),
        ("vms --phase boot", [true, false]),
        ("vms --model tpl", [true, true]),
    ] {
        let Ask::Vms(vms) = parse(line) else { panic!("{line}") };
        assert_eq!([&vm(), &spare].map(|vm| vms.wants(vm)), wanted, "{line}");
    }
    let full = PoolView { ready: 5, ..pool("debian12", None, 3, None) };
    for (line, wanted) in [("pools --short", [true, false]), ("pools --model deb", [true, true])] {
        let Ask::Pools(pools) = parse(line) else { panic!("{line}") };
        let short = pool("debian12", None, 3, None);
        assert_eq!([&short, &full].map(|pool| pools.wants(pool)), wanted, "{line}");
    }
    let Ask::Decisions(decisions) = parse("decisions --kind vm,service") else { panic!() };
    assert!(!decisions.wants(&deferred()));
    for wrong in
        ["vms --kind cow", "requests --state late", "requests --watch=0", "requests --watch=x"]
    {
        let words = std::iter::once("roost").chain(wrong.split(' '));
        assert!(<Line as clap::Parser>::try_parse_from(words).is_err(), "{wrong}");
    }
}
