use std::time::Duration;

use roost_vim_wire::methods::{
    PowerOffVmTask, PowerOnVmTask, RebootGuest, ResetVmTask, ShutdownGuest, StandbyGuest,
    SuspendVmTask,
};
use roost_vim_wire::types::VirtualMachinePowerState as PowerState;
use roost_vim_wire::{Method, MoRef};
use tokio::time::Instant;

use super::error::{Step, VmError};
use super::run::Again;
use crate::{CallClass, Client, Faulted, Observer, WaitError};

/// Whether a power state had to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerChange {
    Changed,
    /// It was so already.
    Unchanged,
}

/// How a VM came to be off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    AlreadyOff,
    /// The guest shut itself down.
    Soft,
    /// The guest could not or did not in time.
    Hard,
}

impl Client {
    /// `host` only where the server shall not choose one.
    pub async fn power_on(&self, vm: &MoRef, host: Option<&MoRef>) -> Result<PowerChange, VmError> {
        let call = PowerOnVmTask { this: vm.clone(), host: host.cloned() };
        self.change_power(Step::PowerOn, vm, &call).await
    }

    /// Pulls the plug.
    pub async fn power_off(&self, vm: &MoRef) -> Result<PowerChange, VmError> {
        self.change_power(Step::PowerOff, vm, &PowerOffVmTask { this: vm.clone() }).await
    }

    pub async fn suspend(&self, vm: &MoRef) -> Result<PowerChange, VmError> {
        self.change_power(Step::Suspend, vm, &SuspendVmTask { this: vm.clone() }).await
    }

    /// Presses the reset button. Not repeated after a lost reply: the guest may be up again by then.
    pub async fn reset(&self, vm: &MoRef) -> Result<(), VmError> {
        self.run(Step::Reset, vm, Again::Unsafe, &ResetVmTask { this: vm.clone() }).await.map(drop)
    }

    /// Asks the guest to restart. Returns at once; the guest takes its time.
    pub async fn reboot_guest(&self, vm: &MoRef) -> Result<(), VmError> {
        let call = RebootGuest { this: vm.clone() };
        self.change(CallClass::Submit, &call).await.map_err(VmError::call(Step::Reboot, vm))
    }

    /// Asks the guest to shut down. Returns at once; the guest takes its time, or never does.
    pub async fn ask_shutdown(&self, vm: &MoRef) -> Result<(), VmError> {
        let call = ShutdownGuest { this: vm.clone() };
        self.change(CallClass::Submit, &call).await.map_err(VmError::call(Step::ShutDown, vm))
    }

    /// Asks the guest to stand by, which suspends it. Returns at once.
    pub async fn standby_guest(&self, vm: &MoRef) -> Result<(), VmError> {
        let call = StandbyGuest { this: vm.clone() };
        self.change(CallClass::Submit, &call).await.map_err(VmError::call(Step::StandBy, vm))
    }

    /// Asks the guest to shut down and waits; pulls the plug if the guest has no tools or is still on after `grace`.
    pub async fn shut_down(&self, vm: &MoRef, grace: Duration) -> Result<Shutdown, VmError> {
        let deadline = Instant::now() + grace;
        let asked = self.change(CallClass::Submit, &ShutdownGuest { this: vm.clone() }).await;
        let is_on_its_way = match asked {
            Ok(()) => true,
            Err(error) if error.existing_power_state() == Some("poweredOff") => {
                return Ok(Shutdown::AlreadyOff);
            }
            // The request may have arrived.
            Err(error) if error.outcome_unknown() => true,
            // No tools, suspended, busy: nothing that a plug cannot solve.
            Err(error) if error.is_fault("ToolsUnavailable") || error.is_fault("InvalidState") => {
                false
            }
            Err(error) if error.task_in_progress().is_some() || error.is_fault("NotSupported") => {
                false
            }
            Err(source) => return Err(VmError::call(Step::ShutDown, vm)(source)),
        };
        if is_on_its_way {
            match self.wait_for_power(vm, &PowerState::PoweredOff, deadline).await {
                Ok(()) => return Ok(Shutdown::Soft),
                Err(WaitError::Deadline { .. }) => {}
                Err(source) => {
                    return Err(VmError::Wait {
                        step: Step::ShutDown,
                        target: vm.to_string(),
                        source,
                    });
                }
            }
        }
        Ok(match self.power_off(vm).await? {
            PowerChange::Changed => Shutdown::Hard,
            PowerChange::Unchanged if is_on_its_way => Shutdown::Soft,
            PowerChange::Unchanged => Shutdown::AlreadyOff,
        })
    }

    async fn change_power<M: Method<Output = MoRef>>(
        &self,
        step: Step,
        vm: &MoRef,
        call: &M,
    ) -> Result<PowerChange, VmError> {
        match self.run(step, vm, Again::Safe, call).await {
            Ok(_) => Ok(PowerChange::Changed),
            Err(error) if error.power_state_reached() => Ok(PowerChange::Unchanged),
            Err(error) => Err(error),
        }
    }
}

impl Observer {
    /// Waits on the property stream until the VM is in a power state.
    pub async fn wait_for_power(
        &self,
        vm: &MoRef,
        state: &PowerState,
        deadline: Instant,
    ) -> Result<(), WaitError> {
        let path = "runtime.powerState";
        self.wait_for(vm, &[path], deadline, |seen| {
            (seen.str(path)? == state.as_str()).then_some(())
        })
        .await
    }
}
