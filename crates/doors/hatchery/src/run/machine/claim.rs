use roost_fleet::{Reservation, Vm};
use roost_vim::{Faulted, Reconfigure};

use super::error::vm_may_pass;
use super::mark::wrote;
use super::{Pauses, StepError};
use crate::clone_spec::Claim;
use crate::door::phase;
use crate::run::nest::Nest;

impl Nest {
    /// Makes a worker of a spare in one change, made only if nobody else changed the spare since `spare` was seen (W15).
    ///
    /// A change whose answer was lost is looked for: whoever sees the claim's own annotation has claimed it.
    pub(crate) async fn claim_spare(
        &self,
        spare: &Vm,
        claim: &Claim<'_>,
        reservation: &mut Reservation,
    ) -> Result<(), StepError> {
        let phase = phase::CLAIMING;
        let change = claim.reconfigure().map_err(|source| StepError::Claim {
            step: phase.into(),
            machine: spare.name.to_string(),
            source,
        })?;
        reservation.submitted();
        self.phase(&spare.name, phase, self.write_claim(spare, change.clone())).await?;
        self.mirror.changed(&spare.id, wrote(&change));
        self.timelines.rename(&spare.name, claim.worker);
        reservation.bind(&spare.id);
        Ok(())
    }

    async fn write_claim(&self, spare: &Vm, mut change: Reconfigure) -> Result<(), StepError> {
        let (step, vm) = (phase::CLAIMING.into(), &spare.id);
        let machine = || spare.name.to_string();
        let mut pauses = Pauses::within(self.deadlines.of(phase::CLAIMING));
        let mut error = None;
        loop {
            // Without a version anybody's change would be overwritten.
            if change.change_version.is_some() {
                match self.vcenter.reconfigure(&vm.moref(), &change).await {
                    Ok(()) => return Ok(()),
                    Err(refused) => {
                        let is_worth_a_look = refused.is_fault("ConcurrentAccess")
                            || refused.outcome_unknown()
                            || vm_may_pass(&refused);
                        let is_over = !is_worth_a_look || !pauses.pause().await;
                        let refused = StepError::vm(phase::CLAIMING, &spare.name)(refused);
                        if is_over {
                            return Err(refused);
                        }
                        error = Some(refused);
                    }
                }
            }
            match self.read_label(vm).await {
                Ok(Some(now)) if Some(&now.annotation) == change.annotation.as_ref() => {
                    return Ok(());
                }
                Ok(Some(now)) if spare.annotation.as_deref() == Some(now.annotation.as_str()) => {
                    change.change_version = now.version;
                }
                Ok(Some(_)) => {
                    return Err(StepError::Changed { step, machine: machine(), vm: vm.clone() });
                }
                Ok(None) => {
                    return Err(StepError::Gone { step, machine: machine(), vm: vm.clone() });
                }
                Err(unread) if !pauses.pause().await => {
                    return Err(error.unwrap_or_else(|| StepError::Vm {
                        step,
                        machine: machine(),
                        source: roost_vim::VmError::Call {
                            step: roost_vim::Step::Read,
                            target: vm.to_string(),
                            source: unread,
                        },
                    }));
                }
                Err(_) => {}
            }
        }
    }
}
