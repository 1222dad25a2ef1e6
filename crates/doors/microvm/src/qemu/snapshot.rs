//! Snapshots: the memory of a VM as QEMU would send it to another host, with its disk and what it starts from.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use super::Inner;
use super::argv::QMP;
use super::qmp::{Qmp, pipe};
use super::store::{BOOT_FILES, MEMORY, Machine, OVERLAY, remove_folder, share, snapshot_in};
use crate::error::RuntimeError;
use crate::record::{Backend, SnapshotRecord};
use crate::registry::archive::{ENVELOPE, Envelope};
use crate::registry::tar;
use crate::runtime::{Input, Output};

const LOOK: Duration = Duration::from_millis(20);
const MIGRATE: &str = "migrate.sock";
/// Bytes a second: the other end is a file of this host.
const BANDWIDTH: u64 = 1 << 40;
const PIECE: usize = 256 * 1024;
/// A record is a small JSON file.
const LARGEST_ENVELOPE: u64 = 16 * 1024 * 1024;

impl Inner {
    /// A VM that is off is saved without memory: its clones boot.
    pub(super) async fn save(&self, name: &str, vm: &str) -> Result<(), RuntimeError> {
        let machine = self.machine(vm)?;
        let folder = self.store.vm_folder(&machine.vm.id);
        let draft = self.store.draft(&self.new_id()).map_err(|source| pipe("save", source))?;
        let copied = if machine.vm.state.is_running() {
            let paused = Paused::stop(&folder).await?;
            self.write_memory(&folder, &draft.folder.join(MEMORY)).await?;
            let copied = copy_files(&folder, &draft.folder).await;
            paused.resume().await?;
            copied
        } else {
            copy_files(&folder, &draft.folder).await
        };
        copied.map_err(|source| pipe("save", source))?;
        let record = self.record_of(name, &machine);
        self.store
            .publish(&draft, &record, &machine.hardware)
            .map_err(|source| pipe("save", source))
    }

    fn record_of(&self, name: &str, machine: &Machine) -> SnapshotRecord {
        let config = &machine.vm.config;
        SnapshotRecord {
            id: self.new_id(),
            name: name.to_owned(),
            cpu: config.cpu,
            memory: config.memory,
            storage: config.storage,
            image: config.image.clone(),
            image_type: config.image_type.clone(),
            nics: 1,
            hypervisor: Backend::new(Backend::QEMU),
            created_at: Some(self.clock.now()),
            ..SnapshotRecord::default()
        }
    }

    /// QEMU sends, and what it sends is kept.
    async fn write_memory(&self, folder: &Path, to: &Path) -> Result<(), RuntimeError> {
        let socket = folder.join(MIGRATE);
        let _ = fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).map_err(|source| pipe("migrate", source))?;
        let receive = async {
            let (mut from, _) = listener.accept().await?;
            let mut file = File::create(to).await?;
            tokio::io::copy(&mut from, &mut file).await?;
            file.flush().await?;
            file.sync_all().await
        };
        let receive = async { receive.await.map_err(|source| pipe("migrate", source)) };
        let mut qmp = Qmp::connect(&folder.join(QMP)).await?;
        qmp.execute("migrate-set-parameters", json!({"max-bandwidth": BANDWIDTH})).await?;
        let send = async {
            let uri = format!("unix:{}", socket.display());
            qmp.execute("migrate", json!({"uri": uri})).await?;
            migrated(&mut qmp).await
        };
        let moved = tokio::try_join!(receive, send);
        let _ = fs::remove_file(&socket);
        moved.map(drop)
    }

    /// QEMU waits for memory; it is sent, and the VM goes on where it was.
    pub(super) async fn read_memory(&self, folder: &Path, from: &Path) -> Result<(), RuntimeError> {
        let socket = folder.join(MIGRATE);
        let mut qmp = Qmp::connect(&folder.join(QMP)).await?;
        let uri = format!("unix:{}", socket.display());
        qmp.execute("migrate-incoming", json!({"uri": uri})).await?;
        let send = async {
            let mut file = File::open(from).await?;
            let mut to = UnixStream::connect(&socket).await?;
            tokio::io::copy(&mut file, &mut to).await?;
            to.shutdown().await
        };
        let send = async { send.await.map_err(|source| pipe("migrate-incoming", source)) };
        let moved = tokio::try_join!(send, migrated(&mut qmp));
        let _ = fs::remove_file(&socket);
        moved?;
        qmp.execute("cont", json!({})).await.map(drop)
    }

    pub(super) async fn export(&self, name: &str, mut to: Output) -> Result<(), RuntimeError> {
        let folder = self.store.snapshot_folder(name);
        let (record, _) = snapshot_in(&folder)
            .map_err(|_| RuntimeError::SnapshotNotFound { snapshot: name.to_owned() })?;
        write_archive(&folder, &record, &mut to).await.map_err(|source| pipe("export", source))
    }

    pub(super) async fn import(&self, name: &str, archive: Input) -> Result<(), RuntimeError> {
        let draft = self.store.draft(&self.new_id()).map_err(|source| pipe("import", source))?;
        let taken = async {
            let record = read_archive(&draft.folder, archive).await?;
            let hardware = serde_json::from_slice(&fs::read(draft.folder.join("machine.json"))?)?;
            let record = SnapshotRecord {
                name: name.to_owned(),
                created_at: Some(self.clock.now()),
                ..record
            };
            self.store.publish(&draft, &record, &hardware)
        };
        taken.await.map_err(|source: io::Error| pipe("import", source))
    }

    pub(super) fn snapshot(&self, name: &str) -> Option<SnapshotRecord> {
        snapshot_in(&self.store.snapshot_folder(name)).ok().map(|(record, _)| record)
    }

    pub(super) fn snapshot_remove(&self, name: &str) -> Result<(), RuntimeError> {
        remove_folder(&self.store.snapshot_folder(name)).map_err(|source| pipe("remove", source))
    }
}

/// What a VM starts from, from one folder to another.
pub(super) async fn copy_files(from: &Path, to: &Path) -> io::Result<()> {
    for file in BOOT_FILES.iter().filter(|file| from.join(file).exists()) {
        share(&from.join(file), &to.join(file))?;
    }
    if from.join(OVERLAY).exists() {
        tokio::fs::copy(from.join(OVERLAY), to.join(OVERLAY)).await?;
    }
    Ok(())
}

/// Waits for the end of a migration, in or out.
async fn migrated(qmp: &mut Qmp) -> Result<(), RuntimeError> {
    loop {
        let said = qmp.execute("query-migrate", json!({})).await?;
        match said["status"].as_str() {
            Some("completed") => return Ok(()),
            Some(status @ ("failed" | "cancelled")) => {
                let detail = said["error-desc"].as_str().unwrap_or(status).to_owned();
                return Err(RuntimeError::Failed { command: "migrate".to_owned(), detail });
            }
            _ => sleep(LOOK).await,
        }
    }
}

/// A VM that stands still. It goes on however the saving ends, also if nobody waits for it any more.
struct Paused {
    qmp: std::path::PathBuf,
    is_paused: bool,
}

impl Paused {
    async fn stop(folder: &Path) -> Result<Self, RuntimeError> {
        let qmp = folder.join(QMP);
        let paused = Self { qmp, is_paused: true };
        Qmp::connect(&paused.qmp).await?.execute("stop", json!({})).await?;
        Ok(paused)
    }

    async fn resume(mut self) -> Result<(), RuntimeError> {
        self.is_paused = false;
        resume(&self.qmp).await
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        if let (true, Ok(runtime)) = (self.is_paused, tokio::runtime::Handle::try_current()) {
            let qmp = self.qmp.clone();
            runtime.spawn(async move {
                if let Err(error) = resume(&qmp).await {
                    tracing::warn!("a VM that was being saved stands still: {error}");
                }
            });
        }
    }
}

async fn resume(qmp: &Path) -> Result<(), RuntimeError> {
    let mut qmp = Qmp::connect(qmp).await?;
    let status = qmp.execute("query-migrate", json!({})).await?;
    if matches!(status["status"].as_str(), Some("active" | "setup")) {
        qmp.execute("migrate_cancel", json!({})).await?;
        while !matches!(migrated(&mut qmp).await, Ok(()) | Err(RuntimeError::Failed { .. })) {}
    }
    qmp.execute("cont", json!({})).await.map(drop)
}

async fn write_archive(folder: &Path, record: &SnapshotRecord, to: &mut Output) -> io::Result<()> {
    let record = SnapshotRecord { created_at: None, ..record.clone() };
    let Value::Object(config) = serde_json::to_value(record)? else { return Ok(()) };
    let text = Envelope { config: config.into_iter().collect(), version: 1 }.to_text()?;
    let entry = |name: &str, size: usize| tar::Entry {
        name: name.to_owned(),
        size: size as u64,
        mode: 0o640,
        ..tar::Entry::default()
    };
    to.write_all(&tar::header(&entry(ENVELOPE, text.len()))).await?;
    to.write_all(&text).await?;
    pad(to, text.len() as u64).await?;
    let mut names: Vec<String> = fs::read_dir(folder)?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name != ENVELOPE)
        .collect();
    names.sort();
    for name in names {
        let mut file = File::open(folder.join(&name)).await?;
        let size = file.metadata().await?.len();
        let whole = tar::Entry { size, ..entry(&name, 0) };
        to.write_all(&tar::header(&whole)).await?;
        let copied = tokio::io::copy(&mut (&mut file).take(size), to).await?;
        if copied != size {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        pad(to, size).await?;
    }
    to.write_all(&tar::end()).await?;
    to.shutdown().await
}

async fn pad(to: &mut Output, size: u64) -> io::Result<()> {
    let zeros = [0; 512];
    to.write_all(&zeros[..usize::try_from(tar::padding(size)).unwrap_or_default()]).await
}

/// Unpacks into a folder. Only a snapshot of QEMU is taken: the memory of another hypervisor means nothing here.
async fn read_archive(folder: &Path, archive: Input) -> io::Result<SnapshotRecord> {
    let mut reader = tar::Reader::new(archive);
    let mut record = None;
    let mut buffer = vec![0; PIECE];
    while let Some(entry) = reader.next().await? {
        if !entry.records.is_empty() {
            return Err(invalid("file {} is sparse, which QEMU's snapshots are not", &entry.name));
        }
        if entry.name == ENVELOPE && entry.size > LARGEST_ENVELOPE {
            return Err(invalid("{} is too large", &entry.name));
        }
        let path = folder.join(&entry.name);
        let mut file = File::create(&path).await?;
        loop {
            let count = reader.read(&mut buffer).await?;
            if count == 0 {
                break;
            }
            file.write_all(&buffer[..count]).await?;
        }
        file.flush().await?;
        if entry.name == ENVELOPE {
            let envelope: Envelope = serde_json::from_slice(&fs::read(&path)?)?;
            let config = Value::Object(envelope.config.into_iter().collect());
            let read: SnapshotRecord = serde_json::from_value(config)?;
            if read.hypervisor.as_str() != Backend::QEMU {
                return Err(invalid(
                    "it was taken with {}, not with qemu",
                    read.hypervisor.as_str(),
                ));
            }
            record = Some(read);
        }
    }
    record.ok_or_else(|| invalid("{} is missing", ENVELOPE))
}

fn invalid(words: &str, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, words.replace("{}", what))
}
