//! CreateOrUpdate: one VM per object, found by identity; what was started is taken up where it ended.

use kube::ResourceExt as _;
use roost_controller::{Draft, Key, Next};

use super::Context;
use super::config::note_failed_backup;
use super::create::create_virtual_machine;
use super::normal::set_manager_id;
use super::outcome::{Done, Failure, Flow, Halt};
use super::update::update_virtual_machine;
use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, Reason, mark_false, remove};
use crate::api::names::annotation;
use crate::front_door::trail::Chart::CreateOrUpdate;
use crate::front_door::trail::at;
use crate::provider::find;

pub(crate) async fn create_or_update(cx: &Context, vm: &mut Draft<VirtualMachine>) -> Flow<Next> {
    let key = Key::of(&**vm);
    at(CreateOrUpdate, "is one being made");
    check_reconciling(cx, &key)?;
    set_manager_id(cx, vm);
    cx.provider.check_view()?;
    let before = take_up_ended(cx, &key, vm)?;
    at(CreateOrUpdate, "find the VM");
    let found = find(vm, &cx.provider.fleet.mirror().snapshot());
    let found = found.map_err(Halt::because("looking for the VM"));
    let found = found.inspect_err(|halt| emit_failure(cx, vm, "ReconcileNormalFailure", halt))?;
    if let Some(row) = found {
        // What was started and failed has its event already.
        let is_told = before.is_some();
        let ended = update_virtual_machine(cx, &key, vm, &row, before).await;
        if !is_told {
            ended.as_ref().err().inspect(|halt| emit_failure(cx, vm, "UpdateFailure", halt));
        }
        ended
    } else {
        let ended = create_virtual_machine(cx, vm).await;
        ended.as_ref().err().inspect(|halt| emit_failure(cx, vm, "CreateFailure", halt));
        ended
    }
}

/// What is tried again is told; what waits for a person, or for its time, has a condition.
fn emit_failure(cx: &Context, vm: &VirtualMachine, reason: &str, halt: &Halt) {
    if let Halt::Failed(failure) = halt {
        cx.events.warning(vm, reason, &roost_supervise::Chain(failure).to_string());
    }
}

/// A VM is being made for it. Anything else that runs does not keep us from looking.
fn check_reconciling(cx: &Context, key: &Key) -> Flow {
    match cx.provider.steps.running(key) {
        Some(running) if running.step == Done::CreateStarted => Err(Halt::ReconcileInProgress),
        _ => Ok(()),
    }
}

/// On its way to the first boot every VM is changed; that is no news.
fn has_booted(vm: &VirtualMachine) -> bool {
    vm.annotations().contains_key(annotation::FIRST_BOOT_DONE) && !vm.waits_for_power_state()
}

/// vCenter does not know every guest that people can write.
fn note_guest_id(cx: &Context, vm: &mut VirtualMachine, error: Option<&str>) {
    let kind = ConditionType::GuestIdReconfigured;
    let conditions = &mut vm.status_mut().conditions;
    match error.filter(|error| error.contains("guestId")) {
        Some(error) => {
            mark_false(conditions, kind, Reason::Invalid, error, cx.now());
        }
        None if error.is_none() => {
            remove(conditions, kind);
        }
        None => {}
    }
}

/// How the step ended that was started in an earlier pass. A configuration that failed does not keep the VM from going off: it is handed on.
fn take_up_ended(cx: &Context, key: &Key, vm: &mut VirtualMachine) -> Flow<Option<Failure>> {
    let Some(ended) = cx.provider.steps.take_ended(key) else { return Ok(None) };
    let is_create = ended.step == Done::CreateStarted;
    super::promotion::note_end(cx, vm, ended.step, ended.error.as_deref());
    if ended.step == Done::Reconfigured {
        note_guest_id(cx, vm, ended.error.as_deref());
    }
    let Some(error) = ended.error else {
        if is_create {
            cx.events.normal(vm, "CreateSuccess", "Create success");
        } else if has_booted(vm) {
            cx.events.normal(vm, "UpdateSuccess", "Update success");
        }
        return Ok(None);
    };
    if is_create {
        let conditions = &mut vm.status_mut().conditions;
        mark_false(conditions, ConditionType::Created, Reason::Error, &error, cx.now());
        cx.events.warning(vm, "CreateFailure", &error);
    } else {
        // Nobody knows what of it was taken.
        if vm.annotations().contains_key(annotation::BOOTSTRAP_HASH_CONFIG_SPEC) {
            vm.annotations_mut().remove(annotation::BOOTSTRAP_HASH_CONFIG_SPEC);
        }
        if ended.step == Done::Reconfigured
            && let Ok(Some(row)) = find(vm, &cx.provider.fleet.mirror().snapshot())
            && let Ok(seen) = cx.provider.see(&row)
        {
            note_failed_backup(cx, vm, &seen, &error);
        }
        cx.events.warning(vm, "UpdateFailure", &error);
    }
    if ended.step == Done::Reconfigured && vm.is_powering_off() {
        return Ok(Some(Failure::new(error)));
    }
    Err(Halt::failed(error))
}
