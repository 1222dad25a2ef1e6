//! The smaller verbs: rename, template or not, move, customize, upgrade; and what VMs are put into.

use roost_vim_wire::methods::{
    AcquireTicket, AddCustomFieldDef, CreateFolder, CreateResourcePool, CustomizeVmTask,
    FindExtension, MarkAsTemplate, MarkAsVirtualMachine, PromoteDisksTask, RegisterExtension,
    RelocateVmTask, RenameTask, SetField, UpgradeVmTask,
};
use roost_vim_wire::types::{
    CustomFieldDef, Hidden, ResourceAllocationInfo, ResourceConfigSpec, SharesInfo,
    VirtualMachineRelocateSpec,
};
use roost_vim_wire::{Element, MoRef, MoType, Value};

use super::customize::Customization;
use super::error::{Step, VmError};
use super::run::Again;
use crate::find::plain_name;
use crate::{CallClass, CallError, Client, Faulted, Observer, Task};

/// What opens the console of a VM, once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleTicket {
    pub ticket: Hidden,
    /// Where the console is served; the server itself if unset.
    pub host: Option<String>,
    pub port: Option<u16>,
    /// Holds the ticket.
    pub url: Option<Hidden>,
    pub thumbprint: Option<String>,
}

impl Client {
    /// Renames any object of the inventory. Succeeds when it has the name.
    pub async fn rename(&self, object: &MoRef, name: &str) -> Result<(), VmError> {
        let call = RenameTask { this: object.clone(), new_name: plain_name(name) };
        match self.run(Step::Rename, object, Again::Safe, &call).await {
            Ok(_) => Ok(()),
            Err(error) => match error.duplicate_object() {
                Some(existing) if existing == *object => Ok(()),
                Some(existing) => Err(VmError::NameTaken { name: name.into(), existing }),
                None => Err(error),
            },
        }
    }

    /// Makes a template of a VM that is off. Succeeds when it is one.
    pub async fn mark_as_template(&self, vm: &MoRef) -> Result<(), VmError> {
        let done = self.change(CallClass::Submit, &MarkAsTemplate { this: vm.clone() }).await;
        self.settle_template(Step::MarkTemplate, vm, done, true).await
    }

    /// Makes a VM of a template. Succeeds when it is one.
    pub async fn mark_as_virtual_machine(
        &self,
        vm: &MoRef,
        pool: &MoRef,
        host: Option<&MoRef>,
    ) -> Result<(), VmError> {
        let call =
            MarkAsVirtualMachine { this: vm.clone(), pool: pool.clone(), host: host.cloned() };
        let done = self.change(CallClass::Submit, &call).await;
        self.settle_template(Step::MarkVirtualMachine, vm, done, false).await
    }

    /// A server refuses to mark what is marked already, and a lost reply says nothing: one look tells for both.
    async fn settle_template(
        &self,
        step: Step,
        vm: &MoRef,
        done: Result<(), CallError>,
        wanted: bool,
    ) -> Result<(), VmError> {
        let Err(error) = done else { return Ok(()) };
        let may_be_done = error.outcome_unknown()
            || error.is_fault("InvalidState")
            || error.is_fault("NotSupported");
        if may_be_done
            && let Ok(read) = self.properties(vm, &["config.template"]).await
            && read.bool("config.template") == Some(wanted)
        {
            return Ok(());
        }
        Err(VmError::call(step, vm)(error))
    }

    /// Moves a VM to another pool, host or datastore.
    pub async fn relocate(
        &self,
        vm: &MoRef,
        to: VirtualMachineRelocateSpec,
    ) -> Result<(), VmError> {
        let call = RelocateVmTask { this: vm.clone(), spec: to, priority: None };
        self.run(Step::Relocate, vm, Again::Safe, &call).await.map(drop)
    }

    /// Sets what the guest is told at its next power on. The VM must be off.
    pub async fn customize(
        &self,
        vm: &MoRef,
        customization: &Customization,
    ) -> Result<(), VmError> {
        let cards = self.devices(vm).await?.iter().filter(|device| device.is_nic()).count();
        let spec = customization
            .spec(cards)
            .map_err(|source| VmError::Customization { target: vm.to_string(), source })?;
        let call = CustomizeVmTask { this: vm.clone(), spec };
        self.run(Step::Customize, vm, Again::Safe, &call).await.map(drop)
    }

    /// Upgrades the virtual hardware to a version such as `vmx-19`, or to the newest. Succeeds when it has it.
    pub async fn upgrade(&self, vm: &MoRef, version: Option<&str>) -> Result<(), VmError> {
        let call = UpgradeVmTask { this: vm.clone(), version: version.map(Into::into) };
        match self.run(Step::Upgrade, vm, Again::Safe, &call).await {
            Err(error) if error.is_fault("AlreadyUpgraded") => Ok(()),
            other => other.map(drop),
        }
    }

    /// Gives disks that stand on others a whole copy of their own: those with these keys, or all. Long, and can be cancelled
    /// through the task that it returns.
    pub async fn promote_disks(&self, vm: &MoRef, keys: &[i32]) -> Result<Task, VmError> {
        let devices = if keys.is_empty() { Vec::new() } else { self.devices(vm).await? };
        let disks = devices.into_iter().filter(|device| keys.contains(&device.key)).collect();
        let call = PromoteDisksTask { this: vm.clone(), unlink: true, disks };
        self.submit(&call).await.map_err(VmError::call(Step::Promote, vm))
    }

    /// A ticket for the console of a VM that is on: `webmks` and the like.
    pub async fn acquire_ticket(&self, vm: &MoRef, kind: &str) -> Result<ConsoleTicket, VmError> {
        let call = AcquireTicket { this: vm.clone(), ticket_type: kind.into() };
        let answer = self.change(CallClass::Submit, &call).await;
        let answer = answer.map_err(VmError::call(Step::AcquireTicket, vm))?;
        let text = |name: &str| answer.text_of(name).map(Into::into);
        Ok(ConsoleTicket {
            ticket: Hidden(text("ticket").unwrap_or_default()),
            host: text("host"),
            port: answer.number_of("port").and_then(|port| u16::try_from(port).ok()),
            url: text("url").map(Hidden),
            thumbprint: text("sslThumbprint"),
        })
    }

    /// Makes sure that an extension is registered, so that VMs can be marked as managed by it.
    pub async fn ensure_extension(&self, extension: Element) -> Result<(), CallError> {
        let manager = self.content().extension_manager.clone();
        let this = manager.ok_or(CallError::NoManager { manager: "extension manager" })?;
        let key = extension.text_of("key").unwrap_or_default().to_owned();
        let find = FindExtension { this: this.clone(), extension_key: key };
        match self.read(&find).await? {
            Some(_) => Ok(()),
            None => self.change(CallClass::Submit, &RegisterExtension { this, extension }).await,
        }
    }

    /// The folder of this name in another; made if it is not there.
    pub async fn ensure_folder(&self, parent: &MoRef, name: &str) -> Result<MoRef, VmError> {
        let call = CreateFolder { this: parent.clone(), name: plain_name(name) };
        let made = self.change(CallClass::Submit, &call).await;
        self.settle_container(Step::CreateFolder, parent, name, made, |kind| {
            *kind == MoType::Folder
        })
        .await
    }

    /// The resource pool of this name in another; made if it is not there, with the reservations and limits that `spec` gives.
    pub async fn ensure_resource_pool(
        &self,
        parent: &MoRef,
        name: &str,
        spec: ResourceConfigSpec,
    ) -> Result<MoRef, VmError> {
        let call = CreateResourcePool { this: parent.clone(), name: plain_name(name), spec };
        let made = self.change(CallClass::Submit, &call).await;
        self.settle_container(Step::CreatePool, parent, name, made, |kind| {
            kind.is_a("ResourcePool")
        })
        .await
    }

    async fn settle_container(
        &self,
        step: Step,
        parent: &MoRef,
        name: &str,
        made: Result<MoRef, CallError>,
        fits: impl Fn(&MoType) -> bool,
    ) -> Result<MoRef, VmError> {
        let error = match made {
            Ok(moref) => return Ok(moref),
            Err(error) => error,
        };
        if !error.outcome_unknown() && !error.is_fault("DuplicateName") {
            return Err(VmError::call(step, &name)(error));
        }
        let existing = match error.duplicate_object() {
            Some(existing) => Some(existing),
            None => {
                self.child_named(parent, name).await.map_err(VmError::call(Step::LookUp, &name))?
            }
        };
        match existing {
            Some(existing) if fits(&existing.kind) => Ok(existing),
            Some(existing) => Err(VmError::NameTaken { name: name.into(), existing }),
            None => Err(VmError::call(step, &name)(error)),
        }
    }

    /// The definition of a custom attribute, made if it is not there. `kind` limits it to one kind of object.
    pub async fn ensure_custom_field(
        &self,
        name: &str,
        kind: Option<&MoType>,
    ) -> Result<CustomFieldDef, VmError> {
        let failed = |source| VmError::call(Step::CustomField, &name)(source);
        if let Some(known) = self.custom_field(name).await.map_err(failed)? {
            return Ok(known);
        }
        let call = AddCustomFieldDef {
            this: self.custom_fields_manager().map_err(failed)?,
            name: name.into(),
            mo_type: kind.map(|kind| kind.as_str().into()),
        };
        match self.change(CallClass::Submit, &call).await {
            Ok(made) => Ok(made),
            Err(error) if error.is_fault("DuplicateName") || error.outcome_unknown() => {
                self.custom_field(name).await.map_err(failed)?.ok_or_else(|| failed(error))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Sets a custom attribute of an object.
    pub async fn set_custom_field(
        &self,
        object: &MoRef,
        key: i32,
        value: &str,
    ) -> Result<(), VmError> {
        let failed = |source| VmError::call(Step::CustomField, object)(source);
        let this = self.custom_fields_manager().map_err(failed)?;
        let call = SetField { this, entity: object.clone(), key, value: value.into() };
        self.change(CallClass::Submit, &call).await.map_err(failed)
    }
}

impl Observer {
    fn custom_fields_manager(&self) -> Result<MoRef, CallError> {
        self.content()
            .custom_fields_manager
            .clone()
            .ok_or(CallError::NoManager { manager: "custom fields manager" })
    }

    async fn custom_field(&self, name: &str) -> Result<Option<CustomFieldDef>, CallError> {
        let read = self.properties(&self.custom_fields_manager()?, &["field"]).await?;
        let mut fields =
            read.get("field").into_iter().flat_map(Value::data_items::<CustomFieldDef>);
        Ok(fields.find(|field| field.name == name).cloned())
    }
}

/// A resource pool without reservation or limit, with normal shares: a drawer, not a fence.
pub fn unlimited_pool() -> ResourceConfigSpec {
    let allocation = || ResourceAllocationInfo {
        reservation: Some(0),
        expandable_reservation: Some(true),
        limit: Some(-1),
        shares: Some(SharesInfo { shares: 0, level: "normal".into() }),
        overhead_limit: None,
    };
    ResourceConfigSpec {
        cpu_allocation: allocation(),
        memory_allocation: allocation(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{compact, written};

    #[test]
    fn a_pool_without_limits_says_so_in_every_field_that_the_server_wants() {
        let allocation = "<reservation>0</reservation><expandableReservation>true</expandableReservation><limit>-1</limit>\
                          <shares><shares>0</shares><level>normal</level></shares>";
        assert_eq!(
            written("spec", &unlimited_pool()),
            compact(&format!(
                "<spec><cpuAllocation>{allocation}</cpuAllocation><memoryAllocation>{allocation}</memoryAllocation></spec>"
            ))
        );
    }
}
