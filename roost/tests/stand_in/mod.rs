//! A service that shows what it was given, and does nothing.
#![allow(dead_code, reason = "each test uses what it needs")]

use std::sync::Arc;

use jiff::Timestamp;
use roost_clock::Clock;
use roost_console::{Console, Settings};
use roost_door::{Core, CoreView, DoorWords, Feed, FrontDoor, History, House, Links, Summary};
use roost_views::{
    CheckView, DecisionQuery, DecisionView, DeletionsView, Facts, Gauges, LaneView, LinkView,
    Overview, Part, PoolView, Power, QueueView, RequestDetail, RequestId, RequestState,
    RequestView, SubjectKind, Verdict, VmDetail, VmKind, VmPhase, VmView,
};
use tokio::net::TcpListener;

pub(crate) const WORDS: DoorWords = DoorWords {
    name: "bakery",
    noun: "job",
    nouns: "jobs",
    group: "project",
    about: "Each job gets a VM of its own.",
};

pub(crate) const NOW: Timestamp = Timestamp::constant(1_780_272_000, 0);

/// What there is to see.
#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) overview: Overview,
    pub(crate) jobs: Vec<RequestView>,
    pub(crate) vms: Vec<VmView>,
    pub(crate) decisions: Vec<DecisionView>,
    /// What each VM says of itself.
    annotation: Option<String>,
}

/// Shows it until `closing` ends.
pub(crate) async fn serve(
    listener: TcpListener,
    shown: Arc<StandIn>,
    settings: Settings,
    closing: impl Future<Output = ()>,
) {
    let house = House {
        name: shown.overview.service.clone(),
        version: "0.1.0".into(),
        clock: Arc::new(Still(shown.overview.now)),
        started: shown.overview.started,
        observes_only: false,
        doors: vec![Arc::clone(&shown) as Arc<dyn FrontDoor>],
        core: Some(shown),
        feed: Feed::default(),
        history: History::default(),
        links: Links::default(),
        demonstration: None,
    };
    Console { house: Arc::new(house), settings }.serve(listener, closing).await;
}

#[derive(Debug)]
struct Still(Timestamp);

impl Clock for Still {
    fn now(&self) -> Timestamp {
        self.0
    }
}

impl StandIn {
    /// Nothing at all.
    pub(crate) fn empty(name: &str) -> Self {
        let overview = Overview {
            service: name.into(),
            version: "0.1.0".into(),
            now: NOW,
            started: NOW,
            ready: true,
            observes_only: false,
            what_binds: None,
            needs: Vec::new(),
            outages: Vec::new(),
            queue: QueueView::default(),
            lanes: Vec::new(),
            pools: Vec::new(),
            capacity: Gauges::default(),
            addresses: None,
            deletions: DeletionsView::default(),
            link: LinkView::default(),
            recent: Vec::new(),
            doors: Vec::new(),
        };
        let (jobs, vms, decisions) = (Vec::new(), Vec::new(), Vec::new());
        Self { overview, jobs, vms, decisions, annotation: None }
    }

    /// Everything is called by these names, which nobody should give to anything.
    pub(crate) fn hostile(name: &str, names: &[&str]) -> Self {
        let mut shown = Self::empty(name);
        shown.jobs = names.iter().map(|name| job(name)).collect();
        shown.vms = names.iter().map(|name| vm(name)).collect();
        shown.decisions = names.iter().zip(1..).map(|(name, seq)| decision(seq, name)).collect();
        shown.annotation = Some(names.join("\n"));
        let overview = &mut shown.overview;
        overview.what_binds = Some(names.concat());
        overview.queue =
            QueueView { waiting: 6, oldest_waiting_secs: Some(61), ..QueueView::default() };
        overview.lanes = vec![LaneView {
            phase: "booting".into(),
            words: names[0].into(),
            part: Part::Starting,
            count: names.len() as u64,
            names: names.iter().map(ToString::to_string).collect(),
        }];
        overview.pools = vec![PoolView {
            door: WORDS.name.into(),
            name: names[0].into(),
            template: None,
            size: Some(names[3].into()),
            facts: Facts::default().listed("flavor", "Flavor", Some(names[3])),
            wanted: 3,
            ready: 1,
            coming: 1,
            in_use: 0,
            missing: 1,
            waiting: Some(names[1].into()),
        }];
        overview.deletions = DeletionsView { frozen: Some(names.concat()), last_minute: 0 };
        overview.link = LinkView { trouble: Some(names.concat()), ..LinkView::default() };
        shown
    }
}

fn vm(name: &str) -> VmView {
    let some = || Some(name.to_owned());
    VmView {
        id: name.into(),
        name: name.into(),
        door: WORDS.name.into(),
        kind: VmKind::Worker,
        power: Power::On,
        phase: Some(VmPhase {
            words: name.into(),
            label: "booting".into(),
            part: Part::Starting,
            since: Some(NOW),
        }),
        request: Some(WORDS.request(name)),
        template: some(),
        cpus: Some(8),
        memory_mb: Some(1_024),
        address: some(),
        created: Some(NOW),
        started: None,
        fate: some(),
        facts: facts(name),
    }
}

fn facts(name: &str) -> Facts {
    let model = Facts::default().listed("model", "Model", Some(name));
    model.listed("flavor", "Flavor", Some(name)).with("worker_status", "CDS says", Some(name))
}

pub(crate) fn job(name: &str) -> RequestView {
    let some = || Some(name.to_owned());
    RequestView {
        id: WORDS.request(name),
        noun: WORDS.noun.into(),
        group: WORDS.group.into(),
        project: some(),
        state: RequestState::Waiting,
        queued: Some(NOW),
        waited_secs: Some(61),
        vm: some(),
        outcome: None,
        wants: some(),
        verdict: Some(decision(1, name)),
        facts: facts(name),
    }
}

pub(crate) fn decision(seq: u64, name: &str) -> DecisionView {
    DecisionView {
        seq,
        at: NOW,
        door: WORDS.name.into(),
        subject_kind: SubjectKind::Vm,
        subject: name.into(),
        subject_name: Some(name.into()),
        verdict: Verdict::Kept,
        reason: name.into(),
        bound_by: Some(name.into()),
        gates: Vec::new(),
        next_look: Some(name.into()),
        vm: Some(name.into()),
        times: 3,
        since: NOW,
    }
}

impl FrontDoor for StandIn {
    fn words(&self) -> DoorWords {
        WORDS
    }

    fn title(&self) -> String {
        self.overview.service.clone()
    }

    fn liveness(&self) -> Vec<CheckView> {
        Vec::new()
    }

    fn readiness(&self) -> Vec<CheckView> {
        Vec::new()
    }

    fn summary(&self) -> Summary {
        let Overview { ready, queue, what_binds, lanes, capacity, .. } = self.overview.clone();
        Summary { ready, queue, what_binds, lanes, gauges: capacity, ..Summary::default() }
    }

    fn requests(&self) -> Vec<RequestView> {
        self.jobs.clone()
    }

    fn request(&self, id: &str) -> Option<RequestDetail> {
        let request = self.jobs.iter().find(|job| job.id.id == id)?.clone();
        Some(RequestDetail::new(request, self.decisions.clone(), self.vm(id)))
    }

    fn vms(&self) -> Vec<VmView> {
        self.vms.clone()
    }

    fn vm(&self, name: &str) -> Option<VmDetail> {
        let vm = self.vms.iter().find(|vm| vm.name == name)?.clone();
        let (annotation, decisions) = (self.annotation.clone(), self.decisions.clone());
        Some(VmDetail { vm, annotation, timeline: Vec::new(), decisions })
    }

    fn pools(&self) -> Vec<PoolView> {
        self.overview.pools.clone()
    }
}

impl Core for StandIn {
    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let wanted = query.verdict.as_deref();
        let is_wanted =
            |decided: &&DecisionView| wanted.is_none_or(|it| decided.verdict.as_str() == it);
        self.decisions.iter().filter(is_wanted).cloned().collect()
    }

    fn overview(&self) -> CoreView {
        CoreView {
            link: self.overview.link.clone(),
            addresses: self.overview.addresses.clone(),
            deletions: self.overview.deletions.clone(),
            gauges: Gauges::default(),
            ..CoreView::default()
        }
    }
}

/// For tests that need no more than its id.
pub(crate) fn id(id: &str) -> RequestId {
    WORDS.request(id)
}
