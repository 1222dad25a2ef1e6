use std::time::Duration;

use roost_fleet::{Phase, Power, VmId, Wrote};
use roost_vim::Destroyed;
use tokio::time::Instant;

use super::error::vm_may_pass;
use super::{Pauses, StepError};
use crate::run::nest::Nest;

/// A guest that was asked to shut down and is still on after this long loses its power.
const SHUTDOWN_GRACE: Duration = Duration::from_mins(2);

impl Nest {
    /// Powers a VM on. What may pass, such as a full host, is waited for as long as the phase lasts; all else ends it at once (D19).
    pub(crate) async fn power_on(&self, vm: &VmId, machine: &str) -> Result<(), StepError> {
        let deadline = Instant::now() + self.deadlines.of(Phase::POWERING_ON);
        let mut pauses = Pauses::until(deadline);
        let on = async {
            loop {
                match self.vcenter.power_on(&vm.moref(), None).await {
                    Ok(_) => return Ok(()),
                    Err(error) if vm_may_pass(&error) && pauses.pause().await => {}
                    Err(error) => return Err(StepError::vm(Phase::POWERING_ON, machine)(error)),
                }
            }
        };
        self.phase(machine, Phase::POWERING_ON, on).await?;
        self.mirror.changed(vm, Wrote::new().power(Power::On));
        Ok(())
    }

    /// Pulls the plug.
    pub(crate) async fn power_off(&self, vm: &VmId, machine: &str) -> Result<(), StepError> {
        let off = async {
            let done = self.vcenter.power_off(&vm.moref()).await;
            done.map_err(StepError::vm(Phase::POWERING_OFF, machine))
        };
        self.phase(machine, Phase::POWERING_OFF, off).await?;
        self.mirror.changed(vm, Wrote::new().power(Power::Off));
        Ok(())
    }

    /// Asks the guest to shut down, so that its file systems are clean; pulls the plug if it does not (D31).
    pub(crate) async fn shut_down(&self, vm: &VmId, machine: &str) -> Result<(), StepError> {
        let off = async {
            let done = self.vcenter.shut_down(&vm.moref(), SHUTDOWN_GRACE).await;
            done.map_err(StepError::vm(Phase::SHUTTING_DOWN, machine))
        };
        self.phase(machine, Phase::SHUTTING_DOWN, off).await?;
        self.mirror.changed(vm, Wrote::new().power(Power::Off));
        Ok(())
    }

    /// Powers a VM off if it is on, and deletes it with its disks. Fine when it is gone already.
    pub(crate) async fn destroy(&self, vm: &VmId, machine: &str) -> Result<(), StepError> {
        let gone = async {
            let done = self.vcenter.destroy(&vm.moref()).await;
            done.map_err(StepError::vm(Phase::DESTROYING, machine))
        };
        match self.phase(machine, Phase::DESTROYING, gone).await? {
            Destroyed::Now => self.mirror.destroyed(vm),
            // Not by us, so the stream tells. A server may also say so of a VM that it lost sight of.
            Destroyed::AlreadyGone => {}
        }
        Ok(())
    }
}
