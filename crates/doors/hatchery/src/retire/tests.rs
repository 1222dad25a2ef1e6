use std::time::Duration;

use super::*;

const LIFETIMES: Lifetimes = Lifetimes {
    worker: Duration::from_hours(2),
    registration: Duration::from_mins(10),
    finished_grace: Duration::from_mins(3),
    cleanup_interval: Duration::from_mins(2),
    deletions_at_once: 16,
};

fn at(minutes: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + Duration::from_mins(minutes.unsigned_abs())
}

/// A worker of `h1` that started at minute 0.
fn worker() -> Annotation {
    Annotation {
        hatchery_name: "h1".into(),
        worker_start_time: at(0).into(),
        ..Annotation::default()
    }
}

fn subject(annotation: &Annotation) -> Subject<'_> {
    Subject {
        name: "keen-bohr",
        annotation,
        is_template: false,
        power: Power::On,
        is_connected: true,
        worker: WorkerSeen::Absent,
        created: None,
        is_busy: false,
        events: Events::NotAsked,
    }
}

fn registered() -> WorkerSeen {
    WorkerSeen::Registered { status: WorkerStatus::Building, job: None }
}

fn verdict(subject: &Subject<'_>, minute: i64) -> Verdict {
    judge(subject, "h1", &LIFETIMES, at(minute))
}

#[test]
fn d21_row_by_row() {
    use Power::{Off, On, Suspended};
    let until = |minute, reason| Verdict::Until(at(minute), reason);
    for (case, power, worker_seen, minute, wanted) in [
        ("off, registered: now", Off, registered(), 0, Verdict::Delete(Reason::PoweredOff)),
        (
            "off, unregistered: not before the grace",
            Off,
            WorkerSeen::Absent,
            2,
            until(3, Reason::Finished),
        ),
        (
            "off, unregistered: after the grace",
            Off,
            WorkerSeen::Absent,
            3,
            Verdict::Delete(Reason::Finished),
        ),
        ("on, registered: not before workerTTL", On, registered(), 119, until(120, Reason::TooOld)),
        ("on, registered: after workerTTL", On, registered(), 120, Verdict::Delete(Reason::TooOld)),
        (
            "on, unregistered: it may still come",
            On,
            WorkerSeen::Absent,
            9,
            until(10, Reason::NeverRegistered),
        ),
        (
            "on, unregistered: too late",
            On,
            WorkerSeen::Absent,
            10,
            Verdict::Delete(Reason::NeverRegistered),
        ),
        (
            "on, unregistered: after workerTTL no list is needed",
            On,
            WorkerSeen::Absent,
            120,
            Verdict::Delete(Reason::TooOld),
        ),
        ("suspended is not off", Suspended, registered(), 1, until(120, Reason::TooOld)),
    ] {
        let annotation = worker();
        let subject = Subject { power, worker: worker_seen, ..subject(&annotation) };
        assert_eq!(verdict(&subject, minute), wanted, "{case}");
    }
}

#[test]
fn d20_without_a_start_time_the_birth_counts_and_the_servers_word_comes_first() {
    let mut annotation = worker();
    annotation.worker_start_time = crate::annotation::GoTime::NEVER;
    annotation.created = at(5).into();
    let by_server = Subject { created: Some(at(1)), ..subject(&annotation) };
    assert_eq!(verdict(&by_server, 2), Verdict::Until(at(11), Reason::NeverRegistered));
    assert_eq!(verdict(&subject(&annotation), 6), Verdict::Until(at(15), Reason::NeverRegistered));
}

#[test]
fn s_8_1_what_is_never_touched() {
    let (mine, mut model, nobody) = (worker(), worker(), Annotation::default());
    model.model = true;
    let theirs = Annotation { hatchery_name: "h2".into(), ..worker() };
    for (case, subject, wanted) in [
        ("another hatchery's", subject(&theirs), Keep::Foreign),
        ("nobody's: {}", subject(&nobody), Keep::Foreign),
        ("a step is at work on it", Subject { is_busy: true, ..subject(&mine) }, Keep::Busy),
        ("a spare by name", Subject { name: "provision-v2-x", ..subject(&mine) }, Keep::Spare),
        ("a template", Subject { is_template: true, ..subject(&model) }, Keep::Template),
        ("model: true", subject(&model), Keep::Template),
        (
            "workers not known",
            Subject { worker: WorkerSeen::Unknown, ..subject(&mine) },
            Keep::WorkersUnknown,
        ),
        ("power not known", Subject { power: Power::Unknown, ..subject(&mine) }, Keep::Unreachable),
        (
            "host not connected",
            Subject { is_connected: false, ..subject(&mine) },
            Keep::Unreachable,
        ),
    ] {
        assert_eq!(verdict(&subject, 10_000), Verdict::Keep(wanted), "{case}");
    }
}

#[test]
fn a_mark_is_obeyed_at_once_and_outranks_being_a_spare() {
    let mut annotation = worker();
    annotation.doom("no address");
    let gone = Verdict::Delete(Reason::Marked { why: "no address".into() });
    assert_eq!(verdict(&subject(&annotation), 0), gone);
    let spare = Subject { name: "provision-v2-x", ..subject(&annotation) };
    assert_eq!(verdict(&spare, 0), gone);
    let busy = Subject { is_busy: true, ..subject(&annotation) };
    assert_eq!(verdict(&busy, 0), Verdict::Keep(Keep::Busy), "whoever is at work deletes it");
    let unknown = Subject { worker: WorkerSeen::Unknown, ..subject(&annotation) };
    assert_eq!(verdict(&unknown, 0), gone, "its own word needs no list");
}

/// A mark that was made on a wrong belief once cost two workers their VMs.
#[test]
fn our_own_mark_does_not_outweigh_a_worker_that_cds_counts_on() {
    use Power::{Off, On};
    use WorkerStatus::{Building, Disabled};
    let (mut ours, mut asked) = (worker(), worker());
    ours.doom("another worker is at its job");
    asked.doom(crate::annotation::Doom::asked_for("jane asked for it"));
    let (mark, word) = (
        Reason::Marked { why: "another worker is at its job".into() },
        Reason::Marked { why: "jane asked for it".into() },
    );
    let off = Reason::PutDown { why: "another worker is at its job".into() };
    let with = |annotation, power, status| Subject {
        power,
        worker: WorkerSeen::Registered { status, job: None },
        ..subject(annotation)
    };
    for (case, subject, minute, wanted) in [
        ("at work", with(&ours, On, Building), 1, Verdict::Until(at(120), mark.clone())),
        ("for too long", with(&ours, On, Building), 120, Verdict::Delete(mark.clone())),
        ("disabled", with(&ours, On, Disabled), 1, Verdict::Delete(mark.clone())),
        ("off", with(&ours, Off, Building), 1, Verdict::Delete(off)),
        ("a person's word", with(&asked, On, Building), 1, Verdict::Delete(word)),
    ] {
        assert_eq!(verdict(&subject, minute), wanted, "{case}");
    }
}

/// A mark has a budget of each minute. A worker's VM that is off as well has finished, and holds an address.
#[test]
fn a_marked_worker_that_is_off_has_finished() {
    let mut annotation = worker();
    annotation.doom("its worker ended without a result");
    let why = || "its worker ended without a result".to_owned();
    let off = Subject { power: Power::Off, ..subject(&annotation) };
    let basis = |subject: &Subject<'_>| match verdict(subject, 1) {
        Verdict::Delete(reason) => reason.basis(),
        other => panic!("{other:?}"),
    };
    assert_eq!(verdict(&off, 1), Verdict::Delete(Reason::PutDown { why: why() }));
    assert_eq!(basis(&off), Basis::Finished);
    for (case, subject) in [
        ("its host is away", Subject { is_connected: false, ..off.clone() }),
        ("it runs", Subject { power: Power::On, ..off.clone() }),
        ("a spare is off all its life", Subject { name: "provision-v2-x", ..off.clone() }),
        ("a template is never on", Subject { is_template: true, ..off.clone() }),
    ] {
        assert_eq!(basis(&subject), Basis::Marked, "{case}");
    }
}

#[test]
fn s_8_2_a_disabled_worker_goes_at_once() {
    let annotation = worker();
    let worker = WorkerSeen::Registered { status: WorkerStatus::Disabled, job: None };
    assert_eq!(
        verdict(&Subject { worker, ..subject(&annotation) }, 0),
        Verdict::Delete(Reason::Disabled)
    );
}

#[test]
fn a_template_build_that_nobody_finishes_is_given_up() {
    let mut annotation = Annotation { model: true, ..worker() };
    annotation.created = at(0).into();
    let building = Subject { name: "debian12-tmp", ..subject(&annotation) };
    assert_eq!(verdict(&building, 29), Verdict::Until(at(30), Reason::BuildAbandoned));
    assert_eq!(verdict(&building, 30), Verdict::Delete(Reason::BuildAbandoned));
    let done = Subject { is_template: true, ..building };
    assert_eq!(verdict(&done, 30), Verdict::Keep(Keep::Template));
}

#[test]
fn s_8_1_events_row_by_row() {
    let times = |started: Option<i64>, powered_off: Option<i64>, renamed: Option<i64>| EventTimes {
        started: started.map(at),
        powered_off: powered_off.map(at),
        renamed: renamed.map(at),
    };
    let until = |minute, reason| Verdict::Until(at(minute), reason);
    for (case, times, worker, minute, wanted) in [
        (
            "no events at all",
            times(None, None, None),
            WorkerSeen::Absent,
            999,
            Verdict::Keep(Keep::NoTimes),
        ),
        (
            "only a power-off",
            times(None, Some(1), None),
            WorkerSeen::Absent,
            999,
            Verdict::Keep(Keep::NoTimes),
        ),
        (
            "renamed, not started yet",
            times(None, None, Some(0)),
            WorkerSeen::Absent,
            9,
            until(10, Reason::NeverStarted),
        ),
        (
            "renamed, never started",
            times(None, None, Some(0)),
            WorkerSeen::Absent,
            10,
            Verdict::Delete(Reason::NeverStarted),
        ),
        (
            "registered, young",
            times(Some(0), None, None),
            registered(),
            119,
            until(120, Reason::TooOld),
        ),
        (
            "registered, old",
            times(Some(0), None, None),
            registered(),
            120,
            Verdict::Delete(Reason::TooOld),
        ),
        (
            "finished",
            times(Some(0), Some(1), None),
            WorkerSeen::Absent,
            1,
            Verdict::Delete(Reason::Finished),
        ),
        (
            "off before the start",
            times(Some(5), Some(1), None),
            WorkerSeen::Absent,
            6,
            until(15, Reason::NeverRegistered),
        ),
        (
            "never registered",
            times(Some(0), None, None),
            WorkerSeen::Absent,
            10,
            Verdict::Delete(Reason::NeverRegistered),
        ),
    ] {
        let annotation = Annotation { hatchery_name: "h1".into(), ..Annotation::default() };
        let subject = Subject { worker, events: Events::Known(times), ..subject(&annotation) };
        assert_eq!(verdict(&subject, minute), wanted, "{case}");
    }
}

#[test]
fn a_worker_that_an_old_hatchery_claimed_is_dated_by_its_events_and_not_by_the_spares_birth() {
    let mut annotation =
        Annotation { hatchery_name: "h1".into(), provisioning: true, ..Annotation::default() };
    annotation.created = at(0).into();
    let mut subject =
        Subject { created: Some(at(0)), worker: registered(), ..subject(&annotation) };
    assert_eq!(verdict(&subject, 1000), Verdict::AskEvents);
    let started = EventTimes { started: Some(at(990)), ..EventTimes::default() };
    subject.events = Events::Known(started);
    assert_eq!(verdict(&subject, 1000), Verdict::Until(at(1110), Reason::TooOld));
    subject.events = Events::Known(EventTimes::default());
    assert_eq!(
        verdict(&subject, 1000),
        Verdict::Delete(Reason::TooOld),
        "W22: events have aged out"
    );
}

#[test]
fn events_of_the_time_as_a_spare_do_not_count() {
    let events = [
        (EventKind::Starting, at(1), "Virtual machine provision-v2-x is starting"),
        (EventKind::PoweredOff, at(2), "provision-v2-x on host is powered off"),
        (EventKind::Renamed, at(50), "Renamed provision-v2-x to keen-bohr"),
        (EventKind::Starting, at(51), "Virtual machine keen-bohr is starting"),
        (EventKind::Starting, at(40), "an older one"),
    ];
    let times = EventTimes::collect(events);
    let wanted = EventTimes { started: Some(at(51)), powered_off: None, renamed: Some(at(50)) };
    assert_eq!(times, wanted);
    assert_eq!(EventKind::of_class("VmRenamedEvent"), Some(EventKind::Renamed));
}

#[test]
fn d23_a_v2_job_is_released_when_its_worker_still_holds_it() {
    let job = JobId::parse("0d3b6e2c-8a51-4f6e-9c1d-2f5b7a90c3e4").unwrap();
    let annotation = Annotation { job_id: job.to_string(), ..worker() };
    let holding = WorkerSeen::Registered { status: WorkerStatus::Building, job: Some(job.clone()) };
    let after = |worker| aftermath(&Subject { worker, ..subject(&annotation) });
    assert_eq!(after(holding), Aftermath { release: Some(job), report: None });
    assert_eq!(after(registered()), Aftermath::default());
    assert_eq!(
        after(WorkerSeen::Absent),
        Aftermath::default(),
        "CDS gives it back by itself, and that costs no credit"
    );
    let v1 = WorkerSeen::Registered { status: WorkerStatus::Building, job: Some(JobId::V1(3)) };
    assert_eq!(after(v1), Aftermath::default());
}

#[test]
fn the_owner_of_a_model_hears_of_a_registration_that_ended() {
    let annotation =
        Annotation { register_only: true, worker_model_path: "team/build".into(), ..worker() };
    let after = aftermath(&Subject { name: "register-keen-bohr", ..subject(&annotation) });
    assert_eq!(after.report, Some(ModelPath::parse("team/build")));
}

#[test]
fn the_guard_asks_more_of_what_rests_on_lists_than_of_the_vms_own_word() {
    for (reason, basis) in [
        (Reason::Marked { why: String::new() }, Basis::Marked),
        (Reason::PutDown { why: String::new() }, Basis::Finished),
        (Reason::Finished, Basis::Finished),
        (Reason::TooOld, Basis::Expired),
        (Reason::NeverRegistered, Basis::Absent),
    ] {
        assert_eq!(reason.basis(), basis, "{reason}");
    }
}
