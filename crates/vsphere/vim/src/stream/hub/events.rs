//! What the hub does with the end of each call.

use roost_vim_wire::types::ObjectUpdate;
use roost_vim_wire::{MoRef, MoType};
use tokio::time::Instant;

use super::silence::BREAKS_BEFORE_READS;
use super::{Done, Hub, Link, TasksRead, Up, counts};
use crate::cleanup::SessionObject;
use crate::session::Lease;
use crate::stream::build::Built;
use crate::stream::list::ListChange;
use crate::stream::page::Page;
use crate::stream::tasks::List;
use crate::stream::watch::{Place, Watch};
use crate::{CallError, Faulted};

impl Hub {
    pub(super) fn follow_session(&mut self, generation: u64) {
        match &mut self.link {
            Link::Up(up) if up.lease.generation != generation => {
                tracing::debug!(generation, "the stream moves to the new session");
                self.break_link(None);
            }
            // Someone got through: no need to wait any longer.
            Link::Down { retry_at, .. } => *retry_at = Instant::now(),
            Link::Connecting | Link::Up(_) => {}
        }
    }

    pub(super) fn finish(&mut self, done: Done) {
        match done {
            Done::Connected(result) => self.connected(result),
            Done::WatchBuilt { id, result } => self.watch_built(id, result),
            Done::WatchRelisted { id, change, result } => self.watch_relisted(id, change, result),
            Done::ListBuilt { tasks, result } => self.list_built(&tasks, result),
            Done::ListModified { add, result } => self.list_modified(&add, result),
            Done::TasksRead(result) => self.tasks_read(result),
            Done::Waited(result) => self.waited(result),
            Done::ReadInstead(result) => self.read_instead(result),
            Done::WaitCancelled => {
                if let Link::Up(up) = &mut self.link {
                    up.cancelling = false;
                }
            }
        }
    }

    fn connected(&mut self, result: Result<(Lease, SessionObject), CallError>) {
        match result {
            Ok((lease, collector)) => {
                self.link = Link::Up(Box::new(Up {
                    lease,
                    collector,
                    version: None,
                    truncated: false,
                    calculation: 0,
                    waiting: None,
                    cancelling: false,
                    strays: Vec::new(),
                    resuming: false,
                    resting: false,
                    idle_since: None,
                    silence: None,
                }));
            }
            Err(error) => self.break_link(Some(&error)),
        }
    }

    fn watch_built(&mut self, id: u64, result: Result<Built, CallError>) {
        let Link::Up(up) = &mut self.link else { return };
        // A watch that was dropped meanwhile: what was built for it goes with `result`.
        let Some(watch) = self.watches.get_mut(&id) else { return };
        match result {
            Ok(mut built) => {
                built.during = up.calculation;
                watch.missing(std::mem::take(&mut built.missing));
                for update in up.take_strays(built.filter()) {
                    watch.apply(update);
                }
                watch.place = Place::Built(built);
                watch.publish();
                if !watch.answer(Ok(())) {
                    self.watches.remove(&id);
                }
            }
            Err(error) if Self::is_link_lost(&error) => self.break_link(Some(&error)),
            Err(error) if watch.asked.is_some() => {
                watch.answer(Err(error));
                self.watches.remove(&id);
            }
            Err(error) => {
                watch.failures += 1;
                let pause = self.core.stream_backoff().pause(watch.failures);
                watch.place = Place::Unbuilt(Some(Instant::now() + pause));
                tracing::warn!("a watch cannot be built again and is tried in {pause:?}: {error}");
                watch.trouble(error);
            }
        }
    }

    fn watch_relisted(
        &mut self,
        id: u64,
        change: ListChange,
        result: Result<Vec<MoRef>, CallError>,
    ) {
        let Some(watch) = self.watches.get_mut(&id) else { return };
        let Some(list) = &mut watch.list else { return };
        match result {
            Ok(missing) => {
                watch.failures = 0;
                list.changed(change);
                watch.missing(missing);
                watch.publish();
            }
            Err(error) if Self::is_link_lost(&error) => self.break_link(Some(&error)),
            Err(error) => {
                watch.failures += 1;
                let pause = self.core.stream_backoff().pause(watch.failures);
                list.not_changed(Instant::now() + pause);
                tracing::warn!("the list of a watch is changed again in {pause:?}: {error}");
            }
        }
    }

    fn list_built(&mut self, listed: &[MoRef], result: Result<(Built, Vec<MoRef>), CallError>) {
        let Link::Up(up) = &mut self.link else { return };
        match result {
            Ok((mut built, unresolved)) => {
                built.during = up.calculation;
                let strays = up.take_strays(built.filter());
                self.tasks.list = List::Ready(built);
                self.tasks.added(listed, &unresolved);
                for update in strays {
                    self.tasks.apply(update);
                }
            }
            Err(error) if Self::is_link_lost(&error) => self.break_link(Some(&error)),
            Err(error) => {
                self.tasks.list = List::Absent;
                self.pause_tasks(listed, &error);
            }
        }
    }

    fn list_modified(&mut self, add: &[MoRef], result: Result<Vec<MoRef>, CallError>) {
        self.tasks.modifying = false;
        match result {
            Ok(unresolved) => {
                self.tasks.added(add, &unresolved);
                if let Link::Up(up) = &mut self.link {
                    up.resting = false;
                }
            }
            Err(error) if Self::is_link_lost(&error) => self.break_link(Some(&error)),
            Err(error) => self.pause_tasks(add, &error),
        }
    }

    fn pause_tasks(&mut self, add: &[MoRef], error: &CallError) {
        tracing::warn!("tasks could not be added to the stream: {error}");
        self.tasks.not_added(add);
        self.tasks.paused_until = Some(Instant::now() + self.core.settings.stream.first_pause);
    }

    fn tasks_read(&mut self, result: Result<TasksRead, CallError>) {
        self.tasks.reading = false;
        match result {
            Ok(TasksRead { found, vanished }) => {
                for content in found {
                    self.tasks.read(content);
                }
                for task in &vanished {
                    self.tasks.vanished(task);
                }
            }
            Err(error) if Self::is_link_lost(&error) => self.break_link(Some(&error)),
            Err(error) => tracing::warn!("tasks could not be read: {error}"),
        }
    }

    fn waited(&mut self, result: Result<Page, CallError>) {
        let Link::Up(up) = &mut self.link else { return };
        let Some(waiting) = up.waiting.take() else { return };
        match result {
            Ok(page) => {
                up.resuming = false;
                if up.silence.take().is_some() {
                    tracing::info!("the server can be waited on again");
                    self.watches.values_mut().for_each(Watch::load_anew);
                }
                up.resting = waiting.is_long && page.updates.is_empty();
                self.apply(page);
            }
            // By this stream itself. Anyone else's cancellation is an answer lost.
            Err(error) if error.is_cancelled() && (waiting.is_cancelled || up.resuming) => {}
            Err(error) if Self::is_link_lost(&error) => self.break_link(Some(&error)),
            Err(error) => {
                // A version that the server counts may be asked again after a lost answer, unless it stood for half a page set.
                let can_resume =
                    !up.resuming && !up.truncated && up.version.as_deref().is_some_and(counts);
                if can_resume {
                    tracing::warn!("the stream lost an answer and asks again: {error}");
                    up.resuming = true;
                } else if self.failures >= BREAKS_BEFORE_READS
                    && self.core.settings.stream.read_instead.is_some()
                {
                    self.fall_silent(error);
                } else {
                    self.break_link(Some(&error));
                }
            }
        }
    }

    fn apply(&mut self, page: Page) {
        let is_building = self.is_building();
        let Link::Up(up) = &mut self.link else { return };
        if !is_building {
            // Of filters that are being destroyed.
            up.strays.clear();
        }
        let by_filter: Vec<(MoRef, u64)> = self
            .watches
            .iter()
            .filter_map(|(id, watch)| match &watch.place {
                Place::Built(built) => Some((built.filter().clone(), *id)),
                Place::Unbuilt(_) | Place::Building => None,
            })
            .collect();
        let task_filter = match &self.tasks.list {
            List::Ready(built) => Some((built.filter().clone(), built.during)),
            List::Absent | List::Building => None,
        };
        // After all else: who hears that a task has ended finds what it changed.
        let mut of_tasks = Vec::new();
        for (filter, update) in page.updates {
            if let Some((_, id)) = by_filter.iter().find(|(known, _)| *known == filter) {
                if let Some(watch) = self.watches.get_mut(id) {
                    watch.apply(update);
                }
            } else if task_filter.as_ref().is_some_and(|(known, _)| *known == filter) {
                of_tasks.push(update);
            } else if is_building {
                up.strays.push((filter, update));
            }
        }
        for update in of_tasks {
            self.tasks.apply(update);
        }
        if let Some(version) = page.version {
            up.version = Some(version);
        }
        up.truncated = page.truncated;
        let mut resynced = false;
        if !page.truncated {
            self.failures = 0;
            let now = self.core.clock.now();
            for watch in self.watches.values_mut() {
                if matches!(&watch.place, Place::Built(built) if built.during < up.calculation) {
                    resynced |= watch.loaded(now);
                }
            }
            self.tasks.loaded |= task_filter.is_some_and(|(_, during)| during < up.calculation);
        }
        if resynced {
            self.core.settings.hooks.stream_resynced();
        }
        for watch in self.watches.values() {
            watch.publish();
        }
    }

    /// Whether an error means that the collector or its session is gone.
    pub(super) fn is_link_lost(error: &CallError) -> bool {
        error.is_session_lost()
            || error.is_fault("InvalidCollectorVersion")
            || error.missing_object().is_some_and(|missing| is_of_stream(&missing))
    }
}

impl Up {
    fn take_strays(&mut self, filter: &MoRef) -> Vec<ObjectUpdate> {
        let strays = std::mem::take(&mut self.strays);
        let (own, others): (Vec<_>, Vec<_>) = strays.into_iter().partition(|(of, _)| of == filter);
        self.strays = others;
        own.into_iter().map(|(_, update)| update).collect()
    }
}

/// What the stream keeps on the server. A server that forgot one of these forgot the session or the collector.
fn is_of_stream(missing: &MoRef) -> bool {
    matches!(
        missing.kind,
        MoType::PropertyCollector
            | MoType::PropertyFilter
            | MoType::ContainerView
            | MoType::ListView
    )
}
