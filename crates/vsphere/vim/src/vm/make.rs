//! Making a VM exactly once.

use std::error::Error;
use std::time::Duration;

use roost_supervise::Backoff;
use roost_vim_wire::methods::FindChild;
use roost_vim_wire::types::VirtualMachinePowerState as PowerState;
use roost_vim_wire::{Method, MoRef, MoType, Value};
use tokio::time::Instant;

use super::error::{Step, VmError};
use super::run::{Again, Patience};
use crate::find::stored_name;
use crate::{
    CallClass, CallError, Client, Faulted, Observer, Properties, Remedy, TaskError, WaitError,
};

/// Between looks for a VM that has the name and cannot be seen.
const TAKEN: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));
/// A request that was not answered in time may still be carried out. Its VM is looked for this long; a vCenter that needs longer to begin is not waited for.
const UNANSWERED: Duration = Duration::from_mins(2);

/// The VM that has the name of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Namesake {
    pub vm: MoRef,
    pub name: String,
    pub annotation: Option<String>,
    pub power_state: Option<PowerState>,
}

/// How a request got its VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    Now(MoRef),
    /// An earlier attempt of the same request had made it.
    Before(MoRef),
}

impl Made {
    pub fn vm(&self) -> &MoRef {
        match self {
            Self::Now(vm) | Self::Before(vm) => vm,
        }
    }

    pub fn into_vm(self) -> MoRef {
        match self {
            Self::Now(vm) | Self::Before(vm) => vm,
        }
    }
}

impl Observer {
    /// The object of this name that is directly in a folder. `name` is written as people write it.
    pub async fn child_named(
        &self,
        folder: &MoRef,
        name: &str,
    ) -> Result<Option<MoRef>, CallError> {
        let this = self
            .content()
            .search_index
            .clone()
            .ok_or(CallError::NoManager { manager: "search index" })?;
        let name = stored_name(name);
        self.read(&FindChild { this, entity: folder.clone(), name }).await
    }

    /// The VM of this name in a folder, once it is there in full: while a VM is being made its configuration is unset.
    pub(crate) async fn namesake(
        &self,
        folder: &MoRef,
        name: &str,
    ) -> Result<Option<Namesake>, VmError> {
        let failed = |source| VmError::Call { step: Step::LookUp, target: name.to_owned(), source };
        let Some(vm) = self.child_named(folder, name).await.map_err(failed)? else {
            return Ok(None);
        };
        if vm.kind != MoType::VirtualMachine {
            return Err(VmError::NameTaken { name: name.into(), existing: vm });
        }
        match self.properties(&vm, Namesake::PATHS).await {
            Ok(read) => {
                if let Some(namesake) = Namesake::of(&vm, name, &read) {
                    return Ok(Some(namesake));
                }
                // Nobody can say that what we may not read is ours.
                if read.unreadable("config.uuid").is_some() {
                    return Err(VmError::NameTaken { name: name.into(), existing: vm });
                }
            }
            Err(error) if error.is_fault("ManagedObjectNotFound") => return Ok(None),
            Err(source) => return Err(failed(source)),
        }
        let deadline = Instant::now() + self.deadline(CallClass::TaskWait);
        let complete =
            self.wait_for(&vm, Namesake::PATHS, deadline, |seen| Namesake::of(&vm, name, seen));
        match complete.await {
            Ok(namesake) => Ok(Some(namesake)),
            Err(WaitError::Gone { .. }) => Ok(None),
            Err(source) => Err(VmError::Wait { step: Step::LookUp, target: name.into(), source }),
        }
    }
}

impl Namesake {
    const PATHS: &[&str] = &["config.annotation", "config.uuid", "runtime.powerState"];

    fn of(vm: &MoRef, name: &str, read: &Properties) -> Option<Self> {
        read.str("config.uuid")?;
        Some(Self {
            vm: vm.clone(),
            name: name.into(),
            annotation: read.str("config.annotation").map(Into::into),
            power_state: read.str("runtime.powerState").map(PowerState::from),
        })
    }
}

impl Client {
    /// Submits a request that makes a VM, and waits for the VM.
    pub(super) async fn make<M: Method<Output = MoRef>>(
        &self,
        step: Step,
        name: &str,
        call: &M,
    ) -> Result<MoRef, VmError> {
        let target = || name.to_owned();
        let task = self.submit(call).await.map_err(VmError::call(step, &name))?;
        let result =
            task.wait().await.map_err(|source| VmError::Task { step, target: target(), source })?;
        match result {
            Some(Value::Ref(vm)) => Ok(vm),
            _ => Err(VmError::NoResult { step, target: target() }),
        }
    }

    /// Names are unique in a folder, so that whatever happened to an earlier attempt, the VM of the name is its outcome. That holds while the VM keeps its
    /// name, so a request that may still be under way is never sent a second time: the VM may be renamed or deleted before the other one is carried out.
    pub(super) async fn make_or_adopt<M: Method<Output = MoRef>>(
        &self,
        step: Step,
        folder: &MoRef,
        name: &str,
        call: &M,
        is_ours: impl Fn(&Namesake) -> bool,
    ) -> Result<Made, VmError> {
        let mut may_come = false;
        let made = self.make_patiently(step, folder, name, call, is_ours, &mut may_come).await;
        made.map_err(|error| {
            // That the last attempt was refused says nothing of the one before it.
            if may_come && !error.outcome_unknown() && !matches!(error, VmError::NameTaken { .. }) {
                VmError::Unsettled { step, target: name.to_owned(), source: Box::new(error) }
            } else {
                error
            }
        })
    }

    /// `may_come` is set by the first attempt of which nobody knows what came.
    async fn make_patiently<M: Method<Output = MoRef>>(
        &self,
        step: Step,
        folder: &MoRef,
        name: &str,
        call: &M,
        is_ours: impl Fn(&Namesake) -> bool,
        may_come: &mut bool,
    ) -> Result<Made, VmError> {
        let (mut patience, mut waits) = (Patience::default(), 0);
        let deadline = Instant::now() + self.deadline(CallClass::TaskWait);
        loop {
            let error = match self.make(step, name, call).await {
                Ok(vm) => return Ok(Made::Now(vm)),
                Err(error) => error,
            };
            if error.task_in_progress().is_some()
                && self.may_run_again(&error, Again::Unsafe, &mut patience).await
            {
                continue;
            }
            let is_taken = error.is_fault("DuplicateName") || error.already_exists();
            if !is_taken && !error.outcome_unknown() && !patience.is_for(&error) {
                return Err(error);
            }
            *may_come |= is_taken || error.outcome_unknown();
            tracing::warn!(
                name,
                error = &error as &dyn Error,
                "looking for {name} before it is asked for again"
            );
            if error.is_unanswered() {
                let found = self.look_out_for(folder, name).await?;
                return found.map_or(Err(error), |namesake| adopt(namesake, &is_ours));
            }
            // What was asked for may need a moment to show. What still runs is not asked for twice.
            let still_runs =
                matches!(error, VmError::Task { source: TaskError::Deadline { .. }, .. });
            let may_ask_again = !still_runs && (is_taken || patience.pause().await);
            match self.namesake_patiently(folder, name, &mut patience).await? {
                Some(namesake) => return adopt(namesake, &is_ours),
                // The name is given to a VM that is being made and not there yet, or no longer. While it is, asking again is
                // refused as before.
                None if is_taken => {
                    if let Some(existing) = self.hidden(&error).await {
                        return Err(VmError::NameTaken { name: name.into(), existing });
                    }
                    waits += 1;
                    let pause = TAKEN.pause(waits);
                    if Instant::now() + pause >= deadline {
                        return Err(error);
                    }
                    tokio::time::sleep(pause).await;
                }
                None if may_ask_again => {}
                None => return Err(error),
            }
        }
    }

    /// The object that has the name, if we are not allowed to see it.
    async fn hidden(&self, duplicate: &VmError) -> Option<MoRef> {
        let existing = duplicate.duplicate_object()?;
        let read = self.properties(&existing, &["name"]).await;
        let is_hidden = match &read {
            Ok(read) => read.unreadable("name").is_some(),
            Err(error) => error.is_fault("NoPermission"),
        };
        is_hidden.then_some(existing)
    }

    /// Looks for the VM of a request that was not answered.
    async fn look_out_for(&self, folder: &MoRef, name: &str) -> Result<Option<Namesake>, VmError> {
        let (deadline, mut looks) = (Instant::now() + UNANSWERED, 0);
        loop {
            match self.namesake(folder, name).await {
                Ok(None) => {}
                Err(error) if error.remedy() == Remedy::Retry => {}
                found => return found,
            }
            looks += 1;
            let next = Instant::now() + TAKEN.pause(looks);
            if next > deadline {
                return Ok(None);
            }
            tokio::time::sleep_until(next).await;
        }
    }

    async fn namesake_patiently(
        &self,
        folder: &MoRef,
        name: &str,
        patience: &mut Patience,
    ) -> Result<Option<Namesake>, VmError> {
        loop {
            match self.namesake(folder, name).await {
                Err(error) if patience.is_for(&error) && patience.pause().await => {}
                other => return other,
            }
        }
    }
}

/// The VM that has the name is the request's own, or somebody else's.
fn adopt(namesake: Namesake, is_ours: impl Fn(&Namesake) -> bool) -> Result<Made, VmError> {
    if is_ours(&namesake) {
        return Ok(Made::Before(namesake.vm));
    }
    Err(VmError::NameTaken { name: namesake.name, existing: namesake.vm })
}
