use roost_vim::{Exit, Guest, GuestCredentials, GuestError, Process, Program};
use tokio::time::Instant;

use super::retry::Pauses;
use super::{Hold, MachineError, Machines};
use crate::{Phase, VmId};

impl Machines {
    async fn guest(
        &self,
        vm: &VmId,
        credentials: &GuestCredentials,
        phase: Phase,
    ) -> Result<Guest, MachineError> {
        let operations = self.guest_operations().await;
        let operations = operations.map_err(MachineError::call(phase, &self.name_of(vm)))?;
        Ok(self.client().guest(operations, &vm.moref(), credentials.clone()))
    }

    /// Starts a harmless program in the guest, which refuses it for some seconds after it has booted: it is sent until it is answered. The phase is the
    /// caller's.
    pub async fn probe_guest(
        &self,
        hold: &Hold,
        phase: Phase,
        credentials: &GuestCredentials,
        program: &Program,
    ) -> Result<(), MachineError> {
        let machine = self.name_of(hold.vm());
        let deadline = Instant::now() + self.longest(phase);
        let mut pauses = Pauses::until(deadline);
        let probing = async {
            let guest = self.guest(hold.vm(), credentials, phase).await?.ready_by(deadline);
            loop {
                match guest.start(program).await {
                    Ok(_) => return Ok(()),
                    Err(error) => {
                        let error = MachineError::guest(phase, &machine)(error);
                        if !error.may_pass() || !pauses.pause().await {
                            return Err(error);
                        }
                    }
                }
            }
        };
        self.phase(&machine, phase, probing).await
    }

    /// Starts a program in the guest and returns its process id. It is sent at most once.
    pub async fn start_in_guest(
        &self,
        hold: &Hold,
        phase: Phase,
        credentials: &GuestCredentials,
        program: &Program,
    ) -> Result<i64, MachineError> {
        let machine = self.name_of(hold.vm());
        let deadline = Instant::now() + self.longest(phase);
        let starting = async {
            let guest = self.guest(hold.vm(), credentials, phase).await?.ready_by(deadline);
            guest.start(program).await.map_err(MachineError::guest(phase, &machine))
        };
        self.phase(&machine, phase, starting).await
    }

    /// Runs a program in the guest to its end.
    pub async fn run_in_guest(
        &self,
        hold: &Hold,
        phase: Phase,
        credentials: &GuestCredentials,
        program: &Program,
    ) -> Result<Exit, MachineError> {
        let machine = self.name_of(hold.vm());
        let deadline = Instant::now() + self.longest(phase);
        let running = async {
            let guest = self.guest(hold.vm(), credentials, phase).await?;
            guest.run(program, deadline).await.map_err(MachineError::guest(phase, &machine))
        };
        self.phase(&machine, phase, running).await
    }

    /// Looks once at processes of the guest: those of these ids, or all.
    pub async fn guest_processes(
        &self,
        vm: &VmId,
        phase: Phase,
        credentials: &GuestCredentials,
        pids: &[i64],
    ) -> Result<Vec<Process>, MachineError> {
        let failed = |error: GuestError| MachineError::guest(phase, &self.name_of(vm))(error);
        self.guest(vm, credentials, phase).await?.processes(pids).await.map_err(failed)
    }
}
