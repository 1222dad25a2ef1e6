use std::collections::HashMap;

use roost_vim_wire::MoRef;

use crate::call::Failure;

/// How a task works on an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Alone: reconfigure, power, destroy.
    Exclusive,
    /// With others of the same mind: several clones may read one template.
    Shared,
}

/// Which tasks work on which objects.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: HashMap<MoRef, Vec<(MoRef, Hold)>>,
}

impl Locks {
    /// Takes all of them for a task, or none and says which task is in the way.
    pub(crate) fn take(&mut self, task: &MoRef, holds: &[(MoRef, Hold)]) -> Result<(), Failure> {
        for (obj, hold) in holds {
            if let Some(other) = self.in_the_way(obj, *hold) {
                let message = "The operation is not allowed in the current state: another task is already in progress.";
                return Err(Failure::of("TaskInProgress", message).with("task", other));
            }
        }
        for (obj, hold) in holds {
            self.held.entry(obj.clone()).or_default().push((task.clone(), *hold));
        }
        Ok(())
    }

    /// The task that keeps another from this object.
    pub(crate) fn in_the_way(&self, obj: &MoRef, hold: Hold) -> Option<&MoRef> {
        let holders = self.held.get(obj)?;
        holders
            .iter()
            .find(|(_, held)| *held == Hold::Exclusive || hold == Hold::Exclusive)
            .map(|(task, _)| task)
    }

    pub(crate) fn release(&mut self, task: &MoRef) {
        self.held.retain(|_, holders| {
            holders.retain(|(holder, _)| holder != task);
            !holders.is_empty()
        });
    }
}
