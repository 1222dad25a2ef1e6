//! Whether this server keeps the disks that a VM says to keep. Where it does not, destroying a linked VM takes the disk below along, and with it every
//! other VM that stands on it. Nobody can know beforehand, so it is tried with a VM of one mebibyte.

use roost_vim::wire::MoRef;
use roost_vim::wire::methods::CreateVmTask;
use roost_vim::wire::types::{
    OptionValue, VirtualDevice, VirtualDeviceBackingInfo, VirtualDeviceConfigSpec,
    VirtualDeviceConfigSpecFileOperation as FileOperation,
    VirtualDeviceConfigSpecOperation as Operation, VirtualMachineConfigSpec,
    VirtualMachineFileInfo,
};

use super::from_disks::DiskPlace;
use super::{MachineError, Machines};
use crate::Phase;

/// Where the trial is made, and under which name: that of its VM and of its directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedTrial {
    pub name: String,
    pub folder: MoRef,
    pub pool: MoRef,
    pub place: DiskPlace,
    /// The key by which a VM says which disks outlive it.
    pub keep_key: String,
}

const PARENT: &str = "parent.vmdk";
const KIB: i64 = 1024;

impl Machines {
    /// Makes a disk and a VM on top of it, destroys the VM, and sees whether the disk is still there. What an earlier trial left is removed first, and nothing
    /// is left by this one.
    pub async fn keeps_parents(&self, trial: &LinkedTrial) -> Result<bool, MachineError> {
        let name = trial.name.as_str();
        let phase = Phase::CREATING;
        let file = |source| MachineError::File { phase, machine: name.to_owned(), source };
        let client = self.client();
        let before = client.child_named(&trial.folder, name).await;
        if let Some(before) = before.map_err(MachineError::call(phase, name))? {
            client.destroy(&before).await.map_err(MachineError::vm(phase, name))?;
        }
        let files = self.files(&trial.place.datacenter, &trial.place.datastore).await;
        files.map_err(file)?.delete(&trial.directory()).await.map_err(file)?;
        let (files, directory) = self.top_directory(&trial.place, name).await.map_err(file)?;
        let parent = directory.join(PARENT);
        let tried = async {
            files.create_disk(&parent, KIB).await.map_err(file)?;
            let call = trial.create(&parent.to_string());
            let vm = self.make_by_task(phase, name, &call).await?;
            client.destroy(&vm).await.map_err(MachineError::vm(phase, name))?;
            files.exists(&parent).await.map_err(file)
        };
        let keeps = self.phase(name, phase, tried).await;
        files.delete(&directory).await.map_err(file)?;
        keeps
    }
}

impl LinkedTrial {
    fn directory(&self) -> roost_vim::DatastorePath {
        roost_vim::DatastorePath::new(self.place.datastore.name.clone(), &self.name)
    }

    fn create(&self, parent: &str) -> CreateVmTask {
        let add = |device| VirtualDeviceConfigSpec {
            operation: Some(Operation::Add),
            device,
            ..VirtualDeviceConfigSpec::default()
        };
        let controller = VirtualDevice {
            key: -1,
            bus_number: Some(0),
            shared_bus: Some("noSharing".to_owned()),
            ..VirtualDevice::of("ParaVirtualSCSIController")
        };
        let backing = |file: String| VirtualDeviceBackingInfo {
            file_name: Some(file),
            disk_mode: Some("persistent".to_owned()),
            thin_provisioned: Some(true),
            ..VirtualDeviceBackingInfo::of("VirtualDiskFlatVer2BackingInfo")
        };
        let disk = VirtualDevice {
            key: -2,
            controller_key: Some(-1),
            unit_number: Some(0),
            capacity_in_kb: Some(KIB),
            backing: Some(VirtualDeviceBackingInfo {
                parent: Some(Box::new(backing(parent.to_owned()))),
                ..backing(String::new())
            }),
            ..VirtualDevice::of("VirtualDisk")
        };
        let mut disk = add(disk);
        disk.file_operation = Some(FileOperation::Create);
        let config = VirtualMachineConfigSpec {
            name: Some(self.name.clone()),
            annotation: Some(
                "Made for a moment, to see whether a disk outlives a VM on top of it.".into(),
            ),
            guest_id: Some("otherGuest".to_owned()),
            num_cpus: Some(1),
            memory_mb: Some(32),
            files: Some(VirtualMachineFileInfo {
                vm_path_name: Some(format!("[{}]", self.place.datastore.name)),
                ..VirtualMachineFileInfo::default()
            }),
            device_change: vec![add(controller), disk],
            extra_config: vec![OptionValue::text(self.keep_key.as_str(), PARENT)],
            ..VirtualMachineConfigSpec::default()
        };
        CreateVmTask { this: self.folder.clone(), config, pool: self.pool.clone(), host: None }
    }
}
