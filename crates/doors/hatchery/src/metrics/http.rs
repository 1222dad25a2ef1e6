use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::counters::PlainCounter;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfHandler {
    http_handler: &'static str,
}

/// Fewer than CDS has: each costs a series for each handler.
const BYTES: [f64; 4] = [1024.0, 16_384.0, 262_144.0, 4_194_304.0];
const MILLISECONDS: [f64; 6] = [1.0, 10.0, 50.0, 250.0, 1000.0, 10_000.0];

/// What our own HTTP server did, under CDS's names.
#[derive(Debug, Clone)]
pub struct HttpMetrics {
    requests: Family<OfHandler, PlainCounter>,
    request_bytes: Family<OfHandler, Histogram, fn() -> Histogram>,
    response_bytes: Family<OfHandler, Histogram, fn() -> Histogram>,
    latency: Family<OfHandler, Histogram, fn() -> Histogram>,
}

impl HttpMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let http = Self {
            requests: Family::default(),
            request_bytes: Family::new_with_constructor(|| Histogram::new(BYTES)),
            response_bytes: Family::new_with_constructor(|| Histogram::new(BYTES)),
            latency: Family::new_with_constructor(|| Histogram::new(MILLISECONDS)),
        };
        let registry = registry.sub_registry_with_prefix("cds_http_server");
        let help = "HTTP requests by handler";
        registry.register("request_count_by_handler", help, http.requests.clone());
        let help = "size of HTTP requests by handler";
        registry.register("request_bytes_by_handler", help, http.request_bytes.clone());
        let help = "size of HTTP answers by handler";
        registry.register("response_bytes_by_handler", help, http.response_bytes.clone());
        let help = "milliseconds to an HTTP answer by handler";
        registry.register("latency_by_handler", help, http.latency.clone());
        http
    }

    /// `handler` is the route, such as `/mon/status`: a closed set, whatever clients ask for.
    pub fn answered(
        &self,
        handler: &'static str,
        request_bytes: u64,
        response_bytes: u64,
        took: Duration,
    ) {
        let labels = OfHandler { http_handler: handler };
        // An answer of more than 2^53 bytes would be shown a byte or two short.
        #[expect(clippy::cast_precision_loss, reason = "see above")]
        let float = |bytes: u64| bytes as f64;
        self.requests.get_or_create(&labels).inc();
        self.request_bytes.get_or_create(&labels).observe(float(request_bytes));
        self.response_bytes.get_or_create(&labels).observe(float(response_bytes));
        self.latency.get_or_create(&labels).observe(took.as_secs_f64() * 1000.0);
    }
}
