use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::object;

/// One state of one object. Its text is made once, however many lists and watches show it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: Value,
    pub(crate) revision: u64,
    json: OnceLock<Bytes>,
    /// Without `apiVersion` and `kind`, as items of built-in lists are.
    item: OnceLock<Bytes>,
    /// What a webhook made of it, by version.
    converted: Mutex<BTreeMap<String, Arc<Value>>>,
}

impl Stored {
    pub(crate) fn new(mut value: Value, revision: u64) -> Arc<Self> {
        object::metadata_mut(&mut value)
            .insert("resourceVersion".into(), json!(revision.to_string()));
        let (json, item, converted) = (OnceLock::new(), OnceLock::new(), Mutex::default());
        Arc::new(Self { value, revision, json, item, converted })
    }

    fn known_versions(&self) -> MutexGuard<'_, BTreeMap<String, Arc<Value>>> {
        self.converted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it is in another version, if that is known.
    pub(crate) fn converted(&self, version: &str) -> Option<Arc<Value>> {
        self.known_versions().get(version).cloned()
    }

    pub(crate) fn has_converted(&self) -> bool {
        !self.known_versions().is_empty()
    }

    pub(crate) fn keep_converted(&self, version: &str, value: Value) {
        self.known_versions().insert(version.to_owned(), Arc::new(value));
    }

    pub(crate) fn inherit_converted(&self, before: &Self) {
        let known = before.known_versions().clone();
        *self.known_versions() = known;
    }

    pub(crate) fn json(&self) -> &Bytes {
        self.json.get_or_init(|| Bytes::from(self.value.to_string()))
    }

    pub(crate) fn item(&self) -> &Bytes {
        self.item.get_or_init(|| {
            let mut value = self.value.clone();
            if let Some(fields) = value.as_object_mut() {
                fields.remove("apiVersion");
                fields.remove("kind");
            }
            Bytes::from(value.to_string())
        })
    }

    pub(crate) fn uid(&self) -> &str {
        object::uid(&self.value)
    }
}
