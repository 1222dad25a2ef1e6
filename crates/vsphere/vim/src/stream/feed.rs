//! What waits between the hub and a subscriber.
//!
//! The hub never waits for a slow reader. Updates of one object are merged while they wait, so what piles up is bounded by
//! what exists, not by what happened.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use roost_vim_wire::MoRef;
use roost_vim_wire::types::PropertyChange;
use tokio::sync::{Notify, watch};

use super::{Batch, Change, StreamStatus, Update};

#[derive(Debug, Default)]
pub(crate) struct Feed {
    pending: Mutex<Pending>,
    news: Notify,
    pub(super) status: watch::Sender<StreamStatus>,
}

#[derive(Debug, Default)]
struct Pending {
    slots: Vec<Option<Slot>>,
    by_object: HashMap<MoRef, usize>,
    missing: BTreeSet<MoRef>,
    synced: bool,
    told_synced: bool,
    resynced: bool,
    ended: bool,
}

#[derive(Debug)]
struct Slot {
    update: Update,
    /// The reader has never heard of the object.
    fresh: bool,
}

impl Feed {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `fresh` says that the subscriber was never told of the object, or last that it left.
    pub(super) fn push(&self, obj: MoRef, change: Change, fresh: bool) {
        self.pending().push(obj, change, fresh);
    }

    /// Objects that the subscriber has named and that do not exist.
    pub(super) fn miss(&self, objects: Vec<MoRef>) {
        self.pending().missing.extend(objects);
    }

    /// Lets the reader see what was pushed.
    pub(super) fn publish(&self) {
        if self.pending().has_news() {
            self.news.notify_one();
        }
    }

    pub(super) fn set_synced(&self, resynced: bool) {
        let mut pending = self.pending();
        pending.synced = true;
        pending.resynced |= resynced;
    }

    /// What is shown is no longer known to be the truth.
    pub(super) fn set_broken(&self) {
        self.pending().synced = false;
        self.publish();
    }

    pub(super) fn end(&self) {
        self.pending().ended = true;
        self.news.notify_one();
        self.status.send_modify(|status| status.synced = false);
    }

    pub(super) async fn next(&self) -> Option<Batch> {
        while self.has_more().await {
            if let Some(batch) = self.take() {
                return Some(batch);
            }
        }
        None
    }

    /// What waits already.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut pending = self.pending();
        pending.has_news().then(|| pending.take())
    }

    /// Waits until there is something to take; false when nothing more can come.
    pub(super) async fn has_more(&self) -> bool {
        loop {
            {
                let pending = self.pending();
                if pending.has_news() {
                    return true;
                }
                if pending.ended {
                    return false;
                }
            }
            self.news.notified().await;
        }
    }
}

impl Pending {
    fn has_news(&self) -> bool {
        let has_turned = self.synced != self.told_synced || self.resynced;
        !self.by_object.is_empty() || !self.missing.is_empty() || has_turned && !self.ended
    }

    fn push(&mut self, obj: MoRef, change: Change, fresh: bool) {
        let Some(&at) = self.by_object.get(&obj) else {
            self.by_object.insert(obj.clone(), self.slots.len());
            self.slots.push(Some(Slot { update: Update { obj, change }, fresh }));
            return;
        };
        let Some(slot) = &mut self.slots[at] else { return };
        match (&mut slot.update.change, change) {
            (Change::Enter(_), Change::Leave) if slot.fresh => {
                self.by_object.remove(&obj);
                self.slots[at] = None;
            }
            (Change::Enter(properties), Change::Modify(changes)) => {
                for change in changes {
                    properties.apply(change);
                }
            }
            (Change::Modify(before), Change::Modify(changes)) => merge(before, changes),
            (before, change) => *before = change,
        }
    }

    fn take(&mut self) -> Batch {
        self.told_synced = self.synced;
        self.by_object.clear();
        let updates =
            std::mem::take(&mut self.slots).into_iter().flatten().map(|slot| slot.update).collect();
        let missing = std::mem::take(&mut self.missing).into_iter().collect();
        Batch {
            updates,
            missing,
            synced: self.synced,
            resynced: std::mem::take(&mut self.resynced),
        }
    }
}

/// A later change of a path makes the earlier one moot.
fn merge(before: &mut Vec<PropertyChange>, changes: Vec<PropertyChange>) {
    for change in changes {
        before.retain(|earlier| earlier.name != change.name);
        before.push(change);
    }
}

#[cfg(test)]
mod tests {
    use roost_vim_wire::Value;
    use roost_vim_wire::types::{DynamicProperty, PropertyChangeOp};

    use super::*;
    use crate::Properties;

    fn set(name: &str, text: &str) -> PropertyChange {
        PropertyChange {
            name: name.into(),
            op: PropertyChangeOp::Assign,
            val: Some(Value::string(text)),
        }
    }

    fn named(text: &str) -> Properties {
        Properties::new(
            vec![DynamicProperty { name: "name".into(), val: Value::string(text) }],
            vec![],
        )
    }

    fn after(changes: Vec<(Change, bool)>) -> Vec<Change> {
        let mut pending = Pending::default();
        for (change, fresh) in changes {
            pending.push(MoRef::vm("vm-1"), change, fresh);
        }
        pending.take().updates.into_iter().map(|update| update.change).collect()
    }

    #[test]
    fn what_happens_to_an_object_between_two_reads_is_one_update() {
        let modify = |changes| (Change::Modify(changes), false);
        for (case, changes, wanted) in [
            (
                "entered and changed",
                vec![(Change::Enter(named("a")), true), modify(vec![set("name", "b")])],
                vec![Change::Enter(named("b"))],
            ),
            (
                "entered and left",
                vec![(Change::Enter(named("a")), true), (Change::Leave, false)],
                vec![],
            ),
            (
                "known, entered again and left",
                vec![(Change::Enter(named("a")), false), (Change::Leave, false)],
                vec![Change::Leave],
            ),
            (
                "left and came back",
                vec![(Change::Leave, false), (Change::Enter(named("a")), true)],
                vec![Change::Enter(named("a"))],
            ),
            (
                "left, came back, left",
                vec![
                    (Change::Leave, false),
                    (Change::Enter(named("a")), true),
                    (Change::Leave, false),
                ],
                vec![Change::Leave],
            ),
            (
                "changed twice",
                vec![modify(vec![set("name", "a"), set("x", "1")]), modify(vec![set("name", "b")])],
                vec![Change::Modify(vec![set("x", "1"), set("name", "b")])],
            ),
        ] {
            assert_eq!(after(changes), wanted, "{case}");
        }
    }

    #[tokio::test]
    async fn a_load_and_a_break_are_news_once_also_without_objects() {
        let batch =
            |synced, resynced| Some(Batch { updates: vec![], missing: vec![], synced, resynced });
        let feed = Feed::default();
        feed.set_synced(false);
        assert_eq!(feed.next().await, batch(true, false));
        assert!(!feed.pending().has_news());
        feed.set_broken();
        assert_eq!(feed.next().await, batch(false, false));
        feed.set_synced(true);
        assert_eq!(feed.next().await, batch(true, true));
        // Both between two reads.
        feed.set_broken();
        feed.set_synced(true);
        assert_eq!(feed.next().await, batch(true, true));
        feed.end();
        assert_eq!(feed.next().await, None);
    }
}
