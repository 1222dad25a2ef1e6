use std::time::Duration;

use super::*;
use crate::time::later;
use crate::{DoorName, Gate, Limit, VmId};

fn at(secs: u64) -> Timestamp {
    later(Timestamp::UNIX_EPOCH, Duration::from_secs(secs))
}

fn job(id: &str) -> Subject {
    DoorName::new("lab").about_request(id)
}

fn deferred(id: &str, have: u64) -> Draft {
    let gates = vec![
        Gate::plain("region", true),
        Gate::measured("workers", 1, have, Limit::At(10)),
        Gate::measured("cpus", 8, 64, Limit::At(64)),
    ];
    Draft::new(job(id), Decided::Deferred, format!("workers: {have} of 10"))
        .gates(gates)
        .next_look(NextLook::OnChange)
}

#[test]
fn a_decision_says_what_bound_it_and_when_it_is_looked_at_again() {
    let journal = Journal::default();
    let decision = journal.record(deferred("j1", 10).next_look(NextLook::At(at(20))), at(0));
    assert_eq!(decision.bound_by, Some("workers"));
    assert_eq!(
        decision.to_string(),
        "lab request j1 deferred: workers: 10 of 10 (next look at 1970-01-01T00:00:20Z)"
    );
    assert_eq!(
        serde_json::to_value(&*decision).unwrap(),
        serde_json::json!({
            "seq": 1,
            "at": "1970-01-01T00:00:00Z",
            "subject": {"kind": "request", "door": "lab", "id": "j1"},
            "verdict": "deferred",
            "reason": "workers: 10 of 10",
            "gates": [
                {"name": "region", "passed": true},
                {"name": "workers", "passed": false, "need": 1, "have": 10, "limit": 10},
                {"name": "cpus", "passed": false, "need": 8, "have": 64, "limit": 64},
            ],
            "bound_by": "workers",
            "next_look": {"when": "at", "at": "1970-01-01T00:00:20Z"},
            "times": 1,
            "since": "1970-01-01T00:00:00Z",
        })
    );
}

#[test]
fn refusals_and_the_guards_verdicts_are_decisions() {
    let journal = Journal::default();
    let refusal = crate::Refusal {
        request: DoorName::new("lab").request("j1"),
        gates: vec![Gate::measured("cpus", 8, 60, Limit::At(64))],
        bound_by: crate::LedgerGate::Cpus,
        forecast: None,
    };
    let decision = journal.record(Draft::from(&refusal), at(0));
    assert_eq!(decision.to_string(), "lab request j1 deferred: cpus: needs 8, 60 of 64 taken");
    assert_eq!((decision.bound_by, decision.next_look), (Some("cpus"), NextLook::OnChange));

    let verdict = |outcome, gates| crate::Verdict {
        vm: VmId::new("vm-7"),
        name: "worker-7".into(),
        basis: crate::Basis::Finished,
        why: "it has stopped".into(),
        outcome,
        gates,
    };
    let frozen =
        verdict(crate::Outcome::Frozen, vec![Gate::plain("freeze", false).noting("too many")]);
    let kept = journal.record(Draft::from(&frozen), at(1));
    assert_eq!(
        kept.to_string(),
        "VM vm-7 kept: it has stopped (freeze: too many) (waits for a person)"
    );
    let deleted = journal.record(Draft::from(&verdict(crate::Outcome::Delete, vec![])), at(2));
    assert_eq!(deleted.to_string(), "VM vm-7 deleted: it has stopped");
}

#[test]
fn the_same_verdict_again_is_one_decision_that_counts() {
    let journal = Journal::default();
    for secs in 0..5 {
        journal.record(deferred("j1", 10 + secs), at(secs));
        journal.record(deferred("j2", 10), at(secs));
    }
    assert_eq!(journal.len(), 2);
    let seqs: Vec<_> = journal.find(&Query::default()).iter().map(|it| it.seq).collect();
    assert_eq!(seqs, [1, 2], "each stays where it was first");
    let last = journal.latest(&job("j1")).unwrap();
    assert_eq!((last.times, last.since, last.at), (5, at(0), at(4)));
    assert_eq!(last.gates[1].measure.unwrap().have, 14, "with the newest numbers");

    let vm = VmId::new("vm-7");
    journal.record(Draft::new(job("j1"), Decided::Spawned, "warm").vm(&vm), at(5));
    journal.record(deferred("j1", 10), at(6));
    let story = journal.find(&Query::of(job("j1")));
    let verdicts: Vec<_> =
        story.iter().map(|decision| (decision.verdict, decision.times)).collect();
    assert_eq!(verdicts, [(Decided::Deferred, 5), (Decided::Spawned, 1), (Decided::Deferred, 1)]);
}

#[test]
fn what_waits_has_one_line_with_its_current_gate() {
    // It had a line for each time that it waited for something else, and two gates took turns in the list for hours.
    let journal = Journal::default();
    let by = |gate: &'static str| {
        let gates = vec![Gate::plain(gate, false)];
        Draft::new(job("j1"), Decided::Deferred, "not now").gates(gates)
    };
    for secs in 0..10 {
        journal.record(by("workers"), at(secs));
        journal.record(by("address"), at(secs));
    }
    let story = journal.find(&Query::of(job("j1")));
    assert_eq!(story.iter().map(|it| it.bound_by).collect::<Vec<_>>(), [Some("address")]);
    assert_eq!(story[0].since, at(9), "since when it waits for this gate");
}

#[test]
fn what_has_happened_can_be_asked_for_alone() {
    let journal = Journal::default();
    journal.record(deferred("j1", 10), at(0));
    journal.record(Draft::new(job("j2"), Decided::Refused, "no such flavor"), at(1));
    journal.record(Draft::new(job("j1"), Decided::Spawned, "warm"), at(2));
    journal.record(Draft::new(job("j2"), Decided::Refused, "no such flavor"), at(3));
    journal.record(Draft::new(job("j3"), Decided::Skipped, "another region"), at(4));
    let events = journal.find(&Query { events: true, ..Query::default() });
    let events: Vec<_> = events.iter().map(|it| (it.verdict, it.times)).collect();
    assert_eq!(events, [(Decided::Refused, 2), (Decided::Spawned, 1)], "the first refusal's place");
}

#[test]
fn it_holds_so_many_and_the_last_word_on_more() {
    let journal = Journal::new(JournalSize { decisions: 10, subjects: 30 });
    for number in 0..100 {
        journal.record(deferred(&format!("j{number}"), 10), at(number));
    }
    assert_eq!(journal.len(), 10);
    assert!(journal.latest(&job("j95")).is_some());
    assert!(journal.latest(&job("j75")).is_some(), "pushed out, yet the last word");
    assert_eq!(journal.find(&Query::of(job("j75"))).len(), 1);
    assert!(journal.latest(&job("j60")).is_none());
    assert_eq!(journal.inner().latest.len(), 30);
    assert_eq!(journal.inner().by_age.len(), 30);
}

#[test]
fn it_can_be_asked() {
    let journal = Journal::default();
    for number in 0..6 {
        journal.record(deferred(&format!("j{number}"), 10), at(number));
    }
    journal.record(Draft::new(job("j0"), Decided::Spawned, "cold"), at(9));
    let count = |query: Query| journal.find(&query).len();
    assert_eq!(count(Query { verdict: Some(Decided::Spawned), ..Query::default() }), 1);
    assert_eq!(count(Query { bound_by: Some("workers".into()), ..Query::default() }), 6);
    assert_eq!(count(Query { after: Some(6), ..Query::default() }), 1);
    let last = journal.find(&Query { limit: Some(2), ..Query::default() });
    assert_eq!(last.iter().map(|decision| decision.seq).collect::<Vec<_>>(), [6, 7]);
}

#[tokio::test]
async fn whoever_listens_hears_repeats_ever_more_seldom() {
    let journal = Journal::default();
    let mut heard = journal.subscribe();
    for secs in 0..9 {
        journal.record(deferred("j1", 10), at(secs));
    }
    let mut times = Vec::new();
    while let Ok(decision) = heard.try_recv() {
        times.push(decision.times);
    }
    assert_eq!(times, [1, 2, 4, 8]);
}
