use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::VmId;

/// When which VM is to be looked at; one time for each.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    by_time: BTreeSet<(Timestamp, VmId)>,
    by_vm: BTreeMap<VmId, Timestamp>,
    taken: Option<Timestamp>,
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

    /// Those whose time has come; all of them if the clock was set back, which knows no more when that is.
    pub(super) fn take(&mut self, now: Timestamp) -> Vec<VmId> {
        if self.taken.replace(now).is_some_and(|before| now < before) {
            self.by_time.clear();
            return std::mem::take(&mut self.by_vm).into_keys().collect();
        }
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::time::later;

    #[test]
    fn none_waits_for_a_clock_that_was_set_back_to_catch_up() {
        let at = |secs| later(Timestamp::UNIX_EPOCH, Duration::from_secs(secs));
        let (mut alarms, vm) = (Alarms::default(), VmId::new("vm-1"));
        assert_eq!(alarms.take(at(7_200)), []);
        alarms.set(&vm, at(7_210));
        assert_eq!(alarms.take(at(7_205)), []);
        assert_eq!(alarms.take(at(3_600)), std::slice::from_ref(&vm));
        assert_eq!((alarms.next(), alarms.take(at(7_210))), (None, Vec::new()));
        alarms.set(&vm, at(7_220));
        assert_eq!(alarms.take(at(7_220)), [vm]);
    }
}
