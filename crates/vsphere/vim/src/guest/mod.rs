//! Reaching into a guest: programs, processes, environment, files. All of it goes through the server and the tools in the guest;
//! no network connection to the guest is needed.

mod credentials;
mod directory;
mod error;
mod process;
mod program;
mod readiness;
mod transfer;

use std::ops::Deref;

use roost_vim_wire::methods::ValidateCredentialsInGuest;
use roost_vim_wire::{Method, MoRef, ReadMethod};
use tokio::time::Instant;

pub use credentials::GuestCredentials;
pub use directory::GuestFile;
pub use error::{GuestError, GuestStep};
pub use process::{Exit, Process};
pub use program::{Environment, EnvironmentError, Program, quote};
pub use transfer::GuestFileOptions;

use crate::{CallClass, CallError, Client, Observer};

/// The server's managers for guests. They never change, so one read serves all guests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestOperations {
    pub process_manager: MoRef,
    pub file_manager: MoRef,
    /// Not every server has one.
    pub auth_manager: Option<MoRef>,
}

/// Looks into one guest: its processes, environment and files.
#[derive(Debug, Clone)]
pub struct GuestObserver {
    observer: Observer,
    managers: GuestOperations,
    vm: MoRef,
    credentials: GuestCredentials,
    ready_by: Option<Instant>,
}

/// May also change things in the guest.
#[derive(Debug, Clone)]
pub struct Guest {
    client: Client,
    guest: GuestObserver,
}

impl Deref for Guest {
    type Target = GuestObserver;

    fn deref(&self) -> &GuestObserver {
        &self.guest
    }
}

impl Observer {
    /// Reads the managers for guests, once for all.
    pub async fn guest_operations(&self) -> Result<GuestOperations, CallError> {
        let no_manager = |manager| CallError::NoManager { manager };
        let manager = self.content().guest_operations_manager.clone();
        let manager = manager.ok_or(no_manager("guest operations manager"))?;
        let read =
            self.properties(&manager, &["processManager", "fileManager", "authManager"]).await?;
        let moref = |path: &str| read.moref(path).filter(|moref| !moref.is_null()).cloned();
        Ok(GuestOperations {
            process_manager: moref("processManager").ok_or(no_manager("guest process manager"))?,
            file_manager: moref("fileManager").ok_or(no_manager("guest file manager"))?,
            auth_manager: moref("authManager"),
        })
    }

    pub fn observe_guest(
        &self,
        managers: &GuestOperations,
        vm: &MoRef,
        credentials: GuestCredentials,
    ) -> GuestObserver {
        let (observer, managers) = (self.clone(), managers.clone());
        GuestObserver { observer, managers, vm: vm.clone(), credentials, ready_by: None }
    }
}

impl Client {
    pub fn guest(
        &self,
        managers: &GuestOperations,
        vm: &MoRef,
        credentials: GuestCredentials,
    ) -> Guest {
        Guest { client: self.clone(), guest: self.observe_guest(managers, vm, credentials) }
    }
}

impl Guest {
    /// See [`GuestObserver::ready_by`].
    #[must_use]
    pub fn ready_by(self, deadline: Instant) -> Self {
        Self { guest: self.guest.ready_by(deadline), ..self }
    }

    /// Repeated only after the server said that nothing was done.
    async fn change<M: Method>(&self, step: GuestStep, call: &M) -> Result<M::Output, GuestError> {
        let mut failures = 0;
        loop {
            match self.client.change(CallClass::Guest, call).await {
                Ok(output) => return Ok(output),
                Err(error) => self.pause_or_fail(step, error, &mut failures).await?,
            }
        }
    }
}

impl GuestObserver {
    /// A guest that has just booted refuses its first calls for some seconds. Until `deadline` such calls are repeated; without
    /// one, and after it, the first refusal is the answer.
    #[must_use]
    pub fn ready_by(self, deadline: Instant) -> Self {
        Self { ready_by: Some(deadline), ..self }
    }

    pub fn vm(&self) -> &MoRef {
        &self.vm
    }

    /// Asks the guest whether it knows the credentials. A server without an authentication manager cannot say; then a process
    /// list is asked for, which needs them as well.
    pub async fn validate_credentials(&self) -> Result<(), GuestError> {
        let Some(this) = self.managers.auth_manager.clone() else {
            return self.processes(&[]).await.map(drop);
        };
        let call = ValidateCredentialsInGuest {
            this,
            vm: self.vm.clone(),
            auth: self.credentials.to_wire(),
        };
        self.read(GuestStep::Validate, &call).await
    }

    async fn read<M: ReadMethod>(
        &self,
        step: GuestStep,
        call: &M,
    ) -> Result<M::Output, GuestError> {
        let mut failures = 0;
        loop {
            match self.observer.read_as(CallClass::Guest, call).await {
                Ok(output) => return Ok(output),
                Err(error) => self.pause_or_fail(step, error, &mut failures).await?,
            }
        }
    }

    /// Returns when the call can be tried again, or with the error when it cannot.
    async fn pause_or_fail(
        &self,
        step: GuestStep,
        error: CallError,
        failures: &mut u32,
    ) -> Result<(), GuestError> {
        *failures += 1;
        let pause = readiness::BACKOFF.pause(*failures);
        let may_become_ready =
            self.ready_by.is_some_and(|deadline| Instant::now() + pause < deadline);
        if !may_become_ready || !readiness::is_not_yet(&error) {
            return Err(GuestError::Call { step, vm: self.vm.clone(), source: error });
        }
        tracing::debug!(vm = %self.vm, "{step} in the guest again in {pause:?}: {error}");
        tokio::time::sleep(pause).await;
        Ok(())
    }
}
