//! All names, help texts and labels in one view.
//!
//! What CDS's hatchery exposes has the same names here, so that dashboards and alerts stay as they are; all of it is replaced at once in each
//! cycle, so that no scrape falls into a gap (W33). What is ours begins with `roost_hatchery_`. Label values come from closed sets, except for the
//! names of workers, models and pools, which are as many as there are.

mod collector;
mod counters;
mod cycle;
mod http;
mod levels;
mod own;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Serialize;

pub use counters::{Counted, Counters};
pub use cycle::{AddressTally, Cycle, CycleFacts, PoolReading, VmRow, WorkerRow};
pub use http::HttpMetrics;
pub use levels::{Levels, Links};
pub use own::{OwnMetrics, Start};

use self::collector::CycleCollector;

/// What `/mon/metrics` says it is. The names of CDS are those of the older format: its counters do not end in `_total`.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Everything that the hatchery counts. Cheap to clone; clones count into the same numbers.
#[derive(Debug, Clone)]
pub struct Metrics {
    pub counters: Counters,
    pub own: OwnMetrics,
    pub http: HttpMetrics,
    cycle: CycleCollector,
}

impl Metrics {
    /// Adds all of them to a registry, each with CDS's two labels.
    pub fn register(registry: &mut Registry, service_name: &str) -> Self {
        let labels = [
            (Cow::Borrowed("service_name"), Cow::Owned(service_name.to_owned())),
            (Cow::Borrowed("service_type"), Cow::Borrowed("hatchery")),
        ];
        let registry = registry.sub_registry_with_labels(labels.into_iter());
        let cycle = CycleCollector::default();
        registry.register_collector(Box::new(cycle.clone()));
        Self {
            counters: Counters::register(registry),
            own: OwnMetrics::register(registry),
            http: HttpMetrics::register(registry),
            cycle,
        }
    }

    /// Replaces what the last cycle said, all at once.
    pub fn replace(&self, cycle: Cycle) {
        self.cycle.replace(cycle);
    }
}

/// The text of `/mon/metrics`.
pub fn exposition(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    Ok(text)
}

/// One line of `/mon/metrics/all`, with CDS's own spelling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Described {
    pub name: String,
    pub description: &'static str,
    pub tags: Vec<&'static str>,
    pub dimension: &'static str,
    #[serde(rename = "aggregagtion")]
    pub aggregation: &'static str,
}

/// What CDS calls its metrics and says about them.
pub fn describe() -> Vec<Described> {
    let entry = |name: String, description, per_worker, aggregation| {
        let mut tags = vec!["service_name", "service_type"];
        if per_worker {
            tags.extend(["worker_name", "worker_model"]);
        }
        Described { name, description, tags, dimension: "1", aggregation }
    };
    let counters = Counted::ALL.iter().map(|counted| {
        entry(format!("cds/hatchery/{}", counted.name()), counted.help(), false, "Count")
    });
    let gauges = Cycle::definitions();
    let gauges = gauges.into_iter().map(|definition| {
        let name = definition.name.replacen("cds_hatchery_vsphere_", "cds/hatchery/vsphere/", 1);
        let name = name.replacen("cds_hatchery_", "cds/hatchery/", 1);
        entry(name, definition.help, definition.per_worker, "LastValue")
    });
    counters.chain(gauges).collect()
}
