use proptest::prelude::*;

use super::*;

const US: &str = "hv1";

fn at(secs: u64) -> Timestamp {
    later(Timestamp::UNIX_EPOCH, Duration::from_secs(1_000_000 + secs))
}

fn candidate(number: usize, basis: Basis) -> Candidate {
    Candidate {
        vm: VmId::new(format!("vm-{number}")),
        name: format!("worker-{number}").into(),
        owner: Some(US.into()),
        basis,
        why: "a test says so".into(),
    }
}

fn candidates(count: usize, basis: Basis) -> Vec<Candidate> {
    (0..count).map(|number| candidate(number, basis)).collect()
}

/// A guard that looks every 30 seconds, on views that were confirmed at that moment.
struct Watchman {
    guard: Guard,
    now: u64,
    own_vms: usize,
}

impl Watchman {
    fn new() -> Self {
        Self { guard: Guard::new(US, GuardRules::default()), now: 0, own_vms: 100 }
    }

    fn look_on(
        &mut self,
        candidates: &[Candidate],
        inventory: &Freshness,
        demand: &Freshness,
    ) -> Vec<Outcome> {
        let evidence = Evidence { inventory, demand, own_vms: self.own_vms };
        let verdicts = self.guard.consider(candidates, evidence, at(self.now));
        self.now += 30;
        verdicts.into_iter().map(|verdict| verdict.outcome).collect()
    }

    fn look(&mut self, candidates: &[Candidate]) -> Vec<Outcome> {
        let view = self.whole();
        self.look_on(candidates, &view, &view)
    }

    fn whole(&self) -> Freshness {
        Freshness::complete(at(self.now), 50)
    }

    /// Looks often enough for anything to be deleted.
    fn looks(&mut self, candidates: &[Candidate]) -> Vec<Outcome> {
        (0..10).map(|_| self.look(candidates)).last().unwrap()
    }
}

#[test]
fn a_candidate_goes_when_it_was_seen_twice_and_its_grace_is_over() {
    let mut watch = Watchman::new();
    let wait = |until| [Outcome::Wait { until }];
    let marked = candidates(1, Basis::Marked);
    assert_eq!(watch.look(&marked), wait(None));
    assert_eq!(watch.look(&marked), [Outcome::Delete]);
    assert_eq!(watch.look(&marked), [Outcome::Delete], "until it is gone");
    assert_eq!(watch.guard.recent.len(), 1, "and counted once");

    let mut watch = Watchman::new();
    let absent = candidates(1, Basis::Absent);
    let ends = Some(at(120));
    for _ in 0..4 {
        assert_eq!(watch.look(&absent), wait(ends));
    }
    assert_eq!(watch.look(&absent), [Outcome::Delete]);
}

#[test]
fn the_same_views_are_one_sighting() {
    let mut watch = Watchman::new();
    let marked = candidates(1, Basis::Marked);
    let (inventory, demand) = (watch.whole(), watch.whole());
    for _ in 0..3 {
        assert_eq!(watch.look_on(&marked, &inventory, &demand), [Outcome::Wait { until: None }]);
    }
    let newer = watch.whole();
    assert_eq!(
        watch.look_on(&marked, &newer, &demand),
        [Outcome::Wait { until: None }],
        "one side alone has looked again"
    );
    let newer = watch.whole();
    assert_eq!(watch.look_on(&marked, &newer, &newer), [Outcome::Delete]);
}

#[test]
fn strangers_are_never_deleted() {
    let mut watch = Watchman::new();
    let mut strangers = candidates(3, Basis::Marked);
    strangers[0].owner = None;
    strangers[1].owner = Some("hv2".into());
    strangers[2].owner = Some("".into());
    assert_eq!(watch.looks(&strangers), [Outcome::Refused; 3]);
}

#[test]
fn a_candidate_that_was_explained_begins_anew() {
    let mut watch = Watchman::new();
    let marked = candidates(1, Basis::Marked);
    watch.look(&marked);
    watch.look(&[]);
    assert_eq!(watch.look(&marked), [Outcome::Wait { until: None }]);
    // Another reason is another story.
    assert!(matches!(watch.look(&candidates(1, Basis::Expired))[..], [Outcome::Wait { .. }]));
}

#[test]
fn one_bad_read_neither_deletes_nor_excuses() {
    let mut watch = Watchman::new();
    let marked = candidates(1, Basis::Marked);
    watch.look(&marked);
    let (good, failed) = (watch.whole(), watch.whole().failed("HTTP 503"));
    assert_eq!(watch.look_on(&marked, &good, &failed), [Outcome::Refused]);
    assert_eq!(watch.look_on(&[], &good, &failed), []);
    assert_eq!(watch.look(&marked), [Outcome::Delete], "what was seen before it still counts");
    let (good, failed) = (watch.whole(), watch.whole().failed("session lost"));
    assert_eq!(
        watch.look_on(&marked, &failed, &good),
        [Outcome::Refused],
        "also when it was granted"
    );
}

#[test]
fn an_empty_list_is_no_absence() {
    // A failed listing that looked like an empty one made every worker an orphan.
    let mut watch = Watchman::new();
    let absent = candidates(2, Basis::Absent);
    for _ in 0..20 {
        let (inventory, empty) = (watch.whole(), Freshness::complete(at(watch.now), 0));
        assert_eq!(watch.look_on(&absent, &inventory, &empty), [Outcome::Refused; 2]);
    }
    // What the VM says itself does not rest on the list.
    let marked = candidates(1, Basis::Marked);
    for wanted in [Outcome::Wait { until: None }, Outcome::Delete] {
        let (inventory, empty) = (watch.whole(), Freshness::complete(at(watch.now), 0));
        assert_eq!(watch.look_on(&marked, &inventory, &empty), [wanted]);
    }
}

#[test]
fn a_jump_of_the_clock_starts_over() {
    for jump in [-3_600_i64, 7_200] {
        let mut watch = Watchman::new();
        let expired = candidates(3, Basis::Expired);
        watch.look(&expired);
        watch.now = watch.now.saturating_add_signed(jump);
        let outcomes = watch.look(&expired);
        assert!(
            outcomes.iter().all(|outcome| matches!(outcome, Outcome::Wait { .. })),
            "{outcomes:?}"
        );
        assert_eq!(watch.guard.sightings.values().map(|seen| seen.times).max(), Some(1));
        let outcomes = watch.looks(&expired);
        assert_eq!(outcomes, [Outcome::Delete; 3], "they go like any others after {jump} s");
    }
}

#[test]
fn what_was_spent_is_free_again_a_minute_after_the_clock_was_set_back() {
    let mut watch = Watchman::new();
    watch.now = 7_200;
    let most = GuardRules::default().of(Basis::Absent).per_minute.unwrap() as usize;
    let absent = candidates(most, Basis::Absent);
    watch.own_vms = 100 * most;
    while watch.look(&absent) != vec![Outcome::Delete; most] {}
    let person = Candidate { basis: Basis::Asked, ..candidate(900, Basis::Asked) };
    assert_eq!(watch.guard.asked(&person, at(watch.now)).outcome, Outcome::Delete);
    watch.now -= 3_600;
    watch.look(&[]);
    assert_eq!(watch.guard.spent_lately(Basis::Absent, at(watch.now)), most as u64, "not yet");
    let others: Vec<_> = (0..most).map(|number| candidate(1_000 + number, Basis::Absent)).collect();
    assert_eq!(
        watch.looks(&others),
        vec![Outcome::Delete; most],
        "a new minute has its own budget"
    );
    assert_eq!(watch.guard.frozen(), None);
    watch.guard.asked(&person, at(watch.now));
    assert!(watch.guard.granted_asked.values().all(|granted| *granted <= at(watch.now)));
}

#[test]
fn too_many_at_once_freeze_deletion_until_a_person_has_looked() {
    let mut watch = Watchman::new();
    let absent = candidates(11, Basis::Absent);
    assert_eq!(watch.looks(&absent), [Outcome::Frozen; 11]);
    let freeze = watch.guard.frozen().unwrap().clone();
    assert_eq!((freeze.wanted, freeze.allowed), (11, 10));
    assert!(
        freeze
            .to_string()
            .contains("11 of 100 VMs would go as absent within a minute, 10 may; a person"),
        "{freeze}"
    );
    let marked = [candidate(50, Basis::Marked)];
    assert_eq!(watch.looks(&marked), [Outcome::Frozen], "it freezes for every reason");

    watch.guard.resume(Resume::StartOver);
    assert_eq!(
        watch.looks(&absent[..2]),
        [Outcome::Delete; 2],
        "the cause was found, nine are back"
    );
    assert_eq!(watch.looks(&absent), [Outcome::Delete; 11], "new minutes, small steps");
}

#[test]
fn a_person_can_approve_what_was_frozen() {
    let mut watch = Watchman::new();
    watch.own_vms = 12;
    let expired = candidates(8, Basis::Expired);
    assert_eq!(watch.looks(&expired), [Outcome::Frozen; 8], "8 of 12 is more than the share of 5");
    assert!(watch.guard.resume(Resume::Approve).is_some());
    let mut more = candidates(10, Basis::Expired);
    let outcomes = watch.look(&more);
    assert_eq!(outcomes[..8], [Outcome::Delete; 8]);
    assert!(matches!(outcomes[8..], [Outcome::Wait { .. }, Outcome::Wait { .. }]));
    more.drain(..8);
    assert_eq!(watch.looks(&more), [Outcome::Delete; 2]);
    assert_eq!(watch.guard.resume(Resume::Approve), None);
}

#[test]
fn what_has_finished_by_itself_has_no_budget() {
    let mut watch = Watchman::new();
    let finished = candidates(500, Basis::Finished);
    watch.look(&finished);
    assert_eq!(watch.look(&finished), [Outcome::Delete; 500]);
    assert!(watch.guard.frozen().is_none());
}

#[test]
fn what_we_marked_is_paced_not_frozen() {
    let mut watch = Watchman::new();
    let finished = candidates(100, Basis::Marked);
    watch.look(&finished);
    let outcomes = watch.look(&finished);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Delete).count(), 60);
    assert_eq!(outcomes[60], Outcome::Wait { until: Some(at(30 + 60)) });
    assert!(watch.guard.frozen().is_none());
    watch.look(&finished);
    assert_eq!(watch.look(&finished), [Outcome::Delete; 100]);
}

#[test]
fn a_verdict_says_what_bound_it() {
    let mut guard = Guard::new(US, GuardRules::default());
    let old = Freshness::complete(at(0), 5);
    let evidence = Evidence { inventory: &old, demand: &old, own_vms: 5 };
    let verdict = &guard.consider(&candidates(1, Basis::Absent), evidence, at(600))[0];
    assert_eq!(verdict.bound_by().unwrap().to_string(), "inventory-view: is 600 s old");
    let json = serde_json::to_value(verdict).unwrap();
    assert_eq!(json["outcome"], "refused");
    assert_eq!(json["gates"][0]["name"], "own");
}

#[derive(Debug, Clone)]
enum View {
    Whole,
    Empty,
    Truncated,
    Stale,
    Failed,
    Never,
    Future,
}

fn view() -> impl Strategy<Value = View> {
    prop_oneof![
        4 => Just(View::Whole),
        1 => Just(View::Empty),
        1 => Just(View::Truncated),
        1 => Just(View::Stale),
        1 => Just(View::Failed),
        1 => Just(View::Never),
        1 => Just(View::Future),
    ]
}

impl View {
    fn at(&self, now: u64) -> Freshness {
        match self {
            Self::Whole => Freshness::complete(at(now), 40),
            Self::Empty => Freshness::complete(at(now), 0),
            Self::Truncated => Freshness { complete: false, ..Freshness::complete(at(now), 7) },
            Self::Stale => Freshness::complete(at(now.saturating_sub(181)), 40),
            Self::Failed => Freshness::complete(at(now), 40).failed("401"),
            Self::Never => Freshness::default(),
            Self::Future => Freshness::complete(at(now + 181), 40),
        }
    }

    fn is_fit(&self, basis: Basis) -> bool {
        match self {
            Self::Whole => true,
            Self::Empty => basis != Basis::Absent,
            _ => false,
        }
    }
}

fn basis() -> impl Strategy<Value = Basis> {
    prop::sample::select(Basis::INFERRED.to_vec())
}

proptest! {
    /// Whatever the history, a look on a bad view deletes nothing, strangers stay, nothing goes on fewer than two good
    /// looks or before its grace, and no minute sees more than its budget.
    #[test]
    fn no_bad_read_ever_deletes(
        looks in prop::collection::vec(
            (view(), view(), 0..200_u64, prop::collection::vec((0..30_usize, basis(), prop::bool::weighted(0.9)), 0..30)),
            1..40,
        ),
        resumes in prop::collection::vec(prop::bool::weighted(0.1), 40),
    ) {
        let rules = GuardRules::default();
        let mut guard = Guard::new(US, rules.clone());
        let mut now = 1_000;
        let mut good_looks: BTreeMap<VmId, (Basis, u32, u64)> = BTreeMap::new();
        let mut gone: BTreeSet<VmId> = BTreeSet::new();
        let mut spent: Vec<(u64, Basis)> = Vec::new();
        for ((inventory, demand, step, wanted), resume) in looks.into_iter().zip(resumes) {
            now += step;
            if resume {
                guard.resume(Resume::StartOver);
            }
            let mut found: BTreeMap<usize, Candidate> = BTreeMap::new();
            for (number, basis, own) in wanted {
                let mut candidate = candidate(number, basis);
                if !own {
                    candidate.owner = Some("hv2".into());
                }
                found.insert(number, candidate);
            }
            let found: Vec<Candidate> = found.into_values().collect();
            let (seen, wants) = (inventory.at(now), demand.at(now));
            let evidence = Evidence { inventory: &seen, demand: &wants, own_vms: 40 };
            let verdicts = guard.consider(&found, evidence, at(now));
            prop_assert_eq!(verdicts.len(), found.len());
            for (candidate, verdict) in found.iter().zip(&verdicts) {
                let fit = inventory.is_fit(candidate.basis) && demand.is_fit(candidate.basis);
                let own = candidate.owner.as_deref() == Some(US);
                if fit && own {
                    let looked = good_looks.entry(candidate.vm.clone()).or_insert((candidate.basis, 0, now));
                    if looked.0 != candidate.basis {
                        *looked = (candidate.basis, 0, now);
                    }
                    looked.1 += 1;
                }
                if verdict.is_delete() {
                    prop_assert!(fit && own, "{:?} {:?}", inventory, demand);
                    let (_, times, first) = good_looks[&candidate.vm];
                    prop_assert!(times >= 2);
                    prop_assert!(now >= first + rules.of(candidate.basis).grace.as_secs());
                    if gone.insert(candidate.vm.clone()) {
                        spent.push((now, candidate.basis));
                    }
                }
            }
            if matches!(inventory, View::Whole | View::Empty) && matches!(demand, View::Whole | View::Empty) {
                let still: BTreeSet<&VmId> = found.iter().map(|candidate| &candidate.vm).collect();
                gone.retain(|vm| still.contains(vm));
            }
            for basis in Basis::ALL {
                let minute = spent.iter().filter(|(at, own)| *own == basis && now - at < 60).count();
                prop_assert!(rules.of(basis).per_minute.is_none_or(|budget| minute <= budget as usize));
            }
        }
    }
}

#[test]
fn what_a_person_asked_for_needs_ownership_and_budget_and_no_second_look() {
    let rules = GuardRules {
        asked: BasisRules { per_minute: Some(2), ..GuardRules::default().asked },
        ..GuardRules::default()
    };
    let mut guard = Guard::new("hv1", rules);
    let now = Timestamp::UNIX_EPOCH;
    let asked = candidates(3, Basis::Asked);
    assert!(guard.asked(&asked[0], now).is_delete());
    assert!(guard.asked(&asked[0], now).is_delete(), "counts once");
    assert!(guard.asked(&asked[1], now).is_delete());
    let third = guard.asked(&asked[2], now);
    assert_eq!(third.outcome, Outcome::Wait { until: Some(later(now, MINUTE)) });
    assert_eq!(third.bound_by().unwrap().name, "budget");
    assert!(guard.asked(&asked[2], later(now, MINUTE)).is_delete());
    let foreign = Candidate { owner: Some("somebody".into()), ..asked[0].clone() };
    let foreign = guard.asked(&foreign, now);
    assert_eq!((foreign.outcome, foreign.bound_by().unwrap().name), (Outcome::Refused, "own"));
}
