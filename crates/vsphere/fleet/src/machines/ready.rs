use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{MachineError, Machines};
use crate::{Check, Guest, Phase, PhaseError, Power, Vm, VmId, condition};

/// The phase's own deadline ends a wait on the mirror; this one is only longer.
const NO_END: Duration = Duration::from_hours(24);

impl Machines {
    /// Waits until programs can be started in the guest, then until it has its address: the expected one, or any that others can reach.
    /// A VM that vanishes or powers off ends the wait at once. No call is made for it.
    pub async fn wait_ready(
        &self,
        vm: &VmId,
        expected: Option<IpAddr>,
    ) -> Result<IpAddr, MachineError> {
        self.wait_in_phase(vm, Phase::BOOTING, condition::guest_ready()).await?;
        let phase = Phase::WAITING_FOR_ADDRESS;
        match expected {
            Some(address) => {
                let found = self.wait_in_phase(vm, phase, condition::has_address(address)).await;
                found.map_err(|error| error.seen(|| format!("; it was given {address}")))
            }
            None => self.wait_in_phase(vm, phase, condition::any_address()).await,
        }
    }

    /// Waits, as a phase, until the VM is as `condition` wants it.
    pub async fn wait_in_phase<T>(
        &self,
        vm: &VmId,
        phase: Phase,
        condition: impl FnMut(Option<&Arc<Vm>>) -> Check<T>,
    ) -> Result<T, MachineError> {
        let machine = self.name_of(vm);
        let wait = self.mirror().wait_until(vm, NO_END, condition);
        let run = self.timelines().run(&machine, phase, self.longest(phase), wait).await;
        let error = match run {
            Ok(met) => return Ok(met),
            Err(error) => error,
        };
        let row = self.mirror().vm(vm);
        let (machine, vm) = (machine.to_string(), vm.clone());
        Err(match (error, row) {
            (PhaseError::Failed { .. }, None) => MachineError::Gone { phase, machine, vm },
            (PhaseError::Failed { .. }, Some(_)) => MachineError::PoweredOff { phase, machine, vm },
            (PhaseError::Overdue { after, .. }, row) => {
                let stale = !self.mirror().freshness().complete;
                let seen = row.map(|row| seen(&row, stale)).unwrap_or_default();
                MachineError::Overdue { phase, machine, after, seen }
            }
        })
    }
}

/// What the server says of the guest, for whoever asks why it is not ready.
fn seen(vm: &Vm, stale: bool) -> String {
    let Guest { operations_ready, tools, address, .. } = &vm.guest;
    let power = match vm.power {
        Power::On => "on",
        Power::Off => "off",
        Power::Suspended => "suspended",
        Power::Unknown => "not known to be on",
    };
    let ready = if *operations_ready { "ready" } else { "not ready" };
    let address = address.map_or_else(|| "no address".to_owned(), |address| address.to_string());
    let stale = if stale { "; the view of the datacenter is not up to date" } else { "" };
    format!("; it is {power}, its guest is {ready}, tools {tools:?}, {address}{stale}")
}
