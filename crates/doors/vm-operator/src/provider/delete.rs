//! Ending a VM, or giving it up.

use jiff::Timestamp;
use kube::ResourceExt as _;
use roost_controller::Key;
use roost_fleet::{Basis, Candidate, Connection, Draft, Phase, Power, Tools, Vm, Wrote};
use roost_vim::wire::methods::ReconfigVmTask;
use roost_vim::wire::types::{
    ManagedByInfo, OptionValue, TaskInfo, TaskInfoState, VirtualMachineConfigSpec,
};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::{DOOR, Provider, find, mark_pause};
use crate::api::VirtualMachine;
use crate::api::names::extra_config;
use crate::api::vm::{PauseState, PowerOpMode, PowerState};
use crate::flow::power_state::{Asked, SOFT_TIMEOUT};
use crate::flow::{Context, Done, Flow, Halt};

/// Between looks at a deletion that must wait for its turn.
const NEXT_TURN: Duration = Duration::from_secs(10);

/// Until a VM is looked at again that is gone and still shown; the news of it bring the key back earlier.
const LATE_NEWS: Duration = Duration::from_secs(5);

/// What comes next on the way to no VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    NotConnected,
    AdminPaused,
    ShutDownGuest,
    AwaitGuest(Timestamp),
    /// With its power, if it is still on.
    Destroy,
}

pub(crate) fn plan(row: &Vm, mode: PowerOpMode, asked: Option<Asked>, now: Timestamp) -> Step {
    if !matches!(row.connection, Connection::Connected | Connection::Unknown) {
        return Step::NotConnected;
    }
    if row.extra_config(extra_config::PAUSE).is_some_and(extra_config::is_true) {
        return Step::AdminPaused;
    }
    let has_tools = matches!(row.guest.tools, Tools::Running | Tools::ExecutingScripts);
    if row.power != Power::On || mode == PowerOpMode::Hard || !has_tools {
        return Step::Destroy;
    }
    match asked.filter(|asked| asked.to == PowerState::PoweredOff) {
        None => Step::ShutDownGuest,
        Some(asked) if now < asked.at + SOFT_TIMEOUT => Step::AwaitGuest(asked.at + SOFT_TIMEOUT),
        Some(_) => Step::Destroy,
    }
}

impl Provider {
    /// Ends when there is no VM.
    pub(crate) async fn delete(&self, cx: &Context, vm: &mut VirtualMachine) -> Flow {
        let key = Key::of(vm);
        self.check_view()?;
        if let Some(running) = self.steps.running(&key) {
            if running.step == Done::PromotionStarted {
                self.cancel_promotion(vm).await?;
            }
            // A create that is under way cannot be called back; what it makes is deleted afterwards.
            return Err(match running.step {
                Done::CreateStarted => Halt::failed("a VM is being made for this object"),
                _ => Halt::Done(Done::HasOutstandingTask),
            });
        }
        let ended = self.steps.take_ended(&key);
        // A promotion was called back; it does not matter any more.
        let counts = ended.as_ref().filter(|ended| ended.step != Done::PromotionStarted);
        if let Some(error) = counts.and_then(|ended| ended.error.clone()) {
            return Err(Halt::failed(error));
        }
        let found = find(vm, &self.fleet.mirror().snapshot());
        let Some(row) = found.map_err(Halt::because("looking for the VM"))? else {
            return self.check_gone(cx, vm).await;
        };
        // It is gone and the mirror does not know yet. Asked at once to go once more, it would be gone at once once more, and so on.
        if ended.is_some_and(|ended| ended.step == Done::DeleteStarted) {
            return Err(Halt::Requeue(LATE_NEWS));
        }
        // Whose it is stands in the close-up. One that vCenter does not reach, or that has lost its marks, is not shown.
        match self.see(&row) {
            Err(Halt::NoRequeue(why)) => return Err(Halt::failed(why)),
            Err(halt @ Halt::Done(_)) if row.connection == Connection::Connected => {
                return Err(halt);
            }
            _ => {}
        }
        let now = cx.now();
        match plan(&row, vm.power_off_mode(), self.steps.asked(&key), now) {
            Step::NotConnected => {
                Err(Halt::NoRequeue(format!("vCenter does not reach {}", row.name)))
            }
            Step::AdminPaused => {
                mark_pause(vm, PauseState::new(vm.is_paused_by_annotation(), true), now);
                Err(Halt::NoRequeue(format!("{} is paused by an administrator", row.name)))
            }
            Step::ShutDownGuest => {
                let hold = self.hold(&row)?;
                let asked = Asked { to: PowerState::PoweredOff, at: now };
                // A guest that cannot be asked is not waited for.
                let at = match self.fleet.machines().ask_shutdown(&hold).await {
                    Ok(()) => now,
                    Err(_) => Timestamp::UNIX_EPOCH,
                };
                self.steps.note_asked(&key, Some(Asked { at, ..asked }));
                if at == now {
                    Err(Halt::RequeueAt(now + SOFT_TIMEOUT))
                } else {
                    Err(Halt::Requeue(Duration::ZERO))
                }
            }
            Step::AwaitGuest(until) => Err(Halt::RequeueAt(until)),
            Step::Destroy => {
                // One that a process before this one has begun.
                if self.settings.features.fast_deploy.is_some() && vm.waits_for_disk_promotion() {
                    self.cancel_promotion(vm).await?;
                }
                self.destroy(&key, &row)
            }
        }
    }

    /// Disks that are about to be deleted need not become whole.
    async fn cancel_promotion(&self, vm: &VirtualMachine) -> Flow {
        let found = find(vm, &self.fleet.mirror().snapshot());
        let Some(row) = found.map_err(Halt::because("looking for the VM"))? else { return Ok(()) };
        let tasks = self.places.recent_tasks().await.map_err(Halt::because("reading tasks"))?;
        let is_promotion = |task: &&TaskInfo| {
            task.description_id == "VirtualMachine.promoteDisks"
                && task.entity.as_ref().is_some_and(|entity| *entity == row.id.moref())
                && matches!(task.state, TaskInfoState::Running | TaskInfoState::Queued)
        };
        for task in tasks.iter().filter(is_promotion) {
            self.fleet.machines().cancel(&task.task).await;
        }
        Ok(())
    }

    /// Whether vCenter works at a create that this process does not know of: one before it, which crashed, may have asked for it. The VM would come after
    /// its object is gone, and nobody would delete it. Only a create that was asked for in the object's time, of its image or in its places, counts.
    async fn may_be_in_the_making(&self, cx: &Context, vm: &VirtualMachine) -> Flow<bool> {
        let namespace = vm.namespace().unwrap_or_default();
        let image = vm.spec.image.as_ref();
        let image = image.and_then(|of| cx.stores.image(&namespace, &of.kind, &of.name));
        let mut from: Vec<String> = Vec::new();
        if let Some(super::prereq::Source::Template(id)) =
            image.as_ref().and_then(super::prereq::source_of)
        {
            from.push(id.to_string());
        }
        for zone in self.places.zones() {
            let place = self.places.of(&namespace, &zone.name).await;
            let place = place.map_err(Halt::because("placement"))?;
            from.extend([place.folder.id.to_string(), place.pool.id.to_string()]);
        }
        let tasks = self.places.recent_tasks().await.map_err(Halt::because("reading tasks"))?;
        let since = vm.metadata.creation_timestamp.as_ref().map(|time| time.0);
        let until = vm.metadata.deletion_timestamp.as_ref().map(|time| time.0);
        Ok(tasks.iter().any(|task| {
            let is_under_way = matches!(task.state, TaskInfoState::Running | TaskInfoState::Queued);
            let is_of_ours =
                task.entity.as_ref().is_some_and(|entity| from.iter().any(|id| **id == *entity.id));
            let asked = task.queue_time.as_second();
            let is_in_time = since.is_none_or(|since| asked >= since.as_second())
                && until.is_none_or(|until| asked <= until.as_second());
            is_under_way && is_of_ours && is_in_time
        }))
    }

    /// A VM that the mirror does not show may still be there: it was just made, or lies elsewhere.
    async fn check_gone(&self, cx: &Context, vm: &VirtualMachine) -> Flow {
        let was_made = vm.status.as_ref().is_some_and(|status| !status.unique_id.is_empty());
        if vm.spec.instance_uuid.is_empty() || (was_made && self.has_signals()) {
            return Ok(());
        }
        if !was_made && self.may_be_in_the_making(cx, vm).await? {
            return Err(Halt::Requeue(NEXT_TURN));
        }
        match self.check_not_there(vm).await {
            Ok(()) => Ok(()),
            Err(halt) => Err(halt),
        }
    }

    pub(crate) fn hold(&self, row: &Vm) -> Flow<roost_fleet::Hold> {
        let hold = self.fleet.machines().hold(DOOR, &row.id);
        hold.ok_or(Halt::Requeue(Duration::from_secs(1)))
    }

    fn destroy(&self, key: &Key, row: &Arc<Vm>) -> Flow {
        let now = self.now();
        let candidate = Candidate {
            vm: row.id.clone(),
            name: Arc::clone(&row.name),
            owner: row.owner().cloned(),
            basis: Basis::Asked,
            why: format!("{key} was deleted").into(),
        };
        let verdict =
            self.guard.lock().unwrap_or_else(PoisonError::into_inner).asked(&candidate, now);
        self.fleet.journal().record(Draft::from(&verdict), now);
        if !verdict.is_delete() {
            return Err(Halt::Requeue(NEXT_TURN));
        }
        self.steps.may_begin(key, Done::DeleteStarted, now)?;
        let hold = self.hold(row)?;
        hold.leaving();
        let told = self.steps.begin(key, Done::DeleteStarted, now).into_told();
        let machines = self.fleet.machines().clone();
        self.fleet.machines().start(async move { machines.destroy(&hold).await }, told);
        Err(Halt::Done(Done::DeleteStarted))
    }

    /// Takes our marks off a VM that outlives its object. Ends when none is left, or no VM is.
    pub(crate) async fn cleanup(&self, cx: &Context, vm: &mut VirtualMachine) -> Flow {
        let key = Key::of(vm);
        self.check_view()?;
        if self.steps.running(&key).is_some() {
            return Err(Halt::Done(Done::HasOutstandingTask));
        }
        // What was begun before the deletion does not matter any more. A VM that was cleaned up is nobody's, so nothing more is seen of it.
        if let Some(ended) = self.steps.take_ended(&key).filter(|of| of.step == Done::CleanedUp) {
            return ended.error.map_or(Ok(()), |error| Err(Halt::failed(error)));
        }
        let found = find(vm, &self.fleet.mirror().snapshot());
        let Some(row) = found.map_err(Halt::because("looking for the VM"))? else { return Ok(()) };
        if row.claim.is_none() {
            return Ok(());
        }
        let seen = self.see(&row)?;
        let ours = seen.detail.all_extra_config().filter(|(key, _)| extra_config::is_own(key));
        let mut spec = VirtualMachineConfigSpec {
            extra_config: ours.map(|(key, _)| OptionValue::text(key, "")).collect(),
            ..VirtualMachineConfigSpec::default()
        };
        if seen.managed_by().as_deref() == Some(&self.settings.extension_key) {
            spec.managed_by = Some(ManagedByInfo::default());
        }
        let wrote = Wrote::new()
            .extra_config(extra_config::NAMESPACED_NAME, "")
            .extra_config(extra_config::PAUSE, "");
        self.steps.may_begin(&key, Done::CleanedUp, cx.now())?;
        let hold = self.hold(&row)?;
        let begun = self.steps.begin(&key, Done::CleanedUp, cx.now());
        let call = ReconfigVmTask { this: row.id.moref(), spec };
        let (machines, phase) = (self.fleet.machines(), Phase::RECONFIGURING);
        let started = machines.start_task(hold, phase, &call, wrote, begun.told()).await;
        if let Err(error) = started {
            begun.never_began();
            return Err(Halt::because(format!("cleaning up {}", vm.name_any()))(error));
        }
        begun.goes_on();
        Err(Halt::Done(Done::CleanedUp))
    }
}
