use roost_fleet::{Label, MachineError, Reservation, Rewrite, Vm};

use super::WorkerVms;
use crate::clone_spec::Claim;
use crate::door::phase;

impl WorkerVms {
    /// Makes a worker of a spare in one change, made only if nobody else changed the spare since `spare` was seen (W15).
    ///
    /// A change whose answer was lost is looked for: whoever sees the claim's own annotation has claimed it.
    pub(crate) async fn claim_spare(
        &self,
        spare: &Vm,
        claim: &Claim<'_>,
        reservation: &mut Reservation,
    ) -> Result<(), MachineError> {
        let (phase, vm) = (phase::CLAIMING, &spare.id);
        let machine = || spare.name.to_string();
        let change = claim.reconfigure().map_err(|source| MachineError::Spec {
            phase,
            machine: machine(),
            source: Box::new(source),
        })?;
        reservation.submitted();
        let claiming = |label: &Label| {
            if Some(&label.annotation) == change.annotation.as_ref() {
                Rewrite::Done
            } else if spare.annotation.as_deref() == Some(label.annotation.as_str()) {
                Rewrite::Write(Box::new(change.clone()))
            } else {
                let (machine, vm) = (machine(), vm.clone());
                Rewrite::Refuse(MachineError::Changed { phase, machine, vm })
            }
        };
        if !self.machines.rewrite(vm, phase, claiming).await? {
            return Err(MachineError::Gone { phase, machine: machine(), vm: vm.clone() });
        }
        self.timelines.rename(&spare.name, claim.worker);
        reservation.bind(vm);
        Ok(())
    }
}
