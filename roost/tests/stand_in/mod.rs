//! A service that has nothing but names that nobody should give to anything.

use jiff::Timestamp;
use roost_console::views::{
    CapacityView, DecisionQuery, DecisionView, DeletionsView, Health, JobDetail, JobState, JobView,
    LaneView, LinkView, MonitoringView, Overview, PoolView, Protocol, QueueView, SubjectKind,
    VersionView, VmDetail, VmKind, VmView,
};
use roost_console::{Feed, Source, Subscription};
use serde_json::Value;

const NOW: Timestamp = Timestamp::constant(1_780_272_000, 0);

/// They would clear the screen, set a title, ring, turn a line around or push columns aside.
pub(crate) const HOSTILE: [&str; 6] = [
    "\u{1b}[2J\u{1b}]0;owned\u{7}",
    "\u{1b}c\u{1b}[?1049l\u{1b}[1;1Hpwned",
    "a\r\nb\tc\u{8}\u{7f}\u{9b}31m",
    "x\u{202e}gnp.exe\u{2066}",
    "名前が長いワーカーの名前が長いワーカーの名前が長いワーカーの名前が長いワーカー",
    "e\u{301}\u{301}\u{301}\u{200d}\u{feff}",
];

#[derive(Debug, Default)]
pub(crate) struct StandIn {
    name: &'static str,
    feed: Feed,
}

impl StandIn {
    pub(crate) fn named(name: &'static str) -> Self {
        Self { name, feed: Feed::default() }
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
        let names: Vec<String> = HOSTILE.map(str::to_owned).to_vec();
        Overview {
            service: self.name.into(),
            version: "0.1.0".into(),
            now: NOW,
            started: NOW,
            ready: true,
            what_binds: Some(HOSTILE.concat()),
            queue: QueueView { waiting: 6, oldest_waiting_secs: Some(61), starting: 0 },
            workers: vec![LaneView {
                phase: "booting".into(),
                words: HOSTILE[0].into(),
                count: HOSTILE.len() as u64,
                names,
            }],
            pools: self.pools(),
            capacity: CapacityView::default(),
            addresses: None,
            deletions: DeletionsView { frozen: Some(HOSTILE.concat()), last_minute: 0 },
            link: LinkView { trouble: Some(HOSTILE.concat()), ..LinkView::default() },
            recent: Vec::new(),
        }
    }

    fn jobs(&self) -> Vec<JobView> {
        HOSTILE.map(job).to_vec()
    }

    fn job(&self, id: &str) -> Option<JobDetail> {
        let decisions = self.decisions(&DecisionQuery::default());
        Some(JobDetail { job: job(id), decisions, vm: self.vm(id) })
    }

    fn vms(&self) -> Vec<VmView> {
        HOSTILE.map(vm).to_vec()
    }

    fn vm(&self, name: &str) -> Option<VmDetail> {
        let decisions = self.decisions(&DecisionQuery::default());
        let annotation = Some(HOSTILE.join("\n"));
        Some(VmDetail { vm: vm(name), annotation, timeline: Vec::new(), decisions })
    }

    fn pools(&self) -> Vec<PoolView> {
        vec![PoolView {
            model: HOSTILE[0].into(),
            template: None,
            flavor: Some(HOSTILE[3].into()),
            wanted: 3,
            ready: 1,
            coming: 1,
            in_use: 0,
            missing: 1,
            waiting: Some(HOSTILE[1].into()),
        }]
    }

    fn decisions(&self, _: &DecisionQuery) -> Vec<DecisionView> {
        HOSTILE.iter().zip(1..).map(|(name, seq)| decision(seq, name)).collect()
    }

    fn subscribe(&self) -> Subscription {
        self.feed.subscribe()
    }
}
