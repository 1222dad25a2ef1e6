//! Cloning a template: one request that carries everything, so that the VM is attributable from its first instant.

use roost_vim_wire::MoRef;
use roost_vim_wire::methods::CloneVmTask;
use roost_vim_wire::types::{
    Hidden, ToolsConfigInfo, VirtualMachineCloneSpec, VirtualMachineConfigSpec,
    VirtualMachineRelocateSpec,
};

use super::customize::{Customization, CustomizationError};
use super::error::{Step, VmError};
use super::make::{Made, Namesake};
use super::options;
use super::template::TemplateFacts;
use crate::{Client, DeviceError, NetworkBacking, grow_disk, move_nic};

/// How the disks of a clone come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskCopy {
    /// Copied whole.
    #[default]
    Full,
    /// Copies the top-most disk file and shares its parents. Without a parent this is a full copy, and nothing says so.
    ShareParents,
    /// An empty child on top of a snapshot's disk: the snapshot that the request names, or the template's current one.
    NewChild,
}

/// A clone to be made. [`CloneVm::new`] leaves everything as the template has it.
#[derive(Debug, Clone, PartialEq)]
pub struct CloneVm {
    pub folder: MoRef,
    pub name: String,
    /// Templates have none of their own, so that a clone must name one.
    pub pool: MoRef,
    /// Where the template's files are if not set.
    pub datastore: Option<MoRef>,
    pub host: Option<MoRef>,
    pub disks: DiskCopy,
    /// Clones that state instead of the present one.
    pub snapshot: Option<MoRef>,
    pub annotation: Option<String>,
    pub cpus: Option<i32>,
    pub memory_mb: Option<i64>,
    /// Of the first disk. It can only grow, and not where it is shared with the template.
    pub disk_bytes: Option<u64>,
    /// Puts the first network card there; the card's class stays, its MAC address is new.
    pub network: Option<NetworkBacking>,
    pub extra_config: Vec<(String, Hidden)>,
    pub customization: Option<Customization>,
    /// Whether the guest's tools run their script after power on.
    pub tools_after_power_on: Option<bool>,
    /// Part of the task: if powering on fails the task fails, although the VM then exists.
    pub power_on: bool,
}

/// Why a clone cannot be asked for as wished.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CloneSpecError {
    #[error("template {template} has no snapshot that a linked clone could stand on")]
    NoSnapshot { template: String },
    #[error("template {template} has no network card")]
    NoNic { template: String },
    #[error("template {template} has no disk")]
    NoDisk { template: String },
    #[error("a disk that is shared with template {template} cannot grow")]
    SharedDiskGrowth { template: String },
    #[error("the first disk")]
    Disk { source: DeviceError },
    #[error("the customization")]
    Customization { source: CustomizationError },
}

impl CloneVm {
    pub fn new(folder: MoRef, name: impl Into<String>, pool: MoRef) -> Self {
        Self {
            folder,
            name: name.into(),
            pool,
            datastore: None,
            host: None,
            disks: DiskCopy::Full,
            snapshot: None,
            annotation: None,
            cpus: None,
            memory_mb: None,
            disk_bytes: None,
            network: None,
            extra_config: Vec::new(),
            customization: None,
            tools_after_power_on: None,
            power_on: false,
        }
    }

    /// The request as it goes to the server. The network card changes in the location, where the server wants it; everything
    /// else that differs from the template is in the configuration.
    pub fn spec(
        &self,
        template: &TemplateFacts,
    ) -> Result<VirtualMachineCloneSpec, CloneSpecError> {
        let template_name = || template.name.clone();
        let card = match &self.network {
            Some(network) => {
                let card = template
                    .nics
                    .first()
                    .ok_or_else(|| CloneSpecError::NoNic { template: template_name() })?;
                Some(move_nic(card, network))
            }
            None => None,
        };
        let snapshot = match self.disks {
            DiskCopy::NewChild => {
                let snapshot = self.snapshot.clone().or_else(|| template.current_snapshot.clone());
                Some(
                    snapshot
                        .ok_or_else(|| CloneSpecError::NoSnapshot { template: template_name() })?,
                )
            }
            DiskCopy::Full | DiskCopy::ShareParents => self.snapshot.clone(),
        };
        let customization = self
            .customization
            .as_ref()
            .map(|customization| customization.spec(template.nics.len()))
            .transpose();
        Ok(VirtualMachineCloneSpec {
            location: VirtualMachineRelocateSpec {
                datastore: self.datastore.clone(),
                disk_move_type: self.disk_move_type().map(Into::into),
                pool: Some(self.pool.clone()),
                host: self.host.clone(),
                device_change: card.into_iter().collect(),
                ..Default::default()
            },
            template: false,
            config: self.config(template)?,
            customization: customization
                .map_err(|source| CloneSpecError::Customization { source })?,
            power_on: self.power_on,
            snapshot,
            memory: None,
        })
    }

    fn disk_move_type(&self) -> Option<&'static str> {
        match self.disks {
            DiskCopy::Full => None,
            DiskCopy::ShareParents => Some("moveChildMostDiskBacking"),
            DiskCopy::NewChild => Some("createNewChildDiskBacking"),
        }
    }

    fn config(
        &self,
        template: &TemplateFacts,
    ) -> Result<Option<VirtualMachineConfigSpec>, CloneSpecError> {
        let tools = self
            .tools_after_power_on
            .map(|run| ToolsConfigInfo { after_power_on: Some(run), ..Default::default() });
        let config = VirtualMachineConfigSpec {
            annotation: self.annotation.clone(),
            tools,
            num_cpus: self.cpus,
            memory_mb: self.memory_mb,
            device_change: self.disk_change(template)?.into_iter().collect(),
            extra_config: options(&self.extra_config),
            ..Default::default()
        };
        Ok((config != VirtualMachineConfigSpec::default()).then_some(config))
    }

    fn disk_change(
        &self,
        template: &TemplateFacts,
    ) -> Result<Option<roost_vim_wire::types::VirtualDeviceConfigSpec>, CloneSpecError> {
        let Some(bytes) = self.disk_bytes else { return Ok(None) };
        let template_name = || template.name.clone();
        let disk = template
            .first_disk()
            .ok_or_else(|| CloneSpecError::NoDisk { template: template_name() })?;
        let change = grow_disk(disk, bytes).map_err(|source| CloneSpecError::Disk { source })?;
        let is_shared = match self.disks {
            DiskCopy::Full => false,
            DiskCopy::ShareParents => template.has_parent_disk(),
            DiskCopy::NewChild => true,
        };
        if change.is_some() && is_shared {
            return Err(CloneSpecError::SharedDiskGrowth { template: template_name() });
        }
        Ok(change)
    }

    fn call(&self, template: &TemplateFacts) -> Result<CloneVmTask, VmError> {
        let spec = self
            .spec(template)
            .map_err(|source| VmError::CloneSpec { name: self.name.clone(), source })?;
        Ok(CloneVmTask {
            this: template.vm.clone(),
            folder: self.folder.clone(),
            name: self.name.clone(),
            spec,
        })
    }
}

impl Client {
    /// Clones a template and waits for the VM. After a lost reply the error says that the outcome is unknown; see
    /// [`Client::clone_or_adopt`] for the call that finds out.
    pub async fn clone_vm(
        &self,
        template: &TemplateFacts,
        request: &CloneVm,
    ) -> Result<MoRef, VmError> {
        self.make(Step::Clone, &request.name, &request.call(template)?).await
    }

    /// Clones a template, or returns the VM that this request has made already. Safe to repeat, also after a crash.
    ///
    /// When the name is taken or a reply is lost, the VM of that name in the folder is looked at before anything is sent
    /// again: if `is_ours` recognises it, usually by its annotation, it is the result; otherwise the name is taken.
    pub async fn clone_or_adopt(
        &self,
        template: &TemplateFacts,
        request: &CloneVm,
        is_ours: impl Fn(&Namesake) -> bool,
    ) -> Result<Made, VmError> {
        let call = request.call(template)?;
        self.make_or_adopt(Step::Clone, &request.folder, &request.name, &call, is_ours).await
    }
}

#[cfg(test)]
mod tests;
