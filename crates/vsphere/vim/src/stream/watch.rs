//! One subscription as the hub sees it.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use roost_vim_wire::MoRef;
use roost_vim_wire::types::{ObjectContent, ObjectUpdate, ObjectUpdateKind};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::build::Built;
use super::feed::Feed;
use super::list::ObjectList;
use super::{Change, WatchSpec, Watched};
use crate::{CallError, Properties};

#[derive(Debug)]
pub(super) struct Watch {
    pub(super) spec: WatchSpec,
    pub(super) place: Place,
    /// Who asked for it and does not know yet whether it works.
    pub(super) asked: Option<oneshot::Sender<Result<(), CallError>>>,
    pub(super) failures: u32,
    /// Of a watch of single objects.
    pub(super) list: Option<ObjectList>,
    feed: Arc<Feed>,
    /// Objects that the subscriber was told of and not told to have left.
    known: HashSet<MoRef>,
    load: Load,
}

/// Whether the server has the view and filter.
#[derive(Debug)]
pub(super) enum Place {
    /// Not before this time, after a failure.
    Unbuilt(Option<Instant>),
    Building,
    Built(Built),
}

#[derive(Debug)]
enum Load {
    /// Objects that the load has shown so far. One that is known and not among them has left, but only a complete load says so.
    Loading {
        seen: HashSet<MoRef>,
        again: bool,
    },
    Loaded,
}

impl Watch {
    pub(super) fn new(
        spec: WatchSpec,
        feed: Arc<Feed>,
        asked: oneshot::Sender<Result<(), CallError>>,
    ) -> Self {
        let load = Load::Loading { seen: HashSet::new(), again: false };
        let list = match &spec.objects {
            Watched::Objects(objects) => Some(ObjectList::new(objects)),
            Watched::Container { .. } => None,
        };
        Self {
            spec,
            place: Place::Unbuilt(None),
            asked: Some(asked),
            failures: 0,
            list,
            feed,
            known: HashSet::new(),
            load,
        }
    }

    /// What to build now.
    pub(super) fn begin_building(&mut self) -> WatchSpec {
        self.place = Place::Building;
        let mut spec = self.spec.clone();
        if let Some(list) = &mut self.list {
            spec.objects = Watched::Objects(list.begin());
        }
        spec
    }

    pub(super) fn is_loaded(&self) -> bool {
        matches!(self.load, Load::Loaded)
    }

    pub(super) fn apply(&mut self, update: ObjectUpdate) {
        let ObjectUpdate { kind, obj, change_set, missing_set } = update;
        match kind {
            ObjectUpdateKind::Modify if self.known.contains(&obj) => {
                self.see(&obj);
                self.feed.push(obj, Change::Modify(change_set), false);
            }
            // Also a change before the first sight: a page can end between the two.
            ObjectUpdateKind::Enter | ObjectUpdateKind::Modify => {
                self.enter(obj, Properties::of_changes(change_set, missing_set));
            }
            ObjectUpdateKind::Leave => {
                if let Load::Loading { seen, .. } = &mut self.load {
                    seen.remove(&obj);
                }
                if self.known.remove(&obj) {
                    self.forget(obj);
                }
            }
            ObjectUpdateKind::Other(kind) => {
                tracing::debug!(%obj, "an update of the unknown kind {kind:?} is left out");
            }
        }
    }

    fn enter(&mut self, obj: MoRef, properties: Properties) {
        self.see(&obj);
        let fresh = self.known.insert(obj.clone());
        self.feed.push(obj, Change::Enter(properties), fresh);
    }

    /// It is told to have left.
    fn forget(&mut self, obj: MoRef) {
        if let Some(list) = &mut self.list {
            list.left(&obj);
        }
        self.feed.push(obj, Change::Leave, false);
    }

    /// Objects that were named and do not exist. They are not asked for any more; whoever named them is told, and may name them again.
    pub(super) fn missing(&mut self, objects: Vec<MoRef>) {
        if let Some(list) = &mut self.list {
            objects.iter().for_each(|obj| list.missing(obj));
        }
        self.feed.miss(objects);
    }

    fn see(&mut self, obj: &MoRef) {
        if let Load::Loading { seen, .. } = &mut self.load {
            seen.insert(obj.clone());
        }
    }

    /// What was built is given up for a new one, which is loaded as a whole. What is shown stays as good as it was.
    pub(super) fn rebuild(&mut self) {
        self.place = Place::Unbuilt(None);
        self.load = Load::Loading { seen: HashSet::new(), again: false };
    }

    /// Everything is told once more, and what is not has left.
    pub(super) fn load_anew(&mut self) {
        self.load = Load::Loading { seen: HashSet::new(), again: false };
    }

    /// What was built is gone; it will be loaded from the beginning. Nothing leaves because of that.
    pub(super) fn restart(&mut self, trouble: Option<CallError>) {
        if let Place::Built(built) = std::mem::replace(&mut self.place, Place::Unbuilt(None)) {
            built.collector_gone();
        }
        let again = match self.load {
            Load::Loading { again, .. } => again,
            Load::Loaded => true,
        };
        self.load = Load::Loading { seen: HashSet::new(), again };
        self.feed.set_broken();
        self.feed.status.send_modify(|status| {
            status.synced = false;
            status.trouble = trouble;
        });
    }

    /// All that the server shows, by a read: it does not tell what changes, and why is told with it.
    pub(super) fn read(&mut self, found: Vec<ObjectContent>, why: CallError, now: Timestamp) {
        let again = matches!(self.load, Load::Loading { again: true, .. });
        self.load = Load::Loading { seen: HashSet::new(), again };
        for content in found {
            self.enter(content.obj.clone(), content.into());
        }
        self.end_load(now, Some(why));
    }

    /// Everything that the server shows has been applied. Returns whether that ended a load after a break.
    pub(super) fn loaded(&mut self, now: Timestamp) -> bool {
        self.end_load(now, None)
    }

    fn end_load(&mut self, now: Timestamp, trouble: Option<CallError>) -> bool {
        let Load::Loading { seen, again } = std::mem::replace(&mut self.load, Load::Loaded) else {
            self.contact(now);
            return false;
        };
        // In order, so that a run of one seed is the same run again.
        let gone: BTreeSet<_> = self.known.difference(&seen).cloned().collect();
        for gone in gone {
            self.forget(gone);
        }
        self.known = seen;
        self.failures = 0;
        self.feed.set_synced(again);
        self.feed.status.send_modify(|status| {
            status.synced = true;
            status.trouble = trouble;
            status.resyncs += u64::from(again);
            status.last_contact = Some(now);
        });
        again
    }

    /// The server answered, and this is up to date with it.
    fn contact(&self, now: Timestamp) {
        self.feed.status.send_modify(|status| {
            (status.last_contact, status.trouble) = (Some(now), None);
        });
    }

    pub(super) fn trouble(&self, error: CallError) {
        self.feed.status.send_modify(|status| status.trouble = Some(error));
    }

    pub(super) fn publish(&self) {
        self.feed.publish();
    }

    /// Tells the one who asked. Returns false if that one has gone.
    pub(super) fn answer(&mut self, result: Result<(), CallError>) -> bool {
        self.asked.take().is_none_or(|asked| asked.send(result).is_ok())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.feed.end();
    }
}

#[cfg(test)]
mod tests;
