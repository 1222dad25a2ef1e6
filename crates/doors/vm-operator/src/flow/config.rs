//! Config: what may be changed now, what differs, and one request for all of it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt as _;
use roost_controller::Key;
use roost_fleet::Power;
use roost_vim::wire::types::{VirtualDevice, VirtualMachineConfigSpec};

use super::Context;
use super::outcome::{Done, Flow, Halt};
use super::promotion::promote_disks;
use super::update::{verify_connection, verify_resource_pool};
use super::v_app;
use crate::api::condition::{ConditionType, Reason, mark_false, mark_true, mark_unknown, remove};
use crate::api::names::{annotation, extra_config};
use crate::api::vm::PowerState;
use crate::api::{VirtualMachine, VirtualMachineClass};
use crate::class::{base_config, sized_by};
use crate::provider::{
    Compute, Reach, Seen, Wanted, backup_keys, class_reference, differences, disk_keys,
    extra_config_kept, is_backup_paused, is_empty, note_version, secret_keys, secrets_of,
};

pub(super) async fn reconcile_config(
    cx: &Context,
    key: &Key,
    vm: &mut VirtualMachine,
    seen: &Seen,
) -> Flow {
    verify_connection(seen)?;
    verify_resource_pool(seen)?;
    let reach = what_may_change(cx, key, seen);
    let Some(reach) = reach else { return Ok(()) };
    if reach == Reach::Everything {
        hardware_version(cx, key, vm, seen).await?;
    }
    let resize = get_resize_arguments(cx, vm, seen, reach).await?;
    let mut wanted = get_update_arguments(cx, vm, reach).await?;
    if let Resize::To(class) = &resize {
        wanted.compute = Some(compute(cx, vm, seen, class).await?);
        wanted.extra_config.push((extra_config::SIZED_BY.to_owned(), sized_by(class)));
    }
    if reach != Reach::Marks {
        wanted.extra_config.extend(super::bootstrap::keys(cx, vm, seen)?);
    }
    let backup = backup(cx, vm, seen);
    wanted.extra_config.extend(backup);
    let spec = differences(vm, &wanted, seen, reach);
    let mut spec = spec.map_err(Halt::because("the configuration"))?;
    if reach == Reach::Everything {
        v_app::properties(cx, vm, seen, &mut spec)?;
    }
    if !is_empty(&spec) && !cx.provider.is_in_vain(key, &spec) {
        let stays_on = !vm.is_powering_off();
        return cx.provider.reconfigure(key, seen, Done::Reconfigured, spec, stays_on).await;
    }
    note_resize(cx, vm, &resize);
    if reach == Reach::Everything && vm.spec.power_state == Some(PowerState::PoweredOn) {
        volumes_attached(vm)?;
    }
    promote_disks(cx, key, vm, seen).await
}

/// `None`: nothing at present.
fn what_may_change(cx: &Context, key: &Key, seen: &Seen) -> Option<Reach> {
    if cx.provider.is_busy(key, seen.id()) {
        return None;
    }
    if seen.is_paused() {
        return Some(Reach::Marks);
    }
    match seen.power() {
        Power::On => Some(Reach::PoweredOn),
        Power::Off => Some(Reach::Everything),
        Power::Suspended | Power::Unknown => None,
    }
}

async fn hardware_version(cx: &Context, key: &Key, vm: &VirtualMachine, seen: &Seen) -> Flow {
    let least = vm.spec.min_hardware_version;
    match seen.hardware_version() {
        Some(is) if is < least => cx.provider.upgrade_hardware(key, seen, least).await,
        _ => Ok(()),
    }
}

async fn get_update_arguments(cx: &Context, vm: &VirtualMachine, reach: Reach) -> Flow<Wanted> {
    let provider = &cx.provider;
    let base = class_of(cx, vm).map(|class| base_config(&class.spec)).unwrap_or_default();
    let mut wanted = Wanted {
        extension_key: provider.settings.extension_key.clone(),
        extra_config: extra_config_kept(vm, &base, &provider.settings.extra_config),
        ..Wanted::default()
    };
    if reach == Reach::Everything {
        wanted.nics = provider.nics(vm, &base).await?;
    }
    if reach != Reach::Marks && vm.spec.hardware.as_ref().is_some_and(|of| !of.cdrom.is_empty()) {
        wanted.cdroms = Some(provider.cdroms(cx, vm).await?);
    }
    Ok(wanted)
}

fn class_of(cx: &Context, vm: &VirtualMachine) -> Option<std::sync::Arc<VirtualMachineClass>> {
    let namespace = vm.namespace().unwrap_or_default();
    cx.stores.classes.get(&Key::new(&namespace, &vm.spec.class_name))
}

/// Whether the VM gets the size of its class.
#[derive(Debug, PartialEq)]
enum Resize {
    None,
    To(std::sync::Arc<VirtualMachineClass>),
}

async fn get_resize_arguments(
    cx: &Context,
    vm: &mut VirtualMachine,
    seen: &Seen,
    reach: Reach,
) -> Flow<Resize> {
    let kind = ConditionType::ClassConfigurationSynced;
    if !cx.provider.settings.features.resize || vm.is_classless() {
        return Ok(Resize::None);
    }
    let class = class_of(cx, vm);
    // The VM itself says it better than its object: a resize may have ended while nobody wrote it down.
    let marked = seen.extra_config(extra_config::SIZED_BY).map(str::to_owned);
    let annotated = vm.annotations().get(annotation::LAST_RESIZED_VM_CLASS).cloned();
    let last = marked.clone().or(annotated).or_else(|| last_by_status(vm));
    let follows = vm.annotations().contains_key(annotation::SAME_VM_CLASS_RESIZE);
    let now = cx.now();
    let Some(class) = class else {
        let why = format!("there is no VirtualMachineClass {}", vm.spec.class_name);
        let conditions = &mut vm.status_mut().conditions;
        mark_unknown(conditions, kind, Reason::ClassNotFound, &why, now);
        return Ok(Resize::None);
    };
    Ok(match needs_resize(last.as_deref(), &class, follows) {
        None => {
            if let Some(mark) = marked {
                note_size(vm, &class, mark);
            }
            mark_true(&mut vm.status_mut().conditions, kind, now);
            Resize::None
        }
        Some(reason) if reach != Reach::Everything && !has_size(cx, vm, seen, &class).await? => {
            let why = "the VM must be powered off to be resized";
            mark_false(&mut vm.status_mut().conditions, kind, reason, why, now);
            Resize::None
        }
        Some(_) => Resize::To(class),
    })
}

/// Whether the VM is as large as the class wants it: after a revert nobody knows which class it had then.
async fn has_size(
    cx: &Context,
    vm: &VirtualMachine,
    seen: &Seen,
    class: &VirtualMachineClass,
) -> Flow<bool> {
    let mut spec = VirtualMachineConfigSpec::default();
    compute(cx, vm, seen, class).await?.differences(seen, &mut spec);
    Ok(is_empty(&spec))
}

/// A crash right after the VM was asked for loses the note of its class. What this program has made is then compared with the class that it names now; what
/// came from elsewhere keeps its size.
fn last_by_status(vm: &VirtualMachine) -> Option<String> {
    let known = vm.status.as_ref().and_then(|status| status.class.as_ref());
    let is_ours = vm.annotations().contains_key(annotation::CREATED_AT_BUILD_VERSION);
    (known.is_none() && is_ours).then(|| "{}".to_owned())
}

/// By the class that it was last sized by.
fn needs_resize(last: Option<&str>, class: &VirtualMachineClass, follows: bool) -> Option<Reason> {
    let Some(last) = last else { return follows.then_some(Reason::SameClassResize) };
    let last: serde_json::Value = serde_json::from_str(last).unwrap_or_default();
    if last["name"].as_str() != Some(&class.name_any()) {
        return Some(Reason::ClassNameChanged);
    }
    let is_same = last["uid"].as_str().unwrap_or_default() == class.uid().unwrap_or_default()
        && last["generation"].as_i64() == Some(class.metadata.generation.unwrap_or_default());
    (follows && !is_same).then_some(Reason::ClassUpdated)
}

async fn compute(
    cx: &Context,
    vm: &VirtualMachine,
    seen: &Seen,
    class: &VirtualMachineClass,
) -> Flow<Compute> {
    let resources = &class.spec.policies.resources;
    let mhz = match &seen.row.pool {
        Some(pool) if resources.requests.cpu.is_some() || resources.limits.cpu.is_some() => {
            let clock = cx.provider.places.clock_of(&pool.moref()).await;
            clock.map_err(Halt::because("the cluster's clock"))?
        }
        _ => 1_000,
    };
    Compute::of(vm, Some(class), mhz).map_err(Halt::because("the class"))
}

fn note_resize(cx: &Context, vm: &mut VirtualMachine, resize: &Resize) {
    let Resize::To(class) = resize else { return };
    note_size(vm, class, sized_by(class));
    let conditions = &mut vm.status_mut().conditions;
    mark_true(conditions, ConditionType::ClassConfigurationSynced, cx.now());
}

fn note_size(vm: &mut VirtualMachine, class: &VirtualMachineClass, mark: String) {
    vm.annotations_mut().insert(annotation::LAST_RESIZED_VM_CLASS.to_owned(), mark);
    vm.status_mut().class = Some(class_reference(&class.name_any()));
}

/// The copy of the object that the VM carries.
fn backup(cx: &Context, vm: &mut VirtualMachine, seen: &Seen) -> Vec<(String, String)> {
    let is_wanted = cx.provider.settings.features.backup
        && (!vm.is_cluster_node()
            || vm.annotations().contains_key(annotation::FORCE_ENABLE_BACKUP));
    if !is_wanted {
        remove(&mut vm.status_mut().conditions, ConditionType::BackupUpToDate);
        return Vec::new();
    }
    if is_backup_paused(vm, seen) {
        let why = "the VM was restored from an older backup than its object knows";
        let (kind, conditions) = (ConditionType::BackupUpToDate, &mut vm.status_mut().conditions);
        mark_false(conditions, kind, Reason::BackupPaused, why, cx.now());
        return Vec::new();
    }
    let mut keys = backup_keys(vm, seen);
    if cx.provider.settings.features.backup_secrets {
        keys.extend(secret_keys(&secrets(cx, vm), seen));
    }
    if cx.provider.settings.features.backup_disks {
        let disks: Vec<VirtualDevice> = seen.disks().cloned().collect();
        let known = |key: &str| seen.extra_config(key).map(str::to_owned);
        keys.extend(disk_keys(vm, &disks, known, |claim| access_modes(cx, vm, claim)));
        let version = extra_config::BACKUP_VERSION;
        if keys.is_empty() {
            note_version(vm, seen.extra_config(version));
        } else {
            keys.push((version.to_owned(), cx.now().as_millisecond().to_string()));
        }
    }
    if keys.is_empty() {
        mark_true(&mut vm.status_mut().conditions, ConditionType::BackupUpToDate, cx.now());
    }
    keys
}

fn access_modes(cx: &Context, vm: &VirtualMachine, claim: &str) -> Vec<String> {
    let claim = cx.stores.claims.get(&Key::new(&vm.namespace().unwrap_or_default(), claim));
    let spec = claim.and_then(|claim| claim.spec.clone());
    spec.and_then(|spec| spec.access_modes).unwrap_or_default()
}

/// Those that the bootstrap uses, by name.
fn secrets(cx: &Context, vm: &VirtualMachine) -> Vec<std::sync::Arc<Secret>> {
    let namespace = vm.namespace().unwrap_or_default();
    let names: BTreeSet<String> = secrets_of(vm).into_iter().map(|secret| secret.name).collect();
    names.iter().filter_map(|name| cx.stores.secrets.get(&Key::new(&namespace, name))).collect()
}

/// A configuration with a new copy was refused, so the copy that the VM carries is an old one.
pub(super) fn note_failed_backup(cx: &Context, vm: &mut VirtualMachine, seen: &Seen, why: &str) {
    if !backup(cx, vm, seen).is_empty() {
        let (kind, conditions) = (ConditionType::BackupUpToDate, &mut vm.status_mut().conditions);
        mark_false(conditions, kind, Reason::BackupFailed, why, cx.now());
    }
}

/// A VM goes on only with all of its volumes.
fn volumes_attached(vm: &VirtualMachine) -> Flow {
    let attached = |name: &str| {
        let volumes =
            vm.status.as_ref().map(|status| status.volumes.as_slice()).unwrap_or_default();
        volumes.iter().any(|volume| volume.name == name && volume.attached)
    };
    let claims = vm.spec.volumes.iter().filter(|volume| volume.claim_name().is_some());
    match claims.into_iter().find(|volume| !attached(&volume.name)) {
        None => Ok(()),
        // The driver does not call when it has attached one.
        Some(volume) => {
            tracing::debug!(volume = %volume.name, "volume {} is not attached", volume.name);
            Err(Halt::Requeue(super::volumes::pause(vm)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::VirtualMachineClassSpec;

    #[test]
    fn a_vm_is_resized_when_its_class_is_another_or_it_follows_its_class() {
        let mut class = VirtualMachineClass::new("small", VirtualMachineClassSpec::default());
        class.metadata.uid = Some("u".into());
        class.metadata.generation = Some(2);
        let at = |name: &str, generation: i64| {
            Some(format!(r#"{{"name":"{name}","uid":"u","generation":{generation}}}"#))
        };
        for (case, last, follows, want) in [
            ("never sized", None, false, None),
            ("never sized, follows", None, true, Some(Reason::SameClassResize)),
            ("the same", at("small", 2), true, None),
            ("edited", at("small", 1), false, None),
            ("edited, follows", at("small", 1), true, Some(Reason::ClassUpdated)),
            ("another", at("large", 2), false, Some(Reason::ClassNameChanged)),
        ] {
            assert_eq!(needs_resize(last.as_deref(), &class, follows), want, "{case}");
        }
    }
}
