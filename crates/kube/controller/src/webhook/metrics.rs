//! What is asked of webhooks, counted under the names of controller-runtime.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

/// The default ones of the Go library, in seconds.
const SECONDS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPath {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByCode {
    webhook: String,
    code: u16,
}

/// Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct WebhookMetrics {
    requests: Family<ByCode, Counter>,
    seconds: Family<ByPath, Histogram, fn() -> Histogram>,
    in_flight: Family<ByPath, Gauge>,
    panics: Counter,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            in_flight: Family::default(),
            panics: Counter::default(),
        }
    }
}

impl WebhookMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        let name = "controller_runtime_webhook_requests";
        registry.register(name, "Requests of webhooks, by code", metrics.requests.clone());
        let name = "controller_runtime_webhook_latency_seconds";
        registry.register(name, "How long webhooks take to answer", metrics.seconds.clone());
        let name = "controller_runtime_webhook_requests_in_flight";
        registry.register(name, "Requests that are being answered", metrics.in_flight.clone());
        let name = "controller_runtime_webhook_panics";
        registry.register(name, "Webhooks that panicked", metrics.panics.clone());
        metrics
    }

    /// From now on the webhook has its series.
    pub(super) fn announce(&self, path: &str) {
        let webhook = path.to_owned();
        for code in [200, 500] {
            drop(self.requests.get_or_create(&ByCode { webhook: webhook.clone(), code }));
        }
        drop(self.seconds.get_or_create(&ByPath { webhook: webhook.clone() }));
        drop(self.in_flight.get_or_create(&ByPath { webhook }));
    }

    pub(super) fn panicked(&self) {
        self.panics.inc();
    }

    pub(super) fn count(&self, path: &str, code: u16) {
        self.requests.get_or_create(&ByCode { webhook: path.to_owned(), code }).inc();
    }

    /// A request that is being answered until this is dropped.
    pub(super) fn begin(&self, path: &str) -> InFlight {
        let by_path = ByPath { webhook: path.to_owned() };
        let gauge = self.in_flight.get_or_create_owned(&by_path);
        gauge.inc();
        let seconds = self.seconds.get_or_create_owned(&by_path);
        InFlight { gauge, seconds, began: Instant::now() }
    }
}

pub(super) struct InFlight {
    gauge: Gauge,
    seconds: Histogram,
    began: Instant,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.gauge.dec();
        self.seconds.observe(self.began.elapsed().as_secs_f64());
    }
}
