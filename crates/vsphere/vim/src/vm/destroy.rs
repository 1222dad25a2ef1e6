use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{DestroyTask, UnregisterVm};

use super::error::{Step, VmError};
use super::run::{Again, Patience};
use crate::{CallClass, Client, Faulted, TaskError};

/// How a VM came to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destroyed {
    Now,
    /// It was gone when the call came, or someone else was faster.
    AlreadyGone,
}

impl Client {
    /// Powers a VM off if it is on and deletes it with its disks. Succeeds when the VM is gone, also if it was gone before.
    ///
    /// Whether it may be deleted is the caller's to know. Never a template whose clones share its disks.
    pub async fn destroy(&self, vm: &MoRef) -> Result<Destroyed, VmError> {
        let mut patience = Patience::default();
        loop {
            let error = match self.destroy_once(vm).await {
                Ok(()) => return Ok(Destroyed::Now),
                Err(error) => error,
            };
            if is_gone(&error, vm) {
                return Ok(Destroyed::AlreadyGone);
            }
            // Someone powered it on between our two steps; or the task that would tell is gone, and a look at the VM tells.
            let look_again = error.is_fault("InvalidPowerState")
                || matches!(error, VmError::Task { source: TaskError::Vanished { .. }, .. });
            if !(look_again && patience.pause().await) {
                return Err(error);
            }
        }
    }

    async fn destroy_once(&self, vm: &MoRef) -> Result<(), VmError> {
        let path = "runtime.powerState";
        let read = self.properties(vm, &[path]).await.map_err(VmError::call(Step::Read, vm))?;
        let off = match read.str(path) {
            Some("poweredOff") => Ok(()),
            _ => self.power_off(vm).await.map(drop),
        };
        // An orphaned or inaccessible VM cannot be powered off and can still be deleted.
        match off {
            Err(error) if !error.is_fault("InvalidState") && !error.is_fault("NotSupported") => {
                return Err(error);
            }
            _ => {}
        }
        match (
            self.run(Step::Destroy, vm, Again::Safe, &DestroyTask { this: vm.clone() }).await,
            off,
        ) {
            (Err(error), Err(why_on)) if error.is_fault("InvalidPowerState") => Err(why_on),
            (destroyed, _) => destroyed.map(drop),
        }
    }

    /// Takes a VM out of the inventory and keeps its files. Succeeds when it is out, also if it was before.
    pub async fn unregister(&self, vm: &MoRef) -> Result<Destroyed, VmError> {
        let call = UnregisterVm { this: vm.clone() };
        match self
            .change(CallClass::Submit, &call)
            .await
            .map_err(VmError::call(Step::Unregister, vm))
        {
            Ok(()) => Ok(Destroyed::Now),
            Err(error) if is_gone(&error, vm) => Ok(Destroyed::AlreadyGone),
            Err(error) => Err(error),
        }
    }
}

/// Whether the VM itself is gone, and not some file of it.
fn is_gone(error: &VmError, vm: &MoRef) -> bool {
    error.is_fault("ManagedObjectNotFound")
        && error.missing_object().is_none_or(|missing| missing == *vm)
}
