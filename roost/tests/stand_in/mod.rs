//! A service that shows what it was given, and does nothing.
#![allow(dead_code, reason = "each test uses what it needs")]

use jiff::Timestamp;
use roost_console::views::{
    CapacityView, DecisionQuery, DecisionView, DeletionsView, Health, JobDetail, JobState, JobView,
    LaneView, LinkView, MonitoringView, Overview, PoolView, Protocol, QueueView, SubjectKind,
    VersionView, VmDetail, VmKind, VmView,
};
use roost_console::{Feed, Source, Subscription};
use serde_json::Value;

pub(crate) const NOW: Timestamp = Timestamp::constant(1_780_272_000, 0);

/// What there is to see.
#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) overview: Overview,
    pub(crate) jobs: Vec<JobView>,
    pub(crate) vms: Vec<VmView>,
    pub(crate) decisions: Vec<DecisionView>,
    /// What each VM says of itself.
    annotation: Option<String>,
    feed: Feed,
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
            what_binds: None,
            queue: QueueView::default(),
            workers: Vec::new(),
            pools: Vec::new(),
            capacity: CapacityView::default(),
            addresses: None,
            deletions: DeletionsView::default(),
            link: LinkView::default(),
            recent: Vec::new(),
        };
        let (jobs, vms, decisions) = (Vec::new(), Vec::new(), Vec::new());
        Self { overview, jobs, vms, decisions, annotation: None, feed: Feed::default() }
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
        overview.queue = QueueView { waiting: 6, oldest_waiting_secs: Some(61), starting: 0 };
        overview.workers = vec![LaneView {
            phase: "booting".into(),
            words: names[0].into(),
            count: names.len() as u64,
            names: names.iter().map(ToString::to_string).collect(),
        }];
        overview.pools = vec![PoolView {
            model: names[0].into(),
            template: None,
            flavor: Some(names[3].into()),
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
        kind: VmKind::Worker,
        power: "on".into(),
        phase: some(),
        phase_since: Some(NOW),
        job: some(),
        model: some(),
        template: some(),
        flavor: some(),
        cpus: Some(8),
        memory_mb: Some(1_024),
        address: some(),
        created: Some(NOW),
        started: None,
        worker_status: some(),
        fate: some(),
    }
}

fn job(name: &str) -> JobView {
    let some = || Some(name.to_owned());
    JobView {
        id: name.into(),
        protocol: Protocol::V2,
        project: some(),
        workflow: some(),
        state: JobState::Waiting,
        queued: Some(NOW),
        waited_secs: Some(61),
        model: some(),
        flavor: some(),
        vm: some(),
        verdict: Some(decision(1, name)),
    }
}

fn decision(seq: u64, name: &str) -> DecisionView {
    DecisionView {
        seq,
        at: NOW,
        subject_kind: SubjectKind::Vm,
        subject: name.into(),
        subject_name: Some(name.into()),
        verdict: name.into(),
        reason: name.into(),
        bound_by: Some(name.into()),
        gates: Vec::new(),
        next_look: Some(name.into()),
        vm: Some(name.into()),
        times: 3,
        since: NOW,
    }
}

impl Source for StandIn {
    fn status(&self) -> MonitoringView {
        MonitoringView { now: NOW, lines: Vec::new() }
    }

    fn version(&self) -> VersionView {
        VersionView::default()
    }

    fn workers(&self) -> Value {
        Value::Null
    }

    fn metrics(&self) -> String {
        String::new()
    }

    fn metrics_described(&self) -> Value {
        Value::Null
    }

    fn liveness(&self) -> Health {
        Health::default()
    }

    fn readiness(&self) -> Health {
        Health::default()
    }

    fn overview(&self) -> Overview {
        self.overview.clone()
    }

    fn jobs(&self) -> Vec<JobView> {
        self.jobs.clone()
    }

    fn job(&self, id: &str) -> Option<JobDetail> {
        let job = self.jobs.iter().find(|job| job.id == id)?.clone();
        Some(JobDetail { job, decisions: self.decisions.clone(), vm: self.vm(id) })
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

    fn decisions(&self, query: &DecisionQuery) -> Vec<DecisionView> {
        let wanted = query.verdict.as_deref();
        let is_wanted = |decided: &&DecisionView| wanted.is_none_or(|it| decided.verdict == it);
        self.decisions.iter().filter(is_wanted).cloned().collect()
    }

    fn subscribe(&self) -> Subscription {
        self.feed.subscribe()
    }
}
