//! A VM as the fleet shows it: the row of the mirror and the close-up of the same VM. Nothing here asks the server.

use std::sync::Arc;

use roost_fleet::{Connection, Detail, Power, Vm, VmId};
use roost_vim::wire::types::{
    GuestInfoCustomizationInfo, ManagedByInfo, ResourceAllocationInfo, VirtualDevice,
    VirtualHardware, VirtualMachineBootOptions,
};
use roost_vim::wire::{Element, Value};

use crate::api::names::extra_config;

#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) row: Arc<Vm>,
    pub(crate) detail: Arc<Detail>,
}

impl Seen {
    pub(crate) fn id(&self) -> &VmId {
        &self.row.id
    }

    pub(crate) fn is_connected(&self) -> bool {
        matches!(self.row.connection, Connection::Connected | Connection::Unknown)
    }

    pub(crate) fn power(&self) -> Power {
        self.row.power
    }

    pub(crate) fn hardware(&self) -> Option<&VirtualHardware> {
        self.detail.hardware()
    }

    pub(crate) fn devices(&self) -> &[VirtualDevice] {
        self.detail.devices()
    }

    pub(crate) fn nics(&self) -> impl Iterator<Item = &VirtualDevice> {
        self.devices().iter().filter(|device| device.is_nic())
    }

    pub(crate) fn disks(&self) -> impl Iterator<Item = &VirtualDevice> {
        self.devices().iter().filter(|device| device.is_disk())
    }

    pub(crate) fn extra_config(&self, key: &str) -> Option<&str> {
        self.detail.extra_config(key).filter(|value| !value.is_empty())
    }

    /// An administrator has paused it in vCenter.
    pub(crate) fn is_paused(&self) -> bool {
        self.extra_config(extra_config::PAUSE).is_some_and(extra_config::is_true)
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.detail.properties().str(path)
    }

    pub(crate) fn flag(&self, path: &str) -> Option<bool> {
        self.detail.properties().bool(path)
    }

    /// `vmx-21` is 21.
    pub(crate) fn hardware_version(&self) -> Option<i32> {
        self.text("config.version")?.strip_prefix("vmx-")?.parse().ok()
    }

    pub(crate) fn cpu_allocation(&self) -> Option<&ResourceAllocationInfo> {
        self.detail.properties().data("config.cpuAllocation")
    }

    pub(crate) fn memory_allocation(&self) -> Option<&ResourceAllocationInfo> {
        self.detail.properties().data("config.memoryAllocation")
    }

    pub(crate) fn boot_options(&self) -> Option<&VirtualMachineBootOptions> {
        self.detail.properties().data("config.bootOptions")
    }

    pub(crate) fn customization(&self) -> Option<&GuestInfoCustomizationInfo> {
        self.detail.properties().data("guest.customizationInfo")
    }

    /// The key of the extension that manages it.
    pub(crate) fn managed_by(&self) -> Option<String> {
        let value = self.detail.properties().get("config.managedBy")?;
        match value.as_data::<ManagedByInfo>() {
            Some(info) => Some(info.extension_key.clone()),
            None => Some(value.get("extensionKey")?.as_str()?.to_owned()),
        }
    }

    /// The properties that an OVF template brought along, and how the guest reads them.
    pub(crate) fn v_app_config(&self) -> Option<&Element> {
        match self.detail.properties().get("config.vAppConfig")? {
            Value::Other(config) => Some(config),
            _ => None,
        }
    }

    pub(crate) fn host(&self) -> Option<String> {
        Some(self.detail.properties().moref("runtime.host")?.id.to_string())
    }
}
