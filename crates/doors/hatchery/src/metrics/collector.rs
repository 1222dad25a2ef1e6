use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelValue, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::cycle::Cycle;

/// Shows the last cycle as a whole. A scrape sees one cycle or the next, never half of each.
#[derive(Debug, Clone, Default)]
pub(super) struct CycleCollector(Arc<RwLock<Arc<Cycle>>>);

impl CycleCollector {
    pub(super) fn replace(&self, cycle: Cycle) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(cycle);
    }

    fn current(&self) -> Arc<Cycle> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Collector for CycleCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let cycle = self.current();
        for (name, help, value) in cycle.gauges() {
            if let Some(value) = value {
                let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
                ConstGauge::new(value).encode(gauge)?;
            }
        }
        for (name, help, show) in Cycle::worker_gauges() {
            let rows: Vec<_> =
                cycle.workers.iter().filter_map(|row| Some((row, show(row)?))).collect();
            let rows = rows.iter().map(|(row, value)| {
                ([("worker_name", row.name.as_str()), ("worker_model", row.model.as_str())], *value)
            });
            family(&mut encoder, name, help, rows)?;
        }
        let tiers = cycle.spares.iter().flat_map(|pool| {
            let kind = pool.kind.to_string();
            let tiers = [
                ("wanted", pool.wanted),
                ("ready", pool.ready),
                ("coming", pool.coming),
                ("missing", pool.missing()),
            ];
            tiers.map(|(tier, number)| {
                ([("pool", kind.clone()), ("tier", tier.to_owned())], u64::from(number))
            })
        });
        family(&mut encoder, "roost_hatchery_spares", "spares of each pool, by tier", tiers)?;
        let oldest = cycle.oldest_waiting_secs.unwrap_or_default();
        for (name, help, value) in [
            (
                "roost_hatchery_waiting_jobs",
                "jobs that wait for a worker of this hatchery",
                cycle.waiting_jobs,
            ),
            (
                "roost_hatchery_refused_jobs",
                "jobs that this hatchery does not serve as they are, because of what they or their models ask for",
                cycle.refused_jobs,
            ),
            (
                "roost_hatchery_oldest_waiting_job_seconds",
                "since when the oldest waiting job was queued; 0 if none waits",
                oldest,
            ),
        ] {
            let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(value).encode(gauge)?;
        }
        cycle.levels.encode(&mut encoder, cycle.addresses.is_some())
    }
}

/// Several series of one gauge; nothing at all if there are none.
pub(super) fn family<const LABELS: usize, V: EncodeLabelValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: impl Iterator<Item = ([(&'static str, V); LABELS], u64)>,
) -> fmt::Result {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in rows {
        ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}
