//! What is filled in. Nothing that is set is changed.

use jiff::Timestamp;
use kube::ResourceExt;

use super::{AdmissionSettings, Problems, Rights};
use crate::api::names::annotation;
use crate::api::vm::{BusController, Interface, InterfaceNetwork, PowerState};
use crate::api::{VERSION, VirtualMachine, VirtualMachineImage};
use crate::images::{NamedImage, resolve_image};

/// Which of a VM's two identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    Instance,
    Bios,
}

/// What defaulting needs to know.
pub struct Defaults<'a> {
    pub settings: &'a AdmissionSettings,
    pub own_images: &'a [NamedImage],
    pub cluster_images: &'a [NamedImage],
    /// New identities: random in a webhook; where none runs, those that the same object always gets.
    pub uuid: &'a dyn Fn(Identity) -> String,
}

impl std::fmt::Debug for Defaults<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Defaults").field("settings", self.settings).finish_non_exhaustive()
    }
}

/// Fills in a new object. Returns why it cannot be.
pub fn default_on_create(
    vm: &mut VirtualMachine,
    defaults: &Defaults<'_>,
    rights: Rights,
) -> Vec<String> {
    let mut problems = Problems::default();
    if rights == Rights::Ordinary && !vm.spec.instance_uuid.is_empty() {
        problems.at("spec.instanceUUID", "only privileged users may set it");
    }
    vm.spec.power_state.get_or_insert(PowerState::PoweredOn);
    default_network(vm, &defaults.settings.default_network);
    default_cdroms(vm);
    default_image(vm, defaults, &mut problems);
    if vm.spec.instance_uuid.is_empty() {
        vm.spec.instance_uuid = (defaults.uuid)(Identity::Instance);
    }
    if vm.spec.bios_uuid.is_empty() {
        vm.spec.bios_uuid = (defaults.uuid)(Identity::Bios);
    }
    let bios_uuid = vm.spec.bios_uuid.clone();
    let cloud_init = vm.spec.bootstrap.as_mut().and_then(|of| of.cloud_init.as_mut());
    if let Some(cloud_init) = cloud_init.filter(|of| of.instance_id.is_empty()) {
        cloud_init.instance_id = bios_uuid;
    }
    let annotations = vm.annotations_mut();
    let build = defaults.settings.build_version.clone();
    for (key, value) in [
        (annotation::CREATED_AT_BUILD_VERSION, build),
        (annotation::CREATED_AT_SCHEMA_VERSION, VERSION.to_owned()),
    ] {
        annotations.entry(key.to_owned()).or_insert(value);
    }
    let hardware = vm.spec.hardware.get_or_insert_default();
    if hardware.ide_controllers.is_empty() {
        let controller = |bus_number| BusController { bus_number, ..BusController::default() };
        hardware.ide_controllers = vec![controller(0), controller(1)];
    }
    problems.into_reasons()
}

fn default_network(vm: &mut VirtualMachine, usual: &str) {
    let has_default = !vm.annotations().contains_key(annotation::NO_DEFAULT_NIC);
    if vm.spec.network.is_none() && !has_default {
        return;
    }
    let network = vm.spec.network.get_or_insert_default();
    if network.disabled {
        return;
    }
    if network.interfaces.is_empty() && has_default {
        network.interfaces.push(Interface { name: "eth0".to_owned(), ..Interface::default() });
    }
    for interface in &mut network.interfaces {
        let of = interface.network.get_or_insert_default();
        if of.name.is_empty() {
            *of = InterfaceNetwork { name: usual.to_owned(), ..std::mem::take(of) };
        }
    }
}

fn default_cdroms(vm: &mut VirtualMachine) {
    for cdrom in vm.spec.hardware.iter_mut().flat_map(|hardware| &mut hardware.cdrom) {
        if cdrom.image.kind.is_empty() {
            VirtualMachineImage::KIND.clone_into(&mut cdrom.image.kind);
        }
    }
}

fn default_image(vm: &mut VirtualMachine, defaults: &Defaults<'_>, problems: &mut Problems) {
    if vm.spec.image.is_none() && vm.spec.image_name.is_empty() {
        let first = vm.spec.hardware.as_ref().and_then(|hardware| hardware.cdrom.first());
        vm.spec.image_name = first.map(|cdrom| cdrom.image.name.clone()).unwrap_or_default();
    }
    if vm.spec.image_name.is_empty() {
        return;
    }
    match (
        &vm.spec.image,
        resolve_image(&vm.spec.image_name, defaults.own_images, defaults.cluster_images),
    ) {
        (None, Ok(image)) => vm.spec.image = Some(image),
        (None, Err(error)) => problems.at("spec.imageName", error),
        (Some(image), Ok(found)) if *image != found => {
            problems.at("spec.imageName", "must refer to the same resource as spec.image");
        }
        // An image that is named by its object does not need a name that is found.
        (Some(_), _) => {}
    }
}

/// What a change means beyond its words: a restart, a resize, a power state that is wanted at once.
pub fn default_on_update(
    vm: &mut VirtualMachine,
    old: &VirtualMachine,
    now: Timestamp,
    rights: Rights,
) -> Vec<String> {
    let mut problems = Problems::default();
    next_restart_time(vm, old, now, &mut problems);
    if !old.spec.class_name.is_empty() && vm.spec.class_name != old.spec.class_name {
        let key = annotation::LAST_RESIZED_VM_CLASS;
        if !vm.annotations().contains_key(key) {
            let last = serde_json::json!({"name": old.spec.class_name}).to_string();
            vm.annotations_mut().insert(key.to_owned(), last);
        }
    }
    if rights == Rights::Ordinary && vm.spec.power_state != old.spec.power_state {
        vm.annotations_mut().remove(annotation::APPLY_POWER_STATE_TIME);
    }
    if vm.metadata.annotations.as_ref().is_some_and(std::collections::BTreeMap::is_empty) {
        vm.metadata.annotations = None;
    }
    problems.into_reasons()
}

fn next_restart_time(
    vm: &mut VirtualMachine,
    old: &VirtualMachine,
    now: Timestamp,
    problems: &mut Problems,
) {
    let (wanted, was) = (&vm.spec.next_restart_time, &old.spec.next_restart_time);
    if wanted == was {
        return;
    }
    if wanted.is_empty() {
        vm.spec.next_restart_time.clone_from(was);
    } else if !wanted.eq_ignore_ascii_case("now") {
        problems.at("spec.nextRestartTime", "may only be set to \"now\"");
    } else if old.current_power_state().or(old.spec.power_state) != Some(PowerState::PoweredOn) {
        problems.at("spec.nextRestartTime", "can only restart powered on vm");
    } else {
        vm.spec.next_restart_time = now.to_string();
    }
}
