use roost_vim_wire::methods::{
    CopyDatastoreFileTask, CopyVirtualDiskTask, CreateDirectory, CreateVirtualDiskTask,
    DeleteDatastoreFileTask, DeleteDirectory, DeleteVirtualDiskTask, MakeDirectory,
    MoveDatastoreFileTask, MoveVirtualDiskTask,
};
use roost_vim_wire::{Element, Method, MoRef};

use super::Datastore;
use super::error::{FileError, FileStep};
use super::path::DatastorePath;
use crate::{CallClass, CallError, Faulted, Task};

impl Datastore {
    /// Makes a directory with those above it. Succeeds when it is there.
    pub async fn make_directory(&self, path: &DatastorePath) -> Result<(), FileError> {
        let failed = |source| FileError::Call {
            step: FileStep::MakeDirectory,
            path: path.to_string(),
            source,
        };
        let call = MakeDirectory {
            this: self.file_manager().map_err(failed)?,
            name: path.to_string(),
            datacenter: Some(self.datacenter.clone()),
            create_parent_directories: Some(true),
        };
        match self.client.change(CallClass::Submit, &call).await {
            Ok(()) => Ok(()),
            Err(error) if error.already_exists() => Ok(()),
            Err(source) => Err(failed(source)),
        }
    }

    /// Deletes a file or directory. Succeeds when it is gone.
    pub async fn delete(&self, path: &DatastorePath) -> Result<(), FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Delete, path: path.to_string(), source };
        let call = DeleteDatastoreFileTask {
            this: self.file_manager().map_err(failed)?,
            name: path.to_string(),
            datacenter: Some(self.datacenter.clone()),
        };
        match self.run(FileStep::Delete, path, &call).await {
            Err(error) if error.is_fault("FileNotFound") => Ok(()),
            other => other,
        }
    }

    /// Copies a file, also to another datastore, in place of what is there.
    pub async fn copy_to(&self, from: &DatastorePath, to: &DatastorePath) -> Result<(), FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Copy, path: from.to_string(), source };
        let call = CopyDatastoreFileTask {
            this: self.file_manager().map_err(failed)?,
            source_name: from.to_string(),
            source_datacenter: Some(self.datacenter.clone()),
            destination_name: to.to_string(),
            destination_datacenter: Some(self.datacenter.clone()),
            force: Some(true),
        };
        self.run(FileStep::Copy, from, &call).await
    }

    /// Starts to copy a disk with all that belongs to it, in place of what is there. Long; the task that it returns can be cancelled. `spec` is a
    /// `FileBackedVirtualDiskSpec` where the copy shall differ from the original, see [`thin_disk`].
    pub async fn copy_disk(
        &self,
        from: &DatastorePath,
        to: &DatastorePath,
        spec: Option<Element>,
    ) -> Result<Task, FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Copy, path: from.to_string(), source };
        let call = CopyVirtualDiskTask {
            this: self.disk_manager().map_err(failed)?,
            source_name: from.to_string(),
            source_datacenter: Some(self.datacenter.clone()),
            dest_name: to.to_string(),
            dest_datacenter: Some(self.datacenter.clone()),
            dest_spec: spec,
            force: Some(true),
        };
        self.client.submit(&call).await.map_err(failed)
    }

    /// Makes an empty, thin disk.
    pub async fn create_disk(&self, path: &DatastorePath, kib: i64) -> Result<(), FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Create, path: path.to_string(), source };
        let call = CreateVirtualDiskTask {
            this: self.disk_manager().map_err(failed)?,
            name: path.to_string(),
            datacenter: Some(self.datacenter.clone()),
            spec: disk_spec("spec", kib, None, None),
        };
        self.run(FileStep::Create, path, &call).await
    }

    /// Moves or renames a disk with all that belongs to it. What is there stays.
    pub async fn move_disk(
        &self,
        from: &DatastorePath,
        to: &DatastorePath,
    ) -> Result<(), FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Move, path: from.to_string(), source };
        let call = MoveVirtualDiskTask {
            this: self.disk_manager().map_err(failed)?,
            source_name: from.to_string(),
            source_datacenter: Some(self.datacenter.clone()),
            dest_name: to.to_string(),
            dest_datacenter: Some(self.datacenter.clone()),
            force: Some(false),
        };
        self.run(FileStep::Move, from, &call).await
    }

    /// Deletes a disk with all that belongs to it. Succeeds when it is gone.
    pub async fn delete_disk(&self, path: &DatastorePath) -> Result<(), FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Delete, path: path.to_string(), source };
        let call = DeleteVirtualDiskTask {
            this: self.disk_manager().map_err(failed)?,
            name: path.to_string(),
            datacenter: Some(self.datacenter.clone()),
        };
        match self.run(FileStep::Delete, path, &call).await {
            Err(error) if error.is_fault("FileNotFound") => Ok(()),
            other => other,
        }
    }

    /// Makes a top-level directory on a datastore that names directories itself, such as vSAN. Returns its real path, which
    /// begins with `/vmfs/volumes/`.
    pub async fn create_namespace(
        &self,
        datastore: &MoRef,
        name: &str,
    ) -> Result<String, FileError> {
        let failed = |source| FileError::Call {
            step: FileStep::MakeDirectory,
            path: name.to_owned(),
            source,
        };
        let call = CreateDirectory {
            this: self.namespace_manager().map_err(failed)?,
            datastore: datastore.clone(),
            display_name: Some(name.into()),
            policy: None,
            size: None,
        };
        self.client.change(CallClass::Submit, &call).await.map_err(failed)
    }

    /// Deletes such a directory by its real path. Succeeds when it is gone.
    pub async fn delete_namespace(&self, path: &str) -> Result<(), FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Delete, path: path.to_owned(), source };
        let call = DeleteDirectory {
            this: self.namespace_manager().map_err(failed)?,
            datacenter: Some(self.datacenter.clone()),
            datastore_path: path.into(),
        };
        match self.client.change(CallClass::Submit, &call).await {
            Err(error) if error.is_fault("FileNotFound") => Ok(()),
            other => other.map_err(failed),
        }
    }

    /// Moves or renames, in place of what is there.
    pub async fn move_to(&self, from: &DatastorePath, to: &DatastorePath) -> Result<(), FileError> {
        let failed =
            |source| FileError::Call { step: FileStep::Move, path: from.to_string(), source };
        let call = MoveDatastoreFileTask {
            this: self.file_manager().map_err(failed)?,
            source_name: from.to_string(),
            source_datacenter: Some(self.datacenter.clone()),
            destination_name: to.to_string(),
            destination_datacenter: Some(self.datacenter.clone()),
            force: Some(true),
        };
        self.run(FileStep::Move, from, &call).await
    }

    async fn run<M: Method<Output = MoRef>>(
        &self,
        step: FileStep,
        path: &DatastorePath,
        call: &M,
    ) -> Result<(), FileError> {
        let submitted = self.client.submit(call).await;
        let task =
            submitted.map_err(|source| FileError::Call { step, path: path.to_string(), source })?;
        task.wait().await.map(drop).map_err(|source| FileError::Task {
            step,
            path: path.to_string(),
            source,
        })
    }

    fn disk_manager(&self) -> Result<MoRef, CallError> {
        let manager = self.client.content().virtual_disk_manager.clone();
        manager.ok_or(CallError::NoManager { manager: "virtual disk manager" })
    }

    fn namespace_manager(&self) -> Result<MoRef, CallError> {
        let manager = self.client.content().datastore_namespace_manager.clone();
        manager.ok_or(CallError::NoManager { manager: "datastore namespace manager" })
    }

    fn file_manager(&self) -> Result<MoRef, CallError> {
        self.client
            .content()
            .file_manager
            .clone()
            .ok_or(CallError::NoManager { manager: "file manager" })
    }
}

/// What a thin copy of a disk is to be: with this storage policy, in this sector format.
pub fn thin_disk(policy: Option<&str>, sector_format: Option<&str>) -> Element {
    disk_spec("destSpec", 0, policy, sector_format)
}

fn disk_spec(name: &str, kib: i64, policy: Option<&str>, sector_format: Option<&str>) -> Element {
    let mut spec = Element::new(name)
        .typed("FileBackedVirtualDiskSpec")
        .with(Element::leaf("diskType", "thin"))
        .with(Element::leaf("adapterType", "lsiLogic"))
        .with_field("capacityKb", &kib);
    if let Some(policy) = policy {
        spec = spec.with(defined_profile("profile", policy));
    }
    match sector_format {
        Some(format) => spec.with(Element::leaf("sectorFormat", format)),
        None => spec,
    }
}

/// A storage policy, as requests name it.
pub fn defined_profile(name: &str, policy: &str) -> Element {
    let kind = "VirtualMachineDefinedProfileSpec";
    Element::new(name).typed(kind).with(Element::leaf("profileId", policy))
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::{MoType, encode_request};

    use super::*;
    use crate::device::compact;

    #[test]
    fn file_requests_are_written_as_they_were_recorded() {
        let (manager, datacenter) = (
            MoRef::new(MoType::FileManager, "FileManager"),
            MoRef::new(MoType::Datacenter, "datacenter-1"),
        );
        let make = MakeDirectory {
            this: manager.clone(),
            name: "[LocalDS_0] iso/a/b".into(),
            datacenter: Some(datacenter.clone()),
            create_parent_directories: Some(true),
        };
        let into_place = MoveDatastoreFileTask {
            this: manager.clone(),
            source_name: "[LocalDS_0] iso/.boot.iso.partial".into(),
            source_datacenter: Some(datacenter.clone()),
            destination_name: "[LocalDS_0] iso/boot.iso".into(),
            destination_datacenter: Some(datacenter.clone()),
            force: Some(true),
        };
        let delete = DeleteDatastoreFileTask {
            this: manager,
            name: "[LocalDS_0] iso/a/b/boot.iso".into(),
            datacenter: Some(datacenter),
        };
        for (body, sample) in [
            (
                encode_request(&make, None),
                r#"<MakeDirectory xmlns="urn:vim25"><_this type="FileManager">FileManager</_this><name>[LocalDS_0] iso/a/b</name>
                <datacenter type="Datacenter">datacenter-1</datacenter><createParentDirectories>true</createParentDirectories></MakeDirectory>"#,
            ),
            (
                encode_request(&into_place, None),
                r#"<MoveDatastoreFile_Task xmlns="urn:vim25"><_this type="FileManager">FileManager</_this><sourceName>[LocalDS_0] iso/.boot.iso.partial</sourceName>
                <sourceDatacenter type="Datacenter">datacenter-1</sourceDatacenter><destinationName>[LocalDS_0] iso/boot.iso</destinationName>
                <destinationDatacenter type="Datacenter">datacenter-1</destinationDatacenter><force>true</force></MoveDatastoreFile_Task>"#,
            ),
            (
                encode_request(&delete, None),
                r#"<DeleteDatastoreFile_Task xmlns="urn:vim25"><_this type="FileManager">FileManager</_this>
                <name>[LocalDS_0] iso/a/b/boot.iso</name><datacenter type="Datacenter">datacenter-1</datacenter></DeleteDatastoreFile_Task>"#,
            ),
        ] {
            let xml = String::from_utf8(body).unwrap();
            assert!(xml.contains(&compact(sample)), "{xml}");
        }
    }
}
