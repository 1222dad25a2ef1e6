//! What the hub starts: after each event, whatever is due and not under way.

use std::sync::Arc;
use std::time::Duration;

use roost_vim_wire::MoRef;
use roost_vim_wire::methods::{CancelWaitForUpdates, ModifyListView};
use roost_vim_wire::types::PropertyFilterSpec;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

use super::{Done, Hub, Link, TasksRead, Waiting, counts};
use crate::client_core::Core;
use crate::retrieve::properties_spec;
use crate::session::Lease;
use crate::stream::tasks::{self, List};
use crate::stream::watch::{Place, Watch};
use crate::{CallError, Faulted};

impl Hub {
    pub(super) fn has_work(&self) -> bool {
        !self.watches.is_empty() || !self.tasks.is_empty()
    }

    fn start(&mut self, call: impl Future<Output = Done> + Send + 'static) -> AbortHandle {
        let epoch = self.epoch;
        self.calls.spawn(async move { (epoch, call.await) })
    }

    /// The next moment at which something is due without an event.
    pub(super) fn next_alarm(&self) -> Option<Instant> {
        match &self.link {
            Link::Down { retry_at, .. } => self.has_work().then_some(*retry_at),
            Link::Connecting => None,
            Link::Up(up) => {
                let unbuilt = self.watches.values().filter_map(|watch| match watch.place {
                    Place::Unbuilt(not_before) => not_before,
                    Place::Building | Place::Built(_) => None,
                });
                let paused = self.watches.values().filter_map(|watch| {
                    watch.list.as_ref().filter(|list| !list.is_due(Instant::now()))?.paused_until
                });
                let idle = up.idle_since.map(|since| since + self.core.settings.stream.max_wait);
                let reads = !self.tasks.reading && up.silence.is_none();
                let read = self.tasks.next_read().filter(|_| reads);
                let silent = up.silence.as_ref().filter(|_| up.waiting.is_none());
                let silent = silent.map(|silence| silence.read_at);
                let rest = silent.into_iter().chain(self.tasks.paused_until);
                unbuilt.chain(paused).chain(idle).chain(read).chain(rest).min()
            }
        }
    }

    /// Starts whatever is due.
    pub(super) fn pump(&mut self) {
        match &self.link {
            Link::Down { retry_at, .. } if self.has_work() && *retry_at <= Instant::now() => {
                self.connect();
            }
            Link::Down { .. } | Link::Connecting => {}
            Link::Up(_) => {
                self.tasks.wake();
                self.build_watches();
                self.relist_watches();
                self.build_list();
                self.modify_list();
                self.read_tasks();
                self.wait();
            }
        }
    }

    fn connect(&mut self) {
        let Link::Down { lost, .. } = std::mem::replace(&mut self.link, Link::Connecting) else {
            return;
        };
        let core = Arc::clone(&self.core);
        self.start(async move { Done::Connected(core.build_collector(lost).await) });
    }

    fn build_watches(&mut self) {
        let Link::Up(up) = &self.link else { return };
        let (lease, collector) = (up.lease.clone(), up.collector.moref().clone());
        let now = Instant::now();
        let mut due = Vec::new();
        for (id, watch) in &mut self.watches {
            if matches!(watch.place, Place::Unbuilt(not_before) if not_before.is_none_or(|time| time <= now))
            {
                due.push((*id, watch.begin_building()));
            }
        }
        for (id, spec) in due {
            let (core, lease, collector) =
                (Arc::clone(&self.core), lease.clone(), collector.clone());
            self.start(async move {
                Done::WatchBuilt { id, result: core.build_watch(&lease, &collector, spec).await }
            });
        }
    }

    /// Brings the server's lists up to what subscribers want to see.
    fn relist_watches(&mut self) {
        let Link::Up(up) = &self.link else { return };
        let lease = up.lease.clone();
        let announces = up.version.as_deref().is_none_or(counts);
        let now = Instant::now();
        let mut due = Vec::new();
        for (id, watch) in &mut self.watches {
            let (Place::Built(built), Some(list)) = (&watch.place, &mut watch.list) else {
                continue;
            };
            if !list.is_due(now) {
                continue;
            }
            if announces {
                due.push((*id, built.view().clone(), list.begin_change()));
            } else {
                // Such a server does not tell what enters a list. A new list is loaded whole.
                watch.rebuild();
            }
        }
        for (id, view, change) in due {
            let (core, lease) = (Arc::clone(&self.core), lease.clone());
            self.start(async move {
                let (add, remove) = (change.add.clone(), change.remove.clone());
                let call = ModifyListView { this: view, add, remove };
                Done::WatchRelisted { id, change, result: core.call_in(&lease, &call).await }
            });
        }
        if !announces {
            self.build_watches();
        }
    }

    fn build_list(&mut self) {
        let Link::Up(up) = &self.link else { return };
        if self.tasks.is_empty()
            || !matches!(self.tasks.list, List::Absent)
            || self.tasks.paused_until.is_some()
        {
            return;
        }
        let (core, lease, collector) =
            (Arc::clone(&self.core), up.lease.clone(), up.collector.moref().clone());
        self.tasks.list = List::Building;
        let listed = self.tasks.take_all();
        self.start(async move {
            let build = async {
                let (view, unresolved) = core.build_list(&lease, listed.clone()).await?;
                Ok((
                    core.build_filter(&lease, &collector, view, tasks::properties()).await?,
                    unresolved,
                ))
            };
            let result = build.await;
            Done::ListBuilt { tasks: listed, result }
        });
    }

    fn modify_list(&mut self) {
        let (Link::Up(up), List::Ready(list)) = (&self.link, &self.tasks.list) else { return };
        if self.tasks.modifying || self.tasks.paused_until.is_some() {
            return;
        }
        let (core, lease, view, resting) =
            (Arc::clone(&self.core), up.lease.clone(), list.view().clone(), up.resting);
        let Some((add, remove)) = self.tasks.take_modification(resting) else { return };
        self.tasks.modifying = true;
        self.start(async move {
            let call = ModifyListView { this: view, add, remove };
            let result = core.call_in(&lease, &call).await;
            Done::ListModified { add: call.add, result }
        });
    }

    /// Only for servers that do not announce what enters a list view.
    fn read_tasks(&mut self) {
        let (Link::Up(up), List::Ready(list)) = (&self.link, &self.tasks.list) else { return };
        // In silence they are read with everything else.
        if up.silence.is_some() {
            return;
        }
        if self.tasks.reading || self.tasks.next_read().is_none_or(|time| time > Instant::now()) {
            return;
        }
        let (core, lease, view) = (Arc::clone(&self.core), up.lease.clone(), list.view().clone());
        let due = self.tasks.take_reads(Instant::now());
        self.tasks.reading = true;
        self.start(async move { Done::TasksRead(read_list(&core, &lease, &view, due).await) });
    }

    /// Keeps one wait going, and interrupts it for a filter that it does not know.
    fn wait(&mut self) {
        let (has_work, is_loading, is_building) =
            (self.has_work(), self.is_loading(), self.is_building());
        let settings = &self.core.settings.stream;
        let Link::Up(up) = &mut self.link else { return };
        if let Some(waiting) = &mut up.waiting {
            if waiting.is_long && !waiting.is_cancelled && is_loading {
                (waiting.is_cancelled, up.cancelling) = (true, true);
                let call = CancelWaitForUpdates { this: up.collector.moref().clone() };
                let (core, lease) = (Arc::clone(&self.core), up.lease.clone());
                self.start(async move {
                    if let Err(error) = core.call_in(&lease, &call).await {
                        tracing::debug!("the wait was not interrupted: {error}");
                    }
                    Done::WaitCancelled
                });
            }
            return;
        }
        if up.cancelling {
            return;
        }
        if !has_work {
            let since = *up.idle_since.get_or_insert_with(Instant::now);
            if since + settings.max_wait <= Instant::now() {
                self.take_down(None);
            }
            return;
        }
        up.idle_since = None;
        let has_filter = self.watches.values().any(|watch| matches!(watch.place, Place::Built(_)))
            || matches!(self.tasks.list, List::Ready(_));
        // The first page is worth waiting for all filters: it loads them together.
        if !has_filter || up.version.is_none() && is_building {
            return;
        }
        if let Some(silence) = &up.silence {
            if is_loading || silence.read_at <= Instant::now() {
                self.begin_reads();
            }
            return;
        }
        if !up.truncated {
            up.calculation += 1;
        }
        let is_long = !is_loading && !up.truncated;
        let max_wait = if is_long { settings.max_wait } else { Duration::ZERO };
        // A server without real versions shows a new filter only to a wait that has none.
        let fresh = is_loading
            && !up.truncated
            && up.version.as_deref().is_some_and(|version| !counts(version));
        let version = if fresh { None } else { up.version.clone() };
        let (core, lease, collector) =
            (Arc::clone(&self.core), up.lease.clone(), up.collector.moref().clone());
        let resume = up.resuming.then_some(settings.first_pause);
        let epoch = self.epoch;
        let abort = self.calls.spawn(async move {
            if let Some(pause) = resume {
                sleep(pause).await;
                // The server may still hold the wait whose answer was lost, and allows only one.
                let call = CancelWaitForUpdates { this: collector.clone() };
                if let Err(error) = core.call_in(&lease, &call).await {
                    return (epoch, Done::Waited(Err(error)));
                }
            }
            (epoch, Done::Waited(core.wait_for_updates(&lease, collector, version, max_wait).await))
        });
        up.waiting = Some(Waiting { abort, is_long, is_cancelled: false });
    }

    /// Whether a filter exists that no complete page covers yet.
    fn is_loading(&self) -> bool {
        let unloaded = |watch: &Watch| matches!(watch.place, Place::Built(_)) && !watch.is_loaded();
        self.watches.values().any(unloaded)
            || matches!(self.tasks.list, List::Ready(_)) && !self.tasks.loaded
    }

    pub(super) fn is_building(&self) -> bool {
        self.watches.values().any(|watch| matches!(watch.place, Place::Building))
            || matches!(self.tasks.list, List::Building)
    }
}

/// Reads all tasks of the list in one call. One that is not among them is asked for by itself before it counts as gone.
async fn read_list(
    core: &Core,
    lease: &Lease,
    view: &MoRef,
    due: Vec<MoRef>,
) -> Result<TasksRead, CallError> {
    let found =
        core.retrieve_in(lease, PropertyFilterSpec::of_view(view, tasks::properties())).await?;
    let mut read = TasksRead { found, vanished: Vec::new() };
    for task in due {
        if read.found.iter().any(|content| content.obj == task) {
            continue;
        }
        match core.retrieve_in(lease, properties_spec(&task, &tasks::PATHS)).await {
            Ok(found) => read.found.extend(found),
            Err(error) if error.missing_object().is_some_and(|missing| missing == task) => {
                read.vanished.push(task);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
