//! The metrics of all queues of a process, under the names and with the labels of controller-runtime.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::moment::Moment;
use crate::tally::{BUCKETS, Histogram, Tally};

pub(crate) trait Report: Send + Sync {
    fn report(&self) -> (Tally, Moment);
}

/// Where queues announce themselves so that a scrape finds them. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Metrics(Arc<Queues>);

#[derive(Default)]
struct Queues(Mutex<Vec<(String, Weak<dyn Report>)>>);

impl Metrics {
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::default();
        registry.register_collector(Box::new(Arc::clone(&metrics.0)));
        metrics
    }

    pub(crate) fn watch(&self, name: &str, queue: &Arc<dyn Report>) {
        let mut queues = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        queues.retain(|(known, queue)| known != name && queue.strong_count() > 0);
        queues.push((name.to_owned(), Arc::downgrade(queue)));
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Queues").finish_non_exhaustive()
    }
}

struct Row {
    name: String,
    tally: Tally,
    unfinished: f64,
    longest: f64,
}

impl Queues {
    fn rows(&self) -> Vec<Row> {
        let queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let row = |(name, queue): &(String, Weak<dyn Report>)| {
            let (tally, now) = queue.upgrade()?.report();
            let (unfinished, longest) = tally.unfinished(now);
            let (unfinished, longest) = (unfinished.as_secs_f64(), longest.as_secs_f64());
            Some(Row { name: name.clone(), tally, unfinished, longest })
        };
        queues.iter().filter_map(row).collect()
    }
}

impl Row {
    fn labels(&self) -> [(&str, &str); 2] {
        [("name", &self.name), ("controller", &self.name)]
    }
}

impl Collector for Queues {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let rows = self.rows();
        if rows.is_empty() {
            return Ok(());
        }
        let mut encode =
            |name, help, kind, one: &dyn Fn(&Row, MetricEncoder<'_>) -> fmt::Result| {
                let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
                rows.iter().try_for_each(|row| one(row, metric.encode_family(&row.labels())?))
            };
        let (counter, gauge, histogram) =
            (MetricType::Counter, MetricType::Gauge, MetricType::Histogram);
        encode("workqueue_adds", "Keys that became ready", counter, &|row, mut metric| {
            metric.encode_counter::<NoLabelSet, _, f64>(&row.tally.adds, None)
        })?;
        encode("workqueue_retries", "Keys added with a delay", counter, &|row, mut metric| {
            metric.encode_counter::<NoLabelSet, _, f64>(&row.tally.retries, None)
        })?;
        let help = "How long a key was ready before a worker took it";
        encode("workqueue_queue_duration_seconds", help, histogram, &|row, metric| {
            row.tally.queue_duration.encode(metric)
        })?;
        let help = "How long a worker was at a key";
        encode("workqueue_work_duration_seconds", help, histogram, &|row, metric| {
            row.tally.work_duration.encode(metric)
        })?;
        let help = "How long the running workers have been at their keys, all together";
        encode("workqueue_unfinished_work_seconds", help, gauge, &|row, mut metric| {
            metric.encode_gauge(&row.unfinished)
        })?;
        let help = "How long the slowest running worker has been at its key";
        encode("workqueue_longest_running_processor_seconds", help, gauge, &|row, mut metric| {
            metric.encode_gauge(&row.longest)
        })?;
        let help = "Keys that are ready, by priority";
        let mut metric = encoder.encode_descriptor("workqueue_depth", help, None, gauge)?;
        for row in &rows {
            for depth in &row.tally.depths {
                let [name, controller] = row.labels();
                let labels = [name, controller, ("priority", depth.label.as_ref())];
                metric.encode_family(&labels)?.encode_gauge(&depth.keys)?;
            }
        }
        Ok(())
    }
}

impl Histogram {
    fn encode(&self, mut metric: MetricEncoder<'_>) -> fmt::Result {
        let bounds = BUCKETS.into_iter().chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(self.counts).collect();
        metric.encode_histogram::<NoLabelSet>(self.sum, self.counts.iter().sum(), &buckets, None)
    }
}
