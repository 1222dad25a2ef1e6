//! A service that shows what a test tells it to.

use std::sync::{Arc, Mutex, MutexGuard};

use axum::Json;
use axum::routing::get;
use jiff::Timestamp;
use roost_clock::Clock;
use roost_door::{
    Acting, Action, Answered, Core, CoreView, DoorWords, Feed, FrontDoor, History, House, Links,
    Order, Refused, Route, Steer, Summary,
};
use roost_views::{
    AddressState, AddressView, BudgetView, CandidateView, CheckView, DecisionQuery, DecisionView,
    DeletionsDetail, DeletionsView, Facts, FaultView, FreezeView, GateView, Gauges, LimitView,
    LinkDetail, LinkMinute, LinkView, MethodView, Overview, PoolView, Power, QueueView,
    RequestDetail, RequestId, RequestState, RequestView, SubjectKind, Verdict, VmDetail, VmKind,
    VmView,
};
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Fake {
    feed: Feed,
    shown: Arc<Mutex<Shown>>,
    pub(crate) steer: Arc<FakeSteer>,
}

#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) overview: Overview,
    pub(crate) ready: bool,
    pub(crate) decisions: Vec<DecisionView>,
    pub(crate) asked: Vec<DecisionQuery>,
    pub(crate) answered: Vec<Answered>,
    /// More VMs than the one that is always there.
    pub(crate) vms: Vec<VmView>,
    pub(crate) jobs: Vec<RequestView>,
    /// Those that come before the one that is always there.
    pub(crate) first_jobs: Vec<RequestView>,
}

pub(crate) const NOW: Timestamp = Timestamp::constant(1_780_272_000, 0);

impl Default for Fake {
    fn default() -> Self {
        let shown = Shown {
            overview: overview(),
            ready: true,
            decisions: Vec::new(),
            asked: Vec::new(),
            answered: Vec::new(),
            vms: Vec::new(),
            jobs: Vec::new(),
            first_jobs: Vec::new(),
        };
        let shown = Arc::new(Mutex::new(shown));
        Self { feed: Feed::default(), shown, steer: Arc::default() }
    }
}

impl Fake {
    pub(crate) fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap()
    }

    /// A house with one door, which shows what the test says.
    pub(crate) fn house(&self) -> House {
        let shared = || Arc::new(Shared(Arc::clone(&self.shown), Arc::clone(&self.steer)));
        House {
            name: self.shown().overview.service.clone(),
            version: "0.1.0".into(),
            clock: Arc::new(Still),
            started: NOW,
            observes_only: false,
            doors: vec![shared()],
            core: Some(shared()),
            feed: self.feed.clone(),
            history: History::default(),
            links: Links::default(),
            demonstration: None,
        }
    }

    pub(crate) fn changes(&self, change: impl FnOnce(&mut Overview)) {
        self.changes_silently(change);
        self.feed.touch();
    }

    pub(crate) fn changes_silently(&self, change: impl FnOnce(&mut Overview)) {
        change(&mut self.shown().overview);
    }

    pub(crate) fn decides(&self, decision: DecisionView) {
        let mut shown = self.shown();
        shown.decisions.push(decision.clone());
        let first = shown.decisions.len().saturating_sub(Overview::RECENT);
        shown.overview.recent = shown.decisions[first..].to_vec();
        drop(shown);
        self.feed.decided(decision);
    }
}

/// Does what it is told, and remembers it.
#[derive(Debug, Default)]
pub(crate) struct FakeSteer(pub(crate) Mutex<Vec<Order>>);

impl Steer for FakeSteer {
    fn act(&self, order: Order) -> Acting<'_> {
        let done = match &order.action {
            Action::DeleteVm { vm } if vm == "vm-0" => {
                Err(Refused::Unknown { what: "VM vm-0".into() })
            }
            Action::RefillPool { .. } => Err(Refused::NotNow { why: "the host is down".into() }),
            other => Ok(format!("{other:?}")),
        };
        self.0.lock().unwrap().push(order);
        Box::pin(async { done })
    }
}

/// The clock of a test that is about something else.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        NOW
    }
}

/// The door and the core at once.
#[derive(Debug)]
struct Shared(Arc<Mutex<Shown>>, Arc<FakeSteer>);

impl Shared {
    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap()
    }
}

pub(crate) const WORDS: DoorWords = DoorWords {
    name: "bakery",
    noun: "job",
    nouns: "jobs",
    group: "project",
    about: "Each job gets a VM of its own.",
};

impl FrontDoor for Shared {
    fn words(&self) -> DoorWords {
        WORDS
    }

    fn title(&self) -> String {
        "nest".into()
    }

    fn liveness(&self) -> Vec<CheckView> {
        Vec::new()
    }

    fn readiness(&self) -> Vec<CheckView> {
        vec![CheckView::new("inventory", self.shown().ready, "12 VMs")]
    }

    fn summary(&self) -> Summary {
        let overview = &self.shown().overview;
        Summary {
            ready: overview.ready,
            queue: overview.queue,
            what_binds: overview.what_binds.clone(),
            oldest: None,
            tiles: Vec::new(),
            lanes: overview.lanes.clone(),
            gauges: overview.capacity.clone(),
        }
    }

    fn requests(&self) -> Vec<RequestView> {
        let Shown { first_jobs, jobs, .. } = &*self.shown();
        let all = first_jobs.iter().cloned().chain([job("42")]).chain(jobs.iter().cloned());
        all.collect()
    }

    fn request(&self, id: &str) -> Option<RequestDetail> {
        let is_listed = self.shown().jobs.iter().any(|job| job.id.id == id);
        (["42", "a/b c"].contains(&id) || is_listed)
            .then(|| RequestDetail::new(job(id), vec![decision(1)], None))
    }

    fn vms(&self) -> Vec<VmView> {
        [vm()].into_iter().chain(self.shown().vms.clone()).collect()
    }

    fn vm(&self, name_or_id: &str) -> Option<VmDetail> {
        ["vm-7", "w-1"].contains(&name_or_id).then(|| VmDetail {
            vm: vm(),
            annotation: None,
            timeline: Vec::new(),
            decisions: Vec::new(),
        })
    }

    fn pools(&self) -> Vec<PoolView> {
        self.shown().overview.pools.clone()
    }

    fn steer(&self) -> Option<&dyn Steer> {
        Some(&*self.1)
    }

    fn routes(self: Arc<Self>) -> Vec<Route> {
        let open = get(async || Json(json!({"from": "the door"})));
        let closed = get(async || Json(json!({"behind": "the token"})));
        vec![
            Route { path: "/bakery/status", methods: open, is_open: true },
            Route { path: "/bakery/recipes", methods: closed, is_open: false },
        ]
    }

    fn metrics(&self) -> String {
        "bakery_jobs_count 3\n".into()
    }

    fn config(&self) -> Option<Value> {
        Some(json!({"maxCpus": 40}))
    }

    fn http_answered(&self, answered: &Answered) {
        self.shown().answered.push(*answered);
    }
}

impl Core for Shared {
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let mut shown = self.shown();
        // The overview asks for its own.
        if query.limit != Some(Overview::RECENT) {
            shown.asked.push(query.clone());
        }
        let found = shown.decisions.iter();
        let found = found.filter(|said| query.after.is_none_or(|after| said.seq > after));
        let is_about = |said: &&DecisionView| {
            let about = [Some(&said.subject), said.subject_name.as_ref(), said.vm.as_ref()];
            query.subject.as_ref().is_none_or(|subject| about.contains(&Some(subject)))
        };
        let found: Vec<DecisionView> = found.filter(is_about).cloned().collect();
        let first = found.len().saturating_sub(query.limit.unwrap_or(usize::MAX));
        found[first..].to_vec()
    }

    fn overview(&self) -> CoreView {
        let overview = &self.shown().overview;
        CoreView {
            link: overview.link.clone(),
            gauges: Gauges::default(),
            addresses: overview.addresses.clone(),
            deletions: overview.deletions.clone(),
            ..CoreView::default()
        }
    }

    fn addresses(&self) -> Vec<AddressView> {
        let address = |last: u8| AddressView {
            address: format!("10.0.0.{last}"),
            state: if last == 1 { AddressState::Used } else { AddressState::Free },
            vm: (last == 1).then(|| "w-1".into()),
            until: None,
        };
        vec![address(1), address(2)]
    }

    fn deletions(&self) -> DeletionsDetail {
        DeletionsDetail {
            frozen: Some(FreezeView {
                words: "too many would go".into(),
                since: NOW,
                by_person: false,
                vms: vec!["w-1".into()],
            }),
            budgets: vec![BudgetView {
                basis: "marked".into(),
                words: "given up by us".into(),
                grace_secs: 0,
                per_minute: 60,
                spent: 2,
                freezes: false,
                share_percent: None,
            }],
            candidates: vec![CandidateView {
                vm: "vm-7".into(),
                name: "w-1".into(),
                basis: "marked".into(),
                first_seen: NOW,
                sightings: 1,
            }],
            decisions: vec![decision(3)],
        }
    }

    fn link_detail(&self) -> LinkDetail {
        LinkDetail {
            link: self.shown().overview.link.clone(),
            minutes: vec![LinkMinute { began: NOW, calls: 7, faults: 1, logins: 1 }],
            methods: vec![MethodView {
                method: "CloneVM_Task".into(),
                calls: 7,
                faults: 1,
                latency_ms: Some(30),
            }],
            faults: vec![FaultView {
                at: NOW,
                method: "CloneVM_Task".into(),
                kind: "InvalidState".into(),
            }],
        }
    }
}

fn overview() -> Overview {
    Overview {
        service: "nest".into(),
        version: "0.1.0".into(),
        now: NOW,
        started: NOW,
        ready: true,
        observes_only: false,
        what_binds: None,
        needs: Vec::new(),
        outages: Vec::new(),
        queue: QueueView { waiting: 1, oldest_waiting_secs: Some(12), ..QueueView::default() },
        lanes: Vec::new(),
        pools: Vec::new(),
        capacity: Gauges::default(),
        addresses: None,
        deletions: DeletionsView::default(),
        link: LinkView::default(),
        recent: Vec::new(),
        doors: Vec::new(),
    }
}

pub(crate) fn job(id: &str) -> RequestView {
    RequestView {
        id: RequestId::new(WORDS.name, id),
        noun: WORDS.noun.into(),
        group: WORDS.group.into(),
        project: Some("SHOP".into()),
        state: RequestState::Waiting,
        queued: Some(NOW),
        waited_secs: Some(12),
        vm: None,
        outcome: None,
        wants: None,
        verdict: None,
        facts: Facts::default().listed("bread", "Bread", Some("rye")).with(
            "oven",
            "Oven",
            Some("v2"),
        ),
    }
}

pub(crate) fn vm() -> VmView {
    VmView {
        id: "vm-7".into(),
        name: "w-1".into(),
        door: WORDS.name.into(),
        kind: VmKind::Worker,
        power: Power::On,
        phase: None,
        request: None,
        template: None,
        cpus: None,
        memory_mb: None,
        address: None,
        created: None,
        started: None,
        fate: None,
        facts: Facts::default(),
    }
}

pub(crate) fn decision(seq: u64) -> DecisionView {
    let gate = GateView {
        name: "workers".into(),
        passed: false,
        need: Some(1),
        have: Some(10),
        limit: Some(LimitView::At(10)),
        note: None,
        words: None,
    };
    DecisionView {
        seq,
        at: NOW,
        door: WORDS.name.into(),
        subject_kind: SubjectKind::Request(WORDS.noun.into()),
        subject: "42".into(),
        subject_name: None,
        verdict: Verdict::Deferred,
        reason: "all 10 workers are there".into(),
        bound_by: Some("workers".into()),
        gates: vec![gate],
        next_look: None,
        vm: None,
        times: 1,
        since: NOW,
    }
}
