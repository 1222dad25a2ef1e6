use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use roost_fleet::{Decision, Mirror, Subject, VmId};

use super::super::scheduler::lock;

/// More than the journal has decisions.
const MOST: usize = 8_192;

/// What VMs were called at the last decision on them. People know VMs by name, and ask about those that are gone.
#[derive(Debug, Default)]
pub(crate) struct NamesSeen(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    by_id: BTreeMap<VmId, Arc<str>>,
    /// Oldest first.
    order: VecDeque<VmId>,
}

impl NamesSeen {
    pub(crate) fn note(&self, decision: &Decision, mirror: &Mirror) {
        let subject = match &decision.subject {
            Subject::Vm { id } => Some(id),
            Subject::Request(_) | Subject::Pool { .. } | Subject::Service { .. } => None,
        };
        for vm in subject.into_iter().chain(&decision.vm) {
            if let Some(row) = mirror.vm(vm) {
                lock(&self.0).insert(vm, &row.name);
            }
        }
    }

    pub(crate) fn get(&self, vm: &VmId) -> Option<Arc<str>> {
        lock(&self.0).by_id.get(vm).cloned()
    }

    /// The VM that was last called so.
    pub(crate) fn find(&self, name: &str) -> Option<VmId> {
        let seen = lock(&self.0);
        let mut newest = seen.order.iter().rev();
        newest.find(|vm| seen.by_id.get(*vm).is_some_and(|known| **known == *name)).cloned()
    }
}

impl Seen {
    fn insert(&mut self, vm: &VmId, name: &Arc<str>) {
        if self.by_id.insert(vm.clone(), Arc::clone(name)).is_some() {
            return;
        }
        self.order.push_back(vm.clone());
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_id.remove(&oldest);
        }
    }
}
