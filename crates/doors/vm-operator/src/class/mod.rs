//! What a class says about hardware beyond its size: the `configSpec` that a VM is made from, devices, the hardware version.

mod json;

use kube::ResourceExt as _;
use roost_vim::wire::Element;
use roost_vim::wire::types::{
    OptionValue, VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecOperation, VirtualMachineConfigSpec,
};

use crate::api::names::{annotation, extra_config};
use crate::api::{ClassDevices, VirtualMachine, VirtualMachineClass, VirtualMachineClassSpec};

/// What a VM of a class begins with: the class's `configSpec`, without what belongs to one VM only (its identities, guest, files, policy and disks), or else
/// the PCI devices that the class lists. Size and reservations are not in it.
pub fn base_config(class: &VirtualMachineClassSpec) -> VirtualMachineConfigSpec {
    let Some(json) = &class.config_spec else {
        return VirtualMachineConfigSpec {
            device_change: class.hardware.devices.iter().flat_map(pci_devices).collect(),
            ..VirtualMachineConfigSpec::default()
        };
    };
    let mut spec = json::config_spec(json);
    spec.change_version = None;
    spec.name = None;
    spec.uuid = None;
    spec.instance_uuid = None;
    spec.guest_id = None;
    spec.files = None;
    spec.vm_profile = Vec::new();
    spec.device_change.retain(|change| !change.device.is_disk() || is_raw_disk(&change.device));
    spec
}

/// A disk that is a LUN stays: nobody else can say which.
fn is_raw_disk(device: &VirtualDevice) -> bool {
    device.backing.as_ref().is_some_and(|of| of.class.starts_with("VirtualDiskRawDiskMapping"))
}

fn pci_devices(devices: &ClassDevices) -> Vec<VirtualDeviceConfigSpec> {
    let vgpus = devices.vgpu_devices.iter().map(|vgpu| VirtualDeviceBackingInfo {
        rest: vec![Element::leaf("vgpu", vgpu.profile_name.clone())],
        ..VirtualDeviceBackingInfo::of("VirtualPCIPassthroughVmiopBackingInfo")
    });
    let direct = devices.dynamic_direct_path_io_devices.iter().map(|device| {
        let allowed = Element::new("allowedDevice")
            .with(Element::leaf("vendorId", device.vendor_id.to_string()))
            .with(Element::leaf("deviceId", device.device_id.to_string()));
        let mut rest = vec![allowed];
        if !device.custom_label.is_empty() {
            rest.push(Element::leaf("customLabel", device.custom_label.clone()));
        }
        VirtualDeviceBackingInfo {
            device_name: Some(String::new()),
            rest,
            ..VirtualDeviceBackingInfo::of("VirtualPCIPassthroughDynamicBackingInfo")
        }
    });
    // Keys of devices that do not exist yet are negative and differ.
    let devices = vgpus.chain(direct).zip((0_i32..).map(|index| -200 - index));
    let add = |(backing, key)| VirtualDeviceConfigSpec {
        operation: Some(VirtualDeviceConfigSpecOperation::Add),
        device: VirtualDevice {
            key,
            backing: Some(backing),
            ..VirtualDevice::of("VirtualPCIPassthrough")
        },
        ..VirtualDeviceConfigSpec::default()
    };
    devices.map(add).collect()
}

pub fn has_passthrough(spec: &VirtualMachineConfigSpec) -> bool {
    spec.device_change.iter().any(|change| change.device.class == "VirtualPCIPassthrough")
}

pub fn has_vtpm(spec: &VirtualMachineConfigSpec) -> bool {
    spec.device_change.iter().any(|change| change.device.class == "VirtualTPM")
}

/// The number in `vmx-19`.
pub fn hardware_version_of(text: &str) -> Option<i32> {
    text.strip_prefix("vmx-")?.parse().ok()
}

/// The hardware version of a new VM; `None` leaves it to the platform. A class that names one is followed, unless the object wants a newer one. Else the image's counts, raised to
/// what the devices need.
pub fn hardware_version(
    vm: &VirtualMachine,
    base: &VirtualMachineConfigSpec,
    image_version: Option<i32>,
) -> Option<i32> {
    let wanted = vm.spec.min_hardware_version;
    let version = if let Some(class) = base.version.as_deref().and_then(hardware_version_of) {
        wanted.max(class)
    } else {
        let has_claims = vm.spec.volumes.iter().any(|volume| volume.claim_name().is_some());
        let floors = [(has_passthrough(base), 17), (has_claims, 15), (has_vtpm(base), 14)];
        let floor =
            floors.into_iter().find(|(is_needed, _)| *is_needed).map_or(0, |(_, floor)| floor);
        wanted.max(image_version.unwrap_or(0)).max(floor)
    };
    (version > 0).then_some(version)
}

/// The guest's id: the object's, else the image's, else none in particular.
pub fn guest_id(vm: &VirtualMachine, image: &str) -> String {
    let known = [vm.spec.guest_id.as_str(), image].into_iter().find(|id| !id.is_empty());
    known.filter(|id| *id != "otherGuest64").unwrap_or("otherGuest").to_owned()
}

/// The class that a VM has its size from, as the annotation and the VM have it.
pub fn sized_by(class: &VirtualMachineClass) -> String {
    serde_json::json!({
        "name": class.name_any(),
        "uid": class.uid().unwrap_or_default(),
        "generation": class.metadata.generation.unwrap_or_default(),
    })
    .to_string()
}

/// How much address space passthrough devices get without a word on it.
const MMIO_GIB: &str = "512";

/// The keys of a new VM: its owner's name above all, the class's before the global ones. Nothing in it is empty.
pub fn extra_config(
    vm: &VirtualMachine,
    base: &VirtualMachineConfigSpec,
    global: &[(String, String)],
) -> Vec<(String, String)> {
    let mut keys: Vec<(String, String)> = Vec::new();
    let mut add = |key: &str, value: &str| {
        if !value.is_empty() && !keys.iter().any(|(known, _)| known == key) {
            keys.push((key.to_owned(), value.to_owned()));
        }
    };
    add(extra_config::NAMESPACED_NAME, &vm.namespaced_name());
    let annotations = vm.metadata.annotations.as_ref();
    let mmio = annotations.and_then(|all| all.get(annotation::PCI_PASSTHRU_MMIO_SIZE));
    for option in &base.extra_config {
        add(&option.key, &text_of(option));
    }
    if has_passthrough(base) {
        let size = mmio.map_or(MMIO_GIB, String::as_str);
        if size != "0" {
            add(extra_config::USE_64BIT_MMIO, "TRUE");
            add(extra_config::MMIO_SIZE_GB, size);
        }
    }
    for (key, value) in global {
        add(key, value);
    }
    add(extra_config::DISK_ENABLE_UUID, "TRUE");
    add(extra_config::IGNORE_TOOLS_CHECK, "TRUE");
    keys
}

fn text_of(option: &OptionValue) -> String {
    option.value.as_ref().and_then(|value| value.as_str()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
