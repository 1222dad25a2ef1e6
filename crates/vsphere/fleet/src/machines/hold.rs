use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{DoorName, VmId};

/// A VM that only the holder works on. Leaves it when dropped.
#[derive(Debug)]
#[must_use = "the VM is free for others when this is dropped"]
pub struct Hold {
    holds: Arc<Holds>,
    door: DoorName,
    vm: VmId,
}

/// Who is at which VM.
#[derive(Debug, Default)]
pub(super) struct Holds {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    held: BTreeMap<VmId, Held>,
    /// What each door has not asked about since it changed.
    changed: BTreeMap<DoorName, BTreeSet<VmId>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    AtWork,
    /// It is being deleted.
    Leaving,
}

impl Holds {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_held(&self, vm: &VmId) -> bool {
        self.state().held.contains_key(vm)
    }

    pub(super) fn is_leaving(&self, vm: &VmId) -> bool {
        self.state().held.get(vm) == Some(&Held::Leaving)
    }

    pub(super) fn take_changes(&self, door: DoorName) -> Vec<VmId> {
        self.state().changed.remove(&door).unwrap_or_default().into_iter().collect()
    }
}

impl State {
    fn note(&mut self, door: DoorName, vm: &VmId) {
        self.changed.entry(door).or_default().insert(vm.clone());
    }
}

impl Hold {
    pub(super) fn take(holds: &Arc<Holds>, door: DoorName, vm: &VmId) -> Option<Self> {
        let mut state = holds.state();
        if state.held.contains_key(vm) {
            return None;
        }
        state.held.insert(vm.clone(), Held::AtWork);
        state.note(door, vm);
        Some(Self { holds: Arc::clone(holds), door, vm: vm.clone() })
    }

    pub fn vm(&self) -> &VmId {
        &self.vm
    }

    pub fn door(&self) -> DoorName {
        self.door
    }

    /// The work is the VM's deletion: whoever counts it may stop.
    pub fn leaving(&self) {
        let mut state = self.holds.state();
        state.held.insert(self.vm.clone(), Held::Leaving);
        state.note(self.door, &self.vm);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.holds.state();
        state.held.remove(&self.vm);
        state.note(self.door, &self.vm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_has_one_holder_whichever_door_it_is() {
        let (one, other) = (DoorName::new("one"), DoorName::new("other"));
        let (holds, vm) = (Arc::new(Holds::default()), VmId::new("vm-1"));
        let hold = Hold::take(&holds, one, &vm).unwrap();
        assert!(Hold::take(&holds, other, &vm).is_none() && holds.is_held(&vm));
        assert_eq!(
            (holds.take_changes(one), holds.take_changes(other)),
            (vec![vm.clone()], vec![])
        );
        hold.leaving();
        assert!(holds.is_leaving(&vm));
        drop(hold);
        assert!(!holds.is_held(&vm) && !holds.is_leaving(&vm));
        assert_eq!(holds.take_changes(one), std::slice::from_ref(&vm));
        assert!(Hold::take(&holds, other, &vm).is_some());
    }
}
