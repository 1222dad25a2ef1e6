//! Normal: finalizer first, then the image cache, then the provider.

use kube::ResourceExt as _;
use roost_controller::{Draft, Key, Next};

use super::Context;
use super::create_or_update::create_or_update;
use super::defaults::default_object;
use super::image_cache::{Gate, check_cache_ready, remove_label_and_annotation};
use super::outcome::{Flow, Halt};
use super::update::mark_version;
use crate::api::VirtualMachine;
use crate::api::condition::{ConditionType, find};
use crate::api::names::{annotation, extra_config, finalizer, label};
use crate::api::vm::PauseState;
use crate::front_door::trail::Chart::Normal;
use crate::front_door::trail::at;
use crate::provider::{find as find_vm, mark_pause};

pub(crate) async fn reconcile_normal(cx: &Context, vm: &mut Draft<VirtualMachine>) -> Flow<Next> {
    at(Normal, "pause annotation");
    if has_pause_annotation(vm) {
        show_pause(cx, vm);
        return Ok(Next::AwaitChange);
    }
    at(Normal, "finalizer");
    if add_finalizer(vm) {
        // Also what no webhook filled in: identity must be written before anything is made with it.
        default_object(cx, vm);
        set_manager_id(cx, vm);
        mark_version(vm);
        return Ok(Next::Now);
    }
    at(Normal, "image cache");
    check_image_cache(cx, vm)?;
    let ended = create_or_update(cx, vm).await;
    add_to_probe_manager(cx, vm);
    cx.metrics.record(vm);
    ended
}

fn has_pause_annotation(vm: &VirtualMachine) -> bool {
    vm.is_paused_by_annotation()
}

/// Nothing is done, but it is shown who holds it: a person, or an administrator in vCenter as well.
fn show_pause(cx: &Context, vm: &mut VirtualMachine) {
    let found = find_vm(vm, &cx.provider.fleet.mirror().snapshot());
    let is_paused = |row: std::sync::Arc<roost_fleet::Vm>| {
        row.extra_config(extra_config::PAUSE).is_some_and(extra_config::is_true)
    };
    let by_admin = found.is_ok_and(|row| row.is_some_and(is_paused));
    mark_pause(vm, PauseState::new(true, by_admin), cx.now());
}

/// True if it was not there. The one of old goes in any case.
fn add_finalizer(vm: &mut Draft<VirtualMachine>) -> bool {
    let had_deprecated = vm.remove_finalizer(finalizer::DEPRECATED_VM);
    vm.add_finalizer(finalizer::VM) || had_deprecated
}

pub(super) fn set_manager_id(cx: &Context, vm: &mut VirtualMachine) {
    let id = &cx.settings.manager_id;
    if !id.is_empty() && vm.annotations().get(annotation::MANAGER_ID) != Some(id) {
        vm.annotations_mut().insert(annotation::MANAGER_ID.to_owned(), id.clone());
    }
}

fn check_image_cache(cx: &Context, vm: &mut VirtualMachine) -> Flow {
    let Some(name) = vm.labels().get(label::IMAGE_CACHE_NAME) else { return Ok(()) };
    let cache = cx.stores.caches.get(&Key::new(&cx.settings.pod_namespace, name));
    let waits = find(vm.conditions(), ConditionType::ImageCacheReady);
    let since = waits.map(|condition| condition.last_transition_time.0);
    match check_cache_ready(vm, cache.as_deref(), since, cx.now()) {
        Gate::Ready => Ok(()),
        Gate::ReadyDropMarks => {
            remove_label_and_annotation(vm);
            Ok(())
        }
        Gate::AskAnew => {
            remove_label_and_annotation(vm);
            Err(Halt::Requeue(std::time::Duration::ZERO))
        }
        // A cache that never comes is asked for anew, so somebody must look again.
        Gate::NotReady if cache.is_none() => Err(Halt::Requeue(cx.settings.create_requeue)),
        Gate::NotReady => Err(Halt::CacheNotReady),
    }
}

fn add_to_probe_manager(cx: &Context, vm: &VirtualMachine) {
    let key = Key::of(vm);
    match vm.spec.readiness_probe.as_ref().filter(|probe| probe.tcp_socket.is_some()) {
        Some(probe) => cx.probes.set(&key, probe, vm),
        None => cx.probes.remove(&key),
    }
}
