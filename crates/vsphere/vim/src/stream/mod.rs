//! The property stream: what is watched, and what comes of it.
//!
//! One hub per client holds one property collector and one outstanding `WaitForUpdatesEx` for all subscriptions and all tasks.
//! Each subscription has a view and a filter of its own in it. When the collector is lost, with its session or without,
//! the hub builds everything anew and loads it from the empty version. A subscriber sees objects that are still there
//! entering once more, and objects leaving only when the new load is complete and lacks them.

mod build;
mod feed;
mod hub;
mod list;
mod page;
mod spec;
mod subscription;
mod tasks;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot};

pub(crate) use self::hub::Command;
use self::hub::Hub;
pub use self::spec::{WatchSpec, Watched};
pub use self::subscription::{Batch, Change, StreamStatus, Subscription, Update};
pub(crate) use self::tasks::TaskCell;
use crate::client_core::Core;

/// The way to the hub.
#[derive(Debug, Default)]
pub(crate) struct HubSlot(Mutex<Slot>);

#[derive(Debug, Default)]
enum Slot {
    /// It starts when it is first needed.
    #[default]
    NotStarted,
    Started(mpsc::UnboundedSender<Command>),
    /// For good: the client has ended.
    Stopped,
}

impl HubSlot {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the stream down and waits until that is done.
    pub(crate) async fn stop(&self) {
        let slot = std::mem::replace(&mut *self.lock(), Slot::Stopped);
        if let Slot::Started(commands) = slot {
            let (done, wait) = oneshot::channel();
            if commands.send(Command::Stop(done)).is_ok() {
                let _ = wait.await;
            }
        }
    }
}

impl Core {
    /// Starts the hub if it does not run, for the first time or after a panic. Commands to a stopped one find nobody.
    pub(crate) fn hub_commands(self: &Arc<Self>) -> mpsc::UnboundedSender<Command> {
        let mut slot = self.hub.lock();
        if let Slot::Started(commands) = &*slot
            && !commands.is_closed()
        {
            return commands.clone();
        }
        let (commands, receiver) = mpsc::unbounded_channel();
        if !matches!(*slot, Slot::Stopped) {
            *slot = Slot::Started(commands.clone());
            let core = Arc::clone(self);
            let hub = Hub::new(Arc::clone(self), receiver);
            self.runtime.spawn(async move {
                // Its subscriptions have ended then, and its tasks are answered; the next that comes starts another.
                if let Err(error) = core.runtime.spawn(hub.run()).await {
                    core.note_panic("property stream", &error);
                }
            });
        }
        commands
    }
}
