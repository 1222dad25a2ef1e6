use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::draft::{Draft, Home};
use crate::key::Key;
use crate::object::Object;
use crate::store::Store;

/// What a reconciler is given for one pass.
pub struct Pass<K: Object> {
    pub(crate) key: Key,
    pub(crate) object: Option<Arc<K>>,
    pub(crate) started: Timestamp,
    pub(crate) resource: K::DynamicType,
    pub(crate) home: Home<K>,
}

impl<K: Object> Pass<K> {
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The object when the pass began; `None` once it is gone.
    pub fn object(&self) -> Option<&Arc<K>> {
        self.object.as_ref()
    }

    /// When the pass began.
    pub fn started(&self) -> Timestamp {
        self.started
    }

    /// All objects of the kind.
    pub fn store(&self) -> &Store<K> {
        &self.home.store
    }

    /// The object, to be changed and saved.
    pub fn draft(&self) -> Option<Draft<K>> {
        let seen = Arc::clone(self.object.as_ref()?);
        let mut draft = Draft::of(seen, self.resource.clone());
        draft.home = Some(self.home.clone());
        Some(draft)
    }
}

impl<K: Object> fmt::Debug for Pass<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Pass");
        debug.field("key", &self.key).field("is_there", &self.object.is_some());
        debug.finish_non_exhaustive()
    }
}
