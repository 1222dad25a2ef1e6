//! Tasks in flight, all in one list view with one filter.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use roost_supervise::Backoff;
use roost_vim_wire::types::{
    ObjectContent, ObjectUpdate, ObjectUpdateKind, PropertySpec, TaskInfoState,
};
use roost_vim_wire::{Fault, Field, LocalizedMethodFault, MoRef, MoType, Value};
use tokio::sync::watch;
use tokio::time::Instant;

use super::build::Built;
use crate::{CallError, Progress, Properties, TaskError};

pub(super) const PATHS: [&str; 5] =
    ["info.state", "info.error", "info.result", "info.progress", "info.completeTime"];

/// A task that the server does not announce is looked at this seldom in the end.
const MOST_BETWEEN_READS: Duration = Duration::from_secs(30);

/// Finished tasks leave the list with the next that enters it, or when there are this many.
const MANY_FINISHED: usize = 64;

pub(super) fn properties() -> Vec<PropertySpec> {
    vec![PropertySpec::new(MoType::Task.as_str(), &PATHS)]
}

/// Where a follower of a task looks.
#[derive(Debug)]
pub(crate) struct TaskCell {
    pub(crate) progress: watch::Sender<Progress>,
    pub(crate) outcome: watch::Sender<Option<Result<Option<Value>, TaskError>>>,
}

impl TaskCell {
    pub(crate) fn new() -> Self {
        Self {
            progress: watch::Sender::new(Progress::default()),
            outcome: watch::Sender::new(None),
        }
    }
}

/// The hub's side of a cell. Whatever happens to the hub, the follower gets an answer.
#[derive(Debug)]
struct Follower {
    id: u64,
    task: MoRef,
    cell: Arc<TaskCell>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.cell.outcome.send_if_modified(|outcome| {
            let open = outcome.is_none();
            if open {
                let source = CallError::Abandoned { method: "WaitForUpdatesEx" };
                *outcome = Some(Err(TaskError::Call { task: self.task.clone(), source }));
            }
            open
        });
    }
}

#[derive(Debug)]
struct Entry {
    followers: Vec<Follower>,
    properties: Properties,
    place: Place,
    /// The stream has shown it, so the stream will show its end.
    announced: bool,
    read_at: Instant,
    reads: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Unlisted,
    Adding,
    Listed,
}

#[derive(Debug, Default)]
pub(super) enum List {
    #[default]
    Absent,
    Building,
    Ready(Built),
}

#[derive(Debug)]
pub(super) struct Tasks {
    pub(super) list: List,
    pub(super) loaded: bool,
    pub(super) modifying: bool,
    pub(super) reading: bool,
    /// The list is left alone until then, after a failure.
    pub(super) paused_until: Option<Instant>,
    announcement: Duration,
    /// In order, so that a run of one seed is the same run again.
    entries: BTreeMap<MoRef, Entry>,
    finished: Vec<MoRef>,
}

impl Tasks {
    pub(super) fn new(announcement: Duration) -> Self {
        Self {
            list: List::Absent,
            loaded: false,
            modifying: false,
            reading: false,
            paused_until: None,
            announcement,
            entries: BTreeMap::new(),
            finished: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Ends a pause that is over.
    pub(super) fn wake(&mut self) {
        self.paused_until = self.paused_until.filter(|until| *until > Instant::now());
    }

    pub(super) fn follow(&mut self, id: u64, task: MoRef, cell: Arc<TaskCell>) {
        let follower = Follower { id, task: task.clone(), cell };
        let entry = self.entries.entry(task).or_insert_with_key(|task| {
            // Back before it was taken off the list.
            let listed = self.finished.iter().position(|finished| finished == task);
            if let Some(listed) = listed {
                self.finished.swap_remove(listed);
            }
            Entry {
                followers: Vec::new(),
                properties: Properties::default(),
                place: if listed.is_some() { Place::Listed } else { Place::Unlisted },
                announced: false,
                read_at: Instant::now() + self.announcement,
                reads: 0,
            }
        });
        follower.cell.progress.send_replace(progress(&entry.properties));
        entry.followers.push(follower);
    }

    pub(super) fn unfollow(&mut self, id: u64, task: &MoRef) {
        if let Some(entry) = self.entries.get_mut(task) {
            entry.followers.retain(|follower| follower.id != id);
            if entry.followers.is_empty() {
                self.remove(task);
            }
        }
    }

    fn remove(&mut self, task: &MoRef) -> Option<Entry> {
        let entry = self.entries.remove(task)?;
        if entry.place != Place::Unlisted {
            self.finished.push(task.clone());
        }
        Some(entry)
    }

    fn finish(&mut self, task: &MoRef, result: &Result<Option<Value>, TaskError>) {
        for follower in self.remove(task).into_iter().flat_map(|entry| entry.followers) {
            follower.cell.outcome.send_replace(Some(result.clone()));
        }
    }

    pub(super) fn finish_all(&mut self, error: &CallError) {
        for task in self.entries.keys().cloned().collect::<Vec<_>>() {
            self.finish(&task, &Err(TaskError::Call { task: task.clone(), source: error.clone() }));
        }
    }

    pub(super) fn vanished(&mut self, task: &MoRef) {
        self.finish(task, &Err(TaskError::Vanished { task: task.clone() }));
    }

    /// The list is gone; all tasks go into the next one.
    pub(super) fn restart(&mut self) {
        if let List::Ready(built) = std::mem::take(&mut self.list) {
            built.collector_gone();
        }
        (self.loaded, self.modifying, self.reading, self.paused_until) =
            (false, false, false, None);
        self.finished.clear();
        for entry in self.entries.values_mut() {
            entry.place = Place::Unlisted;
            entry.announced = false;
        }
    }

    /// All that a new list starts with.
    pub(super) fn take_all(&mut self) -> Vec<MoRef> {
        let read_at = Instant::now() + self.announcement;
        for entry in self.entries.values_mut() {
            (entry.place, entry.read_at, entry.reads) = (Place::Adding, read_at, 0);
        }
        self.entries.keys().cloned().collect()
    }

    /// What the list has to gain and lose, if it is time for a call about it.
    pub(super) fn take_modification(&mut self, resting: bool) -> Option<(Vec<MoRef>, Vec<MoRef>)> {
        let read_at = Instant::now() + self.announcement;
        let mut add = Vec::new();
        for (task, entry) in
            self.entries.iter_mut().filter(|(_, entry)| entry.place == Place::Unlisted)
        {
            (entry.place, entry.read_at) = (Place::Adding, read_at);
            add.push(task.clone());
        }
        let due = !add.is_empty()
            || self.finished.len() >= MANY_FINISHED
            || resting && !self.finished.is_empty();
        due.then(|| (add, std::mem::take(&mut self.finished)))
    }

    /// The list took them in, except those that do not exist.
    pub(super) fn added(&mut self, add: &[MoRef], unresolved: &[MoRef]) {
        for task in add {
            if let Some(entry) =
                self.entries.get_mut(task).filter(|entry| entry.place == Place::Adding)
            {
                entry.place = Place::Listed;
            }
        }
        for task in unresolved {
            self.vanished(task);
        }
    }

    pub(super) fn not_added(&mut self, add: &[MoRef]) {
        for task in add {
            if let Some(entry) =
                self.entries.get_mut(task).filter(|entry| entry.place == Place::Adding)
            {
                entry.place = Place::Unlisted;
            }
        }
    }

    pub(super) fn apply(&mut self, update: ObjectUpdate) {
        let ObjectUpdate { kind, obj, change_set, missing_set } = update;
        let Some(entry) = self.entries.get_mut(&obj) else { return };
        match kind {
            // It may have ended unseen, or be gone. A read tells.
            ObjectUpdateKind::Leave => {
                (entry.announced, entry.read_at) = (false, Instant::now());
                return;
            }
            ObjectUpdateKind::Enter => entry.properties = Properties::new(Vec::new(), missing_set),
            ObjectUpdateKind::Modify | ObjectUpdateKind::Other(_) => {}
        }
        for change in change_set {
            entry.properties.apply(change);
        }
        entry.announced = true;
        self.look(&obj);
    }

    /// Takes over what a read has shown.
    pub(super) fn read(&mut self, content: ObjectContent) {
        let task = content.obj.clone();
        if let Some(entry) = self.entries.get_mut(&task) {
            entry.properties = content.into();
            self.look(&task);
        }
    }

    fn look(&mut self, task: &MoRef) {
        let Some(entry) = self.entries.get(task) else { return };
        if let Some(result) = outcome(task, &entry.properties) {
            return self.finish(task, &result);
        }
        let now = progress(&entry.properties);
        for follower in &entry.followers {
            follower.cell.progress.send_if_modified(|before| {
                let differs = *before != now;
                before.clone_from(&now);
                differs
            });
        }
    }

    /// When a task that the stream did not announce is to be read.
    pub(super) fn next_read(&self) -> Option<Instant> {
        let silent =
            self.entries.values().filter(|entry| entry.place == Place::Listed && !entry.announced);
        silent.map(|entry| entry.read_at).min()
    }

    /// The tasks to read now; their next time is set.
    pub(super) fn take_reads(&mut self, now: Instant) -> Vec<MoRef> {
        let every = Backoff::new(self.announcement, MOST_BETWEEN_READS);
        let mut due = Vec::new();
        for (task, entry) in &mut self.entries {
            if entry.place == Place::Listed && !entry.announced && entry.read_at <= now {
                entry.reads += 1;
                entry.read_at = now + every.pause(entry.reads);
                due.push(task.clone());
            }
        }
        due
    }
}

fn progress(properties: &Properties) -> Progress {
    Progress {
        state: properties.str("info.state").map(TaskInfoState::from),
        percent: properties.i64("info.progress").and_then(|percent| percent.try_into().ok()),
    }
}

/// How the task ended, if it did.
fn outcome(task: &MoRef, properties: &Properties) -> Option<Result<Option<Value>, TaskError>> {
    if let Some(fault) = properties.unreadable("info.state") {
        let source = CallError::of_fault("WaitForUpdatesEx", fault.clone());
        return Some(Err(TaskError::Call { task: task.clone(), source }));
    }
    match properties.str("info.state").map(TaskInfoState::from)? {
        TaskInfoState::Success => Some(Ok(properties.get("info.result").cloned())),
        TaskInfoState::Error => {
            let fault = properties.get("info.error").map(fault_of).unwrap_or_default();
            Some(Err(TaskError::Failed { task: task.clone(), fault: Box::new(fault) }))
        }
        TaskInfoState::Queued | TaskInfoState::Running | TaskInfoState::Other(_) => None,
    }
}

fn fault_of(value: &Value) -> LocalizedMethodFault {
    value.as_data::<LocalizedMethodFault>().cloned().unwrap_or_else(|| LocalizedMethodFault {
        fault: Fault::of(<LocalizedMethodFault as Field>::TYPE),
        localized_message: value.as_str().map(str::to_owned),
    })
}
