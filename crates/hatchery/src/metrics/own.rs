//! What CDS does not count: where the time goes, why things are refused, what it costs.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use super::counters::PlainCounter;

/// A named wait on the way from job to worker, each with its own deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    Deciding,
    Taking,
    Claiming,
    Cloning,
    PoweringOn,
    WaitingForTools,
    WaitingForAddress,
    Probing,
    PreStart,
    Launching,
    PoweringOff,
    Destroying,
}

impl Phase {
    fn as_str(self) -> &'static str {
        match self {
            Self::Deciding => "deciding",
            Self::Taking => "taking",
            Self::Claiming => "claiming",
            Self::Cloning => "cloning",
            Self::PoweringOn => "powering-on",
            Self::WaitingForTools => "waiting-for-tools",
            Self::WaitingForAddress => "waiting-for-address",
            Self::Probing => "probing",
            Self::PreStart => "pre-start",
            Self::Launching => "launching",
            Self::PoweringOff => "powering-off",
            Self::Destroying => "destroying",
        }
    }
}

/// Where a worker's VM came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Start {
    Warm,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    Spawned,
    Waiting,
    Refused,
    Failed,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Spawned => "spawned",
            Self::Waiting => "waiting",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Server {
    Vcenter,
    Cds,
}

impl Server {
    fn as_str(self) -> &'static str {
        match self {
            Self::Vcenter => "vcenter",
            Self::Cds => "cds",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CallOutcome {
    Ok,
    Error,
}

impl CallOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPhase {
    phase: &'static str,
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
struct OfTask {
    task: &'static str,
}

/// From a power-on to a full clone of a large template; few, because each costs a series for each phase.
const PHASE_SECONDS: [f64; 8] = [0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0];
/// From a warm start to a long queue.
const WAIT_SECONDS: [f64; 8] = [1.0, 5.0, 15.0, 30.0, 60.0, 180.0, 600.0, 3600.0];

/// Numbers of our own, under `roost_hatchery_`.
#[derive(Debug, Clone)]
pub struct OwnMetrics {
    phases: Family<OfPhase, Histogram, fn() -> Histogram>,
    waits: Family<OfStart, Histogram, fn() -> Histogram>,
    decisions: Family<OfDecision, PlainCounter>,
    deletions: Family<OfReason, PlainCounter>,
    calls: Family<OfCall, PlainCounter>,
    restarts: Family<OfTask, PlainCounter>,
    frozen: Gauge,
}

impl OwnMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let own = Self {
            phases: Family::new_with_constructor(|| Histogram::new(PHASE_SECONDS)),
            waits: Family::new_with_constructor(|| Histogram::new(WAIT_SECONDS)),
            decisions: Family::default(),
            deletions: Family::default(),
            calls: Family::default(),
            restarts: Family::default(),
            frozen: Gauge::default(),
        };
        let registry = registry.sub_registry_with_prefix("roost_hatchery");
        let help = "time that a step on the way from job to worker took";
        registry.register_with_unit("phase", help, Unit::Seconds, own.phases.clone());
        let help = "from the moment a job was queued to the start of its worker";
        registry.register_with_unit("job_wait", help, Unit::Seconds, own.waits.clone());
        registry.register(
            "decisions_total",
            "decisions about jobs, by the reason that bound them",
            own.decisions.clone(),
        );
        registry.register("deletions_total", "VMs deleted, by reason", own.deletions.clone());
        registry.register(
            "calls_total",
            "calls to the vCenter and to the CDS API",
            own.calls.clone(),
        );
        registry.register(
            "task_restarts_total",
            "background tasks that failed and were started again",
            own.restarts.clone(),
        );
        registry.register(
            "deletion_frozen",
            "1 while deletion waits for a person",
            own.frozen.clone(),
        );
        own
    }

    pub fn phase_took(&self, phase: Phase, time: Duration) {
        self.phases.get_or_create(&OfPhase { phase: phase.as_str() }).observe(time.as_secs_f64());
    }

    pub fn job_waited(&self, start: Start, time: Duration) {
        self.waits.get_or_create(&OfStart { start: start.as_str() }).observe(time.as_secs_f64());
    }

    /// `reason` is that of a [`Refusal`](crate::refusal::Refusal) or the name of a gate.
    pub fn decided(&self, verdict: Verdict, reason: &'static str) {
        self.decisions.get_or_create(&OfDecision { verdict: verdict.as_str(), reason }).inc();
    }

    pub fn deleted(&self, reason: &'static str) {
        self.deletions.get_or_create(&OfReason { reason }).inc();
    }

    /// `call` is the method, or the route without ids: a closed set either way.
    pub fn called(&self, server: Server, call: &'static str, outcome: CallOutcome) {
        let (server, outcome) = (server.as_str(), outcome.as_str());
        self.calls.get_or_create(&OfCall { server, call, outcome }).inc();
    }

    pub fn task_restarted(&self, task: &'static str) {
        self.restarts.get_or_create(&OfTask { task }).inc();
    }

    pub fn deletion_is_frozen(&self, frozen: bool) {
        self.frozen.set(frozen.into());
    }
}
