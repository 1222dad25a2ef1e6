//! Tasks: work that takes simulated time.
//!
//! A task is `queued` until there is a place for it, `running` while its steps take their time, then `success` or `error`.
//! Each step waits first and then does its part of the work at once; the first that fails ends the task and undoes what it
//! had reserved. Finished tasks stay for a while, then they are gone, as on a vCenter.

mod call;
pub(crate) mod collector;
mod description;
mod info;
mod job;
mod lock;
mod parcel;
pub(crate) mod run;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use roost_vim_wire::types::TaskInfoState;
use roost_vim_wire::{LocalizedMethodFault, MoRef, Value};

pub(crate) use call::call;
pub(crate) use description::description;
pub(crate) use job::{Job, Run, Step};
pub(crate) use lock::{Hold, Locks};
pub(crate) use parcel::Parcel;
pub(crate) use run::{commit, submit};

use crate::options::Options;
use crate::service::manager;
use crate::world::World;

/// Finished tasks leave `recentTask`, and vanish, after so long or when so many newer ones have finished.
const RETENTION: Duration = Duration::from_mins(10);
const RETAINED: usize = 200;

#[derive(Debug)]
pub(crate) struct Tasks {
    all: BTreeMap<u64, Task>,
    serials: HashMap<Arc<str>, u64>,
    next: u64,
    of_entity: HashMap<MoRef, Vec<u64>>,
    /// In the order they finished.
    finished: VecDeque<u64>,
    pub locks: Locks,
    /// Clones that wait for a place.
    queue: VecDeque<u64>,
    cloning: usize,
    concurrent_clones: usize,
    collectors: collector::Collectors,
}

#[derive(Debug)]
pub(crate) struct Task {
    moref: MoRef,
    method: &'static str,
    entity: MoRef,
    entity_name: Arc<str>,
    user: Arc<str>,
    state: State,
    is_cancelable: bool,
    is_cancelled: bool,
    progress: Option<i32>,
    queued: Timestamp,
    started: Option<Timestamp>,
    completed: Option<Timestamp>,
    /// The key of the event that all events of this task refer to.
    chain: i32,
}

/// What is known of a task in its state.
#[derive(Debug)]
enum State {
    Queued(Job),
    Running(Job),
    Success(Option<Value>),
    Error(LocalizedMethodFault),
}

impl State {
    fn wire(&self) -> TaskInfoState {
        match self {
            Self::Queued(_) => TaskInfoState::Queued,
            Self::Running(_) => TaskInfoState::Running,
            Self::Success(_) => TaskInfoState::Success,
            Self::Error(_) => TaskInfoState::Error,
        }
    }

    fn is_finished(&self) -> bool {
        matches!(self, Self::Success(_) | Self::Error(_))
    }
}

impl Tasks {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            all: BTreeMap::new(),
            serials: HashMap::new(),
            next: 0,
            of_entity: HashMap::new(),
            finished: VecDeque::new(),
            locks: Locks::default(),
            queue: VecDeque::new(),
            cloning: 0,
            concurrent_clones: options.timings.concurrent_clones.max(1),
            collectors: collector::Collectors::default(),
        }
    }

    fn get(&self, moref: &MoRef) -> Option<&Task> {
        self.all.get(self.serials.get(&moref.id)?)
    }

    pub(crate) fn entity_of(&self, task: &MoRef) -> Option<&MoRef> {
        self.get(task).map(|task| &task.entity)
    }

    /// Whether this user began the task.
    pub(crate) fn is_of(&self, task: &MoRef, user: &str) -> bool {
        self.get(task).is_some_and(|task| *task.user == *user)
    }

    /// The tasks that `TaskManager.recentTask` lists: those under way, and those that finished lately.
    pub(crate) fn recent(&self) -> impl Iterator<Item = &MoRef> {
        self.all.values().map(|task| &task.moref)
    }

    pub(crate) fn recent_of(&self, entity: &MoRef) -> impl Iterator<Item = &MoRef> {
        let serials = self.of_entity.get(entity).into_iter().flatten();
        serials.filter_map(|serial| self.all.get(serial)).map(|task| &task.moref)
    }

    /// What ends with a session: its collectors.
    pub(crate) fn end_session(&mut self, session: &str) -> Vec<MoRef> {
        self.collectors.end_session(session)
    }

    pub(crate) fn open_collectors(&self) -> usize {
        self.collectors.len()
    }

    fn enter(&mut self, task: Task) -> u64 {
        let serial = self.next;
        self.next += 1;
        self.serials.insert(Arc::clone(&task.moref.id), serial);
        self.of_entity.entry(task.entity.clone()).or_default().push(serial);
        self.all.insert(serial, task);
        serial
    }
}

/// Drops the finished tasks that are too old or too many.
fn prune(world: &mut World, now: Timestamp) {
    let retention = SignedDuration::try_from(RETENTION).unwrap_or(SignedDuration::MAX);
    while let Some(serial) = world.tasks.finished.front().copied() {
        let completed = world.tasks.all.get(&serial).and_then(|task| task.completed);
        let is_old = completed.is_none_or(|completed| now.duration_since(completed) >= retention);
        if !is_old && world.tasks.finished.len() <= RETAINED {
            break;
        }
        world.tasks.finished.pop_front();
        forget(world, serial);
    }
}

fn forget(world: &mut World, serial: u64) {
    let Some(task) = world.tasks.all.remove(&serial) else { return };
    world.tasks.serials.remove(&task.moref.id);
    if let Some(serials) = world.tasks.of_entity.get_mut(&task.entity) {
        serials.retain(|other| *other != serial);
        if serials.is_empty() {
            world.tasks.of_entity.remove(&task.entity);
        }
    }
    announce_recent(world, &task.entity);
    world.inventory.leave_other(&task.moref);
}

fn announce_recent(world: &mut World, entity: &MoRef) {
    if world.inventory.contains(entity) {
        world.inventory.changes.modified(entity, ["recentTask"]);
    }
    let tasks = manager(world.product, "TaskManager");
    world.inventory.changes.modified(&tasks, ["recentTask"]);
    for collector in world.tasks.collectors.refs() {
        world.inventory.changes.modified(collector, ["latestPage"]);
    }
}

/// The server process starts anew: tasks under way are lost with it, and so are the records of finished ones.
pub(crate) fn restarted(world: &mut World, now: Timestamp) {
    let serials: Vec<u64> = world.tasks.all.keys().copied().collect();
    for serial in serials {
        run::abandon(world, serial, now);
    }
    world.tasks.finished.clear();
    let serials: Vec<u64> = world.tasks.all.keys().copied().collect();
    for serial in serials {
        forget(world, serial);
    }
}
