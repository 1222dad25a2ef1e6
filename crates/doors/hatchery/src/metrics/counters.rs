use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::{MetricType, TypedMetric};
use prometheus_client::registry::Registry;

/// The counters of CDS's framework.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    Jobs,
    JobsWebsocket,
    JobsProcessed,
    SpawnedWorkers,
    SpawningWorkers,
    SpawningErrors,
    V1JobsQueued,
    V2JobsQueued,
    StarterJobs,
    V1JobsReceived,
    V2JobsReceived,
}

impl Counted {
    pub const ALL: [Self; 11] = [
        Self::Jobs,
        Self::JobsWebsocket,
        Self::JobsProcessed,
        Self::SpawnedWorkers,
        Self::SpawningWorkers,
        Self::SpawningErrors,
        Self::V1JobsQueued,
        Self::V2JobsQueued,
        Self::StarterJobs,
        Self::V1JobsReceived,
        Self::V2JobsReceived,
    ];

    /// Behind `cds_hatchery_`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Jobs => "jobs_count",
            Self::JobsWebsocket => "jobs_websocket_count",
            Self::JobsProcessed => "jobs_processed_count",
            Self::SpawnedWorkers => "spawned_worker_count",
            Self::SpawningWorkers => "spawning_worker_count",
            Self::SpawningErrors => "spawning_worker_errors_count",
            Self::V1JobsQueued => "chan_v1_job_add_count",
            Self::V2JobsQueued => "chan_v2_job_add_count",
            Self::StarterJobs => "chan_worker_starter_job_pop",
            Self::V1JobsReceived => "job_received_in_queue_polling_ws_v1_count",
            Self::V2JobsReceived => "job_received_in_queue_polling_ws_v2_count",
        }
    }

    pub(super) fn help(self) -> &'static str {
        match self {
            Self::Jobs => "jobs looked at",
            Self::JobsWebsocket => "jobs looked at because the websocket named them",
            Self::JobsProcessed => "jobs that a decision was made about",
            Self::SpawnedWorkers => "workers started",
            Self::SpawningWorkers => "worker starts begun",
            Self::SpawningErrors => "worker starts that failed",
            Self::V1JobsQueued => "V1 jobs put in line for a decision",
            Self::V2JobsQueued => "V2 jobs put in line for a decision",
            Self::StarterJobs => "jobs that a starter took on",
            Self::V1JobsReceived => "V1 jobs that came by websocket or poll",
            Self::V2JobsReceived => "V2 jobs that came by websocket or poll",
        }
    }

    fn index(self) -> usize {
        Self::ALL.iter().position(|counted| *counted == self).unwrap_or_default()
    }
}

/// One number for each [`Counted`].
#[derive(Debug, Clone)]
pub struct Counters([PlainCounter; Counted::ALL.len()]);

impl Counters {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let counters = Counted::ALL.map(|counted| {
            let counter = PlainCounter::default();
            registry.register(
                format!("cds_hatchery_{}", counted.name()),
                counted.help(),
                counter.clone(),
            );
            counter
        });
        Self(counters)
    }

    pub fn count(&self, counted: Counted) {
        self.0[counted.index()].inc();
    }

    pub fn get(&self, counted: Counted) -> u64 {
        self.0[counted.index()].0.load(Ordering::Relaxed)
    }
}

/// A counter whose name is written as it is. The library would add `_total` to the series and not to its type, which the older text format does not
/// understand; and CDS's counters do not have it.
#[derive(Debug, Clone, Default)]
pub(super) struct PlainCounter(Arc<AtomicU64>);

impl PlainCounter {
    pub(super) fn inc(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl TypedMetric for PlainCounter {
    const TYPE: MetricType = MetricType::Counter;
}

impl EncodeMetric for PlainCounter {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&self.0.load(Ordering::Relaxed))
    }

    fn metric_type(&self) -> MetricType {
        Self::TYPE
    }
}
