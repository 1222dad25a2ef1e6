//! The property stream: what is watched, and what comes of it.
//!
//! One hub per client holds one property collector and one outstanding `WaitForUpdatesEx` for all subscriptions and all tasks.
//! Each subscription has a view and a filter of its own in it. When the collector is lost, with its session or without,
//! the hub builds everything anew and loads it from the empty version. A subscriber sees objects that are still there
//! entering once more, and objects leaving only when the new load is complete and lacks them.

mod build;
mod feed;
mod hub;
mod page;
mod spec;
mod subscription;
mod tasks;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{mpsc, oneshot};

pub(crate) use self::hub::Command;
use self::hub::Hub;
pub use self::spec::{WatchSpec, Watched};
pub use self::subscription::{Batch, Change, StreamStatus, Subscription, Update};
pub(crate) use self::tasks::TaskCell;
use crate::client_core::Core;

/// The way to the hub, which starts when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct HubSlot {
    commands: Mutex<Option<mpsc::UnboundedSender<Command>>>,
}

impl HubSlot {
    /// Takes the stream down and waits until that is done.
    pub(crate) async fn stop(&self) {
        let commands = self.commands.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(commands) = commands {
            let (done, wait) = oneshot::channel();
            if commands.send(Command::Stop(done)).is_ok() {
                let _ = wait.await;
            }
        }
    }
}

impl Core {
    /// Starts the hub if it does not run, for the first time or after a panic.
    pub(crate) fn hub_commands(self: &Arc<Self>) -> mpsc::UnboundedSender<Command> {
        let mut slot = self.hub.commands.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(commands) = slot.as_ref().filter(|commands| !commands.is_closed()) {
            return commands.clone();
        }
        let (commands, receiver) = mpsc::unbounded_channel();
        // A closed client keeps none: a command to it finds its hub gone.
        if !self.session.is_closed() {
            *slot = Some(commands.clone());
            let core = Arc::clone(self);
            let hub = Hub::new(Arc::clone(self), receiver);
            self.runtime.spawn(async move {
                let ran = core.runtime.spawn(hub.run()).await;
                if ran.is_err_and(|error| error.is_panic()) {
                    tracing::error!("the property stream panicked; its subscriptions have ended");
                    core.settings.hooks.background_panicked("stream");
                }
            });
        }
        commands
    }
}
