//! The metrics of the controllers, under the names of controller-runtime.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::requests::Requests;
use crate::verdict::Counted;
use crate::webhook::WebhookMetrics;

/// Those of controller-runtime, in seconds.
const RECONCILE_SECONDS: [f64; 33] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByController {
    controller: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    controller: String,
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByName {
    name: String,
}

type Seconds = Family<ByController, Histogram, fn() -> Histogram>;

/// The metrics of all controllers of a process. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Metrics {
    reconciles: Family<ByResult, Counter>,
    errors: Family<ByController, Counter>,
    terminal_errors: Family<ByController, Counter>,
    panics: Family<ByController, Counter>,
    timeouts: Family<ByController, Counter>,
    seconds: Seconds,
    max_concurrent: Family<ByController, Gauge>,
    active: Family<ByController, Gauge>,
    leader: Family<ByName, Gauge<u64, AtomicU64>>,
    pub(crate) queues: roost_workqueue::Metrics,
    pub(crate) webhooks: WebhookMetrics,
    pub(crate) requests: Requests,
}

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(RECONCILE_SECONDS);
        let metrics = Self {
            reconciles: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            timeouts: Family::default(),
            seconds: Family::new_with_constructor(histogram),
            max_concurrent: Family::default(),
            active: Family::default(),
            leader: Family::default(),
            queues: roost_workqueue::Metrics::register(registry),
            webhooks: WebhookMetrics::register(registry),
            requests: Requests::register(registry),
        };
        let name = "controller_runtime_reconcile";
        registry.register(name, "Reconciles, by result", metrics.reconciles.clone());
        let name = "controller_runtime_reconcile_errors";
        registry.register(name, "Reconciles that ended with an error", metrics.errors.clone());
        let name = "controller_runtime_terminal_reconcile_errors";
        let help = "Reconciles that ended with an error which is not retried";
        registry.register(name, help, metrics.terminal_errors.clone());
        let name = "controller_runtime_reconcile_panics";
        registry.register(name, "Reconciles that panicked", metrics.panics.clone());
        let name = "controller_runtime_reconcile_timeouts";
        registry.register(name, "Reconciles that took too long", metrics.timeouts.clone());
        let name = "controller_runtime_reconcile_time_seconds";
        registry.register(name, "How long reconciles take", metrics.seconds.clone());
        let name = "controller_runtime_max_concurrent_reconciles";
        registry.register(name, "Workers of a controller", metrics.max_concurrent.clone());
        let name = "controller_runtime_active_workers";
        registry.register(name, "Workers that are at a key", metrics.active.clone());
        let name = "leader_election_master_status";
        registry.register(name, "1 while this process holds the lease", metrics.leader.clone());
        metrics
    }

    pub(crate) fn of(&self, controller: &str) -> ControllerMetrics {
        let labels = ByController { controller: controller.to_owned() };
        let by_result = Counted::ALL.map(|counted| {
            let labels = ByResult { controller: controller.to_owned(), result: counted.as_str() };
            self.reconciles.get_or_create_owned(&labels)
        });
        ControllerMetrics {
            by_result,
            errors: self.errors.get_or_create_owned(&labels),
            terminal_errors: self.terminal_errors.get_or_create_owned(&labels),
            panics: self.panics.get_or_create_owned(&labels),
            timeouts: self.timeouts.get_or_create_owned(&labels),
            seconds: self.seconds.get_or_create_owned(&labels),
            max_concurrent: self.max_concurrent.get_or_create_owned(&labels),
            active: self.active.get_or_create_owned(&labels),
        }
    }

    pub(crate) fn leads(&self, lease: &str, is_leader: bool) {
        self.leader.get_or_create(&ByName { name: lease.to_owned() }).set(u64::from(is_leader));
    }
}

/// The series of one controller, looked up once.
#[derive(Debug, Clone)]
pub(crate) struct ControllerMetrics {
    by_result: [Counter; 4],
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) seconds: Histogram,
    pub(crate) max_concurrent: Gauge,
    pub(crate) active: Gauge,
}

impl ControllerMetrics {
    pub(crate) fn count(&self, counted: Counted) {
        self.by_result[counted as usize].inc();
    }
}
