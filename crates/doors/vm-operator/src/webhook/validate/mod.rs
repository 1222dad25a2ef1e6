//! What is refused.

mod bootstrap;
mod marks;
mod network;
mod power;
mod storage;

use kube::ResourceExt;

use super::{AdmissionSettings, Problems, Rights};
use crate::api::names::annotation;
use crate::api::vm::{BootDeviceType, ControllerSharing, Firmware, Switch};
use crate::api::{
    ClusterVirtualMachineImage, CpuMemory, VirtualMachine, VirtualMachineClass,
    VirtualMachineImage, VirtualMachineSnapshot, VirtualMachineWebConsoleRequest,
};

/// A VM as it is wanted, and as it is (`None` if it is new).
pub fn validate_vm(
    vm: &VirtualMachine,
    old: Option<&VirtualMachine>,
    rights: Rights,
    settings: &AdmissionSettings,
) -> Vec<String> {
    let mut problems = Problems::default();
    marks::check(vm, old, rights, &mut problems);
    image_and_class(vm, old, settings, &mut problems);
    stays_as_it_is(vm, old, &mut problems);
    power::check(vm, old, &mut problems);
    bootstrap::check(vm, old, &mut problems);
    network::check(vm, old, settings, &mut problems);
    storage::check(vm, old, &mut problems);
    boot_options(vm, &mut problems);
    probe(vm, &mut problems);
    snapshot_revert(vm, old, &mut problems);
    problems.into_reasons()
}

/// Marks that only privileged users may write, on objects of any kind.
pub fn protected<K: kube::Resource>(object: &K, old: Option<&K>, rights: Rights) -> Vec<String> {
    let mut problems = Problems::default();
    marks::check_protected(object, old, rights, &mut problems);
    problems.into_reasons()
}

/// Fields that are taken and not acted on.
pub fn warnings(vm: &VirtualMachine) -> Vec<String> {
    let mut all = Vec::new();
    let mut ignored = |is_set: bool, field: &str| {
        if is_set {
            all.push(format!("{field}: is kept but has no effect"));
        }
    };
    ignored(!vm.spec.policies.is_empty(), "spec.policies");
    ignored(
        vm.spec.crypto.as_ref().is_some_and(|of| !of.encryption_class_name.is_empty()),
        "spec.crypto.encryptionClassName",
    );
    ignored(vm.spec.volume_attributes_class_name.is_some(), "spec.volumeAttributesClassName");
    ignored(vm.spec.affinity.is_some(), "spec.affinity");
    all
}

fn image_and_class(
    vm: &VirtualMachine,
    old: Option<&VirtualMachine>,
    settings: &AdmissionSettings,
    problems: &mut Problems,
) {
    let is_imported = vm.annotations().contains_key(annotation::IMPORTED_VM);
    if let Some(image) = &vm.spec.image {
        let kinds = [VirtualMachineImage::KIND, ClusterVirtualMachineImage::KIND];
        problems.when(
            !kinds.contains(&image.kind.as_str()),
            "spec.image.kind",
            format!("must be one of {}", kinds.join(", ")),
        );
        problems.when(image.name.is_empty(), "spec.image.name", "is required");
    } else {
        let is_new = old.is_none() && !is_imported;
        problems.when(is_new && vm.spec.image_name.is_empty(), "spec.image", "is required");
    }
    let was_classless = old.is_some_and(VirtualMachine::is_classless);
    problems.when(
        vm.is_classless() && !is_imported && !was_classless,
        "spec.className",
        "is required",
    );
    if let Some(old) = old.filter(|old| !old.is_classless() && !settings.resize) {
        problems.when(vm.spec.class_name != old.spec.class_name, "spec.className", IMMUTABLE);
    }
}

const IMMUTABLE: &str = "field is immutable";

fn stays_as_it_is(vm: &VirtualMachine, old: Option<&VirtualMachine>, problems: &mut Problems) {
    let grouped = !vm.spec.group_name.is_empty();
    problems.when(vm.spec.affinity.is_some() && !grouped, "spec.affinity", "needs spec.groupName");
    let Some(old) = old else { return };
    let (new, old) = (&vm.spec, &old.spec);
    // What was not set may be filled in later.
    let mut text = |field: &str, was: &str, is: &str| {
        problems.when(!was.is_empty() && was != is, field, IMMUTABLE);
    };
    text("spec.imageName", &old.image_name, &new.image_name);
    text("spec.storageClass", &old.storage_class, &new.storage_class);
    text("spec.biosUUID", &old.bios_uuid, &new.bios_uuid);
    text("spec.instanceUUID", &old.instance_uuid, &new.instance_uuid);
    let policy = |reserved: &Option<crate::api::vm::Reserved>| {
        reserved.as_ref().map(|of| of.resource_policy_name.clone()).unwrap_or_default()
    };
    text("spec.reserved.resourcePolicyName", &policy(&old.reserved), &policy(&new.reserved));
    problems.when(old.image.is_some() && old.image != new.image, "spec.image", IMMUTABLE);
    problems.when(
        old.affinity.is_some() && old.affinity != new.affinity,
        "spec.affinity",
        IMMUTABLE,
    );
}

fn boot_options(vm: &VirtualMachine, problems: &mut Problems) {
    let Some(options) = &vm.spec.boot_options else { return };
    let retries = options.boot_retry.as_deref() == Some(Switch::Enabled.as_str());
    problems.when(
        options.boot_retry_delay.is_some() && !retries,
        "spec.bootOptions.bootRetryDelay",
        "needs bootRetry Enabled",
    );
    problems.when(
        options.efi_secure_boot == Some(Switch::Enabled) && options.firmware != Some(Firmware::Efi),
        "spec.bootOptions.efiSecureBoot",
        "needs firmware efi",
    );
    for (field, delay) in
        [("bootDelay", &options.boot_delay), ("bootRetryDelay", &options.boot_retry_delay)]
    {
        if let Some(Err(error)) = delay.as_ref().map(crate::api::GoDuration::parse) {
            problems.at(format!("spec.bootOptions.{field}"), error);
        }
    }
    for (index, device) in options.boot_order.iter().enumerate() {
        let name = &device.name;
        let exists = match device.type_ {
            BootDeviceType::Disk => vm.spec.volumes.iter().any(|volume| volume.name == *name),
            BootDeviceType::Network => {
                vm.spec.network.iter().flat_map(|of| &of.interfaces).any(|of| of.name == *name)
            }
            // All CD-ROM drives together are one entry.
            BootDeviceType::CdRom => true,
        };
        problems.when(
            !name.is_empty() && !exists,
            format!("spec.bootOptions.bootOrder[{index}].name"),
            format!("there is no {} {name}", device.type_),
        );
    }
}

fn probe(vm: &VirtualMachine, problems: &mut Problems) {
    let Some(probe) = &vm.spec.readiness_probe else { return };
    let actions = usize::from(probe.tcp_socket.is_some())
        + usize::from(probe.guest_heartbeat.is_some())
        + usize::from(!probe.guest_info.is_empty());
    problems.when(
        actions != 1,
        "spec.readinessProbe",
        "exactly one of tcpSocket, guestHeartbeat, guestInfo is required",
    );
}

fn snapshot_revert(vm: &VirtualMachine, old: Option<&VirtualMachine>, problems: &mut Problems) {
    let (field, wanted) = ("spec.currentSnapshotName", &vm.spec.current_snapshot_name);
    let was = old.map(|old| old.spec.current_snapshot_name.as_str());
    if wanted.is_empty() || was == Some(wanted.as_str()) {
        return;
    }
    match was {
        None => problems.at(field, "cannot be set on create"),
        Some("") => {}
        Some(_) => problems.at(field, "a snapshot revert is already in progress"),
    }
    problems.when(vm.is_cluster_node(), field, "is not supported for nodes of a cluster");
}

pub fn validate_class(
    class: &VirtualMachineClass,
    old: Option<&VirtualMachineClass>,
    rights: Rights,
) -> Vec<String> {
    let mut problems = Problems::default();
    marks::check_protected(class, old, rights, &mut problems);
    let resources = &class.spec.policies.resources;
    let field = |part: &str| format!("spec.policies.resources.requests.{part}");
    let mut ordered = |part: &str, of: fn(&CpuMemory) -> Option<&crate::api::Quantity>| {
        let (Some(request), Some(limit)) = (of(&resources.requests), of(&resources.limits)) else {
            return;
        };
        match (request.milli(), limit.milli()) {
            (Ok(request), Ok(limit)) => problems.when(
                limit != 0 && request > limit,
                field(part),
                format!("{part} request must not be larger than the {part} limit"),
            ),
            (Err(error), _) | (_, Err(error)) => problems.at(field(part), error),
        }
    };
    ordered("cpu", |of| of.cpu.as_ref());
    ordered("memory", |of| of.memory.as_ref());
    problems.into_reasons()
}

/// A VM that does not exist yet is no problem.
pub fn validate_snapshot(
    snapshot: &VirtualMachineSnapshot,
    old: Option<&VirtualMachineSnapshot>,
    vm: Option<&VirtualMachine>,
    rights: Rights,
) -> Vec<String> {
    let mut problems = Problems::default();
    marks::check_protected(snapshot, old, rights, &mut problems);
    problems.when(snapshot.spec.vm_name.is_empty(), "spec.vmName", "is required");
    if let Some(old) = old {
        let (new, old) = (&snapshot.spec, &old.spec);
        problems.when(new.vm_name != old.vm_name, "spec.vmName", IMMUTABLE);
        problems.when(new.memory != old.memory, "spec.memory", IMMUTABLE);
        problems.when(new.quiesce != old.quiesce, "spec.quiesce", IMMUTABLE);
        return problems.into_reasons();
    }
    let timeout = snapshot.spec.quiesce.as_ref().and_then(|of| of.timeout.as_ref());
    if let Some(Err(error)) = timeout.map(crate::api::GoDuration::parse) {
        problems.at("spec.quiesce.timeout", error);
    }
    if let Some(vm) = vm {
        problems.when(
            vm.is_cluster_node(),
            "spec.vmName",
            "snapshots of nodes of a cluster are not supported",
        );
        let hardware = vm.spec.hardware.iter();
        let shares = |mode: Option<ControllerSharing>| {
            mode.is_some_and(|mode| mode != ControllerSharing::None)
        };
        let is_shared =
            hardware.clone().flat_map(|of| &of.scsi_controllers).any(|of| shares(of.sharing_mode))
                || hardware.flat_map(|of| &of.nvme_controllers).any(|of| shares(of.sharing_mode));
        problems.when(
            is_shared,
            "spec.vmName",
            "snapshots of VMs with shared controllers are not supported",
        );
    }
    problems.into_reasons()
}

pub fn validate_web_console_request(
    request: &VirtualMachineWebConsoleRequest,
    old: Option<&VirtualMachineWebConsoleRequest>,
    rights: Rights,
) -> Vec<String> {
    let mut problems = Problems::default();
    marks::check_protected(request, old, rights, &mut problems);
    problems.when(request.spec.name.is_empty(), "spec.name", "is required");
    let is_key = request.spec.public_key.contains("-----BEGIN PUBLIC KEY-----");
    problems.when(!is_key, "spec.publicKey", "is no PEM block PUBLIC KEY");
    if let Some(old) = old {
        problems.when(request.spec.name != old.spec.name, "spec.name", IMMUTABLE);
        problems.when(request.spec.public_key != old.spec.public_key, "spec.publicKey", IMMUTABLE);
    }
    problems.into_reasons()
}
