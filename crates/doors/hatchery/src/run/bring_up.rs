//! The steps from a VM that boots to what runs in it, in their order. Starting a worker, keeping spares, registering a model and building its
//! template take the same ones, each as far as it needs.

use std::net::IpAddr;

use roost_fleet::{Hold, MachineError};
use roost_vim::{GuestCredentials, Program};

use super::machine::{Launch, WorkerVms};

/// What runs in a guest, and what runs there first.
#[derive(Debug, Clone)]
pub(super) struct LaunchSpec {
    pub(super) credentials: GuestCredentials,
    pub(super) launch: Program,
    pub(super) pre_start: Option<String>,
}

/// A VM that was cloned or claimed and is on its way up.
#[derive(Debug, Clone, Copy)]
pub(super) struct BringUp<'a> {
    pub(super) vms: &'a WorkerVms,
    pub(super) work: &'a Hold,
    /// What errors call it.
    pub(super) machine: &'a str,
    /// The address that was given to it.
    pub(super) expected: Option<IpAddr>,
}

impl BringUp<'_> {
    /// Until the guest has booted, reports its address and can run programs.
    pub(super) async fn wait_ready(&self) -> Result<(), MachineError> {
        self.vms.machines.wait_ready(self.work.vm(), self.expected).await.map(drop)
    }

    /// Until a program has run in the guest.
    pub(super) async fn probe(&self, credentials: &GuestCredentials) -> Result<(), MachineError> {
        self.vms.probe(self.work, credentials).await
    }

    /// Until the guest has proven itself and the pre-start script has ended well.
    pub(super) async fn prepare(&self, spec: &LaunchSpec) -> Result<(), MachineError> {
        self.probe(&spec.credentials).await?;
        match &spec.pre_start {
            Some(script) => {
                let (work, machine) = (self.work, self.machine);
                self.vms.run_pre_start(work, machine, &spec.credentials, script).await
            }
            None => Ok(()),
        }
    }

    pub(super) async fn launch(&self, spec: &LaunchSpec) -> Result<Launch, MachineError> {
        self.vms.launch(self.work, &spec.credentials, &spec.launch).await
    }

    /// Down again, with clean file systems.
    pub(super) async fn shut_down(&self) -> Result<(), MachineError> {
        self.vms.shut_down(self.work).await
    }
}
