//! A service that shows what a test tells it to.

use std::sync::{Mutex, MutexGuard};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::views::{
    AddressState, AddressView, BudgetView, CandidateView, CapacityView, CheckView, DecisionQuery,
    DecisionView, DeletionsDetail, DeletionsView, FaultView, FreezeView, GateView, Health,
    JobDetail, JobState, JobView, LevelView, LimitView, LinkDetail, LinkMinute, LinkView,
    MethodView, MonitoringLineView, MonitoringView, Overview, PoolView, Protocol, QueueView,
    SubjectKind, VersionView, VmDetail, VmKind, VmView,
};
use crate::{Acting, Action, Answered, Feed, Order, Refused, Source, Steer, Subscription};

#[derive(Debug)]
pub(crate) struct Fake {
    feed: Feed,
    shown: Mutex<Shown>,
}

#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) overview: Overview,
    pub(crate) level: LevelView,
    pub(crate) ready: bool,
    pub(crate) decisions: Vec<DecisionView>,
    pub(crate) asked: Vec<DecisionQuery>,
    pub(crate) answered: Vec<Answered>,
    /// More VMs than the one that is always there.
    pub(crate) vms: Vec<VmView>,
    pub(crate) jobs: Vec<JobView>,
    /// Those that come before the one that is always there.
    pub(crate) first_jobs: Vec<JobView>,
}

pub(crate) const NOW: Timestamp = Timestamp::constant(1_780_272_000, 0);

impl Default for Fake {
    fn default() -> Self {
        let shown = Shown {
            overview: overview(),
            level: LevelView::Ok,
            ready: true,
            decisions: Vec::new(),
            asked: Vec::new(),
            answered: Vec::new(),
            vms: Vec::new(),
            jobs: Vec::new(),
            first_jobs: Vec::new(),
        };
        Self { feed: Feed::default(), shown: Mutex::new(shown) }
    }
}

impl Fake {
    pub(crate) fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap()
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

impl Source for Fake {
    fn status(&self) -> MonitoringView {
        let line = MonitoringLineView {
            status: self.shown().level,
            component: "Workers".into(),
            value: "3/10".into(),
            service_type: "hatchery".into(),
            service: "nest".into(),
            hostname: "h1".into(),
            ..MonitoringLineView::default()
        };
        MonitoringView { now: NOW, lines: vec![line] }
    }

    fn version(&self) -> VersionView {
        VersionView { version: "0.1.0".into(), os: "linux".into(), ..VersionView::default() }
    }

    fn workers(&self) -> Value {
        json!([{"name": "w-1", "status": "Building"}])
    }

    fn metrics(&self) -> String {
        "cds_hatchery_jobs_count 3\n".into()
    }

    fn metrics_described(&self) -> Value {
        json!([{"name": "cds/hatchery/jobs_count"}])
    }

    fn liveness(&self) -> Health {
        Health::default()
    }

    fn readiness(&self) -> Health {
        let ok = self.shown().ready;
        Health { checks: vec![CheckView { name: "inventory".into(), ok, words: "12 VMs".into() }] }
    }

    fn overview(&self) -> Overview {
        self.shown().overview.clone()
    }

    fn jobs(&self) -> Vec<JobView> {
        let Shown { first_jobs, jobs, .. } = &*self.shown();
        let all = first_jobs.iter().cloned().chain([job("42")]).chain(jobs.iter().cloned());
        all.collect()
    }

    fn job(&self, id: &str) -> Option<JobDetail> {
        ["42", "a/b c"].contains(&id).then(|| JobDetail {
            job: job(id),
            decisions: vec![decision(1)],
            vm: None,
        })
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
        Vec::new()
    }

    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let mut shown = self.shown();
        shown.asked.push(query.clone());
        let after = query.after.unwrap_or_default();
        shown.decisions.iter().filter(|decision| decision.seq > after).cloned().collect()
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

    fn link(&self) -> LinkDetail {
        LinkDetail {
            link: self.overview().link,
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

    fn config(&self) -> Option<Value> {
        Some(json!({"maxCpus": 40}))
    }

    fn subscribe(&self) -> Subscription {
        self.feed.subscribe()
    }

    fn http_answered(&self, answered: &Answered) {
        self.shown().answered.push(*answered);
    }
}

fn overview() -> Overview {
    Overview {
        service: "nest".into(),
        version: "0.1.0".into(),
        now: NOW,
        started: NOW,
        ready: true,
        what_binds: None,
        queue: QueueView { waiting: 1, oldest_waiting_secs: Some(12), starting: 0 },
        workers: Vec::new(),
        pools: Vec::new(),
        capacity: CapacityView::default(),
        addresses: None,
        deletions: DeletionsView::default(),
        link: LinkView::default(),
        recent: Vec::new(),
    }
}

pub(crate) fn job(id: &str) -> JobView {
    JobView {
        id: id.into(),
        protocol: Protocol::V2,
        project: Some("SHOP".into()),
        workflow: Some("build".into()),
        state: JobState::Waiting,
        queued: Some(NOW),
        waited_secs: Some(12),
        model: None,
        flavor: None,
        vm: None,
        verdict: None,
    }
}

pub(crate) fn vm() -> VmView {
    VmView {
        id: "vm-7".into(),
        name: "w-1".into(),
        kind: VmKind::Worker,
        power: "on".into(),
        phase: None,
        phase_since: None,
        job: None,
        model: None,
        template: None,
        flavor: None,
        cpus: None,
        memory_mb: None,
        address: None,
        created: None,
        started: None,
        worker_status: None,
        fate: None,
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
    };
    DecisionView {
        seq,
        at: NOW,
        subject_kind: SubjectKind::Job,
        subject: "42".into(),
        subject_name: None,
        verdict: "deferred".into(),
        reason: "all 10 workers are there".into(),
        bound_by: Some("workers".into()),
        gates: vec![gate],
        next_look: None,
        vm: None,
        times: 1,
        since: NOW,
    }
}
