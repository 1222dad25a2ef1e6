//! What the metrics count, kept as plain numbers under the queue's lock: no atomics and no label
//! look-ups on the way of a key. They become text when somebody asks.

use std::borrow::Cow;
use std::time::Duration;

use crate::moment::Moment;
use crate::record::Slot;
use crate::settings::PriorityLabels;

/// From 10 ns to 1,000 s, as the client library of Kubernetes has them.
pub(crate) const BUCKETS: [f64; 12] =
    [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

/// What stands for all priorities beyond the limit.
pub(crate) const BEYOND_LIMIT: &str = "exceeded_cardinality_limit";

#[derive(Debug, Clone, Default)]
pub(crate) struct Histogram {
    /// One per bucket, and one for what is above all of them.
    pub(crate) counts: [u64; BUCKETS.len() + 1],
    pub(crate) sum: f64,
}

impl Histogram {
    fn observe(&mut self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BUCKETS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKETS.len());
        self.counts[bucket] += 1;
        self.sum += seconds;
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Depth {
    pub(crate) label: Cow<'static, str>,
    pub(crate) keys: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Tally {
    labels: PriorityLabels,
    /// The numbers that have a label of their own, in the order of `depths`.
    numbers: Vec<i32>,
    pub(crate) depths: Vec<Depth>,
    pub(crate) adds: u64,
    pub(crate) retries: u64,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
    running: Vec<(Slot, Moment)>,
}

impl Tally {
    pub(crate) fn new(labels: PriorityLabels) -> Self {
        Self {
            labels,
            numbers: Vec::new(),
            depths: Vec::new(),
            adds: 0,
            retries: 0,
            queue_duration: Histogram::default(),
            work_duration: Histogram::default(),
            running: Vec::new(),
        }
    }

    /// The index of a priority's label. There are never more than 256.
    pub(crate) fn label(&mut self, priority: i32) -> u8 {
        let (label, limit) = match self.labels {
            PriorityLabels::Numbers { limit } => {
                let limit = limit.min(usize::from(u8::MAX));
                if let Some(known) = self.numbers.iter().position(|number| *number == priority) {
                    return u8::try_from(known).unwrap_or(u8::MAX);
                }
                if self.numbers.len() < limit {
                    self.numbers.push(priority);
                    (Cow::Owned(priority.to_string()), limit)
                } else {
                    (Cow::Borrowed(BEYOND_LIMIT), limit)
                }
            }
            PriorityLabels::Named(name) => (Cow::Borrowed(name(priority)), usize::from(u8::MAX)),
        };
        let known = self.depths.iter().position(|depth| depth.label == label);
        let index = known.unwrap_or_else(|| {
            if self.depths.len() <= limit {
                self.depths.push(Depth { label, keys: 0 });
            }
            self.depths.len() - 1
        });
        u8::try_from(index).unwrap_or(u8::MAX)
    }

    pub(crate) fn became_ready(&mut self, label: u8) {
        self.adds += 1;
        self.depths[usize::from(label)].keys += 1;
    }

    pub(crate) fn relabelled(&mut self, from: u8, to: u8) {
        self.depths[usize::from(from)].keys -= 1;
        self.depths[usize::from(to)].keys += 1;
    }

    pub(crate) fn taken(&mut self, slot: Slot, label: u8, waited: Duration, now: Moment) {
        self.depths[usize::from(label)].keys -= 1;
        self.queue_duration.observe(waited);
        self.running.push((slot, now));
    }

    pub(crate) fn done(&mut self, slot: Slot, now: Moment) {
        if let Some(at) = self.running.iter().position(|(running, _)| *running == slot) {
            let (_, since) = self.running.swap_remove(at);
            self.work_duration.observe(now.since(since));
        }
    }

    pub(crate) fn cleared(&mut self) {
        for depth in &mut self.depths {
            depth.keys = 0;
        }
    }

    /// How long the running workers have been at it: all together, and the longest.
    pub(crate) fn unfinished(&self, now: Moment) -> (Duration, Duration) {
        let ages = self.running.iter().map(|(_, since)| now.since(*since));
        (ages.clone().sum(), ages.max().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_priorities_make_twenty_five_labels_and_a_placeholder() {
        let mut tally = Tally::new(PriorityLabels::default());
        for priority in 0..30 {
            let label = tally.label(priority);
            tally.became_ready(label);
        }
        assert_eq!(tally.depths.len(), 26);
        assert_eq!(tally.depths[25].label, BEYOND_LIMIT);
        assert_eq!(tally.depths[25].keys, 5);
        assert_eq!(tally.label(3), 3, "a known number keeps its label");
    }

    #[test]
    fn named_labels_are_a_closed_set_whatever_the_numbers() {
        let mut tally = Tally::new(PriorityLabels::Named(|priority| match priority {
            100 => "creating",
            ..0 => "routine",
            _ => "other",
        }));
        for priority in -500..500 {
            tally.label(priority);
        }
        let labels: Vec<_> = tally.depths.iter().map(|depth| depth.label.as_ref()).collect();
        assert_eq!(labels, ["routine", "other", "creating"]);
    }
}
