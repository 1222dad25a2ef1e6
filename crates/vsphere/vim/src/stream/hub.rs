//! The one task that holds the stream.
//!
//! Nothing in here waits for the server: every call runs by itself, and its end is an event, like a command from a subscriber or a new
//! session. After each event [`Hub::pump`] starts whatever is due. Calls are tagged with the epoch of the link they
//! belong to; what arrives from an earlier one is dropped, and what it made on the server is destroyed by that.

mod events;
mod pump;
mod silence;

use std::collections::BTreeMap;
use std::sync::Arc;

use roost_vim_wire::MoRef;
use roost_vim_wire::methods::CancelWaitForUpdates;
use roost_vim_wire::types::{ObjectContent, ObjectUpdate};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use self::silence::{ReadInstead, Silence};
use super::build::Built;
use super::feed::Feed;
use super::list::ListChange;
use super::page::Page;
use super::tasks::{TaskCell, Tasks};
use super::watch::Watch;
use super::{Subscription, WatchSpec};
use crate::cleanup::SessionObject;
use crate::client_core::Core;
use crate::session::Lease;
use crate::{CallError, Faulted};

/// After this many breaks in a row a new subscriber is told that it does not work.
const BREAKS_FOR_A_NEW_WATCH: u32 = 3;

#[derive(Debug)]
pub(crate) enum Command {
    Watch {
        id: u64,
        spec: WatchSpec,
        feed: Arc<Feed>,
        asked: oneshot::Sender<Result<(), CallError>>,
    },
    Unwatch(u64),
    /// Other objects for a watch of single objects.
    Relist {
        id: u64,
        add: Vec<MoRef>,
        remove: Vec<MoRef>,
    },
    Follow {
        id: u64,
        task: MoRef,
        cell: Arc<TaskCell>,
    },
    Unfollow {
        id: u64,
        task: MoRef,
    },
    Stop(oneshot::Sender<()>),
}

impl Command {
    pub(crate) fn watch(
        id: u64,
        spec: WatchSpec,
        subscription: &Subscription,
    ) -> (Self, oneshot::Receiver<Result<(), CallError>>) {
        let (asked, answer) = oneshot::channel();
        (Self::Watch { id, spec, feed: subscription.feed(), asked }, answer)
    }
}

/// The end of a call.
enum Done {
    Connected(Result<(Lease, SessionObject), CallError>),
    WatchBuilt { id: u64, result: Result<Built, CallError> },
    WatchRelisted { id: u64, change: ListChange, result: Result<Vec<MoRef>, CallError> },
    ListBuilt { tasks: Vec<MoRef>, result: Result<(Built, Vec<MoRef>), CallError> },
    ListModified { add: Vec<MoRef>, result: Result<Vec<MoRef>, CallError> },
    TasksRead(Result<TasksRead, CallError>),
    Waited(Result<Page, CallError>),
    WaitCancelled,
    ReadInstead(Result<ReadInstead, CallError>),
}

struct TasksRead {
    found: Vec<ObjectContent>,
    vanished: Vec<MoRef>,
}

enum Link {
    Down { retry_at: Instant, lost: Option<Lease> },
    Connecting,
    Up(Box<Up>),
}

struct Up {
    lease: Lease,
    collector: SessionObject,
    version: Option<String>,
    /// The last page was not the last of its calculation.
    truncated: bool,
    /// Counts the calculations that the server was asked to begin.
    calculation: u64,
    waiting: Option<Waiting>,
    /// A cancellation is on its way. No new wait until it has arrived: it would be cancelled instead.
    cancelling: bool,
    /// Updates of filters that are not known yet: a wait can be answered with them before the call that made the filter is.
    strays: Vec<(MoRef, ObjectUpdate)>,
    /// The last wait failed on its way and is asked again with the same version.
    resuming: bool,
    /// The last wait ended without news.
    resting: bool,
    idle_since: Option<Instant>,
    /// The server cannot be waited on.
    silence: Option<Silence>,
}

struct Waiting {
    abort: AbortHandle,
    is_long: bool,
    /// By this stream itself, for a filter that the wait does not know.
    is_cancelled: bool,
}

pub(super) struct Hub {
    core: Arc<Core>,
    commands: mpsc::UnboundedReceiver<Command>,
    calls: JoinSet<(u64, Done)>,
    epoch: u64,
    link: Link,
    /// Breaks in a row without a complete load in between.
    failures: u32,
    watches: BTreeMap<u64, Watch>,
    tasks: Tasks,
}

impl Hub {
    pub(super) fn new(core: Arc<Core>, commands: mpsc::UnboundedReceiver<Command>) -> Self {
        let tasks = Tasks::new(core.settings.stream.task_announcement);
        Self {
            core,
            commands,
            calls: JoinSet::new(),
            epoch: 0,
            link: Link::Down { retry_at: Instant::now(), lost: None },
            failures: 0,
            watches: BTreeMap::new(),
            tasks,
        }
    }

    pub(super) async fn run(mut self) {
        let mut generations = self.core.session.generations();
        loop {
            self.pump();
            let alarm = self.next_alarm();
            let rung = async {
                match alarm {
                    Some(alarm) => sleep_until(alarm).await,
                    None => std::future::pending().await,
                }
            };
            let command = tokio::select! {
                // The same order each time: a run of one seed is the same run again.
                biased;
                command = self.commands.recv() => command,
                Some(done) = self.calls.join_next() => {
                    match done {
                        Ok((epoch, done)) if epoch == self.epoch => self.finish(done),
                        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
                        // Of an earlier epoch, or a wait that was given up.
                        Ok(_) | Err(_) => {}
                    }
                    continue;
                }
                Ok(()) = generations.changed() => {
                    self.follow_session(*generations.borrow_and_update());
                    continue;
                }
                () = rung => continue,
            };
            let mut next = command;
            // All that were sent at once are taken at once, so that many tasks enter the list with one call.
            loop {
                match next {
                    Some(Command::Stop(done)) => {
                        self.stop().await;
                        let _ = done.send(());
                        return;
                    }
                    Some(command) => self.obey(command),
                    None => return,
                }
                match self.commands.try_recv() {
                    Ok(command) => next = Some(command),
                    Err(_) => break,
                }
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Watch { id, spec, feed, asked } => {
                self.watches.insert(id, Watch::new(spec, feed, asked));
            }
            Command::Unwatch(id) => {
                self.watches.remove(&id);
            }
            Command::Relist { id, add, remove } => {
                if let Some(list) = self.watches.get_mut(&id).and_then(|watch| watch.list.as_mut())
                {
                    list.change(add, &remove);
                }
            }
            Command::Follow { id, task, cell } => self.tasks.follow(id, task, cell),
            Command::Unfollow { id, task } => self.tasks.unfollow(id, &task),
            Command::Stop(_) => {}
        }
    }

    async fn stop(&mut self) {
        if let Link::Up(up) = &self.link
            && up.waiting.is_some()
        {
            let call = CancelWaitForUpdates { this: up.collector.moref().clone() };
            if let Err(error) = self.core.call_in(&up.lease, &call).await {
                tracing::debug!("the last wait was not cancelled: {error}");
            }
        }
        self.calls.abort_all();
        self.take_down(None);
        self.watches.clear();
        self.tasks.finish_all(&CallError::ShuttingDown);
    }

    /// Everything on the server is lost or given up; it is built anew, at once the first time and with pauses after that.
    fn break_link(&mut self, error: Option<&CallError>) {
        let lost = match &self.link {
            Link::Up(up) => Some(up.lease.clone()),
            Link::Down { .. } | Link::Connecting => None,
        };
        let lost = lost.filter(|_| error.is_some_and(CallError::is_session_lost));
        self.failures += 1;
        let pause = self.core.stream_backoff().pause(self.failures - 1);
        if let Some(error) = error {
            tracing::warn!(
                failures = self.failures,
                "the property stream broke and starts over in {pause:?}: {error}"
            );
            self.refuse_new_watches(error);
        }
        self.take_down(error);
        self.link = Link::Down { retry_at: Instant::now() + pause, lost };
    }

    /// Those who wait to hear whether their watch works are not kept waiting for a server that is away.
    fn refuse_new_watches(&mut self, error: &CallError) {
        let is_passing = error.is_session_lost() || error.fault().is_some();
        if is_passing && self.failures < BREAKS_FOR_A_NEW_WATCH {
            return;
        }
        self.watches.retain(|_, watch| {
            let is_new = watch.asked.is_some();
            if is_new {
                watch.answer(Err(error.clone()));
            }
            !is_new
        });
    }

    /// Drops the server side; what still exists there is destroyed by that.
    fn take_down(&mut self, trouble: Option<&CallError>) {
        self.epoch += 1;
        let link =
            std::mem::replace(&mut self.link, Link::Down { retry_at: Instant::now(), lost: None });
        if let Link::Up(up) = link
            && let Some(waiting) = up.waiting
        {
            waiting.abort.abort();
        }
        self.watches.values_mut().for_each(|watch| watch.restart(trouble.cloned()));
        self.tasks.restart();
    }
}

/// Whether the server counts its versions, so that an old one can be told from a new one. vcsim says `-` and `P` for ever.
fn counts(version: &str) -> bool {
    version.bytes().any(|byte| byte.is_ascii_digit())
}
