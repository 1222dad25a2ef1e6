//! What CDS does not count: where the time goes, why things are refused, what it costs.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};
use roost_fleet::{Decided, Ended, Phase, PhaseHook};
use roost_vim::{CallRecord, Hooks, LoginOutcome};

use super::counters::PlainCounter;

/// Where a worker's VM came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Start {
    /// A spare was claimed.
    Warm,
    /// A template was cloned.
    Cold,
}

impl Start {
    fn as_str(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPhase {
    phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfEnd {
    phase: &'static str,
    ended: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStart {
    start: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfDecision {
    verdict: &'static str,
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfReason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCall {
    server: &'static str,
    call: &'static str,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfFault {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTask {
    task: &'static str,
}

/// From a power-on to a full clone of a large template; few, because each costs a series for each phase.
const PHASE_SECONDS: [f64; 8] = [0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0];
/// From a warm start to a long queue.
const WAIT_SECONDS: [f64; 8] = [1.0, 5.0, 15.0, 30.0, 60.0, 180.0, 600.0, 3600.0];

/// Numbers of our own, under `roost_hatchery_`. Label values are texts of closed sets.
#[derive(Debug, Clone)]
pub struct OwnMetrics {
    phases: Family<OfPhase, Histogram, fn() -> Histogram>,
    ends: Family<OfEnd, PlainCounter>,
    waits: Family<OfStart, Histogram, fn() -> Histogram>,
    decisions: Family<OfDecision, PlainCounter>,
    deletions: Family<OfReason, PlainCounter>,
    calls: Family<OfCall, PlainCounter>,
    faults: Family<OfFault, PlainCounter>,
    restarts: Family<OfTask, PlainCounter>,
    resyncs: PlainCounter,
    frozen: Gauge,
    backlog: Gauge,
    other_process: Gauge,
    dropped_log_lines: PlainCounter,
}

impl OwnMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let own = Self {
            phases: Family::new_with_constructor(|| Histogram::new(PHASE_SECONDS)),
            ends: Family::default(),
            waits: Family::new_with_constructor(|| Histogram::new(WAIT_SECONDS)),
            decisions: Family::default(),
            deletions: Family::default(),
            calls: Family::default(),
            faults: Family::default(),
            restarts: Family::default(),
            resyncs: PlainCounter::default(),
            frozen: Gauge::default(),
            backlog: Gauge::default(),
            other_process: Gauge::default(),
            dropped_log_lines: PlainCounter::default(),
        };
        let registry = registry.sub_registry_with_prefix("roost_hatchery");
        let help = "time that a phase of a VM took, if it was done";
        registry.register_with_unit("phase", help, Unit::Seconds, own.phases.clone());
        registry.register("phase_ends_total", "how phases of VMs ended", own.ends.clone());
        let help = "from the moment a job was queued to the start of its worker";
        registry.register_with_unit("job_wait", help, Unit::Seconds, own.waits.clone());
        let help = "decisions, by the reason that bound them";
        registry.register("decisions_total", help, own.decisions.clone());
        registry.register("deletions_total", "VMs deleted, by reason", own.deletions.clone());
        let help = "requests to the vCenter and to the CDS API";
        registry.register("calls_total", help, own.calls.clone());
        let help = "faults that the vCenter answered with, by class";
        registry.register("vcenter_faults_total", help, own.faults.clone());
        let help = "background tasks that failed and were started again";
        registry.register("task_restarts_total", help, own.restarts.clone());
        let help = "times that the view of the datacenter had to be built anew";
        registry.register("stream_resyncs_total", help, own.resyncs.clone());
        let help = "1 while deletion waits for a person";
        registry.register("deletion_frozen", help, own.frozen.clone());
        let help = "VMs that are to go and are not gone yet";
        registry.register("deletion_backlog", help, own.backlog.clone());
        let help = "1 while another process of the same name was at work in the last 15 minutes";
        registry.register("other_process", help, own.other_process.clone());
        let help = "log lines that could not be written and were dropped";
        registry.register("log_lines_dropped_total", help, own.dropped_log_lines.clone());
        own
    }

    pub fn job_waited(&self, start: Start, time: Duration) {
        self.waits.get_or_create(&OfStart { start: start.as_str() }).observe(time.as_secs_f64());
    }

    /// `reason` is that of a [`Refusal`](crate::refusal::Refusal) or the name of a gate.
    pub fn decided(&self, verdict: Decided, reason: &'static str) {
        self.decisions.get_or_create(&OfDecision { verdict: verdict.as_str(), reason }).inc();
    }

    pub fn deletion_backlog(&self, vms: usize) {
        self.backlog.set(i64::try_from(vms).unwrap_or(i64::MAX));
    }

    pub fn other_process(&self, is_there: bool) {
        self.other_process.set(is_there.into());
    }

    pub fn log_line_dropped(&self) {
        self.dropped_log_lines.inc();
    }

    pub fn deleted(&self, reason: &'static str) {
        self.deletions.get_or_create(&OfReason { reason }).inc();
    }

    /// A request to the CDS API; `route` is without ids.
    pub fn called_cds(&self, route: &'static str, outcome: &'static str) {
        self.called("cds", route, outcome);
    }

    fn called(&self, server: &'static str, call: &'static str, outcome: &'static str) {
        self.calls.get_or_create(&OfCall { server, call, outcome }).inc();
    }

    pub fn task_restarted(&self, task: &'static str) {
        self.restarts.get_or_create(&OfTask { task }).inc();
    }

    pub fn deletion_is_frozen(&self, frozen: bool) {
        self.frozen.set(frozen.into());
    }
}

impl PhaseHook for OwnMetrics {
    fn ended(&self, phase: Phase, ended: Ended, took: Duration) {
        let phase = phase.as_str();
        self.ends.get_or_create(&OfEnd { phase, ended: ended.as_str() }).inc();
        if ended == Ended::Done {
            self.phases.get_or_create(&OfPhase { phase }).observe(took.as_secs_f64());
        }
    }
}

impl Hooks for OwnMetrics {
    fn call_finished(&self, record: &CallRecord) {
        self.called("vcenter", record.method, record.outcome.as_str());
    }

    fn fault(&self, _: &'static str, kind: &'static str) {
        self.faults.get_or_create(&OfFault { kind }).inc();
    }

    fn login(&self, outcome: LoginOutcome) {
        self.called("vcenter", "login", outcome.as_str());
    }

    fn stream_resynced(&self) {
        self.resyncs.inc();
    }

    fn background_panicked(&self, what: &'static str) {
        self.task_restarted(what);
    }
}
