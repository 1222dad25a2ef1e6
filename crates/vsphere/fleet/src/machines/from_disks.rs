//! A VM of disks that lie on a datastore: a directory is made, files are copied into it, then the VM is created on them.
//!
//! Until the create is asked for, everything can be taken back: the directory is the VM's alone.

use std::time::Duration;

use roost_vim::wire::methods::CreateVmTask;
use roost_vim::wire::{Element, MoRef};
use roost_vim::{Datastore, DatastorePath, Faulted, FileError, Found, Task};
use tokio::task::JoinSet;

use super::retry::Pauses;
use super::{MachineError, Machines};
use crate::Phase;

/// How long a directory is tried to be deleted that nobody needs. Tasks that were cancelled let go of their files within it.
const TAKING_BACK: Duration = Duration::from_mins(5);

/// A datastore, and how directories are made there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskPlace {
    pub datacenter: Found,
    pub datastore: Found,
    /// vSAN and its like name top-level directories themselves.
    pub names_directories: bool,
}

/// A file for the new VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskSource {
    pub from: DatastorePath,
    /// Its name in the VM's directory.
    pub to: String,
}

/// A VM to be made of disks that are there.
#[derive(Debug, Clone, PartialEq)]
pub struct FromDisks {
    pub place: DiskPlace,
    /// The VM's own, at the top of the datastore.
    pub directory: String,
    pub disks: Vec<DiskSource>,
    /// What the copies are to be, see [`roost_vim::thin_disk`].
    pub disk_spec: Option<Element>,
    /// Files that are no disks.
    pub files: Vec<DiskSource>,
    /// Names its files below [`directory`](Self::directory).
    pub create: CreateVmTask,
}

/// A directory with all that the VM needs.
pub(super) struct LaidOut {
    files: Datastore,
    directory: DatastorePath,
    /// The path by which it must be deleted, where the datastore named it.
    namespace: Option<String>,
    pub(super) create: CreateVmTask,
}

impl Machines {
    /// A directory at the top of a datastore, which is made if it is not there, and the files of the datastore.
    pub async fn top_directory(
        &self,
        place: &DiskPlace,
        name: &str,
    ) -> Result<(Datastore, DatastorePath), FileError> {
        let files = self.files(&place.datacenter, &place.datastore).await?;
        let (directory, _) = make_top_directory(&files, place, name).await?;
        Ok((files, directory))
    }

    /// Makes the directory and copies everything into it. What failed leaves nothing behind.
    pub(super) async fn lay_out(
        &self,
        name: &str,
        request: &FromDisks,
    ) -> Result<LaidOut, MachineError> {
        let failed = |source| file_error(name, source);
        let place = &request.place;
        let files = self.files(&place.datacenter, &place.datastore).await.map_err(failed)?;
        let (directory, namespace) =
            make_top_directory(&files, place, &request.directory).await.map_err(failed)?;
        let mut create = request.create.clone();
        let wanted = files.path(&request.directory);
        if wanted != directory {
            move_paths(&mut create, &wanted, &directory);
        }
        let laid = LaidOut { files, directory, namespace, create };
        match self.copy_all(name, request, &laid).await {
            Ok(()) => Ok(laid),
            Err(error) => {
                laid.take_back().await;
                Err(error)
            }
        }
    }

    async fn copy_all(
        &self,
        name: &str,
        request: &FromDisks,
        laid: &LaidOut,
    ) -> Result<(), MachineError> {
        if request.disks.is_empty() && request.files.is_empty() {
            return Ok(());
        }
        let mut begun: Vec<MoRef> = Vec::new();
        let work = async {
            let failed = |source| file_error(name, source);
            for file in &request.files {
                let to = laid.directory.join(&file.to);
                laid.files.copy_to(&file.from, &to).await.map_err(failed)?;
            }
            let mut copies = JoinSet::new();
            for disk in &request.disks {
                let to = laid.directory.join(&disk.to);
                let spec = request.disk_spec.clone();
                let task = laid.files.copy_disk(&disk.from, &to, spec).await.map_err(failed)?;
                begun.push(task.moref().clone());
                copies.spawn(task.with_deadline(self.longest(Phase::COPYING)).wait());
            }
            while let Some(copied) = copies.join_next().await {
                let copied =
                    copied.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
                copied.map_err(MachineError::task(Phase::COPYING, name))?;
            }
            Ok(())
        };
        let copied = self.phase(name, Phase::COPYING, work).await;
        if copied.is_err() {
            for task in &begun {
                // One that has ended cannot be cancelled, which is as good.
                let _ = Task::cancel_by_ref(self.client(), task).await;
            }
        }
        copied
    }
}

fn file_error(name: &str, source: FileError) -> MachineError {
    MachineError::File { phase: Phase::COPYING, machine: name.to_owned(), source }
}

/// Makes a directory at the top of a datastore. Where the datastore names it, also the path by which it must be deleted.
async fn make_top_directory(
    files: &Datastore,
    place: &DiskPlace,
    name: &str,
) -> Result<(DatastorePath, Option<String>), FileError> {
    let plain = files.path(name);
    if !place.names_directories {
        files.make_directory(&plain).await?;
        return Ok((plain, None));
    }
    match files.create_namespace(&place.datastore.moref, name).await {
        Ok(real) => {
            let own = real.trim_end_matches('/').rsplit('/').next().unwrap_or(name);
            Ok((files.path(own), Some(real.clone())))
        }
        // By an earlier attempt. It can be found under the name that it was asked for by.
        Err(error) if error.is_fault("FileAlreadyExists") => Ok((plain, None)),
        Err(error) => Err(error),
    }
}

impl LaidOut {
    /// Deletes the directory with all that is in it. What cannot be deleted now is overwritten by the next attempt.
    pub(super) async fn take_back(&self) {
        let mut pauses = Pauses::within(TAKING_BACK);
        loop {
            let gone = match &self.namespace {
                None => self.files.delete(&self.directory).await,
                Some(path) => match self.files.delete(&self.directory).await {
                    Ok(()) => self.files.delete_namespace(path).await,
                    failed => failed,
                },
            };
            match gone {
                Ok(()) => return,
                Err(error) => {
                    if !pauses.pause().await {
                        let why = roost_supervise::Chain(&error);
                        tracing::warn!("{} stays behind: {why}", self.directory);
                        return;
                    }
                }
            }
        }
    }
}

/// Files of the VM are where the datastore has put its directory.
fn move_paths(create: &mut CreateVmTask, from: &DatastorePath, to: &DatastorePath) {
    let (from, to) = (format!("{from}/"), format!("{to}/"));
    let moved = |path: &mut Option<String>| {
        if let Some(below) = path.as_deref().and_then(|path| path.strip_prefix(&from)) {
            *path = Some(format!("{to}{below}"));
        }
    };
    if let Some(files) = &mut create.config.files {
        moved(&mut files.vm_path_name);
    }
    for change in &mut create.config.device_change {
        if let Some(backing) = &mut change.device.backing {
            moved(&mut backing.file_name);
        }
    }
}
