use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::key::Key;
use crate::object::Object;
use crate::store::Store;

/// An object as it was seen and as it is wanted. Reads and changes go to the wanted one; [`Writer::save`] sends the
/// difference, and nothing if there is none.
///
/// [`Writer::save`]: crate::Writer::save
pub struct Draft<K: Object> {
    pub(crate) seen: Arc<K>,
    pub(crate) wanted: K,
    pub(crate) resource: K::DynamicType,
    pub(crate) owned_conditions: Vec<String>,
    /// Whether a conflict brought in what the pass has not seen, and no write has told of it yet.
    pub(crate) has_others: bool,
    pub(crate) home: Option<Home<K>>,
}

/// Where an answer of the server goes.
pub(crate) struct Home<K> {
    pub(crate) store: Store<K>,
    pub(crate) author: Arc<dyn Author>,
}

impl<K> Clone for Home<K> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), author: Arc::clone(&self.author) }
    }
}

/// Who is told of writes, so that the watch event of an own write causes no pass. The event may come before the answer.
pub(crate) trait Author: Send + Sync {
    fn begin(&self, key: &Key);
    /// The write is over.
    fn end(&self, key: &Key, written: Written<'_>);
}

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written<'a> {
    /// The object has this version, and nobody else's change is in it that was not seen.
    Alone(&'a str),
    /// It has this version, and somebody else changed it too.
    WithOthers(&'a str),
    /// Nothing is known.
    Unknown,
}

impl<K: Object> Draft<K> {
    /// A draft of an object that was read by other means than a watch.
    pub fn of(seen: Arc<K>, resource: K::DynamicType) -> Self {
        let wanted = K::clone(&seen);
        Self { seen, wanted, resource, owned_conditions: Vec::new(), has_others: false, home: None }
    }

    pub fn key(&self) -> Key {
        Key::of(self.seen.as_ref())
    }

    pub fn seen(&self) -> &K {
        &self.seen
    }

    pub fn is_changed(&self) -> bool {
        *self.seen != self.wanted
    }

    /// Conditions that nobody else writes: a save wins over whoever changed them in between.
    pub fn own_conditions(&mut self, types: &[&str]) {
        self.owned_conditions.extend(types.iter().map(|name| (*name).to_owned()));
    }

    pub fn has_finalizer(&self, name: &str) -> bool {
        self.wanted.meta().finalizers.iter().flatten().any(|finalizer| finalizer == name)
    }

    /// False if it was there already.
    pub fn add_finalizer(&mut self, name: &str) -> bool {
        let is_new = !self.has_finalizer(name);
        if is_new {
            self.wanted.meta_mut().finalizers.get_or_insert_default().push(name.to_owned());
        }
        is_new
    }

    /// False if it was not there.
    pub fn remove_finalizer(&mut self, name: &str) -> bool {
        let was_there = self.has_finalizer(name);
        if was_there && let Some(finalizers) = &mut self.wanted.meta_mut().finalizers {
            finalizers.retain(|finalizer| finalizer != name);
        }
        was_there
    }

    pub fn is_being_deleted(&self) -> bool {
        self.wanted.meta().deletion_timestamp.is_some()
    }
}

impl<K: Object> Deref for Draft<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.wanted
    }
}

impl<K: Object> DerefMut for Draft<K> {
    fn deref_mut(&mut self) -> &mut K {
        &mut self.wanted
    }
}

impl<K: Object> fmt::Debug for Draft<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Draft");
        debug
            .field("key", &self.key())
            .field("is_changed", &self.is_changed())
            .finish_non_exhaustive()
    }
}
