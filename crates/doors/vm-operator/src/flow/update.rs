//! Update: the steps in their order. What fails and is retried does not keep the others from running; what ends a pass ends it.

use std::sync::Arc;

use kube::ResourceExt as _;
use roost_controller::{Key, Next};
use roost_fleet::Vm;

use super::config::reconcile_config;
use super::location::reconcile_location;
use super::outcome::{Aggregate, Failure, Flow, Halt};
use super::power_state::{Operation, Restart, Situation, compare_power_state};
use super::snapshot::{reconcile_snapshot_create, reconcile_snapshot_revert};
use super::status::reconcile_status;
use super::volumes::reconcile_volumes;
use super::{Context, power_state};
use crate::api::VirtualMachine;
use crate::api::names::{annotation, extra_config};
use crate::front_door::trail::Chart::Update;
use crate::front_door::trail::at;
use crate::provider::{Seen, parse_nanoseconds};

pub(crate) async fn update_virtual_machine(
    cx: &Context,
    key: &Key,
    vm: &mut VirtualMachine,
    row: &Arc<Vm>,
    failed_config: Option<Failure>,
) -> Flow<Next> {
    at(Update, "properties");
    let seen = fetch_properties(cx, row)?;
    let was_powering_off = vm.is_powering_off();
    let mut all = Aggregate::default();
    at(Update, "status");
    all.step("status", reconcile_status(cx, vm, &seen).await)?;
    at(Update, "location");
    all.step("location", reconcile_location(cx, vm, &seen))?;
    reconcile_schema_upgrade(vm, &seen.row);
    at(Update, "volumes");
    let mut volumes = Next::AwaitChange;
    match reconcile_volumes(cx, vm).await {
        Ok(next) => volumes = next,
        Err(halt) => all.step("volumes", Err(halt))?,
    }
    at(Update, "snapshot revert");
    all.step("snapshot revert", reconcile_snapshot_revert(cx, key, vm, &seen).await)?;
    at(Update, "config");
    let config = match failed_config {
        Some(failure) => Err(Halt::Failed(failure)),
        None => reconcile_config(cx, key, vm, &seen).await,
    };
    match config {
        Err(Halt::Failed(failure)) => {
            all.step("config", Err(Halt::Failed(failure)))?;
            if !was_powering_off {
                return Err(all.fail());
            }
        }
        // What is wrong with the configuration does not keep it from going off.
        Err(Halt::NoRequeue(why)) if was_powering_off => {
            all.step("config", Err(Halt::failed(why)))?;
        }
        // Nor does the pause of a configuration that failed.
        Err(Halt::RequeueAt(_)) if was_powering_off => {}
        other => all.step("config", other)?,
    }
    at(Update, "power state");
    let mut next = Next::AwaitChange;
    let power = reconcile_power_state(cx, key, vm, &seen).await;
    match power {
        Ok(after) => next = after,
        Err(halt) => all.step("power state", Err(halt))?,
    }
    at(Update, "snapshot");
    all.step("snapshot", reconcile_snapshot_create(cx, key, vm, &seen).await)?;
    all.end()?;
    if next == Next::AwaitChange {
        next = volumes;
    }
    Ok(requeue_delay(cx, vm, next))
}

fn fetch_properties(cx: &Context, row: &Arc<Vm>) -> Flow<Seen> {
    // Whoever looks at the object is to see why nothing happens.
    cx.provider.see(row).map_err(|halt| match halt {
        Halt::NoRequeue(why) => Halt::failed(why),
        halt => halt,
    })
}

/// The markers say by which version an object was last brought up to date; what older ones did not have is filled in from the VM.
fn reconcile_schema_upgrade(vm: &mut VirtualMachine, row: &Vm) {
    fill_in(vm, row.uuid.as_deref(), row.instance_uuid.as_deref());
}

fn fill_in(vm: &mut VirtualMachine, uuid: Option<&str>, instance_uuid: Option<&str>) {
    if vm.spec.bios_uuid.is_empty() {
        uuid.unwrap_or_default().clone_into(&mut vm.spec.bios_uuid);
    }
    if vm.spec.instance_uuid.is_empty() {
        instance_uuid.unwrap_or_default().clone_into(&mut vm.spec.instance_uuid);
    }
    let bios_uuid = vm.spec.bios_uuid.clone();
    let cloud_init = vm.spec.bootstrap.as_mut().and_then(|of| of.cloud_init.as_mut());
    if let Some(cloud_init) = cloud_init.filter(|of| of.instance_id.is_empty()) {
        cloud_init.instance_id = bios_uuid;
    }
    mark_version(vm);
}

/// By which version the object is up to date.
pub(super) fn mark_version(vm: &mut VirtualMachine) {
    for (key, value) in [
        (annotation::UPGRADED_TO_BUILD_VERSION, env!("CARGO_PKG_VERSION")),
        (annotation::UPGRADED_TO_SCHEMA_VERSION, crate::api::VERSION),
        (annotation::UPGRADED_TO_FEATURE_VERSION, "1"),
    ] {
        if vm.annotations().get(key).map(String::as_str) != Some(value) {
            vm.annotations_mut().insert(key.to_owned(), value.to_owned());
        }
    }
}

async fn reconcile_power_state(
    cx: &Context,
    key: &Key,
    vm: &mut VirtualMachine,
    seen: &Seen,
) -> Flow<Next> {
    verify_connection(seen)?;
    verify_resource_pool(seen)?;
    let now = cx.now();
    let situation = situation(cx, key, vm, seen);
    drop_past_delay(vm, now);
    let operation = compare_power_state(&situation, now);
    if !matches!(
        operation,
        Operation::AwaitGuest(_) | Operation::ShutDownGuest | Operation::StandByGuest
    ) {
        cx.provider.steps.note_asked(key, None);
    }
    let asked = |to| power_state::Asked { to, at: now };
    match operation {
        Operation::None | Operation::HeldBack | Operation::IsPaused | Operation::HasRunningTask => {
            Ok(Next::AwaitChange)
        }
        Operation::WaitForTime(at) | Operation::AwaitGuest(at) => Ok(Next::At(at)),
        Operation::PowerOn => {
            super::bootstrap::customize(cx, key, vm, seen).await?;
            let done = annotation::FIRST_BOOT_DONE.to_owned();
            vm.annotations_mut().insert(done, "true".to_owned());
            cx.provider.power_on(key, seen).await.map(|()| Next::AwaitChange)
        }
        Operation::PowerOff => cx.provider.power_off(key, seen).await.map(|()| Next::AwaitChange),
        Operation::Suspend => cx.provider.suspend(key, seen).await.map(|()| Next::AwaitChange),
        Operation::ShutDownGuest => {
            let asked = asked(crate::api::PowerState::PoweredOff);
            cx.provider.ask_guest(key, seen, asked).await?;
            Ok(Next::At(now + power_state::SOFT_TIMEOUT))
        }
        Operation::StandByGuest => {
            let asked = asked(crate::api::PowerState::Suspended);
            cx.provider.ask_guest(key, seen, asked).await?;
            Ok(Next::At(now + power_state::SOFT_TIMEOUT))
        }
        Operation::GuestDidNot(to) => {
            Err(Halt::failed(format!("the guest was asked to become {to} and did not")))
        }
        Operation::Reset | Operation::RebootGuest => {
            let wanted = situation.restart.wanted.unwrap_or(now);
            let is_hard = operation == Operation::Reset;
            cx.provider.restart(key, seen, is_hard, wanted).map(|()| Next::AwaitChange)
        }
    }
}

pub(super) fn verify_connection(seen: &Seen) -> Flow {
    if seen.is_connected() {
        return Ok(());
    }
    let state = format!("{:?}", seen.row.connection).to_lowercase();
    Err(Halt::NoRequeue(format!("the VM is {state}")))
}

pub(super) fn verify_resource_pool(seen: &Seen) -> Flow {
    match &seen.row.pool {
        Some(_) => Ok(()),
        None => Err(Halt::NoRequeue("the VM has no resource pool".to_owned())),
    }
}

fn situation(cx: &Context, key: &Key, vm: &VirtualMachine, seen: &Seen) -> Situation {
    let time = |text: &str| text.parse::<jiff::Timestamp>().ok();
    let delay = vm.annotations().get(annotation::APPLY_POWER_STATE_TIME);
    let last = seen.extra_config(extra_config::LAST_RESTART_TIME);
    Situation {
        wanted: vm.spec.power_state,
        current: seen.power(),
        power_off_mode: vm.power_off_mode(),
        suspend_mode: vm.suspend_mode(),
        restart_mode: vm.restart_mode(),
        tools: seen.row.guest.tools,
        asked: cx.provider.steps.asked(key),
        has_power_on_checks: !vm.power_on_checks().is_empty(),
        not_before: delay.filter(|_| cx.provider.settings.features.groups).and_then(|at| time(at)),
        restart: Restart {
            wanted: time(&vm.spec.next_restart_time),
            last: last.and_then(parse_nanoseconds),
        },
        is_paused: seen.is_paused(),
        has_running_task: cx.provider.is_busy(key, seen.id()),
    }
}

fn drop_past_delay(vm: &mut VirtualMachine, now: jiff::Timestamp) {
    let delay = vm.annotations().get(annotation::APPLY_POWER_STATE_TIME);
    let is_past = delay.is_some_and(|at| at.parse::<jiff::Timestamp>().is_ok_and(|at| at <= now));
    if is_past {
        vm.annotations_mut().remove(annotation::APPLY_POWER_STATE_TIME);
    }
}

/// Without signals, what a VM waits for is looked at by time.
fn requeue_delay(cx: &Context, vm: &VirtualMachine, next: Next) -> Next {
    if next == Next::AwaitChange && !cx.has_signals() && vm.waits_for_address() {
        return Next::After(cx.settings.address_requeue);
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_older_versions_did_not_write_is_filled_in_from_the_vm() {
        let mut vm: VirtualMachine = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "web-0"}, "spec": {"bootstrap": {"cloudInit": {}}}
        }))
        .unwrap();
        fill_in(&mut vm, Some("bios"), Some("instance"));
        let spec = &vm.spec;
        assert_eq!((&*spec.bios_uuid, &*spec.instance_uuid), ("bios", "instance"));
        let cloud_init = spec.bootstrap.as_ref().and_then(|of| of.cloud_init.as_ref());
        assert_eq!(cloud_init.unwrap().instance_id, "bios");
        assert_eq!(vm.annotations()[annotation::UPGRADED_TO_SCHEMA_VERSION], crate::api::VERSION);
        assert_eq!(vm.annotations()[annotation::UPGRADED_TO_FEATURE_VERSION], "1");
        fill_in(&mut vm, Some("another"), None);
        assert_eq!(vm.spec.bios_uuid, "bios", "what is there stays");
        // A VM that cannot be read has no identity to give.
        let mut lost = VirtualMachine::default();
        fill_in(&mut lost, None, None);
        assert!(lost.spec.bios_uuid.is_empty());
    }
}
