//! What the runtime keeps on disk: a folder for each VM, snapshot and image. Its files are the truth; nothing is only in memory.
//!
//! ```text
//! lock                          held for as long as a runtime uses the folder
//! images/NAME/                  disk.qcow2 or disk.raw; or vmlinuz with initrd and cmdline, with or without a disk
//! snapshots/NAME/               snapshot.json, machine.json, memory-ranges, and the files that the VM starts from
//! vms/ID/                       vm.json, overlay.qcow2, vmlinuz, initrd, cmdline, serial.log and sockets
//! ```

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::record::{SnapshotRecord, VmRecord, VmState};

pub(super) const MEMORY: &str = "memory-ranges";
pub(super) const OVERLAY: &str = "overlay.qcow2";
pub(super) const KERNEL: &str = "vmlinuz";
pub(super) const INITRD: &str = "initrd";
pub(super) const CMDLINE: &str = "cmdline";
pub(super) const SEED: &str = "seed";
pub(super) const SERIAL: &str = "serial.log";
/// What it was before the last start.
pub(super) const PREVIOUS_SERIAL: &str = "serial.previous.log";
const VM: &str = "vm.json";
const SNAPSHOT: &str = "snapshot.json";
const MACHINE: &str = "machine.json";
/// What a VM starts from, beside its disk. Part of every snapshot, so that another host can wake it.
pub(super) const BOOT_FILES: [&str; 3] = [KERNEL, INITRD, CMDLINE];
/// The address of a socket holds no longer path.
const LONGEST_SOCKET: usize = 107;

/// What a memory snapshot depends on: a VM wakes only in a machine that is built the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Hardware {
    /// QEMU's name of the machine, with its version.
    pub(super) machine: String,
    pub(super) cpu: String,
    pub(super) mac: String,
}

/// `vm.json`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Machine {
    pub(super) vm: VmRecord,
    pub(super) hardware: Hardware,
    /// Ports of the guest that are forwarded from its address.
    pub(super) ports: BTreeSet<u16>,
}

impl Machine {
    /// Where its ports are found on this host.
    pub(super) fn address(&self) -> Ipv4Addr {
        let address = self.vm.address().and_then(|address| address.parse().ok());
        address.unwrap_or(Ipv4Addr::LOCALHOST)
    }
}

#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
    _lock: File,
}

impl Store {
    /// Takes the folder for itself: two runtimes on one folder would fight for its VMs.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        for folder in ["vms", "snapshots", "images"] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(root.join(folder))?;
        }
        let root = root.canonicalize()?;
        if root.join("vms").join("I".repeat(26)).join("migrate.sock").as_os_str().len()
            > LONGEST_SOCKET
        {
            let words = "its path is too long for the sockets that are made in it";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, words));
        }
        let lock = File::create(root.join("lock"))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another process uses it"))?;
        Ok(Self { root, _lock: lock })
    }

    pub(super) fn vm_folder(&self, id: &str) -> PathBuf {
        self.root.join("vms").join(id)
    }

    pub(super) fn image_folder(&self, name: &str) -> PathBuf {
        self.root.join("images").join(file_name(name))
    }

    pub(super) fn snapshot_folder(&self, name: &str) -> PathBuf {
        self.root.join("snapshots").join(file_name(name))
    }

    pub(super) fn machines(&self) -> Vec<Machine> {
        let mut all: Vec<Machine> = folders(&self.root.join("vms"))
            .filter_map(|folder| read_json(&folder.join(VM)).ok())
            .collect();
        all.sort_by(|a, b| (a.vm.created_at, &a.vm.id).cmp(&(b.vm.created_at, &b.vm.id)));
        all
    }

    /// By id or name.
    pub(super) fn machine(&self, vm: &str) -> Option<Machine> {
        let by_id = || read_json::<Machine>(&self.vm_folder(vm).join(VM)).ok();
        let is_id = !vm.is_empty() && vm.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let found = is_id.then(by_id).flatten();
        found.or_else(|| self.machines().into_iter().find(|machine| machine.vm.name() == vm))
    }

    pub(super) fn write_machine(&self, machine: &Machine) -> io::Result<()> {
        write_json(&self.vm_folder(&machine.vm.id).join(VM), machine)
    }

    /// Folders of VMs whose making was cut short, or whose record is not whole.
    pub(super) fn unfinished(&self) -> Vec<PathBuf> {
        let is_whole = |folder: &PathBuf| {
            let read = read_json::<Machine>(&folder.join(VM));
            read.is_ok_and(|machine| machine.vm.state != VmState::Creating)
        };
        folders(&self.root.join("vms")).filter(|folder| !is_whole(folder)).collect()
    }

    pub(super) fn snapshots(&self) -> Vec<SnapshotRecord> {
        let all = folders(&self.root.join("snapshots"));
        all.filter_map(|folder| read_json(&folder.join(SNAPSHOT)).ok()).collect()
    }

    /// A new folder for a snapshot. It becomes one by [`publish`](Self::publish).
    pub(super) fn draft(&self, token: &str) -> io::Result<Draft> {
        let folder = self.root.join("snapshots").join(format!(".draft-{token}"));
        fs::create_dir(&folder)?;
        Ok(Draft { folder })
    }

    /// Drafts that were left by a runtime that died.
    pub(super) fn drafts(&self) -> Vec<PathBuf> {
        let read = fs::read_dir(self.root.join("snapshots")).into_iter().flatten().flatten();
        let is_draft = |path: &PathBuf| file_text(path).starts_with(".draft-");
        read.map(|entry| entry.path()).filter(is_draft).collect()
    }

    /// Gives the draft its name. What had that name before is replaced.
    pub(super) fn publish(
        &self,
        draft: &Draft,
        record: &SnapshotRecord,
        hardware: &Hardware,
    ) -> io::Result<()> {
        write_json(&draft.folder.join(SNAPSHOT), record)?;
        write_json(&draft.folder.join(MACHINE), hardware)?;
        let folder = self.snapshot_folder(&record.name);
        remove_folder(&folder)?;
        fs::rename(&draft.folder, folder)
    }
}

/// Removed when it is dropped, unless it has become a snapshot.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) folder: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

pub(super) fn snapshot_in(folder: &Path) -> io::Result<(SnapshotRecord, Hardware)> {
    Ok((read_json(&folder.join(SNAPSHOT))?, read_json(&folder.join(MACHINE))?))
}

/// The disk of an image folder and its format.
pub(super) fn disk_in(image: &Path) -> Option<(PathBuf, &'static str)> {
    [("disk.qcow2", "qcow2"), ("disk.raw", "raw")]
        .into_iter()
        .map(|(name, format)| (image.join(name), format))
        .find(|(path, _)| path.exists())
}

/// A second name for the file where the file system allows it, else a copy.
pub(super) fn share(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
}

pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

fn folders(below: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let read = fs::read_dir(below).into_iter().flatten().flatten();
    read.map(|entry| entry.path()).filter(|path| !file_text(path).starts_with('.') && path.is_dir())
}

fn file_text(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Names of images and snapshots have slashes and colons; names of files do not.
fn file_name(name: &str) -> String {
    let mut text = String::new();
    for (at, byte) in name.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        if is_plain || (byte == b'.' && at > 0) {
            text.push(char::from(byte));
        } else {
            text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    text
}

fn digit(value: u8) -> char {
    char::from_digit(value.into(), 16).unwrap_or('0').to_ascii_uppercase()
}

fn read_json<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    serde_json::from_slice(&fs::read(path)?).map_err(io::Error::other)
}

/// Whole or not at all, also if the machine dies.
fn write_json<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let mut file = File::create(&fresh)?;
    serde_json::to_writer_pretty(&mut file, value).map_err(io::Error::other)?;
    file.sync_all()?;
    fs::rename(fresh, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_one_file_of_its_own() {
        let names = ["a/b", "a:b", "a%b", "..", ".", "a.b", "A", "ä", ""];
        let files: BTreeSet<String> = names.iter().map(|name| file_name(name)).collect();
        assert_eq!(files.len(), names.len());
        assert!(files.iter().all(|file| !file.contains('/') && !file.starts_with('.')));
        assert_eq!(file_name("team/web:v1.2"), "team%2Fweb%3Av1.2");
    }

    #[test]
    fn a_folder_serves_one_runtime_and_keeps_what_was_written() {
        let root = std::env::temp_dir().join(format!("roost-store-{}", std::process::id()));
        let store = Store::open(&root).unwrap();
        assert!(Store::open(&root).is_err(), "taken");
        let mut machine = Machine::default();
        machine.vm.id = "VM1".to_owned();
        machine.vm.config.name = "web".to_owned();
        fs::create_dir(store.vm_folder("VM1")).unwrap();
        assert_eq!(store.unfinished().len(), 1, "a folder without a record");
        store.write_machine(&machine).unwrap();
        assert!(store.unfinished().is_empty());
        drop(store);
        let store = Store::open(&root).unwrap();
        assert_eq!(store.machine("web"), Some(machine.clone()));
        assert_eq!(store.machine("VM1"), Some(machine));
        assert_eq!(store.machine("../VM1"), None);
        let draft = store.draft("1").unwrap();
        assert_eq!(store.drafts().len(), 1);
        let record = SnapshotRecord { name: "s:1".to_owned(), ..SnapshotRecord::default() };
        store.publish(&draft, &record, &Hardware::default()).unwrap();
        drop(draft);
        assert_eq!((store.snapshots(), store.drafts().len()), (vec![record], 0));
        drop(store.draft("2").unwrap());
        assert_eq!(store.snapshots().len(), 1, "a draft that is given up leaves nothing");
        fs::remove_dir_all(root).unwrap();
    }
}
