use std::sync::Arc;

use roost_vim_wire::MoRef;

/// A file on a datastore, by the datastore's reference: its name may change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FilePath {
    pub datastore: MoRef,
    pub path: Arc<str>,
}

impl FilePath {
    pub(crate) fn new(datastore: &MoRef, path: impl Into<Arc<str>>) -> Self {
        Self { datastore: datastore.clone(), path: path.into() }
    }
}

/// What a disk device adds to its base: how large it looks, and the file that takes its writes.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub capacity_kb: i64,
    pub file: Arc<DiskFile>,
    /// Made empty, with no system on it to boot.
    pub is_blank: bool,
}

/// One file of a disk. Only the top of a chain is written to, so linked clones and snapshots share what is below it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DiskFile {
    pub path: FilePath,
    pub uuid: u128,
    pub thin: bool,
    pub parent: Option<Arc<DiskFile>>,
}

impl DiskFile {
    /// This file and those below it.
    pub(crate) fn chain(&self) -> impl Iterator<Item = &DiskFile> {
        std::iter::successors(Some(self), |file| file.parent.as_deref())
    }

    pub(crate) fn uses(&self, path: &FilePath) -> bool {
        self.chain().any(|file| file.path == *path)
    }
}

/// What a new disk of this size takes on its datastore: all of it, or for a thin one what an installed system fills.
pub(crate) fn initial_bytes(capacity_kb: i64, thin: bool) -> i64 {
    let capacity = capacity_kb.saturating_mul(1024);
    if thin { capacity / 8 } else { capacity }
}

/// A child disk starts with its header and grain tables.
pub(crate) const CHILD_DISK_BYTES: i64 = 16 << 20;
