use roost_fleet::{Hold, MachineError, NotMade, Reservation, Vm};
use roost_supervise::Chain;

use super::WorkerVms;
use crate::clone_spec::Birth;

impl WorkerVms {
    /// Sees whether the template can be cloned as wished. Nothing is changed.
    pub(crate) async fn check_clone(
        &self,
        birth: &Birth<'_>,
        template: &Vm,
    ) -> Result<(), MachineError> {
        self.machines.check_clone(&birth.clone_vm(&self.site), template).await.map(drop)
    }

    /// Clones a template. If it fails and has left a VM behind, that VM is marked for deletion; [`MachineError::nothing_made`] says that there is surely
    /// none.
    pub(crate) async fn clone_at_work(
        &self,
        birth: &Birth<'_>,
        template: &Vm,
        reservation: &mut Reservation,
    ) -> Result<Hold, MachineError> {
        let request = birth.clone_vm(&self.site);
        let made = self.machines.clone_vm(self.owner(), &request, template, reservation).await;
        let NotMade { error, left } = match made {
            Ok(work) => return Ok(work),
            Err(not_made) => not_made,
        };
        if let Some(work) = left {
            let (vm, name) = (work.vm(), birth.name);
            if let Err(unmarked) = self.mark(vm, "its clone failed").await {
                tracing::warn!(%vm, name, "a VM that was left behind: {}", Chain(&unmarked));
            }
            if error.outcome_unknown() {
                self.power_off_unwanted(&work).await;
            }
            drop(work);
            self.signals.cleanup.notify_one();
        }
        Err(error)
    }

    /// Powers off a clone that nobody wants any more, also if it comes on only now.
    pub(crate) async fn power_off_unwanted(&self, work: &Hold) {
        if let Err(error) = self.machines.power_off_when_on(work).await {
            tracing::warn!(vm = %work.vm(), "a VM is not powered off: {}", Chain(&error));
        }
    }
}
