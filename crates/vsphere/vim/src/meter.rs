use std::sync::Arc;

use tokio::time::Instant;

use crate::{CallClass, CallRecord, Hooks, Outcome};

/// Follows one request for the hooks. One that is dropped unfinished is reported as dropped.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    hooks: &'a Arc<dyn Hooks>,
    started: Instant,
    record: CallRecord,
}

impl<'a> Meter<'a> {
    pub(crate) fn start(
        hooks: &'a Arc<dyn Hooks>,
        method: &'static str,
        class: CallClass,
        sent: usize,
    ) -> Self {
        let record = CallRecord {
            method,
            class,
            took: std::time::Duration::ZERO,
            bytes_sent: sent as u64,
            bytes_received: 0,
            outcome: Outcome::Dropped,
        };
        Self { hooks, started: Instant::now(), record }
    }

    pub(crate) fn received(&mut self, bytes: usize) {
        self.record.bytes_received += bytes as u64;
    }

    pub(crate) fn finish(mut self, outcome: Outcome) {
        self.record.outcome = outcome;
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.record.took = self.started.elapsed();
        self.hooks.call_finished(&self.record);
    }
}
