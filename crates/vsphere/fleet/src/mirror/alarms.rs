use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::VmId;

/// When which VM is to be looked at; one time for each.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    by_time: BTreeSet<(Timestamp, VmId)>,
    by_vm: BTreeMap<VmId, Timestamp>,
}

impl Alarms {
    /// At this time or, if that was set before, sooner.
    pub(super) fn set(&mut self, id: &VmId, at: Timestamp) {
        if let Some(before) = self.by_vm.get(id) {
            if *before <= at {
                return;
            }
            self.by_time.remove(&(*before, id.clone()));
        }
        self.by_vm.insert(id.clone(), at);
        self.by_time.insert((at, id.clone()));
    }

    pub(super) fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// Those whose time has come.
    pub(super) fn take(&mut self, now: Timestamp) -> Vec<VmId> {
        let mut due = Vec::new();
        while self.next().is_some_and(|at| at <= now)
            && let Some((_, id)) = self.by_time.pop_first()
        {
            self.by_vm.remove(&id);
            due.push(id);
        }
        due
    }
}
