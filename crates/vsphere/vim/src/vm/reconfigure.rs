use roost_vim_wire::MoRef;
use roost_vim_wire::methods::ReconfigVmTask;
use roost_vim_wire::types::{
    Hidden, ToolsConfigInfo, VirtualDevice, VirtualDeviceConfigSpec, VirtualHardware,
    VirtualMachineConfigSpec,
};

use super::error::{Step, VmError};
use super::options;
use super::run::Again;
use crate::device::edit;
use crate::{Client, Faulted, Observer};

/// Changes to a VM in one request: what is set changes, all else stays. A template takes only name and annotation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reconfigure {
    /// The `config.changeVersion` that the change was made up from: if the VM has changed since, the request fails with
    /// `ConcurrentAccess` and nothing is changed.
    pub change_version: Option<String>,
    pub name: Option<String>,
    /// Empty clears it.
    pub annotation: Option<String>,
    pub cpus: Option<i32>,
    pub cores_per_socket: Option<i32>,
    pub memory_mb: Option<i64>,
    pub memory_hot_add: Option<bool>,
    pub cpu_hot_add: Option<bool>,
    /// An empty value removes the key.
    pub extra_config: Vec<(String, Hidden)>,
    /// Made by [`grow_disk`](crate::grow_disk), [`insert_iso`](crate::insert_iso) and their like.
    pub devices: Vec<VirtualDeviceConfigSpec>,
    pub tools_after_power_on: Option<bool>,
}

impl Reconfigure {
    pub fn annotation(text: impl Into<String>) -> Self {
        Self { annotation: Some(text.into()), ..Self::default() }
    }

    /// The request as it goes to the server.
    pub fn spec(&self) -> VirtualMachineConfigSpec {
        VirtualMachineConfigSpec {
            change_version: self.change_version.clone(),
            name: self.name.clone(),
            annotation: self.annotation.clone(),
            tools: self
                .tools_after_power_on
                .map(|run| ToolsConfigInfo { after_power_on: Some(run), ..Default::default() }),
            num_cpus: self.cpus,
            num_cores_per_socket: self.cores_per_socket,
            memory_mb: self.memory_mb,
            memory_hot_add_enabled: self.memory_hot_add,
            cpu_hot_add_enabled: self.cpu_hot_add,
            device_change: self.devices.clone(),
            extra_config: options(&self.extra_config),
            ..Default::default()
        }
    }

    /// Setting a value twice is setting it once. A device that is added or removed, or a change version that the first
    /// attempt has used up, is another matter.
    fn again(&self) -> Again {
        let operation = edit(VirtualDevice::default()).operation;
        let only_edits = self.devices.iter().all(|change| change.operation == operation);
        if only_edits && self.change_version.is_none() { Again::Safe } else { Again::Unsafe }
    }
}

/// Whether a VM had its annotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Annotated {
    Already,
    /// The server had dropped it, and it has been written.
    Now,
}

impl Client {
    /// Changes a VM and waits until it is done.
    pub async fn reconfigure(&self, vm: &MoRef, change: &Reconfigure) -> Result<(), VmError> {
        let call = ReconfigVmTask { this: vm.clone(), spec: change.spec() };
        match self.run(Step::Reconfigure, vm, change.again(), &call).await {
            Ok(_) => Ok(()),
            Err(error) => Err(match (error.duplicate_object(), &change.name) {
                (Some(existing), Some(name)) => VmError::NameTaken { name: name.clone(), existing },
                _ => error,
            }),
        }
    }

    /// Makes sure that a VM has the annotation that its clone or create request carried: reads it back, and writes it where a
    /// server has dropped it, as `vcsim` does. On a vCenter this only reads.
    pub async fn ensure_annotation(&self, vm: &MoRef, wanted: &str) -> Result<Annotated, VmError> {
        let path = "config.annotation";
        let read = self.properties(vm, &[path]).await.map_err(VmError::call(Step::Read, vm))?;
        if read.str(path).unwrap_or_default() == wanted {
            return Ok(Annotated::Already);
        }
        self.reconfigure(vm, &Reconfigure::annotation(wanted)).await?;
        Ok(Annotated::Now)
    }
}

impl Observer {
    /// The devices of a VM, as they must be sent back to change one of them.
    pub async fn devices(&self, vm: &MoRef) -> Result<Vec<VirtualDevice>, VmError> {
        // The whole hardware: an array by itself would hide from us the devices whose class is new.
        let read = self
            .properties(vm, &["config.hardware"])
            .await
            .map_err(VmError::call(Step::Read, vm))?;
        let hardware = read.data::<VirtualHardware>("config.hardware");
        Ok(hardware.map(|hardware| hardware.device.clone()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::encode_request;

    use super::*;
    use crate::{BackingFile, remove_device};

    fn body(change: &Reconfigure) -> String {
        let call = ReconfigVmTask { this: MoRef::vm("vm-62"), spec: change.spec() };
        String::from_utf8(encode_request(&call, None)).unwrap()
    }

    #[test]
    fn only_what_is_set_is_sent() {
        let change = Reconfigure { cpus: Some(4), memory_mb: Some(2048), ..Reconfigure::default() };
        assert!(body(&change).contains(
            r#"<ReconfigVM_Task xmlns="urn:vim25"><_this type="VirtualMachine">vm-62</_this><spec><numCPUs>4</numCPUs><memoryMB>2048</memoryMB></spec></ReconfigVM_Task>"#
        ));
        let claim = Reconfigure {
            change_version: Some("2026-11-15T19:37:12Z".into()),
            name: Some("worker-1".into()),
            ..Reconfigure::annotation("")
        };
        assert!(body(&claim).contains(
            "<spec><changeVersion>2026-11-15T19:37:12Z</changeVersion><name>worker-1</name><annotation></annotation></spec>"
        ));
    }

    #[test]
    fn only_a_change_that_names_an_end_state_is_repeated() {
        assert_eq!(Reconfigure::annotation("a").again(), Again::Safe);
        let swap = Reconfigure { change_version: Some("1".into()), ..Reconfigure::annotation("a") };
        assert_eq!(swap.again(), Again::Unsafe);
        let removal = remove_device(&VirtualDevice::of("VirtualCdrom"), BackingFile::Keep);
        assert_eq!(
            Reconfigure { devices: vec![removal], ..Reconfigure::default() }.again(),
            Again::Unsafe
        );
        let edit = edit(VirtualDevice::of("VirtualCdrom"));
        assert_eq!(
            Reconfigure { devices: vec![edit], ..Reconfigure::default() }.again(),
            Again::Safe
        );
    }
}
