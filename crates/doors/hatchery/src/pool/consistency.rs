//! Workers that CDS believes in and that have no VM. They are corrected only when nothing else can explain them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use roost_cds::{JobId, Protocol};

use super::Pool;
use crate::time::elapsed;

/// So many whole views in a row must miss the VM: one could be a moment too early, two a coincidence.
const VIEWS: u32 = 3;
/// And for so long: the heartbeat of a worker, twice.
const GRACE: Duration = Duration::from_mins(1);

/// Remembers since when a worker has no VM.
#[derive(Debug, Clone, Default)]
pub struct Consistency {
    missing: BTreeMap<String, Missing>,
}

#[derive(Debug, Clone, Copy)]
struct Missing {
    views: u32,
    since: Timestamp,
}

/// What sets CDS right about a worker whose VM is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Correction {
    /// `POST /worker/{id}/disable`. CDS fails the job that it was building, which no VM builds any more.
    Disable { name: String, id: String },
    /// V2 workers cannot be disabled, and hold their slot for five minutes; but the job can be given back (W28).
    Release { name: String, job: JobId },
}

impl Consistency {
    /// Takes in one view and says what to correct now. A correction is repeated until the worker is gone from CDS.
    ///
    /// A [`Pool`] is made from whole lists only, so a failed or partial read never gets here. An inventory that is empty while CDS knows
    /// workers is whole and unbelievable: it counts for nothing (W3).
    pub fn observe(&mut self, pool: &Pool, now: Timestamp) -> Vec<Correction> {
        if pool.started() == 0 && pool.without_vm().next().is_some() {
            return Vec::new();
        }
        let before = std::mem::take(&mut self.missing);
        let mut corrections = Vec::new();
        for (name, worker) in pool.without_vm() {
            let mut missing = before.get(name).copied().unwrap_or(Missing { views: 0, since: now });
            // A clock that was set back would else have to catch up first.
            missing.since = missing.since.min(now);
            missing.views = missing.views.saturating_add(1);
            self.missing.insert(name.to_owned(), missing);
            if missing.views < VIEWS || elapsed(missing.since, now) < GRACE {
                continue;
            }
            let name = name.to_owned();
            match (worker.protocol, &worker.job) {
                (Protocol::V1, _) => {
                    corrections.push(Correction::Disable { name, id: worker.id.clone() });
                }
                (Protocol::V2, Some(job)) => {
                    corrections.push(Correction::Release { name, job: job.clone() });
                }
                (Protocol::V2, None) => {}
            }
        }
        corrections
    }
}
