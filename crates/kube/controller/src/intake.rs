//! The way into a controller's queue: every event becomes a key with a priority here.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use roost_workqueue::{Add, Workqueue};

use crate::cause::Cause;
use crate::key::Key;
use crate::object::Object;
use crate::store::Store;

type Priority<K> = Box<dyn Fn(Option<&K>, Cause) -> i32 + Send + Sync>;

pub(crate) struct Intake<K> {
    pub(crate) queue: Workqueue<Key>,
    pub(crate) store: Store<K>,
    /// The reconciler's, once there is one.
    priority: OnceLock<Priority<K>>,
}

impl<K: Object> Intake<K> {
    pub(crate) fn new(queue: Workqueue<Key>, store: Store<K>) -> Self {
        Self { queue, store, priority: OnceLock::new() }
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

trait Enqueue: Send + Sync {
    fn add(&self, add: Add, key: Key);
    fn signal(&self, key: Key);
}

impl<K: Object> Enqueue for Intake<K> {
    fn add(&self, add: Add, key: Key) {
        self.queue.add_with(add, [key]);
    }

    fn signal(&self, key: Key) {
        self.put(key, Cause::Signal);
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
}

impl std::fmt::Debug for Trigger {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Trigger")
    }
}
