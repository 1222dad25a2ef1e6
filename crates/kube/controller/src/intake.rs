//! The way into a controller's queue: every event becomes a key with a priority here.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use roost_workqueue::{Add, Workqueue};

use crate::cause::Cause;
use crate::draft::{Author, Written};
use crate::key::Key;
use crate::object::Object;
use crate::store::Store;
use crate::watch::Change;

type Priority<K> = Box<dyn Fn(Option<&K>, Cause) -> i32 + Send + Sync>;

pub(crate) struct Intake<K> {
    pub(crate) queue: Workqueue<Key>,
    pub(crate) store: Store<K>,
    /// The reconciler's, once there is one.
    priority: OnceLock<Priority<K>>,
    /// Changes of objects that are being written: they wait until it is known whether they are our own.
    writing: Mutex<HashMap<Key, Vec<Change<K>>>>,
}

impl<K: Object> Intake<K> {
    pub(crate) fn new(queue: Workqueue<Key>, store: Store<K>) -> Self {
        Self { queue, store, priority: OnceLock::new(), writing: Mutex::default() }
    }

    pub(crate) fn set_priority(&self, priority: Priority<K>) {
        let _ = self.priority.set(priority);
    }

    pub(crate) fn priority(&self, object: Option<&K>, cause: Cause) -> i32 {
        match self.priority.get() {
            Some(priority) => priority(object, cause),
            None => cause.usual_priority(),
        }
    }

    /// The priority of the object as the store has it.
    pub(crate) fn priority_of(&self, key: &Key, cause: Cause) -> i32 {
        self.priority(self.store.get(key).as_deref(), cause)
    }

    /// What the watch shows.
    pub(crate) fn changed(&self, change: &Change<K>) {
        let key = Key::of(change.object.as_ref());
        if let Some(held) = self.writing().get_mut(&key) {
            held.push(change.clone());
            return;
        }
        self.accept(key, change);
    }

    fn accept(&self, key: Key, change: &Change<K>) {
        let priority = self.priority(Some(&change.object), change.cause);
        self.queue.add_with(Add::at(priority), [key]);
    }

    fn writing(&self) -> MutexGuard<'_, HashMap<Key, Vec<Change<K>>>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn put(&self, key: Key, cause: Cause) {
        let priority = self.priority_of(&key, cause);
        self.queue.add_with(Add::at(priority), [key]);
    }

    pub(crate) fn put_all(&self, cause: Cause) {
        for (key, object) in self.store.by_name() {
            let priority = self.priority(Some(&object), cause);
            self.queue.add_with(Add::at(priority), [key]);
        }
    }
}

impl<K: Object> Author for Intake<K> {
    fn begin(&self, key: &Key) {
        self.writing().entry(key.clone()).or_default();
    }

    fn end(&self, key: &Key, written: Written<'_>) {
        let held = self.writing().remove(key).unwrap_or_default();
        let ours = match written {
            Written::Alone(version) | Written::WithOthers(version) => version.parse::<u64>().ok(),
            Written::Unknown => None,
        };
        for change in held {
            let version = change.object.meta().resource_version.as_deref();
            let version = version.and_then(|version| version.parse::<u64>().ok());
            // Up to our own version everything is in the answer, and the answer says whether others had a part in it.
            let is_known = change.cause == Cause::Changed
                && ours.zip(version).is_some_and(|(ours, version)| version <= ours);
            if !is_known {
                self.accept(key.clone(), &change);
            }
        }
        if matches!(written, Written::WithOthers(_)) {
            self.put(key.clone(), Cause::Changed);
        }
    }
}

trait Enqueue: Send + Sync {
    fn add(&self, add: Add, key: Key);
    fn signal(&self, key: Key);
    fn depths(&self) -> Vec<(String, u64)>;
}

impl<K: Object> Enqueue for Intake<K> {
    fn add(&self, add: Add, key: Key) {
        self.queue.add_with(add, [key]);
    }

    fn signal(&self, key: Key) {
        self.put(key, Cause::Signal);
    }

    fn depths(&self) -> Vec<(String, u64)> {
        self.queue.depths()
    }
}

/// Calls a controller from outside: a VM changed, a task ended. Cheap to clone and to use; a key that
/// is queued already is not doubled.
#[derive(Clone)]
pub struct Trigger(Arc<dyn Enqueue>);

impl Trigger {
    pub(crate) fn new<K: Object>(intake: Arc<Intake<K>>) -> Self {
        Self(intake)
    }

    pub fn enqueue(&self, key: Key, priority: i32) {
        self.0.add(Add::at(priority), key);
    }

    pub fn enqueue_after(&self, key: Key, priority: i32, delay: Duration) {
        self.0.add(Add::at(priority).after(delay), key);
    }

    /// At the priority that the reconciler gives the object for a signal.
    pub fn signal(&self, key: Key) {
        self.0.signal(key);
    }

    /// How many keys wait for a worker, by the label of their priority.
    pub fn depths(&self) -> Vec<(String, u64)> {
        self.0.depths()
    }
}

impl std::fmt::Debug for Trigger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Trigger")
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Resource;
    use roost_workqueue::Settings;

    use super::*;
    use crate::store::Extent;

    fn change(cause: Cause, version: u64) -> Change<ConfigMap> {
        let mut object = ConfigMap::default();
        object.meta_mut().name = Some("a".to_owned());
        object.meta_mut().resource_version = Some(version.to_string());
        Change { cause, object: Arc::new(object), old: None }
    }

    #[tokio::test]
    async fn the_event_of_an_own_write_causes_no_pass_also_when_it_comes_before_the_answer() {
        let key = Key::cluster("a");
        for (case, events, written, expected) in [
            ("our own", vec![change(Cause::Changed, 7)], Written::Alone("7"), 0),
            ("another one before", vec![change(Cause::Changed, 6)], Written::WithOthers("7"), 1),
            ("another one after", vec![change(Cause::Changed, 8)], Written::Alone("7"), 1),
            ("a deletion", vec![change(Cause::Deleted, 7)], Written::Alone("7"), 1),
            ("a lost answer", vec![change(Cause::Changed, 7)], Written::Unknown, 1),
            ("nothing", vec![], Written::Alone("7"), 0),
        ] {
            let intake = Intake::new(Workqueue::new(&Settings::default()), Store::new(Extent::All));
            intake.begin(&key);
            for event in &events {
                intake.changed(event);
            }
            assert!(intake.queue.is_empty(), "{case}: held");
            intake.end(&key, written);
            assert_eq!(intake.queue.len(), expected, "{case}");
            intake.changed(&change(Cause::Changed, 9));
            assert_eq!(intake.queue.len(), 1, "{case}: nothing is held any more");
        }
    }
}
