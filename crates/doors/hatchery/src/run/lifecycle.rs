//! From the start of a hatchery to its end.

use tokio::sync::{SetOnce, watch};

use super::Stopped;

/// Whether decisions can be made yet, and whether it can go on.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    /// Whether everything was read once, so that decisions can be made.
    open: watch::Sender<bool>,
    /// The same for the loops, which begin in the order of their starts: `watch` wakes its waiters in random order, which would break replay by seed.
    opened: SetOnce<()>,
    stopped: watch::Sender<Option<Stopped>>,
}

impl Lifecycle {
    /// Waits until decisions can be made.
    pub(crate) async fn opened(&self) {
        self.opened.wait().await;
    }

    pub(crate) fn is_open(&self) -> bool {
        *self.open.borrow()
    }

    /// Lets the loops decide.
    pub(super) fn set_open(&self) {
        // Set already if whoever opens began anew after a panic.
        let _ = self.opened.set(());
        self.open.send_replace(true);
    }

    pub(super) fn follow_open(&self) -> watch::Receiver<bool> {
        self.open.subscribe()
    }

    /// Ends the service with this reason.
    pub(crate) fn stop(&self, why: Stopped) {
        self.stopped.send_if_modified(|stopped| {
            let is_first = stopped.is_none();
            if is_first {
                *stopped = Some(why);
            }
            is_first
        });
    }

    pub(super) fn stopped(&self) -> watch::Receiver<Option<Stopped>> {
        self.stopped.subscribe()
    }
}
