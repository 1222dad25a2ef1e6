//! Work at the files of cached images that was started and left: copies, and removals of what nobody needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use roost_controller::{Key, Trigger};

use crate::api::CacheFile;

/// A handle; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Copies {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    trigger: OnceLock<Trigger>,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeSet<At>,
    ended: BTreeMap<At, Result<Ended, String>>,
    /// Files of these were there, and somebody did not find them.
    doubted: BTreeSet<At>,
}

/// A cache object, and what is worked at: one of its locations, or a directory that it has left.
type At = (Key, String);

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Copied {
        /// Of the image.
        version: String,
        files: Vec<CacheFile>,
    },
    Removed,
    /// These VMs stand on what was to be removed.
    StillUsed(Vec<String>),
}

impl Copies {
    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever is called when work has ended.
    pub(crate) fn call(&self, trigger: Trigger) {
        let _ = self.shared.trigger.set(trigger);
    }

    pub(crate) fn is_running(&self, key: &Key, what: &str) -> bool {
        self.state().running.contains(&(key.clone(), what.to_owned()))
    }

    /// Notes that work begins, and returns what is to be told of its end.
    pub(crate) fn begin(
        &self,
        key: &Key,
        what: &str,
    ) -> impl FnOnce(Result<Ended, String>) + Send + use<> {
        let at = (key.clone(), what.to_owned());
        self.state().running.insert(at.clone());
        let copies = self.clone();
        move |ended| {
            {
                let mut state = copies.state();
                state.running.remove(&at);
                state.ended.insert(at.clone(), ended);
            }
            copies.signal(&at.0);
        }
    }

    pub(crate) fn take_ended(&self, key: &Key, what: &str) -> Option<Result<Ended, String>> {
        self.state().ended.remove(&(key.clone(), what.to_owned()))
    }

    /// Files are missing that the object says are there.
    pub(crate) fn doubt(&self, key: &Key, what: &str) {
        self.state().doubted.insert((key.clone(), what.to_owned()));
        self.signal(key);
    }

    pub(crate) fn take_doubt(&self, key: &Key, what: &str) -> bool {
        self.state().doubted.remove(&(key.clone(), what.to_owned()))
    }

    fn signal(&self, key: &Key) {
        if let Some(trigger) = self.shared.trigger.get() {
            trigger.signal(key.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_until_it_is_told_to_have_ended_and_is_taken_up_once() {
        let (copies, key) = (Copies::default(), Key::new("a", "vmi-1"));
        let told = copies.begin(&key, "ds-1");
        assert!(copies.is_running(&key, "ds-1") && !copies.is_running(&key, "ds-2"));
        told(Ok(Ended::Removed));
        assert!(!copies.is_running(&key, "ds-1"));
        assert_eq!(copies.take_ended(&key, "ds-1"), Some(Ok(Ended::Removed)));
        assert_eq!(copies.take_ended(&key, "ds-1"), None);
        copies.doubt(&key, "ds-2");
        assert!(copies.take_doubt(&key, "ds-2") && !copies.take_doubt(&key, "ds-2"));
    }
}
