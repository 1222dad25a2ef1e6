//! An epoch registry in memory.

mod in_process;
mod routes;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::store::Store;

/// A registry with epoch's routes. [`router`](EpochRegistry::router) is served by the caller, on whatever it likes.
#[derive(Debug, Clone, Default)]
pub struct EpochRegistry {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    store: Store,
    token: Option<String>,
    faults: Vec<RegistryFault>,
    journal: Vec<String>,
}

/// What goes wrong with requests whose method and path begin like this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryFault {
    pub method: String,
    /// What the path contains.
    pub path: String,
    pub times: u32,
    pub effect: Effect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It is answered with this status and nothing is done.
    Status(u16),
    /// A blob ends after this many bytes and the connection is cut.
    CutAfter(usize),
    /// One byte of a blob is another.
    Corrupt,
    /// It is done, and answered with this status as if it were not.
    AfterTheFact(u16),
    /// It is never answered.
    Hang,
}

impl EpochRegistry {
    /// Writes need this token.
    pub fn with_token(token: &str) -> Self {
        let registry = Self::default();
        registry.shared().token = Some(token.to_owned());
        registry
    }

    pub fn add_fault(&self, fault: RegistryFault) {
        self.shared().faults.push(fault);
    }

    /// Whatever was to go wrong does not.
    pub fn clear_faults(&self) {
        self.shared().faults.clear();
    }

    /// Somebody deletes a tag.
    pub fn remove_tag(&self, repository: &str, tag: &str) {
        self.shared().store.delete_manifest(repository, tag);
    }

    /// The requests so far: method and path.
    pub fn journal(&self) -> Vec<String> {
        self.shared().journal.clone()
    }

    /// `repository:tag` of everything that is there.
    pub fn tags(&self) -> Vec<String> {
        self.shared().store.tags().map(|(repository, tag)| format!("{repository}:{tag}")).collect()
    }

    /// Puts an artifact there as if somebody had pushed it.
    pub fn put(&self, repository: &str, tag: &str, manifest: &serde_json::Value, blobs: &[&[u8]]) {
        let mut shared = self.shared();
        for blob in blobs {
            shared.store.put_blob(blob.to_vec());
        }
        shared.store.put_manifest(repository, tag, manifest.to_string().into_bytes());
    }

    fn shared(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
