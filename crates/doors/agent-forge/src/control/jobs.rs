//! Work that takes time. A pass starts it and is gone; its end calls the pass back.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// One job per key, and what the last one came to. Cheap to clone.
#[derive(Debug)]
pub(crate) struct Jobs<K, T> {
    slots: Arc<Mutex<HashMap<K, Slot<T>>>>,
}

#[derive(Debug)]
struct Slot<T> {
    running: Option<AbortHandle>,
    ended: Option<Arc<T>>,
}

impl<K, T> Clone for Jobs<K, T> {
    fn clone(&self) -> Self {
        Self { slots: Arc::clone(&self.slots) }
    }
}

impl<K, T> Default for Jobs<K, T> {
    fn default() -> Self {
        Self { slots: Arc::default() }
    }
}

impl<K: Clone + Eq + Hash + Send + 'static, T: Send + Sync + 'static> Jobs<K, T> {
    fn slots(&self) -> MutexGuard<'_, HashMap<K, Slot<T>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_running(&self, key: &K) -> bool {
        self.slots().get(key).is_some_and(|slot| slot.running.is_some())
    }

    /// What the last one came to.
    pub(crate) fn ended(&self, key: &K) -> Option<Arc<T>> {
        self.slots().get(key).and_then(|slot| slot.ended.clone())
    }

    /// What the last one came to, once.
    pub(crate) fn take_ended(&self, key: &K) -> Option<Arc<T>> {
        self.slots().get_mut(key).and_then(|slot| slot.ended.take())
    }

    /// Starts a job unless one runs. `told` is called after its end.
    pub(crate) fn start(
        &self,
        key: K,
        work: impl Future<Output = T> + Send + 'static,
        told: impl FnOnce() + Send + 'static,
    ) {
        let mut slots = self.slots();
        let slot = slots.entry(key.clone()).or_insert(Slot { running: None, ended: None });
        if slot.running.is_some() {
            return;
        }
        let jobs = self.clone();
        let task = tokio::spawn(async move {
            // A job that panics must not hold its key for ever.
            let guard = Cleared { jobs: jobs.clone(), key: key.clone() };
            let ended = work.await;
            if let Some(slot) = jobs.slots().get_mut(&key) {
                slot.ended = Some(Arc::new(ended));
            }
            drop(guard);
            told();
        });
        slot.running = Some(task.abort_handle());
    }

    pub(crate) fn forget(&self, key: &K) {
        if let Some(Slot { running: Some(task), .. }) = self.slots().remove(key) {
            task.abort();
        }
    }

    pub(crate) fn forget_where(&self, is_it: impl Fn(&K) -> bool) {
        let keys: Vec<K> = self.slots().keys().filter(|key| is_it(key)).cloned().collect();
        for key in &keys {
            self.forget(key);
        }
    }

    /// As a crash does.
    pub(crate) fn abandon(&self) {
        for (_, slot) in self.slots().drain() {
            if let Some(task) = slot.running {
                task.abort();
            }
        }
    }
}

struct Cleared<K: Clone + Eq + Hash + Send + 'static, T: Send + Sync + 'static> {
    jobs: Jobs<K, T>,
    key: K,
}

impl<K: Clone + Eq + Hash + Send + 'static, T: Send + Sync + 'static> Drop for Cleared<K, T> {
    fn drop(&mut self) {
        if let Some(slot) = self.jobs.slots().get_mut(&self.key) {
            slot.running = None;
        }
    }
}
