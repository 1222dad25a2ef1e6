use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use roost_fleet::{Check, Guest, Phase, PhaseError, Power, Vm, VmId, condition};

use super::StepError;
use crate::run::nest::Nest;

/// The phase's own deadline ends a wait on the mirror; this one is only longer.
const NO_END: Duration = Duration::from_hours(24);

impl Nest {
    /// Waits until programs can be started in the guest, then until it has its address: the expected one, or any that others can reach.
    /// A VM that vanishes or powers off ends the wait at once. No call is made for it.
    pub(crate) async fn wait_ready(
        &self,
        vm: &VmId,
        machine: &str,
        expected: Option<IpAddr>,
    ) -> Result<IpAddr, StepError> {
        self.wait_in_guest(vm, machine, Phase::BOOTING, condition::guest_ready()).await?;
        let phase = Phase::WAITING_FOR_ADDRESS;
        match expected {
            Some(address) => {
                let found =
                    self.wait_in_guest(vm, machine, phase, condition::has_address(address)).await;
                found.map_err(|error| error.seen(|| format!("; it was given {address}")))
            }
            None => self.wait_in_guest(vm, machine, phase, condition::any_address()).await,
        }
    }

    async fn wait_in_guest<T>(
        &self,
        vm: &VmId,
        machine: &str,
        phase: Phase,
        condition: impl FnMut(Option<&Arc<Vm>>) -> Check<T>,
    ) -> Result<T, StepError> {
        let wait = self.mirror.wait_until(vm, NO_END, condition);
        let error = match self.timelines.run(machine, phase, self.deadlines.of(phase), wait).await {
            Ok(met) => return Ok(met),
            Err(error) => error,
        };
        let row = self.mirror.vm(vm);
        let (step, machine, vm) = (phase.into(), machine.to_owned(), vm.clone());
        Err(match (error, row) {
            (PhaseError::Failed { .. }, None) => StepError::Gone { step, machine, vm },
            (PhaseError::Failed { .. }, Some(_)) => StepError::PoweredOff { step, machine, vm },
            (PhaseError::Overdue { after, .. }, row) => {
                let stale = !self.mirror.freshness().complete;
                let seen = row.map(|row| seen(&row, stale)).unwrap_or_default();
                StepError::Overdue { step, machine, after, seen }
            }
        })
    }
}

impl StepError {
    /// With more words about what was seen.
    fn seen(self, more: impl FnOnce() -> String) -> Self {
        match self {
            Self::Overdue { step, machine, after, mut seen } => {
                seen.push_str(&more());
                Self::Overdue { step, machine, after, seen }
            }
            other => other,
        }
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
