//! From a descriptor to the configuration of a VM.

use std::collections::HashMap;

use roost_vim_wire::types::{
    OptionValue, VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecFileOperation as FileOperation,
    VirtualDeviceConfigSpecOperation as Operation, VirtualDeviceConnectInfo,
    VirtualMachineBootOptions, VirtualMachineConfigSpec,
};
use roost_vim_wire::{MoRef, Value};

use super::envelope::{Envelope, HardwareItem, Property};
use super::properties::v_app_config;
use crate::inventory::Inventory;

/// How disks are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Provisioning {
    #[default]
    Thin,
    Thick,
    EagerZeroed,
}

impl Provisioning {
    /// `None`: there is no such provisioning, or none on the datastores of a host.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "" | "thin" | "sparse" | "seSparse" => Self::Thin,
            "thick" | "flat" => Self::Thick,
            "eagerZeroedThick" => Self::EagerZeroed,
            _ => return None,
        })
    }
}

/// What whoever deploys decides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Choices {
    pub name: String,
    pub annotation: Option<String>,
    /// Network of the descriptor, network of the inventory.
    pub networks: Vec<(String, MoRef)>,
    /// Where cards go that nobody mapped.
    pub default_network: Option<MoRef>,
    pub provisioning: Provisioning,
    /// By the property's key.
    pub properties: Vec<(String, String)>,
    pub option: Option<String>,
}

impl Choices {
    fn value(&self, property: &Property) -> Option<String> {
        let is_meant = |key: &str| key == property.key() || key == property.id;
        let found = self.properties.iter().find(|(key, _)| is_meant(key));
        found.map(|(_, value)| value.clone())
    }
}

/// A disk that is filled from a file of the package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskUpload {
    /// The key of the device in the configuration, which is negative until the VM exists.
    pub device: i32,
    /// The disk's or image's own key, as `/<system>/VirtualLsiLogicController0:0` names it.
    pub import_key: String,
    pub href: String,
    pub size: i64,
    pub is_disk: bool,
}

/// The configuration of a VM that is what the descriptor says, and the files that fill its disks.
pub(crate) fn config_spec(
    inventory: &Inventory,
    envelope: &Envelope,
    choices: &Choices,
) -> (VirtualMachineConfigSpec, Vec<DiskUpload>) {
    let option = choices.option.as_deref().or_else(|| envelope.default_option());
    let items = envelope.items.iter().filter(|item| match (&item.option, option) {
        (None, _) => true,
        (Some(only), Some(option)) => only.split_whitespace().any(|word| word == option),
        (Some(_), None) => false,
    });
    let mut spec = VirtualMachineConfigSpec {
        name: Some(choices.name.clone()),
        version: envelope.version.clone(),
        guest_id: envelope.guest_id.clone(),
        annotation: choices
            .annotation
            .clone()
            .or_else(|| Some(envelope.annotation.clone()).filter(|text| !text.is_empty())),
        extra_config: envelope.extra_config.iter().map(option_value).collect(),
        v_app_config: v_app_config(envelope, |property| choices.value(property)),
        ..VirtualMachineConfigSpec::default()
    };
    for (key, value) in &envelope.config {
        settle(&mut spec, key, value);
    }
    let mut devices = Devices::new(inventory, envelope, choices);
    for item in items {
        match item.kind {
            // The last one that fits wins: those of a deployment option follow the general one.
            3 => spec.num_cpus = i32::try_from(item.quantity).ok().filter(|count| *count > 0),
            4 => spec.memory_mb = Some(item.quantity.saturating_mul(item.units) >> 20),
            _ => devices.add(item),
        }
    }
    spec.device_change = devices.changes;
    (spec, devices.uploads)
}

fn option_value((key, value): &(String, String)) -> OptionValue {
    OptionValue { key: key.clone(), value: Some(Value::string(value)) }
}

fn settle(spec: &mut VirtualMachineConfigSpec, key: &str, value: &str) {
    let is_true = Some(value.eq_ignore_ascii_case("true"));
    match key {
        "firmware" => spec.firmware = Some(value.into()),
        "cpuHotAddEnabled" => spec.cpu_hot_add_enabled = is_true,
        "cpuHotRemoveEnabled" => spec.cpu_hot_remove_enabled = is_true,
        "memoryHotAddEnabled" => spec.memory_hot_add_enabled = is_true,
        "nestedHVEnabled" => spec.nested_hv_enabled = is_true,
        "bootOptions.efiSecureBootEnabled" => {
            let options = spec.boot_options.get_or_insert_with(VirtualMachineBootOptions::default);
            options.efi_secure_boot_enabled = is_true;
        }
        _ => {}
    }
}

/// The devices so far. Keys are temporary, which is what negative ones are.
struct Devices<'a> {
    inventory: &'a Inventory,
    envelope: &'a Envelope,
    choices: &'a Choices,
    changes: Vec<VirtualDeviceConfigSpec>,
    uploads: Vec<DiskUpload>,
    /// By the item's instance: key, class and bus of a controller.
    controllers: HashMap<String, (i32, &'static str, i32)>,
    next: i32,
}

impl<'a> Devices<'a> {
    fn new(inventory: &'a Inventory, envelope: &'a Envelope, choices: &'a Choices) -> Self {
        Self {
            inventory,
            envelope,
            choices,
            changes: Vec::new(),
            uploads: Vec::new(),
            controllers: HashMap::new(),
            next: -200,
        }
    }

    fn key(&mut self) -> i32 {
        self.next -= 1;
        self.next
    }

    fn push(&mut self, device: VirtualDevice, file: Option<FileOperation>) {
        self.changes.push(VirtualDeviceConfigSpec {
            operation: Some(Operation::Add),
            file_operation: file,
            device,
            ..Default::default()
        });
    }

    fn add(&mut self, item: &HardwareItem) {
        match item.kind {
            5 => self.controller(item, "VirtualIDEController"),
            6 => self.controller(item, scsi_class(&item.sub_kind)),
            20 if item.sub_kind.to_ascii_lowercase().contains("nvme") => {
                self.controller(item, "VirtualNVMEController");
            }
            20 => self.controller(item, "VirtualAHCIController"),
            10 => self.card(item),
            15 | 16 => self.drive(item),
            17 => self.disk(item),
            _ => {}
        }
    }

    fn controller(&mut self, item: &HardwareItem, class: &'static str) {
        let key = self.key();
        let bus = item.bus.unwrap_or(0);
        self.controllers.insert(item.instance.clone(), (key, class, bus));
        let device = VirtualDevice { key, bus_number: Some(bus), ..VirtualDevice::of(class) };
        self.push(device, None);
    }

    /// The controller of an item, or a SCSI one that is made for those without.
    fn parent_of(&mut self, item: &HardwareItem) -> (i32, &'static str, i32) {
        if let Some(found) = item.parent.as_ref().and_then(|parent| self.controllers.get(parent)) {
            return *found;
        }
        let own = HardwareItem { instance: "none".into(), ..HardwareItem::default() };
        if !self.controllers.contains_key("none") {
            self.controller(&own, "ParaVirtualSCSIController");
        }
        self.controllers.get("none").copied().unwrap_or((-1, "ParaVirtualSCSIController", 0))
    }

    fn disk(&mut self, item: &HardwareItem) {
        let host = item.host_resource.first().map(String::as_str).unwrap_or_default();
        let id = host.rsplit('/').next().unwrap_or_default();
        let Some(info) = self.envelope.disks.iter().find(|disk| disk.id == id) else { return };
        let (controller, class, bus) = self.parent_of(item);
        let unit = item.address_on_parent.unwrap_or_else(|| self.free_unit(controller));
        let key = self.key();
        let (thin, eager) = match self.choices.provisioning {
            Provisioning::Thin => (true, false),
            Provisioning::Thick => (false, false),
            Provisioning::EagerZeroed => (false, true),
        };
        let capacity_kb = (info.capacity >> 10).max(1024);
        let device = VirtualDevice {
            key,
            controller_key: Some(controller),
            unit_number: Some(unit),
            capacity_in_kb: Some(capacity_kb),
            backing: Some(VirtualDeviceBackingInfo {
                disk_mode: Some("persistent".into()),
                thin_provisioned: Some(thin),
                eagerly_scrub: Some(eager),
                file_name: Some(String::new()),
                ..VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo")
            }),
            ..VirtualDevice::of("VirtualDisk")
        };
        self.push(device, Some(FileOperation::Create));
        let file = info.file.as_deref().and_then(|id| self.envelope.file(id));
        if let Some(file) = file {
            let import_key = format!("/{}/{class}{bus}:{unit}", self.choices.name);
            self.uploads.push(DiskUpload {
                device: key,
                import_key,
                href: file.href.clone(),
                size: info.populated.unwrap_or(file.size).max(file.size),
                is_disk: true,
            });
        }
    }

    fn free_unit(&self, controller: i32) -> i32 {
        let taken: Vec<i32> = self
            .changes
            .iter()
            .filter(|change| change.device.controller_key == Some(controller))
            .filter_map(|change| change.device.unit_number)
            .collect();
        (0..64).find(|unit| *unit != 7 && !taken.contains(unit)).unwrap_or(0)
    }

    /// A CD drive; one with an image of the package gets it when the image has been sent.
    fn drive(&mut self, item: &HardwareItem) {
        let Some(&(controller, class, bus)) =
            item.parent.as_ref().and_then(|parent| self.controllers.get(parent))
        else {
            return;
        };
        let key = self.key();
        let unit = item.address_on_parent.unwrap_or_else(|| self.free_unit(controller));
        let device = VirtualDevice {
            key,
            controller_key: Some(controller),
            unit_number: Some(unit),
            backing: Some(VirtualDeviceBackingInfo {
                device_name: Some(String::new()),
                use_auto_detect: Some(false),
                ..VirtualDeviceBackingInfo::of("VirtualCdromRemotePassthroughBackingInfo")
            }),
            connectable: Some(VirtualDeviceConnectInfo {
                allow_guest_control: true,
                ..VirtualDeviceConnectInfo::default()
            }),
            ..VirtualDevice::of("VirtualCdrom")
        };
        self.push(device, None);
        let image = item.host_resource.first().and_then(|host| host.rsplit('/').next());
        if let Some(file) = image.and_then(|id| self.envelope.file(id)) {
            self.uploads.push(DiskUpload {
                device: key,
                import_key: format!("/{}/{class}{bus}:{unit}", self.choices.name),
                href: file.href.clone(),
                size: file.size,
                is_disk: false,
            });
        }
    }

    fn card(&mut self, item: &HardwareItem) {
        let wanted = item.connection.as_deref().unwrap_or_default();
        let mapped = self.choices.networks.iter().find(|(name, _)| name == wanted);
        let network = mapped.map(|(_, network)| network).or(self.choices.default_network.as_ref());
        let Some(backing) = network.and_then(|network| self.inventory.nic_backing(network)) else {
            return;
        };
        let key = self.key();
        let device = VirtualDevice {
            key,
            backing: Some(backing),
            connectable: Some(VirtualDeviceConnectInfo {
                start_connected: item.connects,
                allow_guest_control: true,
                connected: item.connects,
                ..VirtualDeviceConnectInfo::default()
            }),
            address_type: Some("generated".into()),
            ..VirtualDevice::of(card_class(&item.sub_kind))
        };
        self.push(device, None);
    }
}

fn scsi_class(sub_kind: &str) -> &'static str {
    match sub_kind.to_ascii_lowercase().as_str() {
        "virtualscsi" => "ParaVirtualSCSIController",
        "lsilogicsas" => "VirtualLsiLogicSASController",
        "buslogic" => "VirtualBusLogicController",
        _ => "VirtualLsiLogicController",
    }
}

fn card_class(sub_kind: &str) -> &'static str {
    match sub_kind.to_ascii_lowercase().as_str() {
        "e1000" => "VirtualE1000",
        "e1000e" => "VirtualE1000e",
        "pcnet32" => "VirtualPCNet32",
        "vmxnet2" => "VirtualVmxnet2",
        _ => "VirtualVmxnet3",
    }
}
