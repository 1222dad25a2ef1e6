//! Task history collectors, through which command-line clients list tasks.

use roost_vim_wire::types::TaskInfo;
use roost_vim_wire::{Array, Element, Field, MoRef, MoType, Value};

use crate::call::{CallContext, Failure};
use crate::event::{MAX_COLLECTORS, checked_count, too_many_collectors};
use crate::task::{Task, Tasks};
use crate::world::World;

#[derive(Debug, Default)]
pub(super) struct Collectors(Vec<Collector>);

#[derive(Debug)]
struct Collector {
    moref: MoRef,
    session: String,
    filter: Element,
    page_size: usize,
    /// The serial number of the next task to read.
    cursor: u64,
}

/// The page size of a vCenter's collectors until it is set.
const PAGE_SIZE: usize = 10;

impl Collectors {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn refs(&self) -> impl Iterator<Item = &MoRef> {
        self.0.iter().map(|collector| &collector.moref)
    }

    fn get_mut(&mut self, moref: &MoRef) -> Option<&mut Collector> {
        self.0.iter_mut().find(|collector| collector.moref == *moref)
    }

    /// The collectors that are gone with their session.
    pub(super) fn end_session(&mut self, session: &str) -> Vec<MoRef> {
        self.0
            .extract_if(.., |collector| collector.session == session)
            .map(|collector| collector.moref)
            .collect()
    }
}

pub(super) fn create(
    world: &mut World,
    cx: &CallContext<'_>,
    filter: &Element,
) -> Result<MoRef, Failure> {
    if world.product == crate::options::Product::HostAgent {
        return Err(Failure::of("NotSupported", "A host keeps no history of its tasks."));
    }
    let open =
        world.tasks.collectors.0.iter().filter(|collector| collector.session == cx.session).count();
    if open >= MAX_COLLECTORS {
        return Err(too_many_collectors("task"));
    }
    let moref = MoRef::new(MoType::TaskHistoryCollector, world.sessions.scoped_id(cx.session));
    world.inventory.enter_other(&moref);
    world.tasks.collectors.0.push(Collector {
        moref: moref.clone(),
        session: cx.session.into(),
        filter: filter.clone(),
        page_size: PAGE_SIZE,
        cursor: 0,
    });
    Ok(moref)
}

pub(super) fn read(
    world: &mut World,
    collector: &MoRef,
    count: i32,
) -> Result<Vec<TaskInfo>, Failure> {
    let count = checked_count(count)?;
    let (filter, from) = match world.tasks.collectors.get_mut(collector) {
        Some(found) => (found.filter.clone(), found.cursor),
        None => return Err(Failure::not_found(collector)),
    };
    let matching = world.tasks.all.range(from..).filter(|(_, task)| fits(world, &filter, task));
    let found: Vec<(u64, TaskInfo)> =
        matching.take(count).map(|(serial, task)| (*serial, task.info())).collect();
    if let (Some((last, _)), Some(row)) = (found.last(), world.tasks.collectors.get_mut(collector))
    {
        row.cursor = last + 1;
    }
    Ok(found.into_iter().map(|(_, info)| info).collect())
}

/// Moves the cursor to the oldest task or behind the newest.
pub(crate) fn seek(world: &mut World, collector: &MoRef, to_oldest: bool) -> Result<(), Failure> {
    let next = world.tasks.next;
    let row =
        world.tasks.collectors.get_mut(collector).ok_or_else(|| Failure::not_found(collector))?;
    row.cursor = if to_oldest { 0 } else { next };
    Ok(())
}

pub(crate) fn set_page_size(
    world: &mut World,
    collector: &MoRef,
    count: i32,
) -> Result<(), Failure> {
    let count = checked_count(count)?;
    let row =
        world.tasks.collectors.get_mut(collector).ok_or_else(|| Failure::not_found(collector))?;
    row.page_size = count;
    world.inventory.changes.modified(collector, ["latestPage"]);
    Ok(())
}

pub(crate) fn destroy(world: &mut World, collector: &MoRef) {
    world.tasks.collectors.0.retain(|row| row.moref != *collector);
    world.inventory.leave_other(collector);
}

impl Tasks {
    #[expect(clippy::option_option, reason = "the inner one is an unset property")]
    pub(crate) fn collector_property(
        &self,
        world: &World,
        collector: &MoRef,
        path: &str,
    ) -> Option<Option<Value>> {
        let row = self.collectors.0.iter().find(|row| row.moref == *collector)?;
        match path {
            "latestPage" => {
                let newest = self.all.values().rev().filter(|task| fits(world, &row.filter, task));
                let items =
                    newest.take(row.page_size).filter_map(|task| task.info().to_value()).collect();
                Some(Some(Value::Array(Array::new("TaskInfo", items))))
            }
            "filter" => {
                Some(Some(Value::Other(Box::new(row.filter.clone().typed("TaskFilterSpec")))))
            }
            _ => None,
        }
    }
}

/// Whether a task passes a `TaskFilterSpec`: its entity with recursion, its states.
fn fits(world: &World, filter: &Element, task: &Task) -> bool {
    let mut states = filter.children_named("state").peekable();
    if states.peek().is_some() && !states.any(|state| state.text == task.state.wire().as_str()) {
        return false;
    }
    let Some(by_entity) = filter.child("entity") else { return true };
    let Some(entity) = by_entity.child("entity").and_then(Element::moref) else { return true };
    match by_entity.text_of("recursion") {
        Some("all") => world.inventory.lineage(&task.entity).any(|at| at == entity),
        Some("children") => world.inventory.parent(&task.entity).as_ref() == Some(&entity),
        _ => task.entity == entity,
    }
}
