//! Event history collectors: a filter with a page of the newest, and a cursor that goes both ways.

use std::collections::VecDeque;
use std::sync::Arc;

use roost_vim_wire::types::{Event, EventFilterSpec};
use roost_vim_wire::{Array, Field, MoRef, MoType, Value};

use super::filter::{check, fits};
use super::posted::Posted;
use crate::call::{CallContext, Failure};
use crate::event::Events;
use crate::inventory::Inventory;
use crate::world::World;

/// What one client may have open of a kind.
pub(crate) const MAX_COLLECTORS: usize = 32;
/// The most that one call hands out.
pub(crate) const MAX_PAGE: i32 = 1000;
/// The page size of a new collector.
const PAGE_SIZE: usize = 10;

#[derive(Debug, Default)]
pub(super) struct Collectors(Vec<Collector>);

#[derive(Debug)]
pub(super) struct Collector {
    moref: MoRef,
    session: String,
    filter: EventFilterSpec,
    page_size: usize,
    /// The newest that fit, newest last.
    page: VecDeque<Arc<Posted>>,
    /// Reading forward starts above this key, reading backward at it.
    cursor: i32,
}

impl Collectors {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn end_session(&mut self, session: &str) -> Vec<MoRef> {
        self.0
            .extract_if(.., |collector| collector.session == session)
            .map(|collector| collector.moref)
            .collect()
    }

    /// Shows a new event to all collectors. Returns those whose page has changed.
    pub(super) fn take_in(&mut self, inventory: &Inventory, posted: &Arc<Posted>) -> Vec<MoRef> {
        let mut touched = Vec::new();
        for collector in &mut self.0 {
            if fits(inventory, &collector.filter, posted) {
                collector.page.push_back(Arc::clone(posted));
                if collector.page.len() > collector.page_size {
                    collector.page.pop_front();
                }
                touched.push(collector.moref.clone());
            }
        }
        touched
    }
}

fn find<'a>(events: &'a mut Events, moref: &MoRef) -> Result<&'a mut Collector, Failure> {
    let found = events.collectors.0.iter_mut().find(|collector| collector.moref == *moref);
    found.ok_or_else(|| Failure::not_found(moref))
}

pub(crate) fn too_many_collectors(what: &str) -> Failure {
    Failure::of("InvalidState", format!("Too many {what} collectors"))
}

pub(crate) fn checked_count(count: i32) -> Result<usize, Failure> {
    match usize::try_from(count) {
        Ok(given) if given > 0 && count <= MAX_PAGE => Ok(given),
        _ => Err(Failure::invalid_argument("maxCount")),
    }
}

pub(super) fn query(world: &World, filter: &EventFilterSpec) -> Result<Vec<Event>, Failure> {
    check(&world.inventory, filter)?;
    let limit = filter.max_count.filter(|count| *count > 0).unwrap_or(MAX_PAGE);
    let newest =
        world.events.log.iter().rev().filter(|posted| fits(&world.inventory, filter, posted));
    let hide = filter.disable_full_message.unwrap_or(false);
    Ok(newest.take(usize::try_from(limit).unwrap_or(0)).map(|posted| posted.wire(hide)).collect())
}

pub(super) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    filter: EventFilterSpec,
) -> Result<MoRef, Failure> {
    check(&world.inventory, &filter)?;
    let open = world
        .events
        .collectors
        .0
        .iter()
        .filter(|collector| collector.session == cx.session)
        .count();
    if open >= MAX_COLLECTORS {
        return Err(too_many_collectors("event"));
    }
    let moref = MoRef::new(MoType::EventHistoryCollector, world.sessions.scoped_id(cx.session));
    let page = newest(world, &filter, PAGE_SIZE);
    world.inventory.enter_other(&moref);
    // The API: a new collector stands at the oldest event.
    let cursor = 0;
    let session = cx.session.into();
    world.events.collectors.0.push(Collector {
        moref: moref.clone(),
        session,
        filter,
        page_size: PAGE_SIZE,
        page,
        cursor,
    });
    Ok(moref)
}

fn newest(world: &World, filter: &EventFilterSpec, count: usize) -> VecDeque<Arc<Posted>> {
    let fitting =
        world.events.log.iter().rev().filter(|posted| fits(&world.inventory, filter, posted));
    let mut page: VecDeque<_> = fitting.take(count).cloned().collect();
    page.make_contiguous().reverse();
    page
}

pub(super) fn set_page_size(world: &mut World, moref: &MoRef, count: i32) -> Result<(), Failure> {
    let count = checked_count(count)?;
    let filter = find(&mut world.events, moref)?.filter.clone();
    let page = newest(world, &filter, count);
    let collector = find(&mut world.events, moref)?;
    collector.page_size = count;
    collector.page = page;
    world.inventory.changes.modified(moref, ["latestPage"]);
    Ok(())
}

/// The events above the cursor, oldest first; the cursor moves behind the last of them.
pub(super) fn read_next(
    world: &mut World,
    moref: &MoRef,
    count: i32,
) -> Result<Vec<Event>, Failure> {
    let count = checked_count(count)?;
    let collector = find(&mut world.events, moref)?;
    let (filter, cursor) = (collector.filter.clone(), collector.cursor);
    let above = world.events.log.iter().filter(|posted| posted.key > cursor);
    let found: Vec<_> = above
        .filter(|posted| fits(&world.inventory, &filter, posted))
        .take(count)
        .cloned()
        .collect();
    if let Some(last) = found.last() {
        find(&mut world.events, moref)?.cursor = last.key;
    }
    Ok(wire(&filter, &found))
}

/// The events at and below the cursor, newest first; the cursor moves below the last of them.
pub(super) fn read_previous(
    world: &mut World,
    moref: &MoRef,
    count: i32,
) -> Result<Vec<Event>, Failure> {
    let count = checked_count(count)?;
    let collector = find(&mut world.events, moref)?;
    let (filter, cursor) = (collector.filter.clone(), collector.cursor);
    let below = world.events.log.iter().rev().filter(|posted| posted.key <= cursor);
    let found: Vec<_> = below
        .filter(|posted| fits(&world.inventory, &filter, posted))
        .take(count)
        .cloned()
        .collect();
    if let Some(last) = found.last() {
        find(&mut world.events, moref)?.cursor = last.key - 1;
    }
    Ok(wire(&filter, &found))
}

fn wire(filter: &EventFilterSpec, events: &[Arc<Posted>]) -> Vec<Event> {
    let hide = filter.disable_full_message.unwrap_or(false);
    events.iter().map(|posted| posted.wire(hide)).collect()
}

/// To before the oldest event, or to the newest.
pub(super) fn seek(world: &mut World, moref: &MoRef, to_oldest: bool) -> Result<(), Failure> {
    let newest = world.events.next_key - 1;
    find(&mut world.events, moref)?.cursor = if to_oldest { 0 } else { newest };
    Ok(())
}

pub(super) fn destroy(world: &mut World, moref: &MoRef) {
    world.events.collectors.0.retain(|collector| collector.moref != *moref);
    world.inventory.leave_other(moref);
}

impl Events {
    /// `None`: no such path.
    #[expect(clippy::option_option, reason = "the inner one is an unset property")]
    pub(crate) fn collector_property(&self, moref: &MoRef, path: &str) -> Option<Option<Value>> {
        let collector = self.collectors.0.iter().find(|collector| collector.moref == *moref)?;
        match path {
            "latestPage" => {
                let hide = collector.filter.disable_full_message.unwrap_or(false);
                let newest_first = collector.page.iter().rev();
                let items =
                    newest_first.filter_map(|posted| posted.wire(hide).to_value()).collect();
                Some(Some(Value::Array(Array::new("Event", items))))
            }
            "filter" => Some(collector.filter.to_value()),
            _ => None,
        }
    }
}
