use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;

use crate::key::Key;
use crate::object::Object;
use crate::store::Store;

pub(crate) type Extract<K> = Arc<dyn Fn(&K) -> Vec<String> + Send + Sync>;

/// Finds objects by a value that they carry, such as the Secret that they name, without looking at the others.
pub struct Index<K> {
    store: Store<K>,
    number: usize,
}

impl<K: Object> Index<K> {
    pub(crate) fn new(store: Store<K>, number: usize) -> Self {
        Self { store, number }
    }

    /// In the order of their names.
    pub fn keys(&self, value: &str) -> Vec<Key> {
        self.store.keys_at(self.number, value)
    }

    pub fn objects(&self, value: &str) -> Vec<Arc<K>> {
        self.store.objects_at(self.number, value)
    }
}

impl<K> Clone for Index<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), number: self.number }
    }
}

impl<K> fmt::Debug for Index<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Index").field("store", &self.store).finish_non_exhaustive()
    }
}

pub(crate) struct IndexEntries<K> {
    extract: Extract<K>,
    entries: HashMap<String, BTreeSet<Key>>,
}

impl<K> IndexEntries<K> {
    pub(crate) fn new(extract: Extract<K>) -> Self {
        Self { extract, entries: HashMap::new() }
    }

    pub(crate) fn keys(&self, value: &str) -> Vec<Key> {
        self.entries.get(value).into_iter().flatten().cloned().collect()
    }

    pub(crate) fn insert(&mut self, key: &Key, object: &K) {
        for value in (self.extract)(object) {
            self.entries.entry(value).or_default().insert(key.clone());
        }
    }

    pub(crate) fn remove(&mut self, key: &Key, object: &K) {
        for value in (self.extract)(object) {
            if let Some(keys) = self.entries.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.entries.remove(&value);
                }
            }
        }
    }
}
