//! The property collector: one-shot reads in pages, and filters that tell what changed.

mod anonymous;
mod calls;
mod filter;
mod interest;
mod path;
mod pending;
mod retrieve;
mod spec;
mod updates;
mod wait;
mod walk;

use std::collections::BTreeMap;
use std::sync::Arc;

use roost_vim_wire::types::PropertyFilterSpec;
use roost_vim_wire::{MoRef, MoType, Value};
use tokio::sync::Notify;

pub(crate) use anonymous::{is_anonymous, retrieve_unauthenticated};
pub(crate) use calls::call;
pub(crate) use retrieve::{Pages, ReadAs, call as retrieve};
pub(crate) use wait::{Wait, wait};

use self::filter::Filter;
use self::interest::{FilterId, Interest};
use self::spec::Spec;
use self::updates::Progress;
use crate::call::Failure;
use crate::inventory::Change;
use crate::property::{Found, Reading, no_such};
use crate::view::ViewDelta;

/// All property collectors with their filters. The default one has a state in each session, so a session is part of the key.
#[derive(Debug, Default)]
pub(crate) struct Collectors {
    by_key: BTreeMap<Key, Collector>,
    filters: BTreeMap<FilterId, Filter>,
    interest: Interest,
    next_filter: FilterId,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    session: Arc<str>,
    collector: MoRef,
}

#[derive(Debug, Default)]
struct Collector {
    filters: Vec<FilterId>,
    progress: Progress,
    /// Wakes the call that waits here.
    wake: Arc<Notify>,
    /// Counts waits: one that finds another number than its own has been superseded or cancelled.
    waits: u64,
}

impl Collectors {
    pub(crate) fn collector_count(&self) -> usize {
        self.by_key.keys().filter(|key| key.collector.id.starts_with("session[")).count()
    }

    pub(crate) fn filter_count(&self) -> usize {
        self.filters.len()
    }

    /// Whether the session made this collector.
    pub(crate) fn contains(&self, session: &str, collector: &MoRef) -> bool {
        self.by_key.contains_key(&key(session, collector))
    }

    pub(crate) fn contains_filter(&self, session: &str, filter: &MoRef) -> bool {
        self.find_filter(filter).is_some_and(|(owner, _)| &*owner.session == session)
    }

    pub(crate) fn filters_of(&self, session: &str, collector: &MoRef) -> Vec<MoRef> {
        let ids =
            self.by_key.get(&key(session, collector)).map(|collector| collector.filters.as_slice());
        ids.unwrap_or_default()
            .iter()
            .filter_map(|id| self.filters.get(id))
            .map(|filter| filter.obj.clone())
            .collect()
    }

    pub(crate) fn filter_property(&self, obj: &MoRef, path: &str) -> Found {
        let filter = self.find_filter(obj).and_then(|(_, id)| self.filters.get(&id));
        match (path, filter) {
            ("spec", Some(filter)) => Ok(Some(Value::data(filter.spec.source.clone()))),
            ("partialUpdates", Some(filter)) => Ok(Some(Value::Bool(filter.is_partial))),
            _ => no_such(path),
        }
    }

    fn find_filter(&self, obj: &MoRef) -> Option<(&Key, FilterId)> {
        self.by_key.iter().find_map(|(key, collector)| {
            let has =
                |id: &&FilterId| self.filters.get(id).is_some_and(|filter| filter.obj == *obj);
            collector.filters.iter().find(has).map(|id| (key, *id))
        })
    }

    fn create(&mut self, session: &str, id: String) -> MoRef {
        let obj = MoRef::new(MoType::PropertyCollector, id);
        self.by_key.insert(key(session, &obj), Collector::default());
        obj
    }

    /// Ends a collector with its filters; a call that waits on it is cancelled.
    fn destroy(&mut self, key: &Key) {
        let Some(collector) = self.by_key.remove(key) else { return };
        for id in &collector.filters {
            self.drop_filter(*id);
        }
        collector.wake.notify_waiters();
    }

    fn destroy_filter(&mut self, obj: &MoRef) {
        let Some((owner, id)) = self.find_filter(obj).map(|(owner, id)| (owner.clone(), id)) else {
            return;
        };
        self.drop_filter(id);
        if let Some(collector) = self.by_key.get_mut(&owner) {
            collector.filters.retain(|known| *known != id);
        }
    }

    fn drop_filter(&mut self, id: FilterId) {
        if let Some(filter) = self.filters.remove(&id) {
            filter.detach(&mut self.interest);
        }
    }

    pub(crate) fn end_session(&mut self, session: &str) {
        let ended: Vec<Key> =
            self.by_key.keys().filter(|key| &*key.session == session).cloned().collect();
        for key in ended {
            self.destroy(&key);
        }
    }

    /// Adds a filter. Every path that it asks for must exist on the objects that it selects.
    fn create_filter(
        &mut self,
        reading: &Reading<'_>,
        collector: &MoRef,
        id: String,
        source: PropertyFilterSpec,
        is_partial: bool,
    ) -> Result<MoRef, Failure> {
        let session = reading.session.unwrap_or_default();
        let spec = Spec::compile(source)?;
        let mut missing = Vec::new();
        let starts = walk::check_starts(reading, &spec, &mut missing)?;
        let (number, obj) = (self.next_filter, MoRef::new(MoType::PropertyFilter, id));
        self.next_filter += 1;
        let mut filter = Filter::new(obj.clone(), number, spec, is_partial);
        for (start, step) in starts {
            filter.enter(reading, &mut self.interest, start, step);
        }
        for start in missing {
            filter.start_is_missing(start);
        }
        if let Err(failure) = check_paths(reading, &mut filter) {
            filter.detach(&mut self.interest);
            return Err(failure);
        }
        self.filters.insert(number, filter);
        let collector = self.by_key.entry(key(session, collector)).or_default();
        collector.filters.push(number);
        collector.wake.notify_waiters();
        Ok(obj)
    }

    /// Hands what changed to the filters that look at it, and wakes who waits for it.
    pub(crate) fn apply(
        &mut self,
        reading: &Reading<'_>,
        changes: &[Change],
        deltas: &[ViewDelta],
    ) {
        let Self { filters, interest, .. } = self;
        for change in changes {
            let obj = match change {
                Change::Entered(obj) | Change::Left(obj) | Change::Modified(obj, _) => obj,
            };
            for id in interest.of(obj) {
                let Some(filter) = filters.get_mut(&id) else { continue };
                match change {
                    Change::Entered(_) => {}
                    Change::Modified(obj, paths) => filter.modified(reading, interest, obj, paths),
                    Change::Left(obj) => filter.gone(reading, interest, obj),
                }
            }
        }
        for delta in deltas {
            for id in interest.of(&delta.view) {
                let Some(filter) = filters.get_mut(&id) else { continue };
                filter.view_changed(reading, interest, &delta.view, &delta.member, delta.entered);
            }
        }
        for collector in self.by_key.values() {
            if collector
                .filters
                .iter()
                .any(|id| self.filters.get_mut(id).is_some_and(Filter::has_news))
            {
                collector.wake.notify_waiters();
            }
        }
    }
}

fn key(session: &str, collector: &MoRef) -> Key {
    Key { session: session.into(), collector: collector.clone() }
}

fn check_paths(reading: &Reading<'_>, filter: &mut Filter) -> Result<(), Failure> {
    if let Some(error) = filter.bad_step() {
        return Err(walk::invalid_property(error));
    }
    for obj in filter.samples() {
        for path in filter.asked(&obj).iter() {
            reading.get(&obj, path).map_err(|error| walk::invalid_property(&error))?;
        }
    }
    Ok(())
}
