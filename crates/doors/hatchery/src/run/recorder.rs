//! Where decisions are recorded.

use std::sync::Arc;

use roost_fleet::{Decision, Draft, Journal, Mirror};

use super::about::About;
use super::observe::NamesSeen;
use crate::metrics::Metrics;

/// The journal, with what metrics and people want to know of each decision.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) journal: Journal,
    pub(crate) names_seen: NamesSeen,
    pub(super) about: Arc<About>,
    pub(super) mirror: Mirror,
    pub(super) metrics: Arc<Metrics>,
}

impl Recorder {
    /// Records a decision. `label` names its reason in metrics, from a closed set.
    pub(crate) fn decide(&self, draft: Draft, label: &'static str) -> Arc<Decision> {
        let decision = self.journal.record(draft, self.about.now());
        self.names_seen.note(&decision, &self.mirror);
        if decision.times == 1 {
            self.metrics.own.decided(decision.verdict, label);
        }
        decision
    }
}
