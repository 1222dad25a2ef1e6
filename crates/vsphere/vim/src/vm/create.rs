//! Creating a VM from nothing, with disks, ISO, cards and boot order in one request.

use roost_vim_wire::methods::CreateVmTask;
use roost_vim_wire::types::{
    Hidden, ResourceAllocationInfo, VirtualDevice, VirtualDeviceConfigSpec,
    VirtualMachineBootOptions, VirtualMachineBootOptionsBootableDevice as Bootable,
    VirtualMachineConfigSpec, VirtualMachineFileInfo,
};
use roost_vim_wire::{Element, MoRef};

use super::error::{Step, VmError};
use super::make::{Made, Namesake};
use super::options;
use crate::device::{self, TemporaryKeys, new_cdrom, new_ide, new_sata};
use crate::{CdromBus, Client, DatastorePath, DeviceError, DiskController, NewDisk, NewNic};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Firmware {
    #[default]
    Efi,
    Bios,
}

/// What the firmware tries to start from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootDevice {
    Cdrom,
    /// The disk with this index.
    Disk(u8),
    /// The network card with this index.
    Nic(u8),
}

/// What can be added while the guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HotAdd {
    pub cpus: bool,
    pub memory: bool,
}

/// What the VM has for itself alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reserved {
    pub cpu_mhz: Option<i64>,
    pub memory_mb: Option<i64>,
}

/// A VM to be made. [`CreateVm::new`] gives a small EFI guest without disk and network.
#[derive(Debug, Clone, PartialEq)]
pub struct CreateVm {
    pub folder: MoRef,
    pub name: String,
    pub pool: MoRef,
    pub host: Option<MoRef>,
    /// Name of the datastore for the VM's own files; the server chooses the directory.
    pub datastore: String,
    /// VMware's name of the guest system, such as `rhel8_64Guest`.
    pub guest_id: String,
    pub annotation: Option<String>,
    pub cpus: i32,
    pub cores_per_socket: Option<i32>,
    pub memory_mb: i64,
    pub hot_add: HotAdd,
    pub reserved: Reserved,
    /// Such as `vmx-19`; the server's default if not set.
    pub hardware_version: Option<String>,
    /// The id of a storage policy for the VM's home and its disks.
    pub storage_policy: Option<String>,
    pub disk_controller: DiskController,
    pub disks: Vec<NewDisk>,
    pub iso: Option<DatastorePath>,
    pub cdrom_bus: CdromBus,
    pub nics: Vec<NewNic>,
    pub firmware: Firmware,
    pub secure_boot: bool,
    /// A virtual TPM; the server needs a key provider.
    pub tpm: bool,
    /// Empty leaves it to the firmware.
    pub boot_order: Vec<BootDevice>,
    pub extra_config: Vec<(String, Hidden)>,
}

impl CreateVm {
    pub fn new(
        folder: MoRef,
        name: impl Into<String>,
        pool: MoRef,
        datastore: impl Into<String>,
    ) -> Self {
        Self {
            folder,
            name: name.into(),
            pool,
            host: None,
            datastore: datastore.into(),
            guest_id: "otherLinux64Guest".into(),
            annotation: None,
            cpus: 1,
            cores_per_socket: None,
            memory_mb: 1024,
            hot_add: HotAdd::default(),
            reserved: Reserved::default(),
            hardware_version: None,
            storage_policy: None,
            disk_controller: DiskController::default(),
            disks: Vec::new(),
            iso: None,
            cdrom_bus: CdromBus::default(),
            nics: Vec::new(),
            firmware: Firmware::default(),
            secure_boot: false,
            tpm: false,
            boot_order: Vec::new(),
            extra_config: Vec::new(),
        }
    }

    /// The request as it goes to the server.
    pub fn spec(&self) -> Result<VirtualMachineConfigSpec, DeviceError> {
        let reserve = |amount: Option<i64>| {
            let reservation = Some(amount?);
            Some(ResourceAllocationInfo { reservation, ..Default::default() })
        };
        Ok(VirtualMachineConfigSpec {
            name: Some(self.name.clone()),
            version: self.hardware_version.clone(),
            guest_id: Some(self.guest_id.clone()),
            annotation: self.annotation.clone(),
            files: Some(VirtualMachineFileInfo {
                vm_path_name: Some(format!("[{}]", self.datastore)),
                ..Default::default()
            }),
            num_cpus: Some(self.cpus),
            num_cores_per_socket: self.cores_per_socket,
            memory_mb: Some(self.memory_mb),
            memory_hot_add_enabled: self.hot_add.memory.then_some(true),
            cpu_hot_add_enabled: self.hot_add.cpus.then_some(true),
            device_change: self.devices()?,
            cpu_allocation: reserve(self.reserved.cpu_mhz),
            memory_allocation: reserve(self.reserved.memory_mb),
            vm_profile: self.profile("vmProfile"),
            extra_config: options(&self.extra_config),
            boot_options: self.boot_options(),
            firmware: Some(match self.firmware {
                Firmware::Efi => "efi".into(),
                Firmware::Bios => "bios".into(),
            }),
            ..Default::default()
        })
    }

    /// The storage policy under the name of a field.
    fn profile(&self, field: &str) -> Vec<Element> {
        let kind = "VirtualMachineDefinedProfileSpec";
        let profile = |id| Element::new(field).typed(kind).with_field("profileId", id);
        self.storage_policy.iter().map(profile).collect()
    }

    fn devices(&self) -> Result<Vec<VirtualDeviceConfigSpec>, DeviceError> {
        let mut keys = TemporaryKeys::new();
        let mut devices = Vec::new();
        let controller = (!self.disks.is_empty()).then(|| keys.next());
        devices.extend(controller.map(|key| device::add(self.disk_controller.device(key))));
        if let Some(iso) = &self.iso {
            let bus = keys.next();
            // One bus for the drive alone, so that a disk never has to give up a unit to it.
            let number = i32::from(controller.is_some());
            devices.push(device::add(match (self.cdrom_bus, self.disk_controller) {
                (CdromBus::Ide, DiskController::Ide) => new_ide(bus, number),
                (CdromBus::Ide, _) => new_ide(bus, 0),
                (CdromBus::Sata, DiskController::Sata) => {
                    VirtualDevice { bus_number: Some(number), ..new_sata(bus) }
                }
                (CdromBus::Sata, _) => new_sata(bus),
            }));
            devices.push(device::add(new_cdrom(keys.next(), bus, iso)));
        }
        for (index, disk) in self.disks.iter().enumerate() {
            let unit = self.disk_controller.unit(index)?;
            let disk = disk.device(keys.next(), controller.unwrap_or_default(), unit)?;
            let profile = self.profile("profile");
            devices.push(VirtualDeviceConfigSpec { profile, ..device::add_with_file(disk) });
        }
        devices.extend(self.nics.iter().map(|nic| device::add(nic.device(keys.next()))));
        if self.tpm {
            let key = keys.next();
            devices.push(device::add(VirtualDevice { key, ..VirtualDevice::of("VirtualTPM") }));
        }
        Ok(devices)
    }

    /// Devices of the boot order are named by the keys that the server will give: those of disks follow from their controller, those of cards
    /// begin at 4000.
    fn boot_options(&self) -> Option<VirtualMachineBootOptions> {
        let secure_boot = (self.firmware == Firmware::Efi).then_some(self.secure_boot);
        let boot_order: Vec<_> =
            self.boot_order.iter().map(|device| device.to_wire(self.disk_controller)).collect();
        (secure_boot == Some(true) || !boot_order.is_empty()).then(|| VirtualMachineBootOptions {
            efi_secure_boot_enabled: secure_boot,
            boot_order,
            ..Default::default()
        })
    }

    fn call(&self) -> Result<CreateVmTask, VmError> {
        let config =
            self.spec().map_err(|source| VmError::Devices { name: self.name.clone(), source })?;
        let (this, pool, host) = (self.folder.clone(), self.pool.clone(), self.host.clone());
        Ok(CreateVmTask { this, config, pool, host })
    }
}

impl BootDevice {
    fn to_wire(self, disks: DiskController) -> Bootable {
        let with_key =
            |class: &str, key: i32| Bootable { device_key: Some(key), ..Bootable::of(class) };
        match self {
            Self::Cdrom => Bootable::of("VirtualMachineBootOptionsBootableCdromDevice"),
            Self::Disk(index) => {
                let key = disks.first_disk_key() + disks.unit(index.into()).unwrap_or_default();
                with_key("VirtualMachineBootOptionsBootableDiskDevice", key)
            }
            Self::Nic(index) => {
                with_key("VirtualMachineBootOptionsBootableEthernetDevice", 4000 + i32::from(index))
            }
        }
    }
}

impl Client {
    /// Creates a VM and waits for it. After a lost reply the error says that the outcome is unknown; see
    /// [`Client::create_or_adopt`] for the call that finds out.
    pub async fn create_vm(&self, request: &CreateVm) -> Result<MoRef, VmError> {
        self.make(Step::Create, &request.name, &request.call()?).await
    }

    /// Creates a VM, or returns the one that this request has made already. Safe to repeat, also after a crash; see
    /// [`Client::clone_or_adopt`]. Looks for the name first, because not every server refuses to create it twice.
    pub async fn create_or_adopt(
        &self,
        request: &CreateVm,
        is_ours: impl Fn(&Namesake) -> bool,
    ) -> Result<Made, VmError> {
        let call = request.call()?;
        match self.namesake(&request.folder, &request.name).await? {
            Some(namesake) if is_ours(&namesake) => Ok(Made::Before(namesake.vm)),
            Some(namesake) => {
                Err(VmError::NameTaken { name: request.name.clone(), existing: namesake.vm })
            }
            None => {
                self.make_or_adopt(Step::Create, &request.folder, &request.name, &call, is_ours)
                    .await
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::{MoType, encode_request};

    use super::*;
    use crate::device::compact;
    use crate::{Card, NetworkBacking};

    fn request() -> CreateVm {
        let (folder, pool) = (
            MoRef::new(MoType::Folder, "group-2"),
            MoRef::new(MoType::ResourcePool, "resgroup-27"),
        );
        CreateVm::new(folder, "iso-vm", pool, "LocalDS_0")
    }

    fn full() -> CreateVm {
        let network = NetworkBacking::Distributed {
            switch_uuid: "a86e".into(),
            portgroup_key: "dvportgroup-12".into(),
        };
        let datastore = Some(MoRef::new(MoType::Datastore, "datastore-59"));
        CreateVm {
            guest_id: "rhel8_64Guest".into(),
            annotation: Some("created by test".into()),
            cpus: 4,
            cores_per_socket: Some(2),
            memory_mb: 8192,
            disks: vec![NewDisk { datastore, ..NewDisk::thin(20 << 30) }],
            iso: Some(DatastorePath::new("LocalDS_0", "iso/boot.iso")),
            nics: vec![NewNic { card: Card::Vmxnet3, network }],
            boot_order: vec![BootDevice::Cdrom, BootDevice::Disk(0)],
            extra_config: vec![("disk.enableUUID".into(), Hidden("TRUE".into()))],
            ..request()
        }
    }

    #[test]
    fn a_full_request_is_what_was_recorded() {
        let xml = String::from_utf8(encode_request(&full().call().unwrap(), None)).unwrap();
        let sample = compact(
            r#"<CreateVM_Task xmlns="urn:vim25"><_this type="Folder">group-2</_this><config><name>iso-vm</name><guestId>rhel8_64Guest</guestId><annotation>created by test</annotation>
              <files><vmPathName>[LocalDS_0]</vmPathName></files><numCPUs>4</numCPUs><numCoresPerSocket>2</numCoresPerSocket><memoryMB>8192</memoryMB>
              <deviceChange xsi:type="VirtualDeviceConfigSpec"><operation>add</operation><device xsi:type="ParaVirtualSCSIController"><key>-201</key><busNumber>0</busNumber>
                <sharedBus>noSharing</sharedBus><scsiCtlrUnitNumber>7</scsiCtlrUnitNumber></device></deviceChange>
              <deviceChange xsi:type="VirtualDeviceConfigSpec"><operation>add</operation>
               <device xsi:type="VirtualIDEController"><key>-202</key><busNumber>0</busNumber></device></deviceChange>
              <deviceChange xsi:type="VirtualDeviceConfigSpec"><operation>add</operation><device xsi:type="VirtualCdrom"><key>-203</key>
                <backing xsi:type="VirtualCdromIsoBackingInfo"><fileName>[LocalDS_0] iso/boot.iso</fileName></backing>
                <connectable><startConnected>true</startConnected><allowGuestControl>true</allowGuestControl><connected>true</connected></connectable>
                <controllerKey>-202</controllerKey><unitNumber>0</unitNumber></device></deviceChange>
              <deviceChange xsi:type="VirtualDeviceConfigSpec"><operation>add</operation><fileOperation>create</fileOperation><device xsi:type="VirtualDisk"><key>-204</key>
                <backing xsi:type="VirtualDiskFlatVer2BackingInfo"><fileName></fileName><datastore type="Datastore">datastore-59</datastore>
                 <diskMode>persistent</diskMode><thinProvisioned>true</thinProvisioned></backing>
                <controllerKey>-201</controllerKey><unitNumber>0</unitNumber><capacityInKB>20971520</capacityInKB></device></deviceChange>
              <deviceChange xsi:type="VirtualDeviceConfigSpec"><operation>add</operation><device xsi:type="VirtualVmxnet3"><key>-205</key>
                <backing xsi:type="VirtualEthernetCardDistributedVirtualPortBackingInfo"><port><switchUuid>a86e</switchUuid>
                 <portgroupKey>dvportgroup-12</portgroupKey></port></backing></device></deviceChange>
              <extraConfig xsi:type="OptionValue"><key>disk.enableUUID</key><value xsi:type="xsd:string">TRUE</value></extraConfig>
              <bootOptions><efiSecureBootEnabled>false</efiSecureBootEnabled><bootOrder xsi:type="VirtualMachineBootOptionsBootableCdromDevice"></bootOrder>
               <bootOrder xsi:type="VirtualMachineBootOptionsBootableDiskDevice"><deviceKey>2000</deviceKey></bootOrder></bootOptions><firmware>efi</firmware></config>
             <pool type="ResourcePool">resgroup-27</pool></CreateVM_Task>"#,
        );
        assert!(xml.contains(&sample), "{xml}");
    }

    #[test]
    fn a_bare_vm_has_no_devices_and_no_boot_options() {
        let spec = request().spec().unwrap();
        assert_eq!(spec.device_change, []);
        assert_eq!(spec.boot_options, None);
        let bios = CreateVm { firmware: Firmware::Bios, secure_boot: true, ..request() };
        assert_eq!(bios.spec().unwrap().boot_options, None, "a BIOS has no secure boot");
    }

    #[test]
    fn a_drive_on_sata_hangs_on_its_own_controller() {
        let spec = CreateVm { cdrom_bus: CdromBus::Sata, ..full() }.spec().unwrap();
        let classes: Vec<_> =
            spec.device_change.iter().map(|change| change.device.class.as_str()).collect();
        assert_eq!(classes[1..3], ["VirtualAHCIController", "VirtualCdrom"]);
        assert_eq!(
            spec.device_change[2].device.controller_key,
            Some(spec.device_change[1].device.key)
        );
    }

    #[test]
    fn disks_hang_on_the_controller_that_is_asked_for() {
        for (disk_controller, class, number, key) in [
            (DiskController::Nvme, "VirtualNVMEController", 0, 32_000),
            (DiskController::Sata, "VirtualAHCIController", 0, 16_000),
            (DiskController::Ide, "VirtualIDEController", 1, 3000),
        ] {
            let request = CreateVm { disk_controller, ..full() };
            let spec = request.spec().unwrap();
            let devices: Vec<_> = spec.device_change.iter().map(|change| &change.device).collect();
            assert_eq!(devices[0].class, class);
            assert_eq!(devices[1].bus_number, Some(number), "the drive has a bus of its own");
            let disk = devices.iter().find(|device| device.is_disk()).unwrap();
            assert_eq!((disk.controller_key, disk.unit_number), (Some(devices[0].key), Some(0)));
            assert_eq!(spec.boot_options.unwrap().boot_order[1].device_key, Some(key));
        }
    }

    #[test]
    fn richer_hardware_is_asked_for_only_where_it_is_wanted() {
        let rich = CreateVm {
            hot_add: HotAdd { cpus: true, memory: true },
            reserved: Reserved { cpu_mhz: Some(2000), memory_mb: Some(8192) },
            hardware_version: Some("vmx-19".into()),
            storage_policy: Some("aa6d5a82".into()),
            tpm: true,
            ..full()
        };
        let xml = String::from_utf8(encode_request(&rich.call().unwrap(), None)).unwrap();
        for part in [
            "<name>iso-vm</name><version>vmx-19</version>",
            "<memoryHotAddEnabled>true</memoryHotAddEnabled><cpuHotAddEnabled>true</cpuHotAddEnabled>",
            "<cpuAllocation><reservation>2000</reservation></cpuAllocation><memoryAllocation><reservation>8192</reservation></memoryAllocation>",
            r#"<vmProfile xsi:type="VirtualMachineDefinedProfileSpec"><profileId>aa6d5a82</profileId></vmProfile>"#,
            r#"<profile xsi:type="VirtualMachineDefinedProfileSpec"><profileId>aa6d5a82</profileId></profile></deviceChange>"#,
            r#"<device xsi:type="VirtualTPM">"#,
        ] {
            assert!(xml.contains(part), "{part} is missing in {xml}");
        }
    }

    #[test]
    fn boot_devices_are_named_by_the_keys_they_will_have() {
        for (device, class, key) in [
            (BootDevice::Cdrom, "VirtualMachineBootOptionsBootableCdromDevice", None),
            (BootDevice::Disk(1), "VirtualMachineBootOptionsBootableDiskDevice", Some(2001)),
            (BootDevice::Disk(7), "VirtualMachineBootOptionsBootableDiskDevice", Some(2008)),
            (BootDevice::Nic(1), "VirtualMachineBootOptionsBootableEthernetDevice", Some(4001)),
        ] {
            let wire = device.to_wire(DiskController::default());
            assert_eq!((wire.class.as_str(), wire.device_key), (class, key), "{device:?}");
        }
    }
}
