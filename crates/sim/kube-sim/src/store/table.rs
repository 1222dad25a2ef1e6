use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Key, Stored};

/// One change of one object.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) before: Option<Arc<Stored>>,
    /// The new state; of a removal the last one, with the revision of the removal.
    pub(crate) now: Arc<Stored>,
    pub(crate) is_removal: bool,
}

/// All objects of one kind.
#[derive(Debug, Default)]
pub(crate) struct Table {
    objects: BTreeMap<Key, Arc<Stored>>,
    /// Oldest first; what is no longer here cannot be watched from.
    history: VecDeque<Arc<Change>>,
    /// The last revision that was dropped from the history.
    compacted: u64,
    watchers: Vec<Watcher>,
}

/// What a watch missed, and what follows.
pub(crate) type Subscription = (Vec<Arc<Change>>, UnboundedReceiver<Arc<Change>>);

#[derive(Debug)]
struct Watcher {
    /// `None` sees every namespace.
    namespace: Option<String>,
    sender: UnboundedSender<Arc<Change>>,
}

impl Table {
    /// A table that is made at this revision has no older history.
    pub(crate) fn since(revision: u64) -> Self {
        Self { compacted: revision, ..Self::default() }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    /// In the order of namespace and name, from `after` on.
    pub(crate) fn objects<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Stored>)> + use<'a> {
        let first = namespace.map(|namespace| (namespace.to_owned(), String::new()));
        let start = match (after, first) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(first)) => Bound::Included(first),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range((start, Bound::Unbounded))
            .take_while(move |(key, _)| namespace.is_none_or(|namespace| key.0 == namespace))
    }

    /// Every state that a list or a watch may show.
    pub(crate) fn states(&self) -> impl Iterator<Item = &Arc<Stored>> {
        let history = self.history.iter();
        let past = history.flat_map(|change| [Some(&change.now), change.before.as_ref()]);
        self.objects.values().chain(past.flatten())
    }

    /// The objects as they were at a revision; `None` when that is forgotten.
    pub(crate) fn objects_at(&self, revision: u64) -> Option<BTreeMap<Key, Arc<Stored>>> {
        if revision < self.compacted {
            return None;
        }
        let mut objects = self.objects.clone();
        for change in self.history.iter().rev().take_while(|change| change.revision > revision) {
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), Arc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        Some(objects)
    }

    pub(crate) fn changed_since(&self, revision: u64) -> bool {
        revision < self.compacted
            || self.history.back().is_some_and(|change| change.revision > revision)
    }

    /// Puts an object in and tells those who watch.
    pub(crate) fn put(&mut self, key: Key, now: Arc<Stored>, keep: usize) {
        let before = self.objects.insert(key.clone(), Arc::clone(&now));
        self.record(Change { revision: now.revision, key, before, now, is_removal: false }, keep);
    }

    pub(crate) fn remove(&mut self, key: &Key, revision: u64, keep: usize) -> Option<Arc<Stored>> {
        let before = self.objects.remove(key)?;
        let now = Stored::new(before.value.clone(), revision);
        crate::convert::inherit(&before, &now);
        let change = Change {
            revision,
            key: key.clone(),
            before: Some(before),
            now: Arc::clone(&now),
            is_removal: true,
        };
        self.record(change, keep);
        Some(now)
    }

    fn record(&mut self, change: Change, keep: usize) {
        let change = Arc::new(change);
        self.watchers.retain(|watcher| {
            if watcher.namespace.as_ref().is_some_and(|namespace| *namespace != change.key.0) {
                return !watcher.sender.is_closed();
            }
            watcher.sender.send(Arc::clone(&change)).is_ok()
        });
        self.history.push_back(change);
        while self.history.len() > keep {
            if let Some(dropped) = self.history.pop_front() {
                self.compacted = dropped.revision;
            }
        }
    }

    /// Forgets the history, so that a watch from before must start over.
    pub(crate) fn compact(&mut self, revision: u64) {
        self.history.clear();
        self.compacted = revision;
    }

    /// Changes after `revision` and all that follow; `None` when that is forgotten.
    pub(crate) fn watch(
        &mut self,
        namespace: Option<String>,
        revision: u64,
    ) -> Option<Subscription> {
        if revision < self.compacted {
            return None;
        }
        let missed = self
            .history
            .iter()
            .rev()
            .take_while(|change| change.revision > revision)
            .filter(|change| namespace.as_ref().is_none_or(|namespace| *namespace == change.key.0))
            .cloned()
            .collect::<Vec<_>>();
        let (sender, receiver) = unbounded_channel();
        self.watchers.push(Watcher { namespace, sender });
        Some((missed.into_iter().rev().collect(), receiver))
    }

    /// Ends every watch.
    pub(crate) fn cut_watches(&mut self) -> usize {
        std::mem::take(&mut self.watchers).len()
    }

    pub(crate) fn watches(&self) -> usize {
        self.watchers.iter().filter(|watcher| !watcher.sender.is_closed()).count()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn put(table: &mut Table, namespace: &str, name: &str, revision: u64) {
        let value = json!({"metadata": {"name": name, "namespace": namespace}, "n": revision});
        table.put((namespace.into(), name.into()), Stored::new(value, revision), 3);
    }

    #[test]
    fn a_list_can_look_back_as_far_as_the_history_reaches() {
        let mut table = Table::default();
        for (name, revision) in [("a", 1), ("b", 2), ("a", 3), ("c", 4)] {
            put(&mut table, "n", name, revision);
        }
        table.remove(&("n".into(), "b".into()), 5, 3);
        let names = |revision| {
            let at = table.objects_at(revision)?;
            Some(
                at.into_iter()
                    .map(|((_, name), stored)| format!("{name}{}", stored.revision))
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(names(5), Some(vec!["a3".into(), "c4".into()]));
        assert_eq!(names(4), Some(vec!["a3".into(), "b2".into(), "c4".into()]));
        assert_eq!(names(2), Some(vec!["a1".into(), "b2".into()]));
        assert_eq!(names(1), None, "forgotten");
    }

    #[test]
    fn a_watch_gets_what_it_missed_of_its_namespace_and_what_follows() {
        let mut table = Table::default();
        put(&mut table, "n", "a", 1);
        put(&mut table, "m", "b", 2);
        put(&mut table, "n", "c", 3);
        let (missed, mut receiver) = table.watch(Some("n".into()), 1).unwrap();
        assert_eq!(missed.iter().map(|change| change.revision).collect::<Vec<_>>(), [3]);
        put(&mut table, "m", "d", 4);
        put(&mut table, "n", "e", 5);
        assert_eq!(receiver.try_recv().unwrap().revision, 5);
        assert_eq!(table.cut_watches(), 1);
        assert!(receiver.try_recv().is_err());
        put(&mut table, "n", "f", 6);
        assert!(table.watch(None, 1).is_none(), "compacted");
    }
}
