//! The HTTPS API of a kubelet: what the API server and scrapers ask of a node.

mod access;
mod answer;
mod attach;
mod exec;
mod listen;
mod logs;
mod port_forward;
mod query;
mod routes;
mod stream;
mod terminal;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use prometheus_client::registry::Registry as MetricRegistry;
use roost_controller::Store;

pub(crate) use self::access::{Gate, KubeReviews};
use crate::pods::{Host, PodTable};
use crate::usage::Sampler;

/// What requests are answered from. [`serve`](KubeletApi::serve) answers them.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "the registry has none")]
pub struct KubeletApi {
    shared: Arc<Shared>,
}

struct Shared {
    pods: Store<Pod>,
    table: PodTable,
    host: Arc<Host>,
    gate: Gate,
    metrics: Arc<MetricRegistry>,
    sampler: Arc<Sampler>,
    node: String,
    started: Timestamp,
}

impl KubeletApi {
    pub(crate) fn new(
        node: String,
        sampler: Arc<Sampler>,
        gate: Gate,
        metrics: Arc<MetricRegistry>,
    ) -> Self {
        let shared = Shared {
            pods: sampler.pods.clone(),
            table: sampler.table.clone(),
            host: Arc::clone(&sampler.host),
            gate,
            metrics,
            started: sampler.host.clock.now(),
            sampler,
            node,
        };
        Self { shared: Arc::new(shared) }
    }
}
