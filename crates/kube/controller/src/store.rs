//! The objects of one kind as the watch last showed them. Reading costs no call.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tokio::sync::watch;

use crate::cause::Cause;
use crate::index::{Extract, Index, IndexEntries};
use crate::key::Key;
use crate::object::Object;
use crate::version::{Relation, number, relation};
use crate::watch::{Change, Listener};

/// Deleted objects whose late messages are still recognised. A message that is later than this many
/// deletions would show a ghost until the next list; servers that keep the order never send one.
const REMEMBERED_DELETIONS: usize = 1024;

/// A cache of one kind, filled by its watch. Cheap to clone.
pub struct Store<K> {
    shared: Arc<Shared<K>>,
}

struct Shared<K> {
    content: RwLock<Content<K>>,
    is_synced: watch::Sender<bool>,
    /// Those who depend on these objects and hear of own writes: the watch, which follows, has nothing new for them.
    followers: RwLock<Vec<Listener<K>>>,
}

struct Content<K> {
    objects: HashMap<Key, Arc<K>>,
    indexes: Vec<IndexEntries<K>>,
    deleted: Deleted,
    extent: Extent,
}

/// What a view contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every object: one that is gone never comes back under its uid.
    All,
    /// Those that a selector picks: one that is gone may only have lost a label, and come back.
    Selected,
}

/// Uids of deleted objects, the latest ones, and up to which version messages about them are late.
#[derive(Default)]
struct Deleted {
    versions: HashMap<Arc<str>, u64>,
    order: VecDeque<Arc<str>>,
}

impl Deleted {
    /// Is this from before the deletion of its object?
    fn is_late(&self, object: &impl kube::Resource) -> bool {
        let uid = object.meta().uid.as_deref();
        let Some(deletion) = uid.and_then(|uid| self.versions.get(uid)) else { return false };
        number(object).unwrap_or(u64::MAX) <= *deletion
    }

    fn remember(&mut self, uid: &str, version: u64) {
        let uid: Arc<str> = uid.into();
        if let Some(known) = self.versions.get_mut(&uid) {
            *known = version.max(*known);
            return;
        }
        self.versions.insert(Arc::clone(&uid), version);
        self.order.push_back(uid);
        if self.order.len() > REMEMBERED_DELETIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.versions.remove(&oldest);
        }
    }
}

/// What an arriving object was.
#[derive(Debug, Clone)]
pub(crate) enum Arrival<K> {
    Created(Arc<K>),
    Changed {
        old: Arc<K>,
        new: Arc<K>,
    },
    /// Another object took the name of one whose deletion was missed.
    Replaced {
        old: Arc<K>,
        new: Arc<K>,
    },
    Known,
}

impl<K: Object> Store<K> {
    pub(crate) fn new(extent: Extent) -> Self {
        let (objects, indexes, deleted) = (HashMap::new(), Vec::new(), Deleted::default());
        let content = Content { objects, indexes, deleted, extent };
        let (is_synced, followers) = (watch::Sender::new(false), RwLock::default());
        Self { shared: Arc::new(Shared { content: RwLock::new(content), is_synced, followers }) }
    }

    pub fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.read().objects.get(key).cloned()
    }

    /// All objects, in no particular order.
    pub fn objects(&self) -> Vec<Arc<K>> {
        self.read().objects.values().cloned().collect()
    }

    pub fn keys(&self) -> Vec<Key> {
        self.read().objects.keys().cloned().collect()
    }

    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Has the first list been read to its end? Before that, a missing object means nothing.
    pub fn is_synced(&self) -> bool {
        *self.shared.is_synced.borrow()
    }

    /// Returns once the first list has been read to its end.
    pub async fn synced(&self) {
        // The sender lives as long as `self`.
        let _ = self.shared.is_synced.subscribe().wait_for(|is_synced| *is_synced).await;
    }

    /// Objects by what they refer to. `values` says under which values an object is found.
    pub fn index<I>(&self, values: impl Fn(&K) -> I + Send + Sync + 'static) -> Index<K>
    where
        I: IntoIterator<Item = String>,
    {
        let extract: Extract<K> = Arc::new(move |object: &K| values(object).into_iter().collect());
        let mut content = self.write();
        let mut entries = IndexEntries::new(extract);
        for (key, object) in &content.objects {
            entries.insert(key, object);
        }
        content.indexes.push(entries);
        Index::new(self.clone(), content.indexes.len() - 1)
    }

    pub(crate) fn keys_at(&self, index: usize, value: &str) -> Vec<Key> {
        self.read().indexes.get(index).map(|index| index.keys(value)).unwrap_or_default()
    }

    pub(crate) fn objects_at(&self, index: usize, value: &str) -> Vec<Arc<K>> {
        let content = self.read();
        let keys = content.indexes.get(index).map(|index| index.keys(value)).unwrap_or_default();
        keys.iter().filter_map(|key| content.objects.get(key).cloned()).collect()
    }

    pub(crate) fn extent(&self) -> Extent {
        self.read().extent
    }

    pub(crate) fn set_synced(&self) {
        self.shared.is_synced.send_if_modified(|is_synced| !std::mem::replace(is_synced, true));
    }

    /// Takes in an object that a list or a watch brought. Late and doubled messages change nothing.
    pub(crate) fn arrive(&self, object: K) -> Arrival<K> {
        let mut content = self.write();
        if content.deleted.is_late(&object) {
            return Arrival::Known;
        }
        let key = Key::of(&object);
        let old = content.objects.get(&key).cloned();
        let relation = old.as_deref().map(|old| relation(old, &object));
        match (old, relation) {
            (_, Some(Relation::Same | Relation::Older)) => Arrival::Known,
            (Some(old), Some(Relation::Another)) => {
                content.remember_deletion(&old, u64::MAX);
                Arrival::Replaced { old, new: content.put(&key, object) }
            }
            (Some(old), _) => Arrival::Changed { old, new: content.put(&key, object) },
            (None, _) => Arrival::Created(content.put(&key, object)),
        }
    }

    /// Takes in the answer to an own write: it is newer than what the watch has shown, which will follow and find nothing
    /// new. Only an object that is known is replaced, so that an answer never brings back one that was deleted.
    pub(crate) fn written(&self, object: &K) {
        let mut content = self.write();
        let key = Key::of(object);
        let Some(old) = content.objects.get(&key).cloned() else { return };
        if relation(old.as_ref(), object) != Relation::Newer || number(object).is_none() {
            return;
        }
        let mut object = object.clone();
        object.meta_mut().managed_fields = None;
        let object = content.put(&key, object);
        drop(content);
        let change = Change { cause: Cause::Changed, object, old: Some(old) };
        let followers = self.shared.followers.read().unwrap_or_else(PoisonError::into_inner);
        followers.iter().for_each(|follower| follower(&change));
    }

    /// Called for each own write, after the store has it. Must not block.
    pub(crate) fn follow(&self, follower: Listener<K>) {
        self.shared.followers.write().unwrap_or_else(PoisonError::into_inner).push(follower);
    }

    /// The object was deleted. `None` if it was not known, or if this is the late deletion of an earlier
    /// object of the same name.
    pub(crate) fn delete(&self, gone: &K) -> Option<Arc<K>> {
        let mut content = self.write();
        let key = Key::of(gone);
        let version = content.deletion_version(gone, None);
        content.remember_deletion(gone, version);
        let known = content.objects.get(&key)?;
        if relation(known.as_ref(), gone) == Relation::Another {
            return None;
        }
        content.take(&key)
    }

    /// The object was not there when somebody asked for it, at this version of all objects if the answer said so.
    pub(crate) fn forget(&self, key: &Key, version: Option<u64>) -> Option<Arc<K>> {
        let mut content = self.write();
        let gone = content.take(key)?;
        let version = content.deletion_version(gone.as_ref(), version);
        content.remember_deletion(&gone, version);
        Some(gone)
    }

    fn read(&self) -> RwLockReadGuard<'_, Content<K>> {
        self.shared.content.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Content<K>> {
        self.shared.content.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Object> Content<K> {
    fn put(&mut self, key: &Key, object: K) -> Arc<K> {
        let object = Arc::new(object);
        let old = self.objects.insert(key.clone(), Arc::clone(&object));
        for index in &mut self.indexes {
            if let Some(old) = &old {
                index.remove(key, old);
            }
            index.insert(key, &object);
        }
        object
    }

    fn take(&mut self, key: &Key) -> Option<Arc<K>> {
        let gone = self.objects.remove(key)?;
        for index in &mut self.indexes {
            index.remove(key, &gone);
        }
        Some(gone)
    }

    /// Up to which version messages about an object that is gone are late.
    fn deletion_version(&self, gone: &K, seen_at: Option<u64>) -> u64 {
        match self.extent {
            Extent::All => u64::MAX,
            Extent::Selected => number(gone).max(seen_at).unwrap_or(0),
        }
    }

    fn remember_deletion(&mut self, gone: &K, version: u64) {
        if let Some(uid) = &gone.meta().uid {
            self.deleted.remember(uid, version);
        }
    }
}

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<K> fmt::Debug for Store<K> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = std::any::type_name::<K>();
        formatter.debug_struct("Store").field("kind", &kind).finish_non_exhaustive()
    }
}

/// Names of the objects, for tests and messages.
impl<K: Object> Store<K> {
    pub fn by_name(&self) -> BTreeMap<Key, Arc<K>> {
        self.read().objects.iter().map(|(key, object)| (key.clone(), Arc::clone(object))).collect()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Resource;

    use super::*;

    fn object(name: &str, uid: &str, version: u64) -> ConfigMap {
        let mut object = ConfigMap::default();
        let meta = object.meta_mut();
        meta.name = Some(name.to_owned());
        meta.uid = Some(uid.to_owned());
        meta.resource_version = Some(version.to_string());
        object
    }

    fn labelled(name: &str, version: u64, owner: &str) -> ConfigMap {
        let mut object = object(name, name, version);
        object.meta_mut().labels = Some([("owner".to_owned(), owner.to_owned())].into());
        object
    }

    #[test]
    fn late_and_doubled_messages_change_nothing() {
        let store = Store::new(Extent::All);
        assert!(matches!(store.arrive(object("a", "1", 5)), Arrival::Created(_)));
        assert!(matches!(store.arrive(object("a", "1", 5)), Arrival::Known), "doubled");
        assert!(matches!(store.arrive(object("a", "1", 4)), Arrival::Known), "late");
        assert!(matches!(store.arrive(object("a", "1", 6)), Arrival::Changed { .. }));
        assert!(matches!(store.arrive(object("a", "2", 9)), Arrival::Replaced { .. }));
        assert!(store.delete(&object("a", "1", 7)).is_none(), "of the earlier object");
        assert!(store.delete(&object("a", "2", 10)).is_some());
        assert!(matches!(store.arrive(object("a", "2", 9)), Arrival::Known), "after its deletion");
        assert!(store.is_empty());
    }

    #[test]
    fn what_left_a_selection_comes_back_and_late_messages_about_it_do_not() {
        let store = Store::new(Extent::Selected);
        assert!(matches!(store.arrive(object("a", "1", 5)), Arrival::Created(_)));
        assert!(store.delete(&object("a", "1", 7)).is_some(), "its label is gone");
        assert!(matches!(store.arrive(object("a", "1", 6)), Arrival::Known), "late");
        assert!(matches!(store.arrive(object("a", "1", 7)), Arrival::Known), "doubled");
        assert!(matches!(store.arrive(object("a", "1", 8)), Arrival::Created(_)), "it is back");
        assert!(store.forget(&Key::cluster("a"), Some(12)).is_some(), "a list did not show it");
        assert!(matches!(store.arrive(object("a", "1", 9)), Arrival::Known), "before that list");
        assert!(matches!(store.arrive(object("a", "1", 13)), Arrival::Created(_)), "after it");
        assert!(matches!(store.arrive(object("a", "2", 20)), Arrival::Replaced { .. }));
        store.delete(&object("a", "2", 21));
        assert!(matches!(store.arrive(object("a", "1", 22)), Arrival::Known), "replaced for good");
        assert!(store.is_empty());
    }

    #[test]
    fn an_answer_to_a_write_is_newer_and_brings_nothing_back() {
        let store = Store::new(Extent::All);
        store.written(&object("a", "1", 5));
        assert!(store.is_empty());
        store.arrive(object("a", "1", 5));
        let heard = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counted = Arc::clone(&heard);
        store.follow(Arc::new(move |_: &Change<ConfigMap>| {
            counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }));
        store.written(&object("a", "1", 7));
        store.written(&object("a", "1", 7));
        assert_eq!(heard.load(std::sync::atomic::Ordering::Relaxed), 1, "dependents hear of it");
        assert!(matches!(store.arrive(object("a", "1", 6)), Arrival::Known));
        assert!(matches!(store.arrive(object("a", "1", 7)), Arrival::Known), "our own write");
        assert!(matches!(store.arrive(object("a", "1", 8)), Arrival::Changed { .. }));
        store.written(&object("a", "0", 9));
        assert_eq!(store.objects()[0].meta().uid.as_deref(), Some("1"));
    }

    #[test]
    fn an_index_follows_its_objects() {
        let store = Store::new(Extent::All);
        store.arrive(labelled("a", 1, "x"));
        let index = store.index(|object: &ConfigMap| {
            object
                .meta()
                .labels
                .iter()
                .filter_map(|labels| labels.get("owner").cloned())
                .collect::<Vec<_>>()
        });
        store.arrive(labelled("b", 2, "x"));
        assert_eq!(index.keys("x"), [Key::cluster("a"), Key::cluster("b")]);
        store.arrive(labelled("a", 3, "y"));
        assert_eq!(index.keys("x"), [Key::cluster("b")]);
        assert_eq!(index.keys("y"), [Key::cluster("a")]);
        store.delete(&labelled("b", 4, "x"));
        assert!(index.keys("x").is_empty());
        assert_eq!(index.objects("y").len(), 1);
    }
}
