use std::time::Duration;

use roost_vim::{Destroyed, Shutdown};

use super::retry::Again;
use super::{Hold, MachineError, Machines};
use crate::{Phase, Power, Wrote};

impl Machines {
    /// Powers a VM on. What may pass, such as a full host, is waited for as long as the phase lasts.
    pub async fn power_on(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let on = Wrote::new().power(Power::On);
        self.change(hold, Phase::POWERING_ON, on, Again::WhileItMayPass, || {
            self.client().power_on(&vm, None)
        })
        .await
        .map(drop)
    }

    /// Pulls the plug.
    pub async fn power_off(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let off = Wrote::new().power(Power::Off);
        self.change(hold, Phase::POWERING_OFF, off, Again::WhileItMayPass, || {
            self.client().power_off(&vm)
        })
        .await
        .map(drop)
    }

    /// Asks the guest to shut down, so that its file systems are clean; pulls the plug if it is still on after `grace`.
    pub async fn shut_down(&self, hold: &Hold, grace: Duration) -> Result<Shutdown, MachineError> {
        let vm = hold.vm().moref();
        let off = Wrote::new().power(Power::Off);
        let attempt = || self.client().shut_down(&vm, grace);
        self.change(hold, Phase::SHUTTING_DOWN, off, Again::Never, attempt).await
    }

    pub async fn suspend(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let suspended = Wrote::new().power(Power::Suspended);
        let attempt = || self.client().suspend(&vm);
        let again = Again::WhileItMayPass;
        self.change(hold, Phase::SUSPENDING, suspended, again, attempt).await.map(drop)
    }

    /// Presses the reset button.
    pub async fn reset(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        // What the guest said, it said before.
        let on = Wrote::new().power(Power::On);
        self.change(hold, Phase::RESETTING, on, Again::Never, || self.client().reset(&vm)).await
    }

    /// Asks the guest to restart. Returns at once; the guest takes its time.
    pub async fn reboot_guest(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let attempt = || self.client().reboot_guest(&vm);
        self.change(hold, Phase::RESETTING, Wrote::new(), Again::Never, attempt).await
    }

    /// Asks the guest to shut down. Returns at once; the guest takes its time, or never does.
    pub async fn ask_shutdown(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let attempt = || self.client().ask_shutdown(&vm);
        self.change(hold, Phase::SHUTTING_DOWN, Wrote::new(), Again::Never, attempt).await
    }

    /// Asks the guest to stand by, which suspends it. Returns at once.
    pub async fn standby_guest(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let attempt = || self.client().standby_guest(&vm);
        self.change(hold, Phase::SUSPENDING, Wrote::new(), Again::Never, attempt).await
    }

    /// Powers a VM off if it is on, and deletes it with its disks. Fine when it is gone already.
    pub async fn destroy(&self, hold: &Hold) -> Result<(), MachineError> {
        let vm = hold.vm().moref();
        let attempt = || self.client().destroy(&vm);
        match self.change(hold, Phase::DESTROYING, Wrote::new(), Again::Never, attempt).await? {
            Destroyed::Now => self.mirror().destroyed(hold.vm()),
            // Not by us, so the stream tells. A server may also say so of a VM that it lost sight of.
            Destroyed::AlreadyGone => {}
        }
        Ok(())
    }
}
