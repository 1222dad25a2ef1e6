//! How the links, the ledger and the templates stand, for the gauges that CDS does not have.

use jiff::Timestamp;
use roost_cds::Protocol;
use roost_fleet::Snapshot;

use super::StateReader;
use super::status::is_deaf;
use crate::config::SpareModel;
use crate::door::HATCHERY;
use crate::metrics::{Levels, Links};

impl StateReader {
    pub(super) fn levels(&self, snapshot: &Snapshot, now: Timestamp) -> Levels {
        let links = self.links(snapshot, now);
        let scheduler = self.scheduler.lock();
        let failing = scheduler.backoffs.failing().map(|(model, times)| (model.clone(), times));
        let mut failing: Vec<(SpareModel, u32)> = failing.collect();
        for (template, times) in scheduler.cold.failing() {
            match failing.iter_mut().find(|(model, _)| model.template() == &**template) {
                Some((_, before)) => *before = (*before).max(times),
                None => failing.push((SpareModel::V2(template.to_string()), times)),
            }
        }
        let mut ledger = scheduler.ledger.lock();
        let limits = ledger.limits(HATCHERY).cloned().unwrap_or_default();
        Levels { links, taken: ledger.taken(HATCHERY, now), limits, failing }
    }

    fn links(&self, snapshot: &Snapshot, now: Timestamp) -> Links {
        let vcenter = self.link(snapshot, now);
        let queues = self.cds_link.queue_health();
        let heard = |protocol: Protocol| {
            let queue = queues.iter().find(|(spoken, _)| *spoken == protocol);
            queue.map(|(_, health)| !is_deaf(health, now))
        };
        Links {
            vcenter: vcenter.is_connected,
            inventory: vcenter.is_synced,
            cds_v1: heard(Protocol::V1),
            cds_v2: heard(Protocol::V2),
        }
    }
}
