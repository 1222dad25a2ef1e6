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
mod tests {
    use std::net::Ipv4Addr;

    use roost_vim_wire::types::VirtualDevice;
    use roost_vim_wire::{MoType, encode_request};

    use super::super::template::tests::{template, with_parent_disk};
    use super::*;
    use crate::NicAddress;
    use crate::device::compact;

    fn request() -> CloneVm {
        let folder = MoRef::new(MoType::Folder, "group-2");
        CloneVm::new(folder, "worker-1", MoRef::new(MoType::ResourcePool, "resgroup-27"))
    }

    fn body(template: &TemplateFacts, request: &CloneVm) -> String {
        let xml =
            String::from_utf8(encode_request(&request.call(template).unwrap(), None)).unwrap();
        let (_, body) = xml.split_once("<Body>").unwrap();
        body.strip_suffix("</Body></Envelope>").unwrap().to_owned()
    }

    /// The request that the Go hatchery sends, as it was recorded, less what it should not send: the template's MAC address.
    #[test]
    fn a_full_request_is_what_was_recorded() {
        let snapshot = MoRef::new(MoType::VirtualMachineSnapshot, "snapshot-78");
        let fixed = NicAddress::Fixed {
            address: Ipv4Addr::new(10, 0, 0, 10),
            subnet_mask: Ipv4Addr::new(255, 255, 255, 0),
            gateways: vec![Ipv4Addr::new(10, 0, 0, 1)],
        };
        let customization = Customization {
            dns_servers: vec![Ipv4Addr::new(10, 0, 0, 2).into()],
            nics: vec![fixed],
            ..Customization::linux("local")
        };
        let request = CloneVm {
            datastore: Some(MoRef::new(MoType::Datastore, "datastore-59")),
            disks: DiskCopy::ShareParents,
            snapshot: Some(snapshot),
            network: Some(NetworkBacking::Distributed {
                switch_uuid: "a86ec114".into(),
                portgroup_key: "dvportgroup-12".into(),
            }),
            annotation: Some(r#"{"hatchery_name":"h1"}"#.into()),
            cpus: Some(2),
            memory_mb: Some(4096),
            extra_config: vec![("guestinfo.hatchery".into(), Hidden("h1".into()))],
            customization: Some(customization),
            tools_after_power_on: Some(true),
            power_on: true,
            ..request()
        };
        let sample = compact(
            r#"<CloneVM_Task xmlns="urn:vim25"><_this type="VirtualMachine">vm-62</_this><folder type="Folder">group-2</folder><name>worker-1</name><spec><location>
               <datastore type="Datastore">datastore-59</datastore><diskMoveType>moveChildMostDiskBacking</diskMoveType><pool type="ResourcePool">resgroup-27</pool>
               <deviceChange xsi:type="VirtualDeviceConfigSpec"><operation>edit</operation><device xsi:type="VirtualE1000"><key>4000</key>
                 <backing xsi:type="VirtualEthernetCardDistributedVirtualPortBackingInfo">
                  <port><switchUuid>a86ec114</switchUuid><portgroupKey>dvportgroup-12</portgroupKey></port></backing>
                 <connectable><startConnected>true</startConnected><allowGuestControl>true</allowGuestControl><connected>false</connected></connectable>
                 <controllerKey>100</controllerKey><unitNumber>7</unitNumber>
                 <wakeOnLanEnabled>true</wakeOnLanEnabled></device></deviceChange></location>
              <template>false</template><config><annotation>{&#34;hatchery_name&#34;:&#34;h1&#34;}</annotation>
               <tools><afterPowerOn>true</afterPowerOn></tools><numCPUs>2</numCPUs><memoryMB>4096</memoryMB>
               <extraConfig xsi:type="OptionValue"><key>guestinfo.hatchery</key><value xsi:type="xsd:string">h1</value></extraConfig></config><customization>
               <identity xsi:type="CustomizationLinuxPrep"><hostName xsi:type="CustomizationVirtualMachineName"></hostName>
                <domain>local</domain><timeZone>UTC</timeZone><hwClockUTC>true</hwClockUTC></identity><globalIPSettings><dnsServerList>10.0.0.2</dnsServerList></globalIPSettings>
               <nicSettingMap><adapter><ip xsi:type="CustomizationFixedIp"><ipAddress>10.0.0.10</ipAddress></ip>
                <subnetMask>255.255.255.0</subnetMask><gateway>10.0.0.1</gateway></adapter></nicSettingMap></customization><powerOn>true</powerOn>
              <snapshot type="VirtualMachineSnapshot">snapshot-78</snapshot></spec></CloneVM_Task>"#,
        );
        assert_eq!(body(&template(), &request), sample);
    }

    #[test]
    fn a_bare_request_changes_nothing() {
        assert_eq!(
            body(&template(), &request()),
            compact(
                r#"<CloneVM_Task xmlns="urn:vim25"><_this type="VirtualMachine">vm-62</_this><folder type="Folder">group-2</folder><name>worker-1</name>
                <spec><location><pool type="ResourcePool">resgroup-27</pool></location><template>false</template><powerOn>false</powerOn></spec></CloneVM_Task>"#
            )
        );
    }

    #[test]
    fn a_new_child_stands_on_the_current_snapshot_or_on_the_one_that_is_named() {
        let new_child = CloneVm { disks: DiskCopy::NewChild, ..request() };
        assert!(matches!(new_child.spec(&template()), Err(CloneSpecError::NoSnapshot { .. })));
        let snapshot = |id| MoRef::new(MoType::VirtualMachineSnapshot, id);
        let with_snapshot =
            TemplateFacts { current_snapshot: Some(snapshot("snapshot-1")), ..template() };
        let spec = new_child.spec(&with_snapshot).unwrap();
        assert_eq!(spec.location.disk_move_type.as_deref(), Some("createNewChildDiskBacking"));
        assert_eq!(spec.snapshot, Some(snapshot("snapshot-1")));
        let named = CloneVm { snapshot: Some(snapshot("snapshot-2")), ..new_child };
        assert_eq!(named.spec(&with_snapshot).unwrap().snapshot, Some(snapshot("snapshot-2")));
    }

    #[test]
    fn the_first_disk_grows_in_the_configuration() {
        let bigger = CloneVm { disk_bytes: Some(20 << 30), ..request() };
        let config = bigger.spec(&template()).unwrap().config.unwrap();
        assert_eq!(config.device_change[0].device.capacity_in_kb, Some(20 << 20));
        assert_eq!(config.device_change[0].file_operation, None);
        let same = CloneVm { disk_bytes: Some(10 << 30), ..request() };
        assert_eq!(same.spec(&template()).unwrap().config, None);
        let smaller = CloneVm { disk_bytes: Some(5 << 30), ..request() };
        assert!(matches!(
            smaller.spec(&template()),
            Err(CloneSpecError::Disk { source: DeviceError::Shrink { .. } })
        ));
    }

    #[test]
    fn a_disk_that_is_shared_with_the_template_does_not_grow() {
        let linked =
            CloneVm { disk_bytes: Some(20 << 30), disks: DiskCopy::ShareParents, ..request() };
        assert!(linked.spec(&template()).is_ok(), "without a parent it is a full copy");
        assert!(matches!(
            linked.spec(&with_parent_disk(template())),
            Err(CloneSpecError::SharedDiskGrowth { .. })
        ));
    }

    #[test]
    fn what_the_template_lacks_is_named() {
        let bare = TemplateFacts {
            nics: Vec::new(),
            disks: vec![VirtualDevice::of("VirtualDisk")],
            ..template()
        };
        let network = Some(NetworkBacking::Opaque { id: "a".into(), kind: "b".into() });
        let error = CloneVm { network, ..request() }.spec(&bare).unwrap_err();
        assert_eq!(error.to_string(), "template tmpl-debian12 has no network card");
    }
}
