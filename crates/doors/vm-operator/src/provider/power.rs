//! Changes of a VM that is there. Each is started and left.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use roost_controller::Key;
use roost_fleet::{MachineError, Phase, Power, Wrote};
use roost_vim::wire::methods::{
    CustomizeVmTask, PowerOffVmTask, PowerOnVmTask, PromoteDisksTask, ReconfigVmTask,
    SuspendVmTask, UpgradeVmTask,
};
use roost_vim::wire::types::{CustomizationSpec, Hidden, VirtualMachineConfigSpec};
use roost_vim::wire::{Method, MoRef};

use super::{Provider, Seen};
use crate::api::names::extra_config;
use crate::flow::power_state::Asked;
use crate::flow::{Done, Flow, Halt};

/// When a VM is looked at again of which vCenter says otherwise than the mirror.
const LATE_NEWS: Duration = Duration::from_secs(5);

fn print_of(spec: &VirtualMachineConfigSpec) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{spec:?}").hash(&mut hasher);
    hasher.finish()
}

impl Provider {
    async fn start_task<M: Method<Output = MoRef>>(
        &self,
        key: &Key,
        seen: &Seen,
        (done, phase): (Done, Phase),
        call: &M,
        wrote: Wrote,
    ) -> Flow {
        self.steps.may_begin(key, done, self.now())?;
        let hold = self.hold(&seen.row)?;
        let begun = self.steps.begin(key, done, self.now());
        let told = begun.told();
        // A process that crashed has left it: the guest is told at its next power-on.
        let is_pending = |error: &MachineError| {
            error.fault().is_some_and(|fault| fault.is("CustomizationPending"))
        };
        let told = move |ended: Result<_, MachineError>| match ended {
            Err(error) if is_pending(&error) => told(Ok(None)),
            ended => told(ended),
        };
        let started = self.fleet.machines().start_task(hold, phase, call, wrote, told).await;
        if let Err(error) = started {
            begun.never_began();
            // It is as wanted: only the news of it is late. They may never come, when somebody changes it back before: then nothing has changed.
            if error.fault().is_some_and(|fault| fault.is("InvalidPowerState")) {
                return Err(Halt::Requeue(LATE_NEWS));
            }
            return Err(Halt::because(format!("{phase}"))(error));
        }
        begun.goes_on();
        Err(Halt::Done(done))
    }

    pub(crate) async fn power_on(&self, key: &Key, seen: &Seen) -> Flow {
        let call = PowerOnVmTask { this: seen.id().moref(), host: None };
        let step = (Done::PowerStateUpdated, Phase::POWERING_ON);
        self.start_task(key, seen, step, &call, Wrote::new().power(Power::On)).await
    }

    pub(crate) async fn power_off(&self, key: &Key, seen: &Seen) -> Flow {
        let call = PowerOffVmTask { this: seen.id().moref() };
        let step = (Done::PowerStateUpdated, Phase::POWERING_OFF);
        self.start_task(key, seen, step, &call, Wrote::new().power(Power::Off)).await
    }

    pub(crate) async fn suspend(&self, key: &Key, seen: &Seen) -> Flow {
        let call = SuspendVmTask { this: seen.id().moref() };
        let step = (Done::PowerStateUpdated, Phase::SUSPENDING);
        self.start_task(key, seen, step, &call, Wrote::new().power(Power::Suspended)).await
    }

    pub(crate) async fn upgrade_hardware(&self, key: &Key, seen: &Seen, version: i32) -> Flow {
        let version = Some(format!("vmx-{version}"));
        let call = UpgradeVmTask { this: seen.id().moref(), version };
        let step = (Done::UpgradedHardwareVersion, Phase::RECONFIGURING);
        self.start_task(key, seen, step, &call, Wrote::new()).await
    }

    /// Gives these disks a whole copy of their own.
    pub(crate) async fn promote(&self, key: &Key, seen: &Seen, disks: &[i32]) -> Flow {
        let all = seen.disks().filter(|disk| disks.contains(&disk.key));
        let call = PromoteDisksTask {
            this: seen.id().moref(),
            unlink: true,
            disks: all.cloned().collect(),
        };
        let step = (Done::PromotionStarted, Phase::PROMOTING);
        self.start_task(key, seen, step, &call, Wrote::new()).await
    }

    /// Sets what the guest is told at its next power-on.
    pub(crate) async fn customize(&self, key: &Key, seen: &Seen, spec: CustomizationSpec) -> Flow {
        let call = CustomizeVmTask { this: seen.id().moref(), spec };
        let step = (Done::Customized, Phase::CUSTOMISING);
        self.start_task(key, seen, step, &call, Wrote::new()).await
    }

    pub(crate) async fn reconfigure(
        &self,
        key: &Key,
        seen: &Seen,
        done: Done,
        spec: VirtualMachineConfigSpec,
        stays_on: bool,
    ) -> Flow {
        let mut wrote = Wrote::new();
        if let Some(cpus) = spec.num_cpus.and_then(|cpus| cpus.try_into().ok()) {
            wrote = wrote.cpus(cpus);
        }
        if let Some(memory) = spec.memory_mb.and_then(|memory| memory.try_into().ok()) {
            wrote = wrote.memory_mb(memory);
        }
        self.steps.note_request(key, print_of(&spec));
        // Disks that are open are tracked from the next time on that they are opened.
        let must_resume =
            stays_on && seen.power() == Power::On && spec.change_tracking_enabled.is_some();
        let call = ReconfigVmTask { this: seen.id().moref(), spec };
        if must_resume {
            return self.reconfigure_and_resume(key, seen, done, call, wrote);
        }
        self.start_task(key, seen, (done, Phase::RECONFIGURING), &call, wrote).await
    }

    /// A short suspension makes a running VM open its disks anew. It is one step: nothing else happens to the VM in between, and one that stays suspended
    /// because its process ends is powered on as any other that is wanted on.
    fn reconfigure_and_resume(
        &self,
        key: &Key,
        seen: &Seen,
        done: Done,
        call: ReconfigVmTask,
        wrote: Wrote,
    ) -> Flow {
        self.steps.may_begin(key, done, self.now())?;
        let hold = self.hold(&seen.row)?;
        let told = self.steps.begin(key, done, self.now()).into_told();
        let machines = self.fleet.machines().clone();
        let work = async move {
            machines.run_task(&hold, Phase::RECONFIGURING, &call, wrote).await?;
            machines.suspend(&hold).await?;
            machines.power_on(&hold).await
        };
        self.fleet.machines().start(work, told);
        Err(Halt::Done(done))
    }

    /// Whether vCenter has taken the same request again and again without becoming what it says: some servers do not know every field. It is not sent for a while
    /// then, and the other steps go on.
    pub(crate) fn is_in_vain(&self, key: &Key, spec: &VirtualMachineConfigSpec) -> bool {
        self.steps.is_in_vain(key, print_of(spec), self.now())
    }

    /// Asks the guest, which is a short call, and remembers that it was asked.
    pub(crate) async fn ask_guest(&self, key: &Key, seen: &Seen, asked: Asked) -> Flow {
        let hold = self.hold(&seen.row)?;
        let machines = self.fleet.machines();
        let done = match asked.to {
            crate::api::PowerState::Suspended => machines.standby_guest(&hold).await,
            _ => machines.ask_shutdown(&hold).await,
        };
        drop(hold);
        if let Err(error) = done {
            // Long ago: whoever may force it does so now.
            let at = jiff::Timestamp::UNIX_EPOCH;
            self.steps.note_asked(key, Some(Asked { at, ..asked }));
            return Err(Halt::because("asking the guest")(error));
        }
        self.steps.note_asked(key, Some(asked));
        Ok(())
    }

    /// Restarts, then writes down that it was done: a crash in between means one restart more, not one less.
    pub(crate) fn restart(
        &self,
        key: &Key,
        seen: &Seen,
        is_hard: bool,
        wanted: jiff::Timestamp,
    ) -> Flow {
        self.steps.may_begin(key, Done::Restarted, self.now())?;
        let hold = self.hold(&seen.row)?;
        let told = self.steps.begin(key, Done::Restarted, self.now()).into_told();
        let machines = self.fleet.machines().clone();
        let note = roost_vim::Reconfigure {
            extra_config: vec![(
                extra_config::LAST_RESTART_TIME.to_owned(),
                Hidden(wanted.as_nanosecond().to_string()),
            )],
            ..roost_vim::Reconfigure::default()
        };
        let work = async move {
            if is_hard {
                machines.reset(&hold).await?;
            } else if let Err(error) = machines.reboot_guest(&hold).await {
                if error.outcome_unknown() {
                    return Err(error);
                }
                machines.reset(&hold).await?;
            }
            machines.reconfigure(&hold, &note).await
        };
        self.fleet.machines().start(work, told);
        Err(Halt::Done(Done::Restarted))
    }
}
